"""(pure) The two protocols in which a call can be packed, as far as the generator reads replies.

    binary   message := 80 01 00 kind:u8 length:u32 name seqid:u32 struct
             result  := type:u8 00 00 value          00 without a value
             list    := type:u8 length:u32
    compact  message := 82 (kind << 5 | 1):u8 seqid:varint length:varint name struct
             result  := type:u8 00 value             00 without a value
             list    := (length << 4 | type):u8, or (F0 | type):u8 length:varint
             i32     := zigzag varint

A good answer to a known call begins with bytes that are known beforehand: ``good_begin``.

Knows nothing of sockets and methods.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Any, Final

from thriftpy2.protocol.compact import TCompactProtocol, TCompactProtocolFactory
from thriftpy2.protocol.cybin import TCyBinaryProtocol, TCyBinaryProtocolFactory
from thriftpy2.transport.memory import TCyMemoryBuffer

FRAME_HEAD: Final = 4
CALL: Final = 1
REPLY: Final = 2
_MAX_ERROR_BYTES: Final = 300  # of the endpoint's words
_SHORT_LIST: Final = 15  # the compact protocol writes smaller lengths beside the type
_U32 = Struct(">I")
_BINARY_STRING: Final = 11


class BadReply(Exception):
    """The endpoint gave an answer that the workload does not expect."""

    def __init__(self, reply: bytes) -> None:
        super().__init__(fault_of(reply))
        self.reply = reply

    def __reduce__(self) -> tuple[type[BadReply], tuple[bytes]]:
        """Pickle the error, so that it can go from one process to another."""
        return BadReply, (self.reply,)


class Kind(Enum):
    """The kind of a method's successful answer."""

    VOID = "void"
    I32 = "i32"
    I64 = "i64"
    LIST = "list of structs"


@dataclass(frozen=True, slots=True)
class Success:
    kind: Kind
    count: int | None = None  # of a list; None if its length is not known beforehand


class Wire(ABC):
    """A protocol: how calls are packed and how good replies begin."""

    name: str

    @abstractmethod
    def factory(self) -> Any:
        """Return the protocol factory for a client of thriftpy2."""

    @abstractmethod
    def protocol(self, buffer: TCyMemoryBuffer) -> Any:
        """Return a protocol that packs into ``buffer``."""

    @abstractmethod
    def begin_message(self, kind: int, method: str) -> bytes:
        """Return the beginning of a message, up to its struct."""

    @abstractmethod
    def success(self, success: Success) -> bytes:
        """Return the first bytes of a successful result."""

    @abstractmethod
    def first_i32(self, number: int) -> bytes:
        """Return the first field of a struct."""

    @abstractmethod
    def id_at(self, reply: bytes, good: bytes) -> int:
        """Return the i32 that follows ``good``.  Raises BadReply if the reply does not begin with ``good``."""

    @abstractmethod
    def count_at(self, reply: bytes, good: bytes) -> int:
        """Return the length of the list that follows ``good``.

        Raises BadReply if the reply does not begin with ``good``.
        """

    def good_begin(self, method: str, success: Success) -> bytes:
        """Return the beginning of a good reply to ``method``, after the frame's head."""
        return self.begin_message(REPLY, method) + self.success(success)


class Binary(Wire):
    name = "binary"
    _SUCCESS: Final = {
        Kind.VOID: b"\x00",
        Kind.I32: b"\x08\x00\x00",
        Kind.I64: b"\x0a\x00\x00",
        Kind.LIST: b"\x0f\x00\x00\x0c",
    }

    def factory(self) -> Any:
        return TCyBinaryProtocolFactory()

    def protocol(self, buffer: TCyMemoryBuffer) -> Any:
        return TCyBinaryProtocol(buffer)

    def begin_message(self, kind: int, method: str) -> bytes:
        return b"\x80\x01\x00" + bytes([kind]) + _U32.pack(len(method)) + method.encode() + bytes(4)

    def success(self, success: Success) -> bytes:
        return self._SUCCESS[success.kind] + (b"" if success.count is None else _U32.pack(success.count))

    def first_i32(self, number: int) -> bytes:
        return b"\x08\x00\x01" + _U32.pack(number & 0xFFFFFFFF)

    def id_at(self, reply: bytes, good: bytes) -> int:
        if not reply.startswith(good, FRAME_HEAD):
            raise BadReply(reply)
        return int(_U32.unpack_from(reply, FRAME_HEAD + len(good))[0])

    def count_at(self, reply: bytes, good: bytes) -> int:
        return self.id_at(reply, good)


class Compact(Wire):
    name = "compact"
    _SUCCESS: Final = {Kind.VOID: b"\x00", Kind.I32: b"\x05\x00", Kind.I64: b"\x06\x00", Kind.LIST: b"\x09\x00"}

    def factory(self) -> Any:
        return TCompactProtocolFactory()

    def protocol(self, buffer: TCyMemoryBuffer) -> Any:
        return TCompactProtocol(buffer)

    def begin_message(self, kind: int, method: str) -> bytes:
        return bytes([0x82, kind << 5 | 1, 0]) + varint(len(method)) + method.encode()

    def success(self, success: Success) -> bytes:
        begun, count = self._SUCCESS[success.kind], success.count
        if count is None:
            return begun
        return begun + (bytes([count << 4 | 12]) if count < _SHORT_LIST else b"\xfc" + varint(count))

    def first_i32(self, number: int) -> bytes:
        return b"\x15" + varint(number << 1 ^ number >> 31)

    def id_at(self, reply: bytes, good: bytes) -> int:
        if not reply.startswith(good, FRAME_HEAD):
            raise BadReply(reply)
        number = varint_at(reply, FRAME_HEAD + len(good))[0]
        return number >> 1 ^ -(number & 1)

    def count_at(self, reply: bytes, good: bytes) -> int:
        if not reply.startswith(good, FRAME_HEAD):
            raise BadReply(reply)
        at = FRAME_HEAD + len(good)
        short = reply[at] >> 4
        return short if short < _SHORT_LIST else varint_at(reply, at + 1)[0]


BINARY: Final = Binary()
COMPACT: Final = Compact()
WIRES: Final[dict[str, Wire]] = {wire.name: wire for wire in (BINARY, COMPACT)}


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def varint_at(reply: bytes, at: int) -> tuple[int, int]:
    """Return the number and the place after it.  Raises IndexError if the reply ends within the number."""
    number = shift = 0
    while True:
        byte = reply[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def fault_of(reply: bytes) -> str:
    """Return a text for a person about the content of an unexpected reply (a whole frame)."""
    begun = reply[FRAME_HEAD : FRAME_HEAD + 2]
    try:
        if begun == b"\x80\x01":
            at = FRAME_HEAD + 8
            length = int(_U32.unpack_from(reply, FRAME_HEAD + 4)[0])
            name, result = reply[at : at + length], reply[at + length + 4 :]
            text = _binary_text(result)
        elif begun[:1] == b"\x82" and begun[1] & 0x1F == 1:
            length, at = varint_at(reply, varint_at(reply, FRAME_HEAD + 2)[1])
            name, result = reply[at : at + length], reply[at + length :]
            text = _compact_text(result)
        else:
            return f"not a framed Thrift reply: {reply[:32].hex(' ')}"
    except (IndexError, struct.error):
        return f"a reply that ends within its head: {reply[:32].hex(' ')}"
    method = name.decode(errors="replace")
    return f"{method}: {text}" if text else f"{method}: unexpected result {result[:24].hex(' ')}"


# The message of an exception is the first string in the first struct.  An application exception begins at
# once, a declared one is a field of the result: so many bytes are skipped.


def _binary_text(result: bytes) -> str:
    for skipped in (0, 3):
        if len(result) >= skipped + 7 and result[skipped] == _BINARY_STRING:
            length = int(_U32.unpack_from(result, skipped + 3)[0])
            return _words(result, skipped + 7, length)
    return ""


def _compact_text(result: bytes) -> str:
    for skipped in (0, 1):
        if len(result) >= skipped + 2 and result[skipped] == 0x18:
            length, at = varint_at(result, skipped + 1)
            return _words(result, at, length)
    return ""


def _words(result: bytes, at: int, length: int) -> str:
    return result[at : at + min(length, _MAX_ERROR_BYTES)].decode(errors="replace").split("\n")[0]
