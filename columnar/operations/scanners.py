"""A scanner: a place in a table that moves on with each call.

A scanner keeps a position and no iterator: each step seeks again.  So an idle scanner costs nothing between two calls
and survives splits and moves, and each row that it returns is as of one moment.

A call runs in steps of at most ``limits.STEP_CELLS`` cells or ``STEP_BYTES``, with a filter also of ``STEP_S``.
Between two steps other requests are served.  A step of an unfiltered scan of small cells takes some 2 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final

from columnar.cluster.row_forms import Place, ReplyForm
from columnar.errors import FilterTooExpensive, IllegalArgument, RegionNotLocal, RegionUnavailable
from columnar.limits import REPLY_BYTES, ROWS_PER_REPLY, SHORT_FILTER_BYTES, STEP_BYTES, STEP_CELLS, STEP_S
from columnar.model.bounded_search import PatternTimeout
from columnar.model.cell import Cell
from columnar.model.filters import Filter
from columnar.model.filters import apply as apply_filter
from columnar.model.read import ScanSpec
from columnar.model.region_info import RegionInfo
from columnar.model.row_ranges import RowRange, RowRanges
from columnar.operations.access import TableAccess
from columnar.operations.reads import SEEK_CELLS, check_families
from columnar.operations.scan_places import (
    entered,
    first_place,
    is_one_row,
    key_bounds,
    place_after_range,
    place_after_region,
)
from columnar.operations.wide_reads import Filtered, Listed, Packed, read_wide
from columnar.regions.life.retry import wait_available
from columnar.regions.read.family_view import FamilyView
from columnar.regions.read.found_rows import FoundRows, PackRows
from columnar.regions.read.plain_rows import PlainStep
from columnar.regions.read.row_reader import (
    STEP_COST,
    Cells,
    RawRow,
    RowCursor,
    RowIsWide,
    WireCell,
    filter_cells,
    valueless_cells,
    visible_cells,
    wants_newest,
)
from columnar.regions.region import Region
from columnar.regions.tables import ServedTable
from columnar.runtime.loop_budget import IsDisconnected, never_disconnected
from columnar.storage.api import PAIR_COST
from columnar.storage.stored_cells import PackedRows

CELLS_OF_LONG_FILTER: Final = 100  # cells of a row that a filter of thousands of comparisons gets in one step
OWNED_S: Final = 0.1  # of steps for one request of a gateway, which sends a further request


def nobody() -> None:
    pass


class Scanner:
    """A scanner of one table.  Owned by the loop; serves one call at a time."""

    def __init__(self, access: TableAccess, table: bytes, spec: ScanSpec, row_filter: Filter | None) -> None:
        self._access = access
        self.table = table
        self.spec = spec
        self.place: Place | None = first_place(spec)
        self._only_row = is_one_row(spec)
        self._ranges = ranges = _ranges_of(row_filter)
        if row_filter is not None and row_filter.is_row_range and ranges is not None and ranges.is_exact:
            row_filter = None  # the row ranges alone have the filter's effect
        self.filter = row_filter
        self._plain_family = None if row_filter is not None else _plain_family(spec)
        self.rows_ahead: RowRange | None = None  # the one of ``_ranges`` to read next; None: all rows that are left
        self.needs_values = row_filter is None or row_filter.needs_values  # False: it needs and returns none
        self._rest: tuple[bytes, Cells, int] | None = None  # a row cut by batchSize: cells, number of returned cells
        self.rows_left = spec.limit or -1  # until the scan's limit; -1: all
        self._barriers: set[asyncio.Future[None]] = set()
        self.cells_read = 0
        self.cells_read_before = 0  # ``cells_read`` before the current or last call
        self.busy = False
        self.on_idle: Callable[[], None] = nobody  # called when a call that took several steps has ended
        self._failed = False
        self._wide: bytes | None = None  # the next row, which costs more than a step
        self._wants_versions = False
        has_long_filter = row_filter is not None and len(spec.filter_string or b"") > SHORT_FILTER_BYTES
        self._most = CELLS_OF_LONG_FILTER if has_long_filter else STEP_CELLS  # cells of a row in one step
        self.form: ReplyForm | None = None  # of the current call
        self.asking: Any = None  # state of ``operations.distributed_scans``; None: not made yet

    def next_rows(
        self,
        count: int,
        pack: PackRows | None = None,
        is_disconnected: IsDisconnected = never_disconnected,
        form: ReplyForm | None = None,
    ) -> FoundRows | Awaitable[FoundRows]:
        """Return up to ``count`` rows; fewer only at the end or if the reply reaches its bound, none only at the end.

        ``pack`` packs rows for the reply if they can be packed as they are stored.  ``form`` is the form in which other
        servers send rows, None for cells.  Raises ClientGone before a step if the client has disconnected.
        """
        if self.busy:
            raise IllegalArgument("this scanner is in use by another call")
        if self._failed:
            raise IllegalArgument("an earlier call of this scanner failed and its rows are lost; open a new one")
        found = FoundRows(pack)
        self.cells_read_before = self.cells_read
        self._barriers.clear()
        count = min(count, ROWS_PER_REPLY)
        self._failed = True  # until the rows are returned: after a failed call the scan must not continue without them
        self.form = form
        reply_memory, unavailable = self._access.reply_memory, None
        if not reply_memory.is_full:  # if it is full, this call waits before its first step
            try:
                if self._step(found, count) and not self._barriers:
                    self._failed = False
                    return found
            except RegionUnavailable as error:
                unavailable = error
            except RegionNotLocal as error:
                self._access.remote(error)  # the first step of ``_continue_scan`` requests the rows there
        ticket = reply_memory.begin_call(found.size_bytes, is_disconnected)
        return self._continue_scan(found, count, ticket, unavailable, is_disconnected)

    async def _continue_scan(
        self, found: FoundRows, count: int, ticket: int, wait: RegionUnavailable | None, is_disconnected: IsDisconnected
    ) -> FoundRows:
        self.busy = True
        reply_memory = self._access.reply_memory

        async def reserve_step() -> None:
            await reply_memory.reserve_step(ticket, found.size_bytes)

        try:
            while found.count < count and found.size_bytes < REPLY_BYTES and not self._at_end:
                if wait is not None:
                    await wait_available(wait)
                    wait = None
                await reserve_step()
                try:
                    if self._wide is not None:
                        await self._take_wide(found, self._wide, ticket, is_disconnected)
                    else:
                        self._step(found, count)
                except RegionUnavailable as another:  # place and rows are as the region before left them
                    wait = another
                except RegionNotLocal as error:
                    self._wide = None
                    await self._access.remote(error).scan_step(self, found, count, reserve_step)
            for barrier in self._barriers:
                await asyncio.shield(barrier)
            self._failed = False
            return found
        finally:
            self.busy = False
            self.on_idle()
            reply_memory.end(ticket)

    @property
    def cuts_row(self) -> bool:
        """Whether the last row that was returned has more cells, which come next."""
        return self._rest is not None

    @property
    def _at_end(self) -> bool:
        return self.place is None and self._rest is None

    @property
    def _stops_after_row(self) -> bool:
        """Whether the row just read was cut by batchSize, or was the last."""
        return self._rest is not None or self.place is None

    def read_for_filter(self, *, needs_values: bool) -> None:
        """Have ``steps_owned`` return all that a gateway's filter sees: also rows without cells, and old versions."""
        self._wants_versions, self.needs_values = True, needs_values
        self._plain_family = None

    def read_only(self, rows: RowRange) -> None:
        """Have ``steps_owned`` end at the end of ``rows``."""
        self._ranges = RowRanges([rows])

    async def steps_owned(self, place: Place, found: FoundRows, bounds: tuple[int, int, int]) -> bool:
        """Do steps from ``place`` over regions of this server, for a gateway; return False if the first is not local.

        ``bounds`` limits rows, walked cells and bytes, in this order.  The steps end soon after OWNED_S, so that a
        gateway whose client has disconnected sends no further request.  ``self.place`` is the next place then.
        """
        max_rows, max_cells, max_bytes = bounds
        self._begin_at(place)
        reply_memory, ends = self._access.reply_memory, perf_counter() + OWNED_S
        ticket = reply_memory.begin_call()
        try:
            while found.count < max_rows and found.size_bytes < max_bytes:
                await reply_memory.reserve_step(ticket, found.size_bytes)
                try:
                    if self._wide is not None:
                        await self._take_wide(found, self._wide, ticket, never_disconnected)
                    else:
                        self._step(found, max_rows, min(STEP_BYTES, max_bytes - found.size_bytes))
                except RegionUnavailable as unavailable:
                    await wait_available(unavailable)
                except RegionNotLocal:
                    self._wide = None
                    if self.place is place:
                        return False
                    break
                if self.place is None or self.cells_read >= max_cells or perf_counter() >= ends:
                    break
            for barrier in self._barriers:
                await asyncio.shield(barrier)
            return True
        finally:
            reply_memory.end(ticket)

    async def _take_wide(self, found: FoundRows, row: bytes, ticket: int, is_disconnected: IsDisconnected) -> None:
        """Read the next row, which costs more than a step, in several steps; raises the errors of ``read_wide``."""
        spec, before = self.spec.read, found.size_bytes
        sink: Packed | Listed | Filtered
        if self.filter is not None and not self._wants_versions:
            sink = Filtered(row, self.filter, spec.max_versions)
        elif self.form is not None and not self.spec.batch:
            sink = Packed(row, self.form)
        else:
            sink = Listed(row)
        all_versions = self._wants_versions or self.filter is not None
        barrier = await read_wide(
            self._access,
            self.table,
            row,
            spec,
            sink,
            ticket,
            is_disconnected,
            all_versions=all_versions,
            before_bytes=before,
        )
        if barrier is not None:
            self._barriers.add(barrier)
        self._wide = None
        self.place = None if self._only_row else Place(row, True)
        if isinstance(sink, Packed):
            packed = sink.result()
            if packed is not None:
                self.take_packed(found, packed)
        elif isinstance(sink, Listed):
            self._hand_out(found, row, sink.cells)
        else:
            kept, ended = sink.result()
            if ended:
                self.place = None
            self._hand_out(found, row, kept)

    def _begin_at(self, place: Place) -> None:
        self.place = place

    def _step(self, found: FoundRows, count: int, max_bytes: int | None = None) -> bool:
        """Add rows until the step's budget is used up; return whether the call is done."""
        cells_left, bytes_left = STEP_CELLS, STEP_BYTES if max_bytes is None else max_bytes
        ends = perf_counter() + STEP_S if self.filter is not None else 0.0  # a filter's cost is unknown
        seek = SEEK_CELLS if self._ranges is not None else 0  # a filter may have thousands of ranges without a row
        while found.count < count and found.size_bytes < REPLY_BYTES:
            if self._rest is not None:
                if cells_left <= 0:
                    return False
                self._hand_out(found, *self._rest)
                cells_left -= self.spec.batch
                continue
            if self.place is None:
                return True
            if cells_left <= 0 or bytes_left <= 0 or self._wide is not None:
                return False
            if self._ranges is not None and not self._enter_range(self._ranges):
                return True
            region, low, high = self._seek(self.place)
            barrier = region.syncs.barrier_any()
            if barrier is not None:
                self._barriers.add(barrier)
            view = region.views[self._plain_family] if self._plain_family is not None else None
            if view is not None and view.ttl_ms is None:
                before = found.size_bytes
                cells_left -= seek + self._plain_step(region, view, low, high, found, count, cells_left, bytes_left)
                bytes_left -= found.size_bytes - before
                continue
            cursor, now_ms = self._cursor(region, low, high), region.now_ms
            walked = 0  # the cursor has read one row ahead in each family, which counts as work of this step
            while found.count < count and found.size_bytes < REPLY_BYTES and cells_left > 0 and bytes_left > 0:
                try:
                    fetched = cursor.next_row()
                    if fetched is None:
                        self.place = place_after_region(self.spec, region.info, self.rows_ahead)
                        break
                    bytes_left -= self._read_row(region, now_ms, found, *fetched)
                except RowIsWide as wide:
                    self._wide = wide.row
                    return False
                cells_left -= cursor.walked - walked
                self.cells_read += cursor.walked - walked
                walked = cursor.walked
                if self._stops_after_row:
                    break
                if ends and perf_counter() >= ends:
                    cells_left = 0
            cells_left -= seek
        return True

    def _plain_step(
        self,
        region: Region,
        view: FamilyView,
        low: bytes,
        high: bytes | None,
        found: FoundRows,
        count: int,
        max_cells: int,
        max_bytes: int,
    ) -> int:
        """Take rows of one region up to a bound, and move past them; return the number of cells walked."""
        before = found.count
        limit = count if self.rows_left < 0 else min(count, before + self.rows_left)
        bounds = limit, max_cells, max_bytes
        step = PlainStep(region.store, view, self.spec.read, region.now_ms, found, bounds)
        step.take(region.store.scan(view.space, low, high))
        region.reads += step.rows_read
        self.cells_read += step.cells_walked
        self._wide = step.wide_row
        if step.last_row is not None:
            self.place = Place(step.last_row, True)
        elif step.wide_row is None:
            self.place = place_after_region(self.spec, region.info, self.rows_ahead)
        if self.rows_left > 0:
            self.rows_left -= found.count - before
            if self.rows_left == 0:
                self.place = None
        return step.cells_walked

    def _read_row(self, region: Region, now_ms: int, found: FoundRows, row: bytes, raw_row: RawRow) -> int:
        """Take one row and move past it; return the number of stored bytes read."""
        read, next_place = self.spec.read, None if self._only_row else Place(row, True)
        store = region.store
        if self.filter is None and not self._wants_versions:
            cells = visible_cells(store, row, raw_row, read, now_ms, STEP_CELLS)
            self.place = next_place
            self._hand_out(found, row, cells)
        else:
            seen_by_filter = filter_cells if self.needs_values else valueless_cells
            seen = seen_by_filter(store, row, raw_row, read, now_ms, self._most)
            self.place = next_place
            if self._wants_versions:
                found.add_row(row, [(cell.column, cell.value, cell.timestamp) for cell in seen])
            else:
                self._filter_row(found, row, seen)
        region.reads += 1
        return sum(len(raw) for _, group in raw_row for _, raw in group)

    def _filter_row(self, found: FoundRows, row: bytes, seen: list[Cell]) -> None:
        assert self.filter is not None, "looked at by the caller"
        try:
            kept, ended = apply_filter(self.filter, row, seen, self.spec.read.max_versions)
        except PatternTimeout as timeout:
            raise FilterTooExpensive(row, self.filter.text, str(timeout)) from None
        if ended:
            self.place = None
        self._hand_out(found, row, [(cell.column, cell.value, cell.timestamp) for cell in kept])

    # --- rows of other servers -----------------------------------------------------------------------

    @property
    def place_after_rows(self) -> Place | None:
        """The place past ``rows_ahead``; None at the table's end."""
        return place_after_range(self.spec, self.rows_ahead)

    def region_ahead(self) -> RegionInfo:
        """Return the region of the next step; the scan must not be at its end."""
        assert self.place is not None, "there is a next step"
        return self._region_at(self._access.table(self.table), self.place)

    def take_packed(self, found: FoundRows, rows: PackedRows) -> None:
        """Take packed rows, which need neither a filter nor a cut here; the caller sets the place first."""
        found.add_packed(rows)
        if self.rows_left > 0:
            self.rows_left -= rows.row_count
            if self.rows_left == 0:
                self.place = None

    def filtering(self, row: bytes) -> Filtered:
        """Return a sink that passes the next row through the scanner's filter."""
        assert self.filter is not None, "looked at by the caller"
        return Filtered(row, self.filter, self.spec.read.max_versions)

    def take_row(self, found: FoundRows, count: int, row: bytes, cells: list[WireCell], *, ends: bool) -> bool:
        """Take the cells of the next row that passed the filter; ``ends`` says that the filter wants no more rows.

        Returns False if no further row is to be taken, because the call has ``count`` rows or the scan is at its end.
        """
        self.place = None if self._only_row or ends else Place(row, True)
        self._hand_out(found, row, cells)
        cells_left = STEP_CELLS
        while self._rest is not None and found.count < count and cells_left > 0:
            self._hand_out(found, *self._rest)
            cells_left -= self.spec.batch
        return self._rest is None and self.place is not None and found.count < count

    def _hand_out(self, found: FoundRows, row: bytes, cells: Cells, at: int = 0) -> None:
        """Add the row's cells from number ``at`` on, at most as many as a batch has.  O(cells added)."""
        if not cells:
            return
        batch = self.spec.batch
        if batch and len(cells) - at > batch:
            several = cells if isinstance(cells, list) else list(cells)
            self._rest = (row, several, at + batch)
            cells = several[at : at + batch]
        else:
            self._rest = None
            if at:
                assert isinstance(cells, list), "a row that was cut"
                cells = cells[at:]
            self.rows_left -= 1
            if self.rows_left == 0:
                self.place = None
        found.add_row(row, cells)

    def _enter_range(self, ranges: RowRanges) -> bool:
        """Move the place to the next rows that may pass the filter; return False if the scan is over."""
        assert self.place is not None, "looked at by the caller"
        self.rows_ahead, self.place = entered(self.spec, self.place, ranges)
        return self.place is not None

    def _seek(self, place: Place) -> tuple[Region, bytes, bytes | None]:
        """Return the region to continue in, and the half-open bounds of its keys."""
        served = self._access.table(self.table)
        check_families(served, self.spec.read)  # the table may have been recreated since the opening
        info = self._region_at(served, place)
        region = self._access.open_region(served, info)
        return region, *key_bounds(self.spec, place, info, self.rows_ahead)

    def _region_at(self, served: ServedTable, place: Place) -> RegionInfo:
        row = place.row
        if row is None or (self.spec.reversed and place.is_after_row):
            return served.below(row)
        return served.holding(row)

    def _cursor(self, region: Region, low: bytes, high: bytes | None) -> RowCursor:
        spec = self.spec
        cost = STEP_COST if self._most == STEP_CELLS else self._most * PAIR_COST
        projection = spec.read.projection
        return RowCursor.over(region.store, region.views, projection, low, high, reverse=spec.reversed, cost=cost)


def _ranges_of(row_filter: Filter | None) -> RowRanges | None:
    """Return the row ranges that the filter may let pass; None if these are all rows."""
    if row_filter is None:
        return None
    found = row_filter.scan_ranges
    return None if found.is_everything else found


def _plain_family(spec: ScanSpec) -> bytes | None:
    """Return the family of a scan that ``PlainStep`` can do, if that family has no TTL; None for any other scan."""
    families = spec.read.projection.families
    if spec.reversed or spec.batch or len(families) != 1 or families[0][1] is not None or not wants_newest(spec.read):
        return None
    return families[0][0]
