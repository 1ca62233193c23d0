"""Replacement of regions by successors: the common part of splits and merges, from the first copy to the last row.

``region_state`` defines the states: a region is REPLACING while it serves and is copied, HOLDING while requests wait,
and ends as REPLACED or, if the replacement is called off, as OPEN.  The region's consumers are paused before the
requests and take up no more changes.  So no delivery is in flight when the region is closed, and its successors deliver
no change twice.  Nearly all data is on disk before the pause begins.  If the rest is not ready after MADE_S, requests
are let in again; otherwise one write of the catalogue follows.

Invariants:
    I1. Until the catalogue names the successors the old regions are unchanged for a reader, and
        ``leave`` lets them serve again.
    I2. A region is not closed while requests wait for it, unless its disk failed.
    I3. Successors of logged regions are open, with their consumers, before any request reaches them.

Knows nothing of the catalogue: the caller sees to its write between ``make`` and ``succeed``.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from functools import partial
from itertools import chain
from time import monotonic
from typing import Final

from columnar.errors import ColumnarError, NotServingRegion, RegionTooBusy
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange
from columnar.model.schema import Table
from columnar.regions.life.region_state import Event, State
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log import change_record, log_coverage, log_retention
from columnar.regions.log.log_cursors import CURSOR
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.log.lost_changes import EPOCH, LOST, pack_spans
from columnar.regions.region import Region
from columnar.regions.replace.region_copier import RegionCopier
from columnar.regions.server import RegionServer
from columnar.regions.spaces import outside_spans
from columnar.regions.tables import ServedTable
from columnar.storage.api import Store

_log = logging.getLogger(__name__)

QUIESCE_TIMEOUT_S: Final = 10.0  # for trigger calls in flight; the region serves meanwhile
UPKEEP_TIMEOUT_S: Final = 60.0  # for a sweep or a compaction that was begun before
MADE_S: Final = 0.06  # of a pause, until the successors are made; the rest of 0.3 s is for the catalogue's write
POLL_S: Final = 0.02


class Replacement(ABC):
    """Owned by the loop.  One use.  ``Splitting`` and ``Merging`` define the successors."""

    def __init__(self, server: RegionServer, served: ServedTable, change: RegionChange) -> None:
        self.server = server
        self.change = change
        self._served = served
        self.regions: list[Region] = []
        self._schemas: list[Table] = []
        self._quiesced: list[Region] = []
        self._copier: RegionCopier | None = None
        self._call_off_reason = ""  # why the next check calls it off
        self._paused_at = 0.0
        self.paused_s = 0.0  # how long requests waited at most, once it is over

    async def begin_replacement(self) -> None:
        """Open the regions and begin their replacement.

        Raises RegionTooBusy if a region is being replaced or closed already.
        """
        regions = await retry_until_ready(self._opened)
        for region in regions:
            region.check_disk()
            if self.server.hosting.state_of(region) is not State.OPEN:
                raise RegionTooBusy(f"region {region.info.encoded} is being split, merged or closed already")
        self.regions = regions
        self._schemas = [region.table for region in regions]
        self._report_event(Event.REPLACEMENT_BEGINS)

    def _opened(self) -> list[Region]:
        return [self.server.open_region(self._served, info) for info in self.change.gone]

    def _report_event(self, event: Event, why: str = "") -> None:
        for region in self.regions:
            self.server.hosting.report_event(region, event, why)

    @abstractmethod
    def make_copier(self) -> RegionCopier:
        """Return the copier of the regions' rows to their successors."""

    @abstractmethod
    def finish(self, info: RegionInfo, store: Store) -> None:
        """Write the new region's ``meta``.  Called while requests are paused."""

    async def prepare(self) -> None:
        """Make the successors' stores, but for the last few rows, while the old regions serve."""
        await self._wait_for_upkeep()
        self._copier = self.make_copier()
        await self._copier.begin_copy()
        await self._copier.catch_up()

    async def make(self) -> bool:
        """Copy the rest while requests are paused.  The successors' stores are on disk when this returns.

        Returns False if it took too long: then call ``let_in``, and begin again with ``quiesce_followers`` or call off.
        """
        copier = self._copier
        assert copier is not None, "prepared before"
        await copier.round()
        for info, store in zip(self.change.fresh, copier.stores, strict=True):
            self.finish(info, store)
        await copier.sync()
        return monotonic() - self._paused_at <= MADE_S

    async def _wait_for_upkeep(self) -> None:
        deadline = monotonic() + UPKEEP_TIMEOUT_S
        while any(region.work.running for region in self.regions):
            if monotonic() > deadline:
                raise RegionTooBusy("a compaction of the region is still running; try again when it is done")
            await asyncio.sleep(POLL_S)

    async def quiesce_followers(self) -> None:
        """Quiesce the consumers and sync nearly all rows.  Raises RegionTooBusy if a consumer does not quiesce."""
        for region in self.regions:
            if region in self._quiesced:
                continue  # quiesced by an earlier try
            self._quiesced.append(region)
            under_way = await self.server.listener.quiesce_region(region, QUIESCE_TIMEOUT_S)
            if under_way:
                raise RegionTooBusy(f"region {region.info.encoded} stays as it is for now: {under_way}")
        assert self._copier is not None, "prepared before"
        await self._copier.catch_up()
        await self._copier.sync()  # else requests would wait for the sync of all copied data
        await self._copier.catch_up()

    async def pause_requests(self) -> None:
        """Make requests wait from now on; when this returns, every write is on disk and answered."""
        self.check_open()
        self._paused_at = monotonic()
        self._report_event(Event.PAUSE_BEGINS)
        for region in self.regions:
            await self.server.hosting.quiesce(region)
        self.check_open()

    def call_off_soon(self, why: str) -> None:
        """Have the next check fail with the reason, before a commit that is not requested yet."""
        self._call_off_reason = why

    def check_wanted(self) -> None:
        if self._call_off_reason:
            raise NotServingRegion(self._call_off_reason)

    def check_open(self) -> None:
        self.check_wanted()
        for region, schema in zip(self.regions, self._schemas, strict=True):
            is_ours = self.server.hosting.state_of(region) in (State.REPLACING, State.HOLDING)
            if not is_ours or not self.server.tables.serves(region.info):
                raise NotServingRegion(f"region {region.info.encoded} was closed meanwhile; try again")
            if region.table != schema:
                raise NotServingRegion(f"table {region.info.table} was changed meanwhile; try again")

    def succeed(self) -> None:
        """Serve the successors from now on; the catalogue names them."""
        assert self._copier is not None, "prepared before"
        server, fresh = self.server, self.change.fresh
        for region in self.regions:
            server.listener.region_leaving(region)
            region.is_open = False
        self._report_event(Event.COMMITTED)
        served = server.tables.known(self._served.schema.name.encode())
        kept = [info for info in served.regions if info not in self.change.gone and info not in fresh]
        served.replace_regions(sorted([*kept, *fresh], key=lambda info: info.start))
        for info, store in zip(fresh, self._copier.stores, strict=True):
            self._open(info, store)
        server.listener.regions_replaced(self.regions, fresh)
        self.paused_s = max(self.paused_s, monotonic() - self._paused_at)
        self._report_event(Event.SUCCEEDED)

    def _open(self, info: RegionInfo, store: Store) -> None:
        try:
            self.server.openings.open_in(info, store)
        except ColumnarError as error:  # the next request retries, and so does the listener of a logged region
            _log.error("region %s of %s cannot be opened: %s", info.encoded, info.table, error.text)
            if not self.server.is_open(info):
                store.close()

    def let_in(self) -> None:
        """Release the requests that wait; consumers stay paused."""
        self.paused_s = max(self.paused_s, monotonic() - self._paused_at)
        self._report_event(Event.LET_IN)

    def leave(self) -> None:
        """Call the replacement off: the old regions continue to serve, and no store of a successor is open."""
        for region in self._quiesced:
            self.server.listener.release(region)
        self._report_event(Event.CALLED_OFF)
        self._let_go()

    def suspend(self, why: str) -> None:
        """Block the regions until ``resume`` or a restart: the outcome of the commit is unknown."""
        for region in self.regions:
            self.server.listener.region_leaving(region)
        self._report_event(Event.UNSURE, why)
        self._let_go()

    def _let_go(self) -> None:
        if self._copier is not None:
            self._copier.stop()
            self._copier.abandon()

    def resume(self) -> None:
        """Unblock the regions after ``suspend``: the catalogue names them, and the next request opens each region."""
        self._report_event(Event.SETTLED)
        for region in self.regions:
            self.server.listener.release(region)
            self.server.open_for_consumers(region)

    def succeed_late(self) -> None:
        """Unblock after ``suspend``: the catalogue names the successors, which are opened like any other region."""
        self._report_event(Event.SETTLED)
        self.server.listener.regions_replaced(self.regions, self.change.fresh)


class Merging(Replacement):
    """Merge of two neighbours: the smaller region is copied into a checkpoint of the larger while both serve.

    ``meta`` and the change logs of both regions are combined as follows:

        log        records of both; sequences carry the origin in which they were given, so none clash
        covered    the segments of both, or none if one of the logs lacks changes
        lost       the spans of both
        cursor/    everything up to the new region's first sequence is read; undelivered changes of either stay open
        future, stamp    the higher of both
        time/      the marks that hold for both logs (``log_retention.merged``), and a mark of the merge
        trimmed    the first of these marks: no record after it that was written since its time was removed
        backfill/  both backfills have ended (``merge_obstacle``)
    """

    def make_copier(self) -> RegionCopier:
        small, base = sorted(self.regions, key=lambda region: region.store.files.size_bytes())
        return RegionCopier(self.server, base, (small,), self.change.fresh, self.check_open)

    async def prepare(self) -> None:
        await self._check_triggers(QUIESCE_TIMEOUT_S)
        await super().prepare()

    async def quiesce_followers(self) -> None:
        await self._check_triggers(QUIESCE_TIMEOUT_S)  # some were perhaps added meanwhile; from now on none is
        await super().quiesce_followers()
        await self._check_triggers(0.0)

    async def _check_triggers(self, timeout_s: float) -> None:
        for region in self.regions:
            obstacle = await self.server.listener.merge_obstacle(region, timeout_s)
            if obstacle:
                raise RegionTooBusy(f"region {region.info.encoded} cannot be merged now: {obstacle}")

    def finish(self, info: RegionInfo, store: Store) -> None:
        read_to = change_record.Sequence(info.region_id, 0, 0)
        batch = store.batch()
        for prefix in (CURSOR, log_retention.TIME):
            for key, _ in store.scan(META_SPACE, prefix, prefix[:-1] + b"0"):
                batch.delete(META_SPACE, key)
        for name, state in self.server.listener.merged_cursors(self.regions, read_to).items():
            batch.put(META_SPACE, CURSOR + name.encode(), state)
        one, other = self.regions
        marks, other_marks = one.highest_marks(), other.highest_marks()
        for mark in marks | other_marks:
            batch.put(META_SPACE, mark, max(marks.get(mark, 0), other_marks.get(mark, 0)).to_bytes(8, "big"))
        if one.table.change_log_s is not None:
            logs = [region.log.retention for region in self.regions]
            places = log_retention.merged([(log.times(), log.before) for log in logs])
            for at_ms, place in (*places, (one.now_ms, read_to)):
                batch.put(META_SPACE, *log_retention.mark(at_ms, place))
            first = places[0][1] if places else read_to
            batch.put(META_SPACE, log_retention.TRIMMED, change_record.pack_key(first))
        covered = [
            log_coverage.clipped(region.log.coverage.segments(), region.info.start, region.info.end)
            for region in sorted(self.regions, key=lambda region: region.info.start)
        ]
        if all(covered):
            batch.put(META_SPACE, log_coverage.COVERED, log_coverage.pack_segments(chain(*covered)))
        else:
            batch.delete(META_SPACE, log_coverage.COVERED)
        lost = [span for region in self.regions for span in region.log.lost_spans]
        if lost:
            batch.put(META_SPACE, LOST, pack_spans(lost))
        store.write_batch(batch)


class Splitting(Replacement):
    """Split of a region into two daughters: each begins as a checkpoint of the region, cut to its range.

    A checkpoint links the engine's files and copies its small ones (1.5 ms, whatever the region's size); range deletes
    remove the rows outside a daughter's range, and ``region_copier`` copies what is written meanwhile.  Both daughters
    inherit the complete change log, cursors and marks: sequences carry the origin in which they were given, and
    consumers take only rows of their own region.
    """

    def make_copier(self) -> RegionCopier:
        (parent,) = self.regions
        return RegionCopier(self.server, parent, (), self.change.fresh, self.check_open)

    def finish(self, info: RegionInfo, store: Store) -> None:
        """Write ``meta`` as the parent has it now, except the epoch: the daughter counts its own openings."""
        (parent,) = self.regions
        batch = store.batch()
        inherited = dict(parent.store.scan(META_SPACE, b"", None))
        for key, _ in store.scan(META_SPACE, b"", None):
            if key not in inherited:
                batch.delete(META_SPACE, key)
        for key, value in inherited.items():
            if key != EPOCH:
                batch.put(META_SPACE, key, value)
        for mark, highest in parent.highest_marks().items():
            batch.put(META_SPACE, mark, highest.to_bytes(8, "big"))
        store.write_batch(batch)


async def clean_up(region: Region) -> None:
    """Reclaim the space of rows outside the region's range: only files with such rows are rewritten."""
    for span in outside_spans(region.views, region.info):
        await region.work.run_aside(partial(region.store.files.compact_span, *span))
