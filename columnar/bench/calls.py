"""(pure) Calls and replies in frames, in the form that the generator needs.

    frame := length:u32 message

A call is packed once, before the clock starts; the generator reads only the first bytes of a reply.  ``protocols`` has
the two encodings of a message; the default is the binary one.

Knows nothing of sockets.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.bench.protocols import BINARY, CALL, FRAME_HEAD, BadReply, Kind, Success, Wire, fault_of
from columnar.wire import idl

__all__ = ("FRAME_HEAD", "BadReply", "fault_of")  # in addition to the names defined here

LIST_SUCCESS: Final = Success(Kind.LIST)  # structs; how many, says the reply
VOID_SUCCESS: Final = Success(Kind.VOID)
I64_SUCCESS: Final = Success(Kind.I64)
I32_SUCCESS: Final = Success(Kind.I32)

_U32 = Struct(">I")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A packed call, and the first bytes of a good answer to it (after the frame's head)."""

    frame: bytes
    good: bytes
    units: int  # of work that the answer stands for
    reply_bytes: int  # a shorter reply is not the whole answer


@dataclass(frozen=True, slots=True)
class CallSpec:
    """A call that is not packed yet."""

    method: str
    args: tuple[Any, ...]
    success: Success
    units: int = 1
    reply_bytes: int = 0

    def packed(self, wire: Wire = BINARY) -> Exchange:
        good = wire.good_begin(self.method, self.success)
        return Exchange(call(self.method, *self.args, wire=wire), good, self.units, self.reply_bytes)


class Keyed:
    """A packed call into which a row key is put at each use; all keys have one length."""

    __slots__ = ("_head", "_tail")

    def __init__(self, frame: bytes, key: bytes) -> None:
        """Take a ``frame`` and the ``key`` with which it was packed."""
        self._head, _, self._tail = frame.partition(key)

    def frame(self, key: bytes) -> bytes:
        return self._head + key + self._tail


class Numbered:
    """A packed call whose first argument is an i32 that is known later: the id of a scanner."""

    __slots__ = ("_head", "_tail", "_wire")

    def __init__(self, wire: Wire, method: str, *more: Any) -> None:
        """Pack the call of ``method``; ``more`` has the arguments after the id."""
        message = call(method, 0, *more, wire=wire)[FRAME_HEAD:]
        self._wire = wire
        self._head = wire.begin_message(CALL, method)
        self._tail = message[len(self._head) + len(wire.first_i32(0)) :]

    def frame(self, number: int) -> bytes:
        return _framed(self._head + self._wire.first_i32(number) + self._tail)


def call(method: str, *args: Any, wire: Wire = BINARY) -> bytes:
    """Return the frame of a call.  Arguments are in the order of the IDL; attributes may be left out."""
    buffer = TCyMemoryBuffer()
    protocol = wire.protocol(buffer)
    names = getattr(idl.SERVICE, f"{method}_args").thrift_spec
    values = getattr(idl.SERVICE, f"{method}_args")(
        **{names[number][1]: value for number, value in zip(sorted(names), args, strict=False)}
    )
    protocol.write_message_begin(method, CALL, 0)
    protocol.write_struct(values)
    protocol.write_message_end()
    return _framed(buffer.getvalue())


def _framed(message: bytes) -> bytes:
    return _U32.pack(len(message)) + message


def good_begin(method: str, success: Success) -> bytes:
    """Return the first bytes of a good reply to ``method`` in the binary protocol."""
    return BINARY.good_begin(method, success)


def exchange(method: str, args: tuple[Any, ...], success: Success, *, units: int = 1, reply_bytes: int = 0) -> Exchange:
    """Return an exchange packed in the binary protocol."""
    return CallSpec(method, args, success, units, reply_bytes).packed()


def list_of(count: int) -> Success:
    """Return the success of a method that answers a list of ``count`` structs."""
    return Success(Kind.LIST, count)


def mutation(column: bytes, value: bytes) -> Any:
    return idl.hbase.Mutation(isDelete=False, column=column, value=value, writeToWAL=True)


def puts(cells: list[tuple[bytes, bytes]]) -> list[Any]:
    return [mutation(column, value) for column, value in cells]


def batch(rows: list[tuple[bytes, list[tuple[bytes, bytes]]]]) -> list[Any]:
    """Return ``(row, cells)`` pairs as the BatchMutations of ``mutateRows``."""
    return [idl.hbase.BatchMutation(row=row, mutations=puts(cells)) for row, cells in rows]


def number_at(reply: bytes, good: bytes) -> int:
    """Return an id, or the length of a list, that follows ``good`` in the binary protocol.  Raises BadReply."""
    return BINARY.id_at(reply, good)
