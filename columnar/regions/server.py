"""The region server: which regions are open here, and the way from a row to its region.

Regions open at first touch and the least used quiet one is closed over ``limits.OPEN_REGIONS``
(design D1).  A region whose disk refused an fsync is closed and opened again from what is on
disk; its writers have heard "outcome unknown" (house rule 5).

Owned by one event loop; nothing here waits, but for ``close``.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final

from columnar.errors import ColumnarError, NotServingRegion
from columnar.limits import OPEN_REGIONS
from columnar.model.region_info import RegionInfo
from columnar.regions.hooks import ChangeListener, LogPolicy, NoListener
from columnar.regions.region import Region
from columnar.regions.sweeper import needs_sweep, sweep
from columnar.regions.tables import ServedTable, Tables
from columnar.storage.api import Engine, Store
from columnar.storage.commit import Committer

_log = logging.getLogger(__name__)

ASYNC_SYNC_S: Final = 1.0  # unsynced writes are synced within this time
SWEEP_EVERY_S: Final = 600.0
LOOKED_AT: Final = 16  # regions that may not be closed are passed over at one opening


class RegionServer:
    """Owned by the loop's thread."""

    def __init__(
        self,
        engine: Engine,
        regions_folder: str,
        committer: Committer,
        clock: Callable[[], int],
        *,
        open_regions: int = OPEN_REGIONS,
    ) -> None:
        self.tables = Tables()
        self.listener: ChangeListener = NoListener()
        self.clock = clock
        self._engine = engine
        self._folder = regions_folder
        self._committer = committer
        self._open_bound = open_regions
        self._open: OrderedDict[int, Region] = OrderedDict()  # by region id, least used first
        self._last_used: Region | None = None  # the last of ``_open``, unless it was closed
        self._policies: dict[str, LogPolicy] = {}
        self._closed = False
        self._sweeping: asyncio.Future[None] | None = None
        self._async_timer: asyncio.TimerHandle | None = None
        committer.on_broken = self._broken

    # --- tables ------------------------------------------------------------------------------------

    def install(self, served: ServedTable) -> None:
        self.tables.install(served)

    def folder_of(self, info: RegionInfo) -> str:
        return os.path.join(self._folder, info.encoded)

    def set_policy(self, table: str, policy: LogPolicy | None) -> None:
        """From now on the regions of ``table`` log what ``policy`` says (None: nothing)."""
        if policy is None:
            self._policies.pop(table, None)
        else:
            self._policies[table] = policy
        for region in self.open_regions_of(table):
            had, region.log_policy = region.log_policy, policy
            if policy is not None and had is None:
                self.listener.region_opened(region)

    def policy_of(self, table: str) -> LogPolicy | None:
        return self._policies.get(table)

    # --- regions -----------------------------------------------------------------------------------

    def region_for(self, served: ServedTable, row: bytes) -> Region:
        """The open region that holds ``row``.  Opens it when need be: some 6 ms."""
        return self.open_region(served, served.holding(row))

    def open_region(self, served: ServedTable, info: RegionInfo) -> Region:
        last = self._last_used
        if last is not None and last.info is info:
            return last
        region = self._open.get(info.region_id)
        if region is not None:
            self._open.move_to_end(info.region_id)
            self._last_used = region
            return region
        if self._closed:
            raise NotServingRegion("the server is stopping; try another or try again")
        region = Region(self._engine, self.folder_of(info), info, served.schema, self._committer, self.clock)
        region.log_policy = self._policies.get(served.schema.name)
        region.on_durable = self._changes_durable
        self._open[info.region_id] = self._last_used = region
        _log.debug("region %s of %s is open", info.encoded, info.table)
        self._close_surplus()
        if region.log_policy is not None:
            self.listener.region_opened(region)
        return region

    def open_regions_of(self, table: str) -> list[Region]:
        return [region for region in self._open.values() if region.info.table == table]

    def open_count(self) -> int:
        return len(self._open)

    def all_open(self) -> list[Region]:
        return list(self._open.values())

    def _close_surplus(self) -> None:
        """Close the least used over the bound.  Those that may not be closed now are asked again last."""
        surplus = len(self._open) - self._open_bound
        if surplus <= 0:
            return
        for region_id, region in list(islice(self._open.items(), surplus + LOOKED_AT)):
            if region_id == next(reversed(self._open)):  # the one that is being opened
                return
            if region.is_quiet and (region.log_policy is None or self.listener.may_close(region)):
                self._close(region)
                surplus -= 1
            else:
                newest = next(reversed(self._open))
                self._open.move_to_end(region_id)
                self._open.move_to_end(newest)
            if surplus == 0:
                return

    def _close(self, region: Region) -> None:
        self.listener.region_closing(region)
        self._open.pop(region.info.region_id, None)
        if self._last_used is region:
            self._last_used = None
        region.close()

    def _changes_durable(self, region: Region) -> None:
        self.listener.changes_durable(region)

    def _broken(self, store: Store, failure: ColumnarError) -> None:
        for region in [r for r in self._open.values() if r.store is store]:
            _log.error("region %s of %s: fsync failed: %s", region.info.encoded, region.info.table, failure.text)
            self._close(region)

    # --- unsynced writes ---------------------------------------------------------------------------

    def async_write_done(self) -> None:
        """Somebody wrote without asking for an fsync: see that it is synced within ASYNC_SYNC_S."""
        if self._async_timer is None and not self._closed:
            self._async_timer = asyncio.get_running_loop().call_later(ASYNC_SYNC_S, self._sync_async_writes)

    def _sync_async_writes(self) -> None:
        self._async_timer = None
        for region in self._open.values():
            region.sync_async_writes()

    def delayed(self, future: asyncio.Future[None] | None, delay_s: float) -> asyncio.Future[None]:
        """``future``, but not before ``delay_s`` from now: how writers are slowed down."""
        loop = asyncio.get_running_loop()
        held: asyncio.Future[None] = loop.create_future()

        def release(done: asyncio.Future[None] | None) -> None:
            failure = done.exception() if done is not None else None
            if failure is not None:
                held.set_exception(failure)
                held.exception()  # seen: its caller may have gone
            else:
                held.set_result(None)

        def waited() -> None:
            if future is None:
                release(None)
            else:
                future.add_done_callback(release)

        loop.call_later(delay_s, waited)
        return held

    async def major_compact(self, region: Region) -> None:
        """Sweep the region and have the engine compact it; others are served meanwhile."""
        await sweep(region.store, region.table, region.views, region.now_ms)
        await asyncio.get_running_loop().run_in_executor(None, region.store.compact)

    def start_sweeping(self) -> None:
        """Sweep, one after the other, the open regions that were written to since their last sweep."""
        self._sweeping = asyncio.ensure_future(self._sweep_for_ever())

    async def _sweep_for_ever(self) -> None:
        swept: dict[int, int] = {}  # region id -> how many writes it had seen when it was swept
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            for region in self.all_open():
                region_id, writes = region.info.region_id, region.writes
                if writes == swept.get(region_id, 0) or not needs_sweep(region.table) or region_id not in self._open:
                    continue
                try:
                    gone = await sweep(region.store, region.table, region.views, region.now_ms)
                except ColumnarError as error:  # closed meanwhile, or the disk refuses: its writers hear that
                    _log.warning("sweep of region %s stopped: %s", region.info.encoded, error.text)
                    continue
                swept[region_id] = writes
                _log.debug("sweep of region %s removed %d stored values", region.info.encoded, gone)

    # --- leaving -----------------------------------------------------------------------------------

    async def quiesce(self, region: Region) -> None:
        """Wait until no write of ``region`` waits for its fsync."""
        while not region.is_quiet:
            waiting = region.sync_async_writes() or region.barrier_any()
            if waiting is not None:
                await asyncio.wait([waiting])
            else:
                await asyncio.sleep(0)  # the committer's own last turn

    async def close_table(self, name: str) -> None:
        """Close the table's regions in order; requests for them have been turned away before."""
        for region in self.open_regions_of(name):
            await self.quiesce(region)
            self._close(region)

    def destroy_region(self, info: RegionInfo) -> None:
        self._engine.destroy(self.folder_of(info))

    async def close(self) -> None:
        """Sync and close every region."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._async_timer is not None:
            self._async_timer.cancel()
        for region in self.all_open():
            await self.quiesce(region)
            self._close(region)
