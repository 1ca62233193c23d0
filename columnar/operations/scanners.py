"""Scanners: a place in a table that moves on with each call, and the table of the open ones.

A scanner keeps a position, no iterator: each step seeks anew, so it costs nothing between two
calls, survives splits and moves, and each row it gives is as of one moment (design 5, "scans").

A call runs in steps of at most ``limits.STEP_CELLS`` cells or ``STEP_BYTES``, through a filter also of ``STEP_S``;
between two steps others are served (design D11).  A step of an unfiltered scan of small cells costs some 2 ms.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from columnar.errors import IllegalArgument, RegionAway, ScannerNotFound, TooManyScanners
from columnar.limits import (
    CONNECTION_SCANNERS,
    OPEN_SCANNERS,
    ORPHAN_SCANNER_LEASE_S,
    REPLY_BYTES,
    ROWS_PER_REPLY,
    SCANNER_LEASE_S,
    SCANNERS_BYTES,
    STEP_BYTES,
    STEP_CELLS,
    STEP_S,
)
from columnar.model.filters import Filter
from columnar.model.filters import apply as apply_filter
from columnar.model.read import ScanSpec
from columnar.operations.access import TableAccess
from columnar.operations.reads import check_families
from columnar.regions.family_view import FamilyView
from columnar.regions.found_rows import FoundRows, PackRows, ScanRow
from columnar.regions.patience import back
from columnar.regions.plain_rows import PlainStep
from columnar.regions.region import Region
from columnar.regions.row_reader import Cells, RawRow, RowCursor, filter_cells, visible_cells, wants_newest
from columnar.storage.layout import range_start, row_end, row_prefix
from columnar.turns import HasGone, stays


class _Place(NamedTuple):
    """The place of the next step: at ``row``, or just past it in the scan's direction."""

    row: bytes | None  # None: the table's end, for a reversed scan
    past: bool


class Scanner:
    """Owned by the loop; one call at a time."""

    def __init__(self, access: TableAccess, table: bytes, spec: ScanSpec, row_filter: Filter | None) -> None:
        self._access = access
        self.table = table
        self.spec = spec
        self._filter = row_filter
        self._place: _Place | None = _Place(_first_row(spec), False)
        self._only_row = bool(spec.start) and spec.start == spec.stop
        self._plain_family = None if row_filter is not None else _plain_family(spec)
        self._rest: ScanRow | None = None  # of a row that batchSize has cut
        self._rows_left = spec.limit or -1
        self._barriers: set[asyncio.Future[None]] = set()
        self.cells_read = 0
        self.busy = False
        self._failed = False

    def next_rows(
        self, count: int, pack: PackRows | None = None, has_gone: HasGone = stays
    ) -> FoundRows | Awaitable[FoundRows]:
        """Up to ``count`` rows; fewer only at the end or where the reply reaches its bound, none only at the end.

        ``pack``: how rows are to be packed for the reply, where they go there as they are stored.  ClientGone before
        a step whose client has ended its connection.
        """
        if self.busy:
            raise IllegalArgument("this scanner is in use by another call")
        if self._failed:
            raise IllegalArgument("an earlier call of this scanner failed and its rows are lost; open a new one")
        found = FoundRows(pack)
        self._barriers.clear()
        count = min(count, ROWS_PER_REPLY)
        self._failed = True  # until the rows are handed over: a failed call must not be a hole in the scan
        gathering, away = self._access.gathering, None
        if not gathering.is_full:  # else this call waits before its first step
            try:
                if self._step(found, count) and not self._barriers:
                    self._failed = False
                    return found
            except RegionAway as error:
                away = error
        return self._go_on(found, count, gathering.begin(found.size_bytes, has_gone), away)

    async def _go_on(self, found: FoundRows, count: int, ticket: int, away: RegionAway | None) -> FoundRows:
        self.busy = True
        gathering = self._access.gathering
        try:
            while found.count < count and found.size_bytes < REPLY_BYTES and not self._at_end:
                if away is not None:
                    await back(away)
                    away = None
                await gathering.turn(ticket, found.size_bytes)
                try:
                    self._step(found, count)
                except RegionAway as another:  # its place and its rows stand as they were before the region
                    away = another
            for barrier in self._barriers:
                await asyncio.shield(barrier)
            self._failed = False
            return found
        finally:
            self.busy = False
            gathering.end(ticket)

    @property
    def cuts_row(self) -> bool:
        """The last row that was given has more cells; they come next."""
        return self._rest is not None

    @property
    def _at_end(self) -> bool:
        return self._place is None and self._rest is None

    @property
    def _stops_here(self) -> bool:
        """The row just read was cut by batchSize, or was the last."""
        return self._rest is not None or self._place is None

    def _step(self, found: FoundRows, count: int) -> bool:
        """Add rows until the step's budget is used up; True: the call is done."""
        cells_left, bytes_left = STEP_CELLS, STEP_BYTES
        ends = perf_counter() + STEP_S if self._filter is not None else 0.0  # the cost of a filter is unknown
        while found.count < count and found.size_bytes < REPLY_BYTES:
            if self._rest is not None:
                self._hand_out(found, *self._rest)
                continue
            if self._place is None:
                return True
            if cells_left <= 0 or bytes_left <= 0:
                return False
            region, low, high = self._seek(self._place)
            barrier = region.barrier_any()
            if barrier is not None:
                self._barriers.add(barrier)
            view = region.views[self._plain_family] if self._plain_family is not None else None
            if view is not None and view.ttl_ms is None:
                before = found.size_bytes
                cells_left -= self._plain_step(region, view, low, high, found, count, cells_left, bytes_left)
                bytes_left -= found.size_bytes - before
                continue
            cursor = self._cursor(region, low, high)
            walked = 0  # the cursor has read one row ahead in each family: that is this step's work too
            while found.count < count and found.size_bytes < REPLY_BYTES and cells_left > 0 and bytes_left > 0:
                fetched = cursor.next_row()
                if fetched is None:
                    self._place = self._next_region(region)
                    break
                bytes_left -= self._read_row(region, found, *fetched)
                cells_left -= cursor.walked - walked
                self.cells_read += cursor.walked - walked
                walked = cursor.walked
                if self._stops_here:
                    break
                if ends and perf_counter() >= ends:
                    cells_left = 0
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
        """Rows of one region until a bound is reached; moves on past them.  How many cells were walked."""
        step, before = PlainStep(), found.count
        limit = count if self._rows_left < 0 else min(count, before + self._rows_left)
        items = region.store.scan(view.space, low, high)
        step.take(region.store, view, items, self.spec.read, region.now_ms, found, limit, max_cells, max_bytes)
        region.reads += step.rows_read
        self.cells_read += step.cells_walked
        self._place = self._next_region(region) if step.last_row is None else _Place(step.last_row, True)
        if self._rows_left > 0:
            self._rows_left -= found.count - before
            if self._rows_left == 0:
                self._place = None
        return step.cells_walked

    def _read_row(self, region: Region, found: FoundRows, row: bytes, raw_row: RawRow) -> int:
        """Take one row in, move on past it; returns how many stored bytes were read."""
        self._place = None if self._only_row else _Place(row, True)
        read = self.spec.read
        region.reads += 1
        cells: Cells
        if self._filter is None:
            cells = visible_cells(region.store, row, raw_row, read, region.now_ms)
        else:
            seen = filter_cells(region.store, row, raw_row, read, region.now_ms)
            kept, ended = apply_filter(self._filter, row, seen, read.max_versions)
            cells = [(cell.column, cell.value, cell.timestamp) for cell in kept]
            if ended:
                self._place = None
        if cells:
            self._hand_out(found, row, cells)
        return sum(len(raw) for _, group in raw_row for _, raw in group)

    def _hand_out(self, found: FoundRows, row: bytes, cells: Cells) -> None:
        batch = self.spec.batch
        if batch and len(cells) > batch:
            several = list(cells)
            self._rest = (row, several[batch:])
            cells = several[:batch]
        else:
            self._rest = None
            self._rows_left -= 1
            if self._rows_left == 0:
                self._place = None
        found.add(row, cells)

    def _seek(self, place: _Place) -> tuple[Region, bytes, bytes | None]:
        """The region that goes on, and which of its keys: from one, below the other."""
        served = self._access.table(self.table)
        check_families(served, self.spec.read)  # the table may have been made anew since the opening
        spec, row = self.spec, place.row
        if spec.reversed:
            info = served.below(row) if row is None or place.past else served.holding(row)
            low = row_prefix(spec.start) if self._only_row else row_end(spec.stop) if spec.stop else b""
            high = None if row is None else row_prefix(row) if place.past else row_end(row)
        else:
            assert row is not None, "a forward scan begins at a row"
            info = served.holding(row)
            low = row_end(row) if place.past else range_start(row)
            high = row_end(spec.start) if self._only_row else range_start(spec.stop) if spec.stop else None
        region = self._access.open_region(served, info)
        low = max(low, range_start(info.start))
        if info.end:
            end = range_start(info.end)
            high = end if high is None else min(high, end)
        return region, low, high

    def _cursor(self, region: Region, low: bytes, high: bytes | None) -> RowCursor:
        spec = self.spec
        return RowCursor.over(region.store, region.views, spec.read.projection, low, high, reverse=spec.reversed)

    def _next_region(self, region: Region) -> _Place | None:
        info, stop = region.info, self.spec.stop
        if self._only_row:
            return None
        if self.spec.reversed:
            ended = not info.start or bool(stop and info.start <= stop)
            return None if ended else _Place(info.start, True)
        ended = not info.end or bool(stop and info.end >= stop)
        return None if ended else _Place(info.end, False)


def _first_row(spec: ScanSpec) -> bytes | None:
    if spec.start:
        return spec.start
    return None if spec.reversed else b""


def _plain_family(spec: ScanSpec) -> bytes | None:
    """The family of a scan that ``plain_rows`` can do; the family itself must agree."""
    families = spec.read.projection.families
    if spec.reversed or spec.batch or len(families) != 1 or families[0][1] is not None or not wants_newest(spec.read):
        return None
    return families[0][0]


@dataclass(slots=True)
class _Lease:
    scanner: Scanner
    connection: int
    idle_s: float
    used_at: float


class ScannerTable:
    """The open scanners by id, from any connection (observed row 11), each under an idle lease."""

    def __init__(
        self, now_s: Callable[[], float], *, bound: int = OPEN_SCANNERS, lease_s: float = SCANNER_LEASE_S
    ) -> None:
        self._now = now_s
        self._bound = bound
        self._lease_s = lease_s
        self._leases: OrderedDict[int, _Lease] = OrderedDict()
        self._of_connection: dict[int, set[int]] = {}
        self._last_id = -1
        self._size_bytes = 0  # of what the open ones remember

    def __len__(self) -> int:
        return len(self._leases)

    @property
    def size_bytes(self) -> int:
        """Bytes that the open ones remember; bounded by ``limits.SCANNERS_BYTES``."""
        return self._size_bytes

    def open(self, scanner: Scanner, connection: int) -> int:
        self.expire()
        if len(self._leases) >= self._bound:
            raise TooManyScanners(f"{self._bound} scanners are open; close some or wait until their leases end")
        if len(self._of_connection.get(connection, ())) >= CONNECTION_SCANNERS:
            raise TooManyScanners(f"this connection has {CONNECTION_SCANNERS} scanners open; close some")
        size = scanner.spec.size_bytes
        if self._size_bytes + size > SCANNERS_BYTES:
            raise TooManyScanners(
                f"the columns and filters of the open scanners have over {SCANNERS_BYTES} bytes; "
                "close some or wait until their leases end"
            )
        self._size_bytes += size
        self._last_id = (self._last_id + 1) & 0x7FFFFFFF
        self._leases[self._last_id] = _Lease(scanner, connection, self._lease_s, self._now())
        self._of_connection.setdefault(connection, set()).add(self._last_id)
        return self._last_id

    def get(self, scanner_id: int) -> Scanner:
        lease = self._leases.get(scanner_id)
        if lease is None or (not lease.scanner.busy and lease.used_at + lease.idle_s < self._now()):
            self._forget(scanner_id)
            raise ScannerNotFound(scanner_id)
        lease.used_at = self._now()
        self._leases.move_to_end(scanner_id)
        return lease.scanner

    def close(self, scanner_id: int) -> None:
        if not self._forget(scanner_id):
            raise ScannerNotFound(scanner_id)

    def _forget(self, scanner_id: int) -> bool:
        lease = self._leases.pop(scanner_id, None)
        if lease is None:
            return False
        self._size_bytes -= lease.scanner.spec.size_bytes
        opened = self._of_connection.get(lease.connection)
        if opened is not None:
            opened.discard(scanner_id)
            if not opened:
                del self._of_connection[lease.connection]
        return True

    def connection_closed(self, connection: int) -> None:
        """Its scanners may still be used from elsewhere, for a shorter while."""
        for scanner_id in self._of_connection.pop(connection, ()):
            lease = self._leases[scanner_id]
            lease.idle_s = min(lease.idle_s, ORPHAN_SCANNER_LEASE_S)

    def expire(self) -> int:
        """Drop the scanners whose lease has ended; returns how many."""
        now = self._now()
        ended = [
            scanner_id
            for scanner_id, lease in self._leases.items()
            if lease.used_at + lease.idle_s < now and not lease.scanner.busy
        ]
        for scanner_id in ended:
            self._forget(scanner_id)
        return len(ended)
