"""(pure) Ranges of the rows that a filter may pass, so that a scan need not read other rows.

A range is half-open, ``start <= row < stop``; ``stop`` None is the table's end, ``start`` b"" its beginning.

Invariant I1: ranges are not empty, ascend, and neither touch nor overlap.

Knows nothing of filters and regions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from columnar.limits import FILTER_RANGES
from columnar.model.read import after_prefix


class RowRange(NamedTuple):
    start: bytes
    stop: bytes | None


class RowRanges:
    """A set of ranges.  Constant."""

    __slots__ = ("_starts", "all", "is_exact")

    def __init__(self, ranges: Sequence[RowRange], *, is_exact: bool = True) -> None:
        """Take ``ranges`` that satisfy I1; ``of`` accepts any.  Without ``is_exact`` they have unwanted rows, too."""
        self.all: Final = tuple(ranges)
        self.is_exact: Final = is_exact
        self._starts: Final = [one.start for one in self.all]

    @classmethod
    def of(cls, ranges: Iterable[RowRange]) -> RowRanges:
        """Return the union of any ranges."""
        found: list[RowRange] = []
        for one in sorted(ranges, key=_start):
            if one.stop is not None and one.stop <= one.start:
                continue
            last = found[-1] if found else None
            if last is None or (last.stop is not None and last.stop < one.start):
                found.append(one)
            elif last.stop is not None and (one.stop is None or one.stop > last.stop):
                found[-1] = RowRange(last.start, one.stop)
        return cls(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowRanges) and self.all == other.all

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RowRanges({list(self.all)})"

    @property
    def is_everything(self) -> bool:
        return self.all == (_EVERYTHING,)

    def before_last(self) -> RowRanges:
        """Return one range, from the beginning of the table to the end of the last range."""
        return RowRanges([RowRange(b"", self.all[-1].stop)] if self.all else ())

    def from_first(self) -> RowRanges:
        """Return one range, from the start of the first range to the end of the table."""
        return RowRanges([RowRange(self.all[0].start, None)] if self.all else ())

    def next_from(self, row: bytes) -> RowRange | None:
        """Return the first range with rows at or after ``row``, or None."""
        found = bisect_right(self._starts, row) - 1
        if found >= 0:
            one = self.all[found]
            if one.stop is None or row < one.stop:
                return one
        return self.all[found + 1] if found + 1 < len(self.all) else None

    def last_below(self, row: bytes | None) -> RowRange | None:
        """Return the last range with rows below ``row``, or None; a ``row`` of None is the table's end."""
        found = len(self.all) if row is None else bisect_left(self._starts, row)
        return self.all[found - 1] if found else None


def _start(one: RowRange) -> bytes:
    return one.start


_EVERYTHING: Final = RowRange(b"", None)
EVERY_ROW: Final = RowRanges((_EVERYTHING,))


def of_prefix(prefix: bytes) -> RowRange:
    return RowRange(prefix, after_prefix(prefix) or None)


def of_row(row: bytes) -> RowRange:
    return RowRange(row, row + b"\0")


def below(stop: bytes | None) -> RowRange:
    return RowRange(b"", stop)


def union(several: Iterable[RowRanges], most: int = FILTER_RANGES) -> RowRanges:
    """Return the union in at most ``most`` ranges, which may contain rows between as well."""
    several = list(several)
    return _merged(RowRanges.of([one for ranges in several for one in ranges.all]).all, several, most)


def intersection(several: Sequence[RowRanges], most: int = FILTER_RANGES) -> RowRanges:
    """Return the intersection in at most ``most`` ranges, which may contain rows between as well.

    Takes O(n log n) for n ranges in total.
    """
    if not several:
        return EVERY_ROW
    edges = [(one.start, 1) for ranges in several for one in ranges.all]
    edges += [(one.stop, -1) for ranges in several for one in ranges.all if one.stop is not None]
    found: list[RowRange] = []
    depth, start = 0, None  # how many sets contain the row; where all began to
    for row, step in sorted(edges):  # at the same row a stop sorts before a start
        if start is not None and step < 0:
            if start < row:
                found.append(RowRange(start, row))
            start = None
        depth += step
        if depth == len(several):
            start = row
    if start is not None:
        found.append(RowRange(start, None))
    return _merged(found, several, most)


def _merged(found: Sequence[RowRange], of: Sequence[RowRanges], most: int) -> RowRanges:
    is_exact = all(one.is_exact for one in of)
    if len(found) <= most:
        return RowRanges(found, is_exact=is_exact)
    size = -(-len(found) // most)
    chunks = [found[at : at + size] for at in range(0, len(found), size)]
    return RowRanges([RowRange(chunk[0].start, chunk[-1].stop) for chunk in chunks], is_exact=False)
