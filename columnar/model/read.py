"""(pure) Specifications of reads: the columns, the time range and the number of versions.

As in HBase (observed rows 2 and 8) an upper time bound is exclusive, and the order of columns matters.  ``[a, a:x]``
narrows family ``a`` to ``a:x``; ``[a:x, a]`` widens ``a:x`` to the whole family.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from columnar.model.cell import split_column
from columnar.model.schema import Table

ALL_TIME: Final = (0, 1 << 63)


@dataclass(frozen=True, slots=True)
class Projection:
    """The wanted families in order of names; for each its qualifiers, ascending, or None for the whole family."""

    families: tuple[tuple[bytes, tuple[bytes, ...] | None], ...]


def projection(table: Table, columns: Sequence[bytes]) -> Projection:
    """Return the projection to ``columns``; without columns, to everything.

    Raises NoSuchColumnFamily if the table lacks a family.
    """
    if not columns:
        return Projection(tuple((family.bytes_name, None) for family in table.families))
    wanted: dict[bytes, set[bytes] | None] = {}
    for name in columns:
        family, qualifier = split_column(name)
        table.family(family)
        if qualifier is None:
            wanted[family] = None
            continue
        # HBase's Get.addColumn: a column after its whole family replaces the family, it does not add to it.
        held = wanted.get(family)
        if held is None:
            held = wanted[family] = set()
        held.add(qualifier)
    return Projection(tuple((family, None if q is None else tuple(sorted(q))) for family, q in sorted(wanted.items())))


@dataclass(frozen=True, slots=True)
class ReadSpec:
    projection: Projection
    time_range: tuple[int, int] = ALL_TIME  # half open
    max_versions: int = 1
    family_ranges: tuple[tuple[bytes, tuple[int, int]], ...] = ()  # instead of ``time_range`` for these families

    def range_of(self, family: bytes) -> tuple[int, int]:
        for name, time_range in self.family_ranges:
            if name == family:
                return time_range
        return self.time_range


@dataclass(frozen=True, slots=True)
class ScanSpec:
    """Rows from ``start`` to ``stop``, in descending order if reversed; an empty bound is the table's end.

    ``stop`` is exclusive, except that a non-empty ``start`` equal to ``stop`` means that one row (observed row 9).
    """

    start: bytes
    stop: bytes
    read: ReadSpec
    reversed: bool = False
    batch: int = 0  # cells of a row in one result; 0: all
    sort_columns: bool = False
    filter_string: bytes | None = None
    limit: int = 0  # rows; 0: all

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the scan; the objects of a filter take some 16 times the bytes of its text."""
        columns = sum(len(q) + 64 for _, qualifiers in self.read.projection.families for q in qualifiers or ())
        return len(self.start) + len(self.stop) + columns + 16 * len(self.filter_string or b"")


def after_prefix(prefix: bytes) -> bytes:
    """Return the first row after all rows that begin with ``prefix``, or an empty key if there is no such row."""
    bare = prefix.rstrip(b"\xff")
    return bare[:-1] + bytes([bare[-1] + 1]) if bare else b""


class FamilyCut:
    """The work of ``cut_by_family`` for cells that come in pieces."""

    def __init__(self, offset: int, limit: int) -> None:
        self._offset = offset
        self._limit = limit
        self._seen = 0
        self._last = b""

    def cut(self, cells: Iterable[tuple[bytes, bytes, int]]) -> list[tuple[bytes, bytes, int]]:
        found = []
        for cell in cells:
            family = cell[0].partition(b":")[0]
            self._seen = self._seen + 1 if family == self._last else 1
            self._last = family
            if self._seen > self._offset and (self._limit < 0 or self._seen <= self._offset + self._limit):
                found.append(cell)
        return found


def cut_by_family(cells: Iterable[tuple[bytes, bytes, int]], offset: int, limit: int) -> list[tuple[bytes, bytes, int]]:
    """Return up to ``limit`` cells of each family after the first ``offset``; a negative limit means all.

    A cell is (column, value, timestamp).
    """
    return FamilyCut(offset, limit).cut(cells)
