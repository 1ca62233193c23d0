"""(pure) A service of the IDL as functions between bytes and calls, in both protocols.

Requests come out as ``Request``: the method and its arguments in the order of the IDL, structs
as thriftpy2's objects, what was left out as its default or None.  Replies go in as what the
handler returned:

    list<TRowResult>  RowList(rows, sorted)           hand-packed in binary
    list<TCell>       [(value, timestamp), ...]       hand-packed in binary
    void              None
    everything else   as thriftpy2 takes it

On one core of the 2-core machine (CPython 3.11) rows are packed at 2.7 M cells/s and their
columns as a sorted list at 2.4 M/s; thriftpy2's C codec from structs does 0.6 M/s.

Knows nothing of frames and connections, nor who answers a call.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, NamedTuple

from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.limits import MUTATIONS_PER_CALL
from columnar.wire import codec_binary, codec_compact
from columnar.wire.codec_binary import BOOL, I32, I64, LIST, STRUCT, Reader
from columnar.wire.codec_replies import CellOut, RowList, cells_success, rows_success
from columnar.wire.detect import Protocol
from columnar.wire.faults import Malformed

CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4

_U32 = Struct(">I").pack
_I32 = Struct(">i").pack
_BOOL_SUCCESS: Final = (b"\x02\x00\x00\x00\x00", b"\x02\x00\x00\x01\x00")
_I32_SUCCESS = Struct(">BHiB").pack
_I64_SUCCESS = Struct(">BHqB").pack


class Method:
    """One method of the IDL; constant after construction."""

    __slots__ = ("_binary_head", "binary_args", "compact_args", "name", "oneway", "pack_binary", "result", "throws")

    def __init__(self, name: str, service: Any, budget: codec_binary.Budget) -> None:
        args: Any = getattr(service, name + "_args")
        self.name = name
        self.result: Any = getattr(service, name + "_result")
        self.oneway: bool = self.result.oneway
        self.binary_args: Reader = codec_binary.fields_reader(args.thrift_spec, args.default_spec, budget)
        self.compact_args: Reader = codec_compact.fields_reader(args.thrift_spec, args.default_spec, budget)
        spec = self.result.thrift_spec
        self.throws: dict[type, str] = {field[2]: field[1] for fid, field in spec.items() if fid}
        self.pack_binary = _packer(codec_binary.spec_of_field(spec[0]) if 0 in spec else None, self.result)
        self._binary_head = _binary_head(name.encode(), REPLY)

    def __repr__(self) -> str:
        return f"Method({self.name})"

    def reply(self, protocol: Protocol, seqid: int, result: Any) -> bytes:
        """The message that answers a call; raises when a handler returned what the IDL does not allow."""
        if protocol is Protocol.BINARY:
            return b"%b%b%b" % (self._binary_head, _I32(seqid), self.pack_binary(result))
        fields = {"success": _as_structs(result, self.result)} if 0 in self.result.thrift_spec else {}
        return _compact_head(self.name.encode(), REPLY, seqid) + _compact_struct(self.result(**fields))

    def declares(self, error: object) -> bool:
        return type(error) in self.throws

    def declared_error(self, protocol: Protocol, seqid: int, error: Any) -> bytes:
        """The message that answers with one of the exceptions of the method's ``throws``."""
        answer = self.result(**{self.throws[type(error)]: error})
        if protocol is Protocol.BINARY:
            return b"%b%b%b" % (self._binary_head, _I32(seqid), _binary_struct(answer))
        return _compact_head(self.name.encode(), REPLY, seqid) + _compact_struct(answer)


class Request(NamedTuple):
    method: Method | None  # None: no such method; then there are no arguments
    name: bytes  # as it was sent
    kind: int
    seqid: int
    args: list[Any]
    size_bytes: int


def application_error(name: bytes, protocol: Protocol, seqid: int, kind: int, text: str) -> bytes:
    """The message for a fault that no method declares; ``kind`` is one of TApplicationException's."""
    error = TApplicationException(kind, text)
    if protocol is Protocol.BINARY:
        return b"%b%b%b" % (_binary_head(name, EXCEPTION), _I32(seqid), _binary_struct(error))
    return _compact_head(name, EXCEPTION, seqid) + _compact_struct(error)


class ServiceCodec:
    """All methods of a service.  Used by one thread: decoding shares one budget."""

    def __init__(self, service: Any) -> None:
        self._budget = codec_binary.Budget()
        self.methods: dict[str, Method] = {
            name: Method(name, service, self._budget) for name in service.thrift_services
        }
        self._by_bytes = {name.encode(): method for name, method in self.methods.items()}

    def method(self, name: bytes) -> Method | None:
        return self._by_bytes.get(name)

    def read_args(self, protocol: Protocol, method: Method, buf: bytes, pos: int, end: int) -> tuple[list[Any], int]:
        """The arguments and where they end.  Raises Short, Malformed, Refused."""
        self._budget.left = MUTATIONS_PER_CALL
        read = method.binary_args if protocol is Protocol.BINARY else method.compact_args
        args, pos = read(buf, pos, end)
        if pos > end:
            raise Malformed("a value that goes on behind its message")
        return args, pos


def read_message_begin(protocol: Protocol, buf: bytes, pos: int, end: int) -> tuple[bytes, int, int, int]:
    """(method name, kind, seqid, where the argument struct begins).  Raises Short, Malformed."""
    if protocol is Protocol.BINARY:
        return codec_binary.read_message_begin(buf, pos, end)
    return codec_compact.read_message_begin(buf, pos, end)


# --- replies -------------------------------------------------------------------------------------


def _packer(success: Any, result: Any) -> Callable[[Any], bytes]:
    """How the result struct of a method with this type of success is made of a handler's result."""
    if success is None:
        return _void_success
    kind, inner = success if isinstance(success, tuple) else (success, None)
    element = inner[1].__name__ if kind == LIST and isinstance(inner, tuple) and inner[0] == STRUCT else ""
    if element == "TRowResult":
        return rows_success
    if element == "TCell":
        return cells_success
    if kind == BOOL:
        return lambda value: _BOOL_SUCCESS[bool(value)]
    if kind == I32:
        return lambda value: _I32_SUCCESS(8, 0, value, 0)
    if kind == I64:
        return lambda value: _I64_SUCCESS(10, 0, value, 0)
    return lambda value: _binary_struct(result(success=_present(value)))


def _void_success(result: object) -> bytes:
    if result is not None:
        raise TypeError("a void method returned a value")
    return b"\x00"


def _present(value: Any) -> Any:
    if value is None:
        raise TypeError("a method that must return a value returned None")
    return value


def _as_structs(value: Any, result: Any) -> Any:
    """Rows and cells as thriftpy2's structs, for the protocol that has no hand-packed replies."""
    spec = codec_binary.spec_of_field(result.thrift_spec[0])
    if isinstance(value, RowList):
        row_class = spec[1][1]
        fields = row_class.thrift_spec
        cell_class, column_class = fields[2][2][1][1], fields[3][2][1]
        return [_row_struct(row_class, cell_class, column_class, row, value.sorted) for row in value.rows]
    if isinstance(spec, tuple) and spec[0] == LIST and isinstance(spec[1], tuple) and spec[1][1].__name__ == "TCell":
        cells: list[CellOut] = value
        return [spec[1][1](*cell) for cell in cells]
    return _present(value)


def _row_struct(row_class: Any, cell_class: Any, column_class: Any, row: Any, in_order: bool) -> Any:
    key, columns = row
    if in_order:
        listed = [column_class(column, cell_class(value, timestamp)) for column, value, timestamp in columns]
        return row_class(key, None, listed)
    return row_class(key, {column: cell_class(value, timestamp) for column, value, timestamp in columns}, None)


# --- bytes of messages -----------------------------------------------------------------------------


def _binary_head(name: bytes, kind: int) -> bytes:
    return b"\x80\x01\x00%c%b%b" % (kind, _U32(len(name)), name)


def _binary_struct(value: Any) -> bytes:
    buffer = TCyMemoryBuffer()
    TCyBinaryProtocol(buffer).write_struct(value)
    packed: bytes = buffer.getvalue()
    return packed


def _compact_head(name: bytes, kind: int, seqid: int) -> bytes:
    return b"\x82%c%b%b%b" % (kind << 5 | codec_compact.VERSION, _varint(seqid & 0xFFFF_FFFF), _varint(len(name)), name)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _compact_struct(value: Any) -> bytes:
    buffer = TMemoryBuffer()
    TCompactProtocol(buffer).write_struct(value)
    packed: bytes = buffer.getvalue()
    return packed
