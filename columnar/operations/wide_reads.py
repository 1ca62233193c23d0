"""Wide rows, which cost more than one step: reads and packs them in steps, between which other requests are served.

``read_wide`` passes the row to a sink, some cells at a time.  If the region is closed meanwhile, the row is read again
from its beginning, in its present region; the sink begins again, too.  The sinks:

    Packed, PackedValues    pack the cells for the reply
    Listed                  keeps the cells, for callers that must see all of them
    Filtered                passes the cells through a filter of unknown cost, so its steps are bounded by time
    First                   keeps the first cell

Invariant: a sink buffers at most ``limits.ROW_BYTES``, or its own bound.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any, Final, Protocol

from columnar.cluster.row_forms import ReplyForm
from columnar.errors import FilterTooExpensive, RequestTooBig, RowTooBig
from columnar.limits import ROW_BYTES, STEP_S
from columnar.model.bounded_search import PatternTimeout
from columnar.model.cell import Cell
from columnar.model.filters import Filter, FilteredRow
from columnar.model.read import FamilyCut, ReadSpec
from columnar.operations.access import TableAccess
from columnar.operations.packing import pieces_of
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.found_rows import size_of
from columnar.regions.read.row_reader import STEP_COST, Cells, WireCell
from columnar.regions.read.wide_row import ReadingEnded, WideRow
from columnar.regions.region import Region
from columnar.runtime.loop_budget import IsDisconnected
from columnar.storage.api import PAIR_COST
from columnar.storage.stored_cells import PackedCells, PackedRows

_FILTERED_COST: Final = 50 * PAIR_COST  # of the cells passed to a filter at a time


class Sink(Protocol):
    cost: int  # of the cells that ``take_cells`` gets at a time

    @property
    def size_bytes(self) -> int: ...

    def begin_row(self) -> None:
        """Begin anew, because the row is read from its beginning."""

    def take_cells(self, cells: Cells) -> bool:
        """Take the next cells; return True if no more are wanted.  Raises errors for the caller of the read."""


async def read_wide(
    access: TableAccess,
    table: bytes,
    row: bytes,
    spec: ReadSpec,
    sink: Sink,
    ticket: int,
    is_disconnected: IsDisconnected,
    *,
    all_versions: bool = False,
    before_bytes: int = 0,
) -> asyncio.Future[None] | None:
    """Pass the row to ``sink``; return the fsync that a reply must wait for.  Raises ClientGone or RegionNotLocal.

    ``ticket`` is the call's ticket of ``access.reply_memory``; the call buffers ``before_bytes`` beside the sink.
    """

    def begun() -> tuple[Region, WideRow]:
        served = access.table(table)
        for family, _ in spec.projection.families:
            served.schema.family(family)  # the table may have been recreated
        region = access.region_for(served, row)
        return region, WideRow.begun(region, row, spec, all_versions=all_versions)

    while True:
        region, reading = await retry_until_ready(begun, is_disconnected)
        barrier = region.syncs.barrier(row)
        sink.begin_row()
        try:
            while not reading.is_done:
                await access.reply_memory.reserve_step(ticket, before_bytes + sink.size_bytes)
                if _step(reading, sink):
                    break
            return barrier
        except ReadingEnded:
            continue
        finally:
            reading.end()


def _step(reading: WideRow, sink: Sink) -> bool:
    """Pass cells to the sink for at most STEP_S; return True if the sink wants no more."""
    ends = perf_counter() + STEP_S
    while not reading.is_done:
        if sink.take_cells(reading.take(sink.cost)):
            return True
        if perf_counter() >= ends:
            return False
    return False


def _check_size(row: bytes, size_bytes: int, bound: int) -> None:
    if size_bytes <= bound:
        return
    if bound < ROW_BYTES:
        raise RequestTooBig(f"the rows asked for have over {bound} bytes; ask for fewer, or scan")
    raise RowTooBig(row, bound)


class Packed:
    """A sink that packs the row for a reply; its result is None for a row without cells."""

    def __init__(self, row: bytes, form: ReplyForm, cut: tuple[int, int] | None = None, bound: int = ROW_BYTES) -> None:
        """``cut`` is as for ``cut_by_family``; ``bound`` is the most bytes."""
        self.cost = STEP_COST
        self._row = row
        self._form = form
        self._cut = cut
        self._bound = bound
        self.begin_row()

    def begin_row(self) -> None:
        self._pieces = pieces_of(self._form)
        self._cutting = FamilyCut(*self._cut) if self._cut is not None else None

    @property
    def size_bytes(self) -> int:
        return self._pieces.size_bytes

    def take_cells(self, cells: Cells) -> bool:
        self._pieces.add_columns(cells if self._cutting is None else self._cutting.cut(cells))
        _check_size(self._row, self._pieces.size_bytes, self._bound)
        return False

    def result(self) -> PackedRows | None:
        return self._pieces.row(self._row) if self._pieces.cells else None


class PackedValues:
    """A sink that packs value and timestamp of each cell, as ``list<TCell>``."""

    def __init__(self, row: bytes, pack: Any) -> None:
        """``pack`` is ``codec_replies.packed_cells`` or ``compact_packed_cells``."""
        self.cost = STEP_COST
        self._row = row
        self._pack = pack
        self.begin_row()

    def begin_row(self) -> None:
        self._pieces: list[bytes] = []
        self._count = self.size_bytes = 0

    def take_cells(self, cells: Cells) -> bool:
        packed: bytes = self._pack([(value, timestamp) for _, value, timestamp in cells])
        self._pieces.append(packed)
        self._count += len(cells)
        self.size_bytes += len(packed)
        _check_size(self._row, self.size_bytes, ROW_BYTES)
        return False

    def result(self) -> PackedCells:
        return PackedCells(self._pieces, self._count)


class Listed:
    """A sink that keeps the row's cells."""

    def __init__(self, row: bytes, bound: int = ROW_BYTES) -> None:
        self.cost = STEP_COST
        self._row = row
        self._bound = bound
        self.begin_row()

    def begin_row(self) -> None:
        self.cells: list[WireCell] = []
        self.size_bytes = 0

    def take_cells(self, cells: Cells) -> bool:
        self.cells += cells
        self.size_bytes += size_of((b"", cells))
        _check_size(self._row, self.size_bytes, self._bound)
        return False


class First:
    """A sink that keeps the first cell that a reader sees, if there is any."""

    def __init__(self) -> None:
        self.cost = STEP_COST
        self.size_bytes = 0
        self.begin_row()

    def begin_row(self) -> None:
        self.cells: list[WireCell] = []

    def take_cells(self, cells: Cells) -> bool:
        self.cells = list(cells)[:1]
        return bool(self.cells)


class Filtered:
    """A sink that keeps the cells that pass a filter, and whether the filter ends the scan."""

    def __init__(self, row: bytes, row_filter: Filter, max_versions: int) -> None:
        self.cost = _FILTERED_COST
        self.size_bytes = 0
        self._kept = 0  # cells
        self._row = row
        self._filter = row_filter
        self._max_versions = max_versions
        self._filtered: FilteredRow | None = None

    def begin_row(self) -> None:
        if self._filtered is not None:
            self._filter.reset_row()  # forgets the row's cells that it has seen
        self.size_bytes = self._kept = 0
        self._filtered = None

    def take_cells(self, cells: Cells) -> bool:
        if not cells:
            return False
        return self._see(cells)

    def take_nothing(self) -> None:
        """Pass a row without visible cells to the filter, which must see its key nevertheless."""
        self._see([])

    def _see(self, cells: Cells) -> bool:
        seen = [_cell(column, value, timestamp) for column, value, timestamp in cells]
        try:
            if self._filtered is None:
                self._filtered = FilteredRow(self._filter, self._row, self._max_versions)
            if self._filtered.wants_cells:
                before = self._kept
                self._kept = self._filtered.take_cells(seen)
                if self._kept > before:  # counted as if all of these cells were kept
                    self.size_bytes += size_of((b"", cells))
        except PatternTimeout as timeout:
            raise FilterTooExpensive(self._row, self._filter.text, str(timeout)) from None
        _check_size(self._row, self.size_bytes, ROW_BYTES)
        return not self._filtered.wants_cells

    def result(self) -> tuple[list[WireCell], bool]:
        if self._filtered is None:
            return [], False  # a row without cells is passed to no filter
        try:
            kept, ended = self._filtered.answer()
        except PatternTimeout as timeout:
            raise FilterTooExpensive(self._row, self._filter.text, str(timeout)) from None
        return [(cell.column, cell.value, cell.timestamp) for cell in kept], ended


def _cell(column: bytes, value: bytes, timestamp: int) -> Cell:
    family, _, qualifier = column.partition(b":")
    return Cell(family, qualifier, timestamp, value)


__all__ = ["Filtered", "First", "Listed", "Packed", "PackedValues", "read_wide"]
