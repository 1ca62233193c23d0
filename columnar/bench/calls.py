"""(pure) Calls and replies of the framed binary protocol, as the generator wants them.

    frame := length:u32 message            message := 80 01 00 kind:u8 length:u32 name seqid:u32 struct

A call is packed once, before the clock starts; of a reply the generator looks at the first bytes
only: a good answer to a known call begins with bytes that are known beforehand.

Knows nothing of sockets.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.wire import idl

FRAME_HEAD: Final = 4
LIST_SUCCESS: Final = b"\x0f\x00\x00\x0c"  # a result that is a list of structs; its length follows
VOID_SUCCESS: Final = b"\x00"
I64_SUCCESS: Final = b"\x0a\x00\x00"
I32_SUCCESS: Final = b"\x08\x00\x00"
NOTHING: Final = b"\x00\x00\x00\x00"  # the length of a list without elements

_U32 = Struct(">I")
_TEXT_FIELD = Struct(">BHI")
_STRING: Final = 11
_MARK: Final = 0x2D5A77F1  # stands for a number until it is known; in no name of a method


class BadReply(Exception):
    """The endpoint answered something else than the workload expects."""

    def __init__(self, reply: bytes) -> None:
        super().__init__(fault_of(reply))


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call, ready to be sent, and what a good answer to it begins with (behind the frame's head)."""

    frame: bytes
    good: bytes
    units: int  # of work that the answer stands for
    reply_bytes: int  # at least so many, or it is not the whole answer


class Keyed:
    """A packed call into which a row key is put at each use; all keys have one length."""

    __slots__ = ("_head", "_tail")

    def __init__(self, frame: bytes, key: bytes) -> None:
        """``key``: the one that ``frame`` was packed with."""
        self._head, _, self._tail = frame.partition(key)

    def frame(self, key: bytes) -> bytes:
        return self._head + key + self._tail


class Numbered:
    """A packed call whose first argument is an i32 that is known later: the id of a scanner."""

    __slots__ = ("_head", "_tail")

    def __init__(self, method: str, *more: Any) -> None:
        """``more``: the other arguments."""
        self._head, _, self._tail = call(method, _MARK, *more).partition(_U32.pack(_MARK))

    def frame(self, number: int) -> bytes:
        return self._head + _U32.pack(number) + self._tail


def call(method: str, *args: Any) -> bytes:
    """The frame of a call; arguments in the order of the IDL, attributes may be left out."""
    buffer = TCyMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer)
    names = getattr(idl.SERVICE, f"{method}_args").thrift_spec
    values = getattr(idl.SERVICE, f"{method}_args")(
        **{names[number][1]: value for number, value in zip(sorted(names), args, strict=False)}
    )
    protocol.write_message_begin(method, 1, 0)
    protocol.write_struct(values)
    protocol.write_message_end()
    message: bytes = buffer.getvalue()
    return _U32.pack(len(message)) + message


def good_begin(method: str, success: bytes) -> bytes:
    """What a good reply to ``method`` begins with."""
    return b"\x80\x01\x00\x02" + _U32.pack(len(method)) + method.encode() + bytes(4) + success


def exchange(method: str, args: tuple[Any, ...], success: bytes, *, units: int = 1, reply_bytes: int = 0) -> Exchange:
    return Exchange(call(method, *args), good_begin(method, success), units, reply_bytes)


def list_of(count: int) -> bytes:
    """The success of a method that answers a list of so many structs."""
    return LIST_SUCCESS + _U32.pack(count)


def mutation(column: bytes, value: bytes) -> Any:
    return idl.hbase.Mutation(isDelete=False, column=column, value=value, writeToWAL=True)


def puts(cells: list[tuple[bytes, bytes]]) -> list[Any]:
    return [mutation(column, value) for column, value in cells]


def batch(rows: list[tuple[bytes, list[tuple[bytes, bytes]]]]) -> list[Any]:
    """``(row, cells)`` as the BatchMutations of ``mutateRows``."""
    return [idl.hbase.BatchMutation(row=row, mutations=puts(cells)) for row, cells in rows]


def number_at(reply: bytes, good: bytes) -> int:
    """The 32-bit number that follows ``good``: an id, or the length of a list.  BadReply where ``good`` is not."""
    if not reply.startswith(good, FRAME_HEAD):
        raise BadReply(reply)
    return int(_U32.unpack_from(reply, FRAME_HEAD + len(good))[0])


def fault_of(reply: bytes) -> str:
    """For a person: what is in a reply (a whole frame) that is not the expected one."""
    at = FRAME_HEAD + 8
    if len(reply) < at or reply[FRAME_HEAD : FRAME_HEAD + 2] != b"\x80\x01":
        return f"not a framed Thrift reply: {reply[:32].hex(' ')}"
    length = int(_U32.unpack_from(reply, FRAME_HEAD + 4)[0])
    name = reply[at : at + length].decode(errors="replace")
    result = at + length + 4
    shown = _first_text(reply[result:])
    return f"{name}: {shown}" if shown else f"{name}: unexpected result {reply[result : result + 24].hex(' ')}"


def _first_text(result: bytes) -> str:
    """The message of an exception: the first string in the first struct."""
    for skipped in (0, 3):  # an application exception begins at once, a declared one is a field of the result
        if len(result) >= skipped + 7 and result[skipped] == _STRING:
            _, _, length = _TEXT_FIELD.unpack_from(result, skipped)
            return result[skipped + 7 : skipped + 7 + min(length, 300)].decode(errors="replace").split("\n")[0]
    return ""
