"""The parts of a workload (pure): the calls of one connection, said one after the other.

Knows nothing of sockets and clocks; chance comes in as ``rng``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from columnar.bench.calls import CallSpec, Exchange
from columnar.bench.dataset import DataSet
from columnar.bench.protocols import FRAME_HEAD, BadReply, Wire

MORE_CALLS: Final = -1  # units of an answer after which the operation has another call


class Chance(Protocol):
    """The part of ``random.Random`` that is needed."""

    def randrange(self, stop: int, /) -> int: ...

    def random(self) -> float: ...


class Session(Protocol):
    """The calls of one connection, one after the other."""

    def first(self) -> bytes: ...

    def answered(self, reply: bytes) -> tuple[bytes, int]:
        """The next frame, and the units of work that ``reply`` stands for.  BadReply.

        Units of 0: not to be counted; GOES_ON: the operation has another call, its time runs on.
        """


class Repeating:
    """Packed calls in a ring, begun at a place of its own."""

    __slots__ = ("_at", "_awaited", "_ring")

    def __init__(self, ring: list[Exchange], at: int) -> None:
        self._ring = ring
        self._at = at % len(ring)
        self._awaited = ring[self._at]

    def first(self) -> bytes:
        return self._awaited.frame

    def answered(self, reply: bytes) -> tuple[bytes, int]:
        awaited = self._awaited
        if not reply.startswith(awaited.good, FRAME_HEAD) or len(reply) < awaited.reply_bytes:
            raise BadReply(reply)
        self._at = at = self._at + 1 if self._at + 1 < len(self._ring) else 0
        following = self._awaited = self._ring[at]
        return following.frame, awaited.units


Sessions = Callable[[DataSet, Chance, int, Wire], list[Session]]


@dataclass(frozen=True, slots=True)
class Workload:
    name: str  # on the command line
    title: str  # in tables
    unit: str  # what is counted per second
    sessions: Sessions  # for so many connections
    on_ycsb: bool = False  # it wants the table of YCSB, not the others
    open_loop: bool = True  # operations that can arrive one by one; not those that occupy a connection for long


def repeating(ring: Callable[[DataSet, Chance], list[CallSpec]]) -> Sessions:
    """Sessions that go round one ring of calls, each from a place of its own."""

    def sessions(data: DataSet, rng: Chance, connections: int, wire: Wire) -> list[Session]:
        packed = [spec.packed(wire) for spec in ring(data, rng)]
        return [Repeating(packed, number * len(packed) // connections) for number in range(connections)]

    return sessions
