"""Reads of rows by their names: one row at once, several in steps between which others are served.

A reply never shows what a crash could take back: it waits for the fsync of each row that it holds.

Invariant: a reply of several rows holds at most ``limits.ROWS_BYTES``, and all such replies together what
``regions.gathering`` lets them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from columnar.errors import RegionAway, RequestTooBig
from columnar.limits import ROWS_BYTES, STEP_BYTES, STEP_CELLS
from columnar.model.read import Projection, ReadSpec
from columnar.operations.access import Caller, TableAccess, after, after_all, joined
from columnar.regions.found_rows import CELL_OVERHEAD_BYTES, ScanRow, size_of
from columnar.regions.patience import patiently
from columnar.regions.region_reads import get_column, get_family, get_row
from columnar.regions.row_reader import Cells
from columnar.regions.tables import ServedTable
from columnar.turns import HasGone

RowAnswer = Callable[[bytes, Cells], Any]  # the row and its cells, none where it is not there, to the reply
RowsAnswer = Callable[[list[ScanRow]], Any]
Filtered = Callable[[ServedTable, bytes, ReadSpec, bytes, HasGone], Awaitable[Cells]]  # ``Scans.one_row``
Cut = Callable[[int, Cells], Cells]  # the cells that are wanted of the row with this number

LATEST: Final = ReadSpec(Projection(()))  # of a column that is named beside it
SEEK_CELLS: Final = 50  # what finding a row costs, counted in cells


class RowQuery:
    """The rows that one call asks for, in its order, each with what is wanted of it."""

    __slots__ = ("cut", "filters", "keeps_absent", "rows", "specs")

    def __init__(
        self,
        rows: list[bytes],
        specs: list[ReadSpec],
        *,
        keeps_absent: bool = False,
        filters: list[bytes | None] | None = None,
        cut: Cut | None = None,
    ) -> None:
        """``keeps_absent``: a row without cells is in the answer; ``filters``: of each row, or of none."""
        self.rows = rows
        self.specs = specs
        self.keeps_absent = keeps_absent
        self.filters = filters or []
        self.cut = cut


class _Reading:
    """A query on its way into one reply."""

    __slots__ = ("at", "barriers", "found", "query", "size_bytes")

    def __init__(self, query: RowQuery) -> None:
        self.query = query
        self.at = 0  # the number of the row to be read next
        self.found: list[ScanRow] = []
        self.barriers: list[Any] = []
        self.size_bytes = 0

    @property
    def is_done(self) -> bool:
        return self.at == len(self.query.rows)

    def take(self, cells: Cells) -> int:
        """The cells of the next row; the bytes that it adds to the reply.  RequestTooBig."""
        query, number = self.query, self.at
        self.at += 1
        if query.cut is not None:
            cells = query.cut(number, cells)
        if not cells and not query.keeps_absent:
            return 0
        row = (query.rows[number], cells)
        self.found.append(row)
        size = size_of(row)
        self.size_bytes += size
        if self.size_bytes > ROWS_BYTES:
            raise RequestTooBig(f"the rows asked for have over {ROWS_BYTES} bytes; ask for fewer, or scan")
        return size


class RowReads:
    def __init__(self, access: TableAccess) -> None:
        self._access = access

    # --- one row -----------------------------------------------------------------------------------

    def column(self, served: ServedTable, row: bytes, family: bytes, qualifier: bytes, spec: ReadSpec = LATEST) -> Any:
        """(value, timestamp) of the versions of one column, the newest first."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        region = self._access.region_for(served, row)
        cells = get_column(region, row, family, qualifier, spec)
        if served.is_throttled:
            self._access.charge(served, 1, _bytes_of(row, cells, len(family) + len(qualifier)), writes=False)
        return after(region.barrier(row), cells)

    def family(self, served: ServedTable, row: bytes, family: bytes, spec: ReadSpec) -> Any:
        """(value, timestamp) of every version of every column of a family, column ascending."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        region = self._access.region_for(served, row)
        cells = get_family(region, row, family, spec)
        if served.is_throttled:
            self._access.charge(served, 1, _bytes_of(row, cells, len(family)), writes=False)
        return after(region.barrier(row), cells)

    def row(self, served: ServedTable, row: bytes, spec: ReadSpec, answer: RowAnswer) -> Any:
        if served.is_throttled:
            self._access.admit(served, writes=False)
        region = self._access.region_for(served, row)
        cells = get_row(region, row, spec)
        if served.is_throttled:
            self._access.charge(served, 1, size_of((row, cells)), writes=False)
        return after(region.barrier(row), answer(row, cells))

    # --- several -----------------------------------------------------------------------------------

    def rows(
        self,
        caller: Caller,
        served: ServedTable,
        query: RowQuery,
        answer: RowsAnswer,
        filtered: Filtered | None = None,
    ) -> Any:
        """In the order asked; at once where it is little and none has a filter."""
        reading = _Reading(query)
        if served.is_throttled:
            self._access.admit(served, writes=False)
        if not self._access.gathering.is_full:
            try:
                if self._step(served, reading, False):
                    return after_all(reading.barriers, answer(reading.found))
            except RegionAway:
                pass  # the rest is read from the row whose region is away
        return self._read_rest(served, reading, answer, filtered, caller.has_gone)

    def _step(self, served: ServedTable, reading: _Reading, has_waited: bool) -> bool:
        """Read for one step, or to a row with a filter; True: that was all."""
        if not served.is_throttled:
            return self._read_step(served, reading, has_waited)
        at, size_bytes = reading.at, reading.size_bytes
        try:
            return self._read_step(served, reading, has_waited)
        finally:  # an answer that became too large was read all the same
            self._access.charge(served, reading.at - at, reading.size_bytes - size_bytes, writes=False)

    def _read_step(self, served: ServedTable, reading: _Reading, has_waited: bool) -> bool:
        query = reading.query
        rows, specs, filters = query.rows, query.specs, query.filters
        cells_left, bytes_left = STEP_CELLS, STEP_BYTES
        checked: ReadSpec | None = None
        while cells_left > 0 and bytes_left > 0:
            number = reading.at
            if number == len(rows):
                return True
            if filters and filters[number] is not None:
                return False
            row, spec = rows[number], specs[number]
            if has_waited and spec is not checked:
                check_families(served, spec)
                checked = spec
            region = self._access.region_for(served, row)
            cells = get_row(region, row, spec)
            barrier = region.barrier(row)
            if barrier is not None:
                reading.barriers.append(barrier)
            cells_left -= len(cells) + SEEK_CELLS
            bytes_left -= reading.take(cells)
        return reading.is_done

    async def _read_rest(
        self,
        served: ServedTable,
        reading: _Reading,
        answer: RowsAnswer,
        filtered: Filtered | None,
        has_gone: HasGone,
    ) -> Any:
        access, gathering, query = self._access, self._access.gathering, reading.query
        ticket = gathering.begin(reading.size_bytes, has_gone)
        try:
            while not reading.is_done:
                await gathering.turn(ticket, reading.size_bytes)
                served = access.again(served)
                number = reading.at
                filter_string = query.filters[number] if query.filters else None
                if filter_string is not None:
                    assert filtered is not None, "given where a row has a filter"
                    check_families(served, query.specs[number])
                    gathering.end(ticket)  # the scan has a ticket of its own: two in one call would wait for each other
                    try:
                        row, spec = query.rows[number], query.specs[number]
                        size_bytes = reading.take(await filtered(served, row, spec, filter_string, has_gone))
                        if served.is_throttled:
                            access.charge(served, 1, size_bytes, writes=False)
                    finally:
                        ticket = gathering.begin(reading.size_bytes, has_gone)
                else:
                    await patiently(partial(self._step, served, reading, True), has_gone)
            waiting = joined(reading.barriers)
            if waiting is not None:
                await asyncio.shield(waiting)
            return answer(reading.found)
        finally:
            gathering.end(ticket)


def _bytes_of(row: bytes, cells: list[tuple[bytes, int]], column_bytes: int) -> int:
    """As ``size_of``, of values that are answered without their columns."""
    return len(row) + sum(column_bytes + len(value) + CELL_OVERHEAD_BYTES for value, _ in cells)


def check_families(served: ServedTable, spec: ReadSpec) -> None:
    """NoSuchColumnFamily where the table was made anew since ``spec``, without a family of it."""
    for family, _ in spec.projection.families:
        served.schema.family(family)
