"""Reads of a group of rows (ROW_GROUP) as of one moment, and the digest by which a write asks whether they still hold.

    digest   := 16 bytes of BLAKE2b over  row*
    row      := length:u32 bytes  cells:u32  cell*                  rows with cells that a reader sees, ascending
    cell     := length:u32 column (family:qualifier)  timestamp:u64  length:u32 value        big-endian

A read is one step of the loop, so no write comes between its rows.  It is bounded by ROW_GROUP_CELLS stored cells and
ROW_GROUP_BYTES.  A digest tells of a row that came or went, too: it covers all rows of the read, not those found.

A caller waits for ``SyncGroups.barrier_between`` before it returns what it read.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from columnar.errors import RequestTooBig, abbreviate
from columnar.limits import ROW_GROUP_BYTES, ROW_GROUP_CELLS
from columnar.model.read import ReadSpec
from columnar.regions.read.found_rows import size_of
from columnar.regions.read.region_reads import fetch
from columnar.regions.read.row_reader import RawRow, RowCursor, RowIsWide, WireCell, wire_cells
from columnar.regions.region import Region
from columnar.storage.layout import range_start

DIGEST_BYTES: Final = 16
_U32: Final = Struct(">I").pack
_CELL: Final = Struct(">QI").pack

FoundGroup = list[tuple[bytes, list[WireCell]]]  # the rows that have cells, ascending


class GroupRead(NamedTuple):
    """An earlier read of a caller: of these rows of a group, or without any of the whole group."""

    rows: tuple[bytes, ...]  # ascending
    spec: ReadSpec
    digest: bytes


class GroupReader:
    """The reads of one call in a group, which together keep the bounds of a step."""

    def __init__(self, region: Region, start: bytes, end: bytes) -> None:
        """The group's rows are ``start <= row < end``; an empty ``end`` is the table's end."""
        self._region = region
        self._start = start
        self._end = end
        self._now_ms = region.now_ms
        self._cells = self._bytes = 0

    def read_rows(self, rows: Sequence[bytes], spec: ReadSpec) -> FoundGroup:
        """Return those of ``rows`` that have cells, or without any those of the whole group.

        ``rows`` ascend.  Raises RequestTooBig above the bounds of a step.
        """
        found: FoundGroup = []
        try:
            if rows:
                width = sum([1 if names is None else len(names) for _, names in spec.projection.families])
                for row in rows:
                    self._add(found, row, fetch(self._region, row, spec, ROW_GROUP_BYTES), spec, width)
            else:
                self._read_all(found, spec)
        except RowIsWide:
            raise self._too_big() from None
        return found

    def _read_all(self, found: FoundGroup, spec: ReadSpec) -> None:
        region = self._region
        region.count_read()
        self._charge(1)
        low, high = range_start(self._start), range_start(self._end) if self._end else None
        families = spec.projection
        cursor = RowCursor.over(region.store, region.views, families, low, high, reverse=False, cost=ROW_GROUP_BYTES)
        while (row := cursor.next_row()) is not None:
            if cursor.walked > ROW_GROUP_CELLS:
                raise self._too_big()
            self._add(found, *row, spec, 1)

    def _add(self, found: FoundGroup, row: bytes, raw: RawRow, spec: ReadSpec, width: int) -> None:
        """Add a row if a reader sees cells of it; ``width`` is what looking for it costs, in cells."""
        self._charge(max(width, sum([len(group) for _, group in raw])))
        cells = wire_cells(self._region.store, row, raw, spec, self._now_ms, ROW_GROUP_CELLS)
        if not cells:
            return
        self._bytes += size_of((row, cells))
        if self._bytes > ROW_GROUP_BYTES:
            raise self._too_big()
        found.append((row, cells))

    def _charge(self, cells: int) -> None:
        self._cells += cells
        if self._cells > ROW_GROUP_CELLS:
            raise self._too_big()

    def first_changed(self, reads: Sequence[GroupRead]) -> int | None:
        """Return the number of the first read that would find something else now, or None."""
        for number, read in enumerate(reads):
            if digest_of(self.read_rows(read.rows, read.spec)) != read.digest:
                return number
        return None

    def _too_big(self) -> RequestTooBig:
        return RequestTooBig(
            f"over {ROW_GROUP_CELLS} cells or {ROW_GROUP_BYTES} bytes of the group {abbreviate(self._start)}, the most "
            "that are read as of one moment; name fewer rows or families, or scan its rows, each of which is as of "
            "its own moment"
        )


def digest_of(found: FoundGroup) -> bytes:
    parts: list[bytes] = []
    for row, cells in found:
        parts += (_U32(len(row)), row, _U32(len(cells)))
        for column, value, timestamp in cells:
            parts += (_U32(len(column)), column, _CELL(timestamp, len(value)), value)
    return blake2b(b"".join(parts), digest_size=DIGEST_BYTES).digest()
