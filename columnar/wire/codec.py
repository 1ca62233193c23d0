"""(pure) The codec of a service of the IDL: requests to calls and results to replies, in both protocols.

Requests are decoded to ``Request``: the method and its arguments in the order of the IDL.  Structs become objects of
the classes of ``definitions``; an omitted field has its default or None.  Replies are encoded from the results of
handlers:

    list<TRowResult>  RowList(rows, sorted)           hand-packed
    list<TCell>       [(value, timestamp), ...]       hand-packed
    TResult           Result(row, cells, partial)     hand-packed
    list<TResult>     Results([Result, ...])          hand-packed
    void              None
    everything else   structs, lists, dicts and plain values, as the IDL has them

On one core of a 2-core machine (CPython 3.11) the binary protocol packs 2.7 M cells/s (2.5 M as sorted columns);
structs and thriftpy2's C codec reach 1.4 M/s.  The compact protocol packs 3.5 M cells/s (3.1 M as sorted columns).
thriftpy2, which has no C codec for compact, reaches 0.1 M/s: 14,000 cells blocked the loop for 140 ms.

Knows nothing of frames, connections and handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final

from columnar.wire import codec_binary, codec_compact
from columnar.wire.codec_binary import BOOL, I32, I64, LIST, STRING, STRUCT, Reader, spec_of_field
from columnar.wire.codec_replies import (
    cells_success,
    compact_cells_success,
    compact_rows_success,
    rows_success,
    varint,
)
from columnar.wire.codec_results import (
    compact_result_success,
    compact_results_success,
    result_success,
    results_success,
)
from columnar.wire.codec_structs import binary_field, compact_field
from columnar.wire.definitions import Defaults, ServiceDefinition, Signature, Spec
from columnar.wire.detect import Protocol
from columnar.wire.faults import Malformed

CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4
# kinds of TApplicationException
UNKNOWN_METHOD, INVALID_MESSAGE_TYPE, INTERNAL_ERROR, PROTOCOL_ERROR = 1, 2, 6, 7

_U32 = Struct(">I").pack
_I32 = Struct(">i").pack
_BOOL_SUCCESS: Final = (b"\x02\x00\x00\x00\x00", b"\x02\x00\x00\x01\x00")
_I32_SUCCESS = Struct(">BHiB").pack
_I64_SUCCESS = Struct(">BHqB").pack


class Method:
    """A method of the IDL.  Its readers are made at the first call, because most methods are never called.

    Used by one thread.
    """

    __slots__ = (
        "_binary_args",
        "_binary_head",
        "_budget",
        "_compact_args",
        "_signature",
        "name",
        "oneway",
        "pack_binary",
        "pack_compact",
        "throws",
    )

    def __init__(self, name: str, signature: Signature, budget: codec_binary.Budget) -> None:
        self.name = name
        self.oneway: bool = signature.oneway
        self._signature = signature
        self._budget = budget
        self._binary_args: Reader | None = None
        self._compact_args: Reader | None = None
        spec = signature.result
        self.throws: dict[type, int] = {field[2]: field_id for field_id, field in spec.items() if field_id}
        success = spec_of_field(spec[0]) if 0 in spec else None
        self.pack_binary = _packer(success)
        self.pack_compact = _compact_packer(success)
        self._binary_head = _binary_head(name.encode(), REPLY)

    def __repr__(self) -> str:
        return f"Method({self.name})"

    def args_reader(self, protocol: Protocol) -> Reader:
        if protocol is Protocol.BINARY:
            reader = self._binary_args
            if reader is None:
                reader = self._binary_args = self._made(codec_binary.fields_reader)
        else:
            reader = self._compact_args
            if reader is None:
                reader = self._compact_args = self._made(codec_compact.fields_reader)
        return reader

    def _made(self, fields_reader: Callable[[Spec, Defaults, codec_binary.Budget], Reader]) -> Reader:
        return fields_reader(self._signature.args, self._signature.args_defaults, self._budget)

    def reply(self, protocol: Protocol, seqid: int, result: Any) -> bytes:
        """Return the message that answers a call; raises if the IDL does not allow the handler's result."""
        if protocol is Protocol.BINARY:
            return self._binary_head + _I32(seqid) + self.pack_binary(result)
        return _compact_head(self.name.encode(), REPLY, seqid) + self.pack_compact(result)

    def call_message(self, protocol: Protocol, seqid: int, args: Sequence[Any]) -> bytes:
        """Return the message of a call with these arguments, in the order of the IDL; None stands for a missing one."""
        name, last = self.name.encode(), 0
        binary = protocol is Protocol.BINARY
        parts = [_binary_head(name, CALL) + _I32(seqid) if binary else _compact_head(name, CALL, seqid)]
        for field_id, value in zip(sorted(self._signature.args), args, strict=False):
            if value is not None:
                spec = spec_of_field(self._signature.args[field_id])
                parts.append(
                    binary_field(field_id, spec, value) if binary else compact_field(field_id, spec, value, last)
                )
                last = field_id
        return b"".join([*parts, b"\x00"])

    def declares(self, error: object) -> bool:
        return type(error) in self.throws

    def declared_error(self, protocol: Protocol, seqid: int, error: Any) -> bytes:
        """Return the message that answers with ``error``, an exception that the method's ``throws`` declares."""
        field_id, spec = self.throws[type(error)], (STRUCT, type(error))
        if protocol is Protocol.BINARY:
            return b"%b%b%b\x00" % (self._binary_head, _I32(seqid), binary_field(field_id, spec, error))
        return b"%b%b\x00" % (_compact_head(self.name.encode(), REPLY, seqid), compact_field(field_id, spec, error))


class Request:
    """A decoded call.  Constant, except that a call with a pending answer drops data that it no longer needs."""

    __slots__ = ("args", "buffer", "kind", "method", "name", "seqid", "size_bytes", "start")

    def __init__(
        self,
        method: Method | None,
        name: bytes,
        kind: int,
        seqid: int,
        args: list[Any],
        size_bytes: int,
        buffer: bytes = b"",
        start: int = 0,
    ) -> None:
        self.method = method  # None: no such method; then there are no arguments
        self.name = name  # as it was sent
        self.kind = kind
        self.seqid = seqid
        self.args = args
        self.size_bytes = size_bytes
        self.buffer = buffer  # the received message at ``start``, perhaps more; empty if it was dropped
        self.start = start

    @property
    def message(self) -> bytes:
        """The received message without its frame or HTTP; copied if the buffer has more than the message."""
        return self.buffer[self.start : self.start + self.size_bytes]

    def replace_message(self, message: bytes) -> None:
        """Set the message of a call whose arguments were changed."""
        self.buffer, self.start, self.size_bytes = message, 0, len(message)

    def drop_message(self) -> None:
        """Drop the received message, which only a forwarded call needs."""
        self.buffer = b""

    def drop_rows(self) -> None:
        """Empty the lists among the arguments to free memory.  The lists keep their lengths, for the slow log."""
        self.args = [[None] * len(one) if isinstance(one, list) else one for one in self.args]

    def drop_args(self) -> None:
        self.args = []


def application_error(name: bytes, protocol: Protocol, seqid: int, kind: int, text: str) -> bytes:
    """Return the message for a fault that no method declares; ``kind`` is a kind of TApplicationException."""
    if protocol is Protocol.BINARY:
        fields = binary_field(1, STRING, text) + binary_field(2, I32, kind)
        return b"%b%b%b\x00" % (_binary_head(name, EXCEPTION), _I32(seqid), fields)
    fields = compact_field(1, STRING, text) + compact_field(2, I32, kind, last=1)
    return b"%b%b\x00" % (_compact_head(name, EXCEPTION, seqid), fields)


class ServiceCodec:
    """All methods of a service.  Used by one thread only, because all decoding shares one ``Budget``."""

    def __init__(self, service: ServiceDefinition, pause: Callable[[], object] | None = None) -> None:
        """Pass ``pause``, called at intervals while a long message is decoded, to let other threads run."""
        self._budget = codec_binary.Budget(pause)
        self.methods: dict[str, Method] = {
            name: Method(name, signature, self._budget) for name, signature in service.signatures.items()
        }
        self._by_bytes = {name.encode(): method for name, method in self.methods.items()}

    def method(self, name: bytes) -> Method | None:
        return self._by_bytes.get(name)

    def read_args(self, protocol: Protocol, method: Method, buf: bytes, pos: int, end: int) -> tuple[list[Any], int]:
        """Return the arguments and their end position.  Raises Short, Malformed, Refused."""
        self._budget.renew()
        args, pos = method.args_reader(protocol)(buf, pos, end)
        if pos > end:
            raise Malformed("a value that goes on behind its message")
        return args, pos


def read_message_begin(protocol: Protocol, buf: bytes, pos: int, end: int) -> tuple[bytes, int, int, int]:
    """Return (method name, kind, seqid, start of the argument struct).  Raises Short, Malformed."""
    if protocol is Protocol.BINARY:
        return codec_binary.read_message_begin(buf, pos, end)
    return codec_compact.read_message_begin(buf, pos, end)


# --- replies -------------------------------------------------------------------------------------


def _packer(success: Any) -> Callable[[Any], bytes]:
    """Return the function that packs a handler's result into the result struct; ``success`` is the result's type."""
    if success is None:
        return _void_success
    kind = success[0] if isinstance(success, tuple) else success
    element = _listed_struct(success)
    if element == "TRowResult":
        return rows_success
    if element == "TCell":
        return cells_success
    if element == "TResult":
        return results_success
    if _struct_name(success) == "TResult":
        return result_success
    if kind == BOOL:
        return lambda value: _BOOL_SUCCESS[bool(value)]
    if kind == I32:
        return lambda value: _I32_SUCCESS(8, 0, value, 0)
    if kind == I64:
        return lambda value: _I64_SUCCESS(10, 0, value, 0)
    return lambda value: binary_field(0, success, _present(value)) + b"\x00"


def _void_success(result: object) -> bytes:
    if result is not None:
        raise TypeError("a void method returned a value")
    return b"\x00"


def _present(value: Any) -> Any:
    if value is None:
        raise TypeError("a method that must return a value returned None")
    return value


def _compact_packer(success: Any) -> Callable[[Any], bytes]:
    if success is None:
        return _void_success  # an empty struct is the same byte in both
    element = _listed_struct(success)
    if element == "TRowResult":
        return compact_rows_success
    if element == "TCell":
        return compact_cells_success
    if element == "TResult":
        return compact_results_success
    if _struct_name(success) == "TResult":
        return compact_result_success
    return lambda value: compact_field(0, success, _present(value)) + b"\x00"


def _listed_struct(spec: Any) -> str:
    """Return the name of T if ``spec`` is ``list<T>`` and T is a struct; else an empty string."""
    return _struct_name(spec[1]) if isinstance(spec, tuple) and spec[0] == LIST else ""


def _struct_name(spec: Any) -> str:
    """Return the struct's name if ``spec`` is a struct; else an empty string."""
    return spec[1].__name__ if isinstance(spec, tuple) and spec[0] == STRUCT else ""


# --- bytes of messages -----------------------------------------------------------------------------


def _binary_head(name: bytes, kind: int) -> bytes:
    return b"\x80\x01\x00%c%b%b" % (kind, _U32(len(name)), name)


def _compact_head(name: bytes, kind: int, seqid: int) -> bytes:
    return b"\x82%c%b%b%b" % (kind << 5 | codec_compact.VERSION, varint(seqid & 0xFFFF_FFFF), varint(len(name)), name)
