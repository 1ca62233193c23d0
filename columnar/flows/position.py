"""(pure) Positions in the changes of a table: how far the changes of each range of rows were read.

    position := msgpack [1, table, [[start, [origin, epoch, n] | nil, x | nil], ...]]    starts ascend from b""

A range goes from its start to the next range's start.  ``p`` is the sequence up to which the range's changes were read
(None: no change was read).  ``x`` is set while rows are read in addition to the changes, as by a snapshot: rows below x
were read as of p, rows from x on were not read yet (None: all were read).

A record is wanted if its row is below the range's x and its sequence is above the range's p.

Positions name rows, not regions, so splits and merges need no lineage: daughters of a split inherit the parent's log,
a merged region has the logs of both, and sequences keep the origin in which they were given.

Invariants:
    I1. The ranges cover all rows without hole or overlap.
    I2. ``advance`` never moves a sequence of one origin back.
    I3. No two neighbours have the same p and x, so splits and merges of regions leave no trace in a position.

Sequences compare like the keys of the log.  A region's own records have a higher origin than those that it inherited,
and stand after them.  So within a range that one region holds, a higher sequence is a later change.

Knows nothing of regions, logs and disks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from columnar.errors import DamagedData
from columnar.regions.log.change_record import Sequence

_VERSION: Final = 1
SKIPPED: Final = Sequence((1 << 64) - 1, (1 << 32) - 1, (1 << 64) - 1)  # above all: a range with this p wants no change


@dataclass(frozen=True, slots=True)
class Range:
    start: bytes
    p: Sequence | None
    x: bytes | None

    def wants(self, row: bytes, sequence: Sequence) -> bool:
        return (self.x is None or row < self.x) and (self.p is None or sequence > self.p)


@dataclass(frozen=True, slots=True)
class Position:
    ranges: tuple[Range, ...]

    def range_of(self, row: bytes) -> Range:
        return self.ranges[bisect_right(self.ranges, row, key=_start) - 1]

    def wants(self, row: bytes, sequence: Sequence) -> bool:
        return self.range_of(row).wants(row, sequence)

    def check_invariants(self) -> None:
        """Check the invariants, for tests."""
        starts = [one.start for one in self.ranges]
        assert starts[:1] == [b""]
        assert starts == sorted(set(starts))
        pairs = zip(self.ranges, self.ranges[1:], strict=False)
        assert not any((one.p, one.x) == (other.p, other.x) for one, other in pairs)


def _start(one: Range) -> bytes:
    return one.start


def unread() -> Position:
    """Return the position at which no row was read: no change is wanted until rows are read (``show``)."""
    return Position((Range(b"", None, b""),))


def oldest() -> Position:
    """Return the position before every change that is in a log."""
    return Position((Range(b"", None, None),))


def at(starts_and_ends: Iterable[tuple[bytes, Sequence]]) -> Position:
    """Return the position after these sequences in the logs of regions with these starts, ascending from b""."""
    return _joined(Range(start, sequence, None) for start, sequence in starts_and_ends)


def clip(position: Position, start: bytes, end: bytes) -> tuple[Range, ...]:
    """Return the ranges of the rows ``start <= row < end`` (empty: to the last row); the first begins at ``start``."""
    first = bisect_right(position.ranges, start, key=_start) - 1
    stop = bisect_left(position.ranges, end, key=_start) if end else len(position.ranges)
    clipped = position.ranges[first:stop]
    return (Range(start, clipped[0].p, clipped[0].x), *clipped[1:])


def join(parts: Iterable[tuple[Range, ...]]) -> Position:
    """Join clipped parts that cover all rows, ascending."""
    return _joined(one for part in parts for one in part)


def advance(position: Position, start: bytes, end: bytes, to: Sequence) -> Position:
    """Note that the changes of these rows were read up to ``to``, from the log that holds them."""
    moved = tuple(Range(one.start, _later(one.p, to), one.x) for one in clip(position, start, end))
    return _replaced(position, start, end, moved)


def show(position: Position, start: bytes, end: bytes, x: bytes | None) -> Position:
    """Note that the rows ``start <= row < x`` (None: up to ``end``) were read as of their range's ``p``.

    All rows from ``start`` to ``end`` must be in one range.  The caller reads the rows at the last sequence of their
    log, advances the position to that sequence, and then calls this.
    """
    (clipped,) = clip(position, start, end)
    assert clipped.p is not None, "rows are as of a sequence"
    assert clipped.x is not None, "all its rows were read"
    assert x is None or x >= clipped.x, "rows that were read stay read"
    return _replaced(position, start, end, (Range(start, clipped.p, x),))


def _replaced(position: Position, start: bytes, end: bytes, fresh: tuple[Range, ...]) -> Position:
    before = clip(position, b"", start) if start else ()
    after = clip(position, end, b"") if end else ()
    return join((before, fresh, after))


def _later(one: Sequence | None, other: Sequence) -> Sequence:
    return other if one is None or other > one else one


def _joined(ranges: Iterable[Range]) -> Position:
    joined: list[Range] = []
    for one in ranges:
        if not joined or (joined[-1].p, joined[-1].x) != (one.p, one.x):
            joined.append(one)
    return Position(tuple(joined))


def pack(position: Position, table: str) -> bytes:
    import msgpack  # as in ``delivery_state``

    ranges = [[one.start, None if one.p is None else list(one.p), one.x] for one in position.ranges]
    packed: bytes = msgpack.packb([_VERSION, table, ranges])
    return packed


def unpack(data: bytes) -> tuple[Position, str]:
    """Return the position and its table.  Raises DamagedData if the bytes are no position: clients keep the bytes."""
    import msgpack

    try:
        version, table, ranges = msgpack.unpackb(data)
        if version != _VERSION:
            raise DamagedData(f"position of version {version}; this program knows {_VERSION}")
        found = tuple(_range(*one) for one in ranges)
        starts = [one.start for one in found]
        if not isinstance(table, str) or starts[:1] != [b""] or starts != sorted(set(starts)):
            raise DamagedData("position: its ranges do not cover a table")
        return Position(found), table
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DamagedData(f"position: {error}") from error


def _range(start: object, p: object, x: object) -> Range:
    if not isinstance(start, bytes) or not (x is None or isinstance(x, bytes)):
        raise ValueError("a range begins and ends with a row")
    if p is None:
        return Range(start, None, x)
    if not isinstance(p, list) or len(p) != 3 or not all(isinstance(part, int) and part >= 0 for part in p):
        raise ValueError("a sequence has three numbers")
    return Range(start, Sequence(*p), x)
