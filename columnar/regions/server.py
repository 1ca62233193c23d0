"""The region server: finds the region of a row, and opens a region at the first request for it.

Above ``limits.OPEN_REGIONS`` open regions, quiet regions that were not used lately are closed (design D1).  A region
whose disk refused an fsync is closed and opened again from its data on disk; its writers got "outcome unknown" (house
rule 5). ``region_state`` decides on the states of a region, and ``hosting`` carries the decisions out.  A region is
opened with the current schema only, and follows every later schema before it serves.

Owned by one event loop; only ``opened`` and the methods that close regions wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError, NotServingRegion
from columnar.limits import GATHERED_BYTES, OPEN_REGIONS, STEP_BYTES
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.hooks import ChangeListener, LogPolicy
from columnar.regions.life.eviction import Eviction
from columnar.regions.life.hosting import Hosting
from columnar.regions.life.opening_queue import OpeningQueue
from columnar.regions.life.read_only_regions import ReadOnlyRegions
from columnar.regions.life.region_state import State
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.reply_memory import ReplyMemoryBudget
from columnar.regions.region import Region
from columnar.regions.region_upkeep import RegionUpkeep
from columnar.regions.tables import ServedTable, Tables
from columnar.runtime.faults import surviving
from columnar.storage.api import Engine, StoreClosed
from columnar.storage.commit import Committer
from columnar.storage.region_folders import RegionFolders

FIRST_EPOCH: Final = 1


ASYNC_SYNC_S: Final = 1.0  # unsynced writes are synced within this time


class AsyncWrites:
    """Writes that were acknowledged without an fsync (``SKIP_WAL``, ``ASYNC_WAL``) are synced within a second.

    All open regions of a server share one timer; the first such write after the timer's last run sets it.
    """

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting
        self._timer: asyncio.TimerHandle | None = None

    def happened(self) -> None:
        """Note a write that requested no fsync: it is synced within ASYNC_SYNC_S.  Costs O(1)."""
        if self._timer is None and not self._hosting.state.is_stopping:
            self._timer = asyncio.get_running_loop().call_later(ASYNC_SYNC_S, self._sync)

    def stop(self) -> None:
        """Stop the timer: the closing of a region syncs its unsynced writes."""
        if self._timer is not None:
            self._timer.cancel()

    def _sync(self) -> None:
        self._timer = None
        for region in list(self._hosting.serving.values()):  # a region whose disk fails is removed
            with surviving("syncs of ASYNC_WAL writes"):
                region.syncs.sync_async_writes()


class RegionServer:
    """Owned by the loop's thread."""

    def __init__(
        self,
        engine: Engine,
        regions_folder: str,
        committer: Committer,
        clock: Clock,
        *,
        open_regions: int = OPEN_REGIONS,
        gathered_bytes: int = GATHERED_BYTES,
        epoch: int | None = FIRST_EPOCH,
    ) -> None:
        self.tables = Tables()
        self.listener: ChangeListener = ChangeListener()
        self.reply_memory = ReplyMemoryBudget(gathered_bytes, STEP_BYTES)
        self.folders = RegionFolders(regions_folder, engine)
        self.read_only = ReadOnlyRegions(self)
        self.hosting = Hosting(committer, epoch, self.read_only, self)
        self.openings = OpeningQueue(
            engine, self.folders, committer, clock, self.hosting, self.read_only, self.schema_of
        )  # fmt: skip
        self.eviction = Eviction(self.hosting, open_regions, self._is_idle)
        self.upkeep = RegionUpkeep(self)
        self.async_writes = AsyncWrites(self.hosting)
        self._open: OrderedDict[int, Region] = self.hosting.serving  # by region id, least used first
        self._awaited = self.hosting.awaited
        self._last_used: Region | None = None  # the last of ``_open``, unless it was closed
        self._policies: dict[str, LogPolicy] = {}

    # --- tables ------------------------------------------------------------------------------------

    def folder_of(self, info: RegionInfo) -> str:
        return self.folders.path(info.encoded)

    def is_untouched(self, info: RegionInfo) -> bool:
        """Tell whether the region was never opened since it was made: it has no rows and no store."""
        return info.region_id not in self._open and self.folders.is_untouched(info.encoded)

    def set_policy(self, table: str, policy: LogPolicy | None) -> None:
        """Log changes of the regions of ``table`` by ``policy`` from now on; log none if ``policy`` is None."""
        if policy is None:
            self._policies.pop(table, None)
        else:
            self._policies[table] = policy
        for region in self.open_regions_of(table):
            had = region.log_policy
            region.log_changes(policy)
            if policy is not None and had is None:
                self.listener.region_opened(region)

    def policy_of(self, table: str) -> LogPolicy | None:
        return self._policies.get(table)

    # --- the region of a row -----------------------------------------------------------------------

    def open_region(self, served: ServedTable, info: RegionInfo) -> Region:
        """Return the region if it is open, else queue its opening and raise RegionUnavailable.

        Retry after the error's ``available``: this future raises HostError or DamagedData if the opening failed.
        Raises RegionNotLocal and NotServingRegion, too.
        """
        last = self._last_used
        if last is not None and last.info is info and last.table is served.schema:
            return last
        region = self._open.get(info.region_id)
        if region is None:
            self.schema_of(info)
            raise self.openings.want(info)
        if self._awaited:
            self._awaited.pop(info.region_id, None)
        self._open.move_to_end(info.region_id)
        self._last_used = region
        if region.table is not served.schema:
            self.follow_schema(region)
        return region

    async def opened(self, served: ServedTable, info: RegionInfo) -> Region:
        """Wait until the region is open, and return it.

        The region may be closed again while the caller waits for anything else.
        """
        return await retry_until_ready(partial(self.open_region, served, info))

    def schema_of(self, info: RegionInfo) -> Table:
        """Return the current schema: a region opened with a waiting caller's older schema would drop newer families."""
        current = self.tables.named(info.table)
        if current is None or not self.tables.serves(info):
            raise NotServingRegion(f"region {info.encoded} of {info.table} was split, merged or dropped; ask again")
        return current.schema

    def region_opened(self, region: Region) -> None:
        region.begin_serving(self._policies.get(region.info.table), self._changes_durable)
        self.eviction.close_surplus()
        if self.hosting.state_of(region) is State.READ_ONLY:
            self.read_only.plan_retry()
            return
        if self.read_only.has_faults:
            asyncio.get_running_loop().call_soon(self.read_only.open_faulty)
        if region.log_policy is not None:
            self.listener.region_opened(region)

    def serving(self, info: RegionInfo) -> ServedTable | None:
        """Return the table of the region if the table is enabled and still has the region."""
        served = self.tables.named(info.table)
        return served if served is not None and served.enabled and self.tables.serves(info) else None

    def open_for_consumers(self, region: Region) -> None:
        """Reopen a closed region without a request: its changes are still to be delivered."""
        served = self.serving(region.info) if region.log_policy is not None else None
        if served is not None:
            with suppress(ColumnarError):  # RegionUnavailable: it is being opened; other errors: followers retry
                self.open_region(served, region.info)

    def follow_schema(self, region: Region) -> None:
        """Bring the region to the current schema, after an alter or for a caller with an older schema."""
        current = self.tables.named(region.info.table)
        if current is not None and region.table is not current.schema:
            region.follow_schema(current.schema)

    def open_regions_of(self, table: str) -> list[Region]:
        return [region for region in self._open.values() if region.info.table == table]

    def is_open(self, info: RegionInfo) -> bool:
        return info.region_id in self._open

    def owns(self, info: RegionInfo) -> bool:
        """Tell whether this server owns the region."""
        return self.hosting.state.owns(info.region_id)

    def is_not_local(self, served: ServedTable, row: bytes) -> bool:
        """Tell whether ``open_region`` would raise RegionNotLocal for the row's region, at a tenth of its cost."""
        region_id = served.holding(row).region_id
        return region_id not in self._open and self.hosting.state.is_not_local(region_id)

    def open_count(self) -> int:
        return len(self._open)

    def all_open(self) -> list[Region]:
        return list(self._open.values())

    def _is_idle(self, region: Region) -> bool:
        """Tell whether every follower has read the region's log."""
        return region.log_policy is None or self.listener.may_close(region)

    def region_unserved(self, region: Region) -> None:
        if self._last_used is region:
            self._last_used = None

    def region_closing(self, region: Region) -> None:
        self.listener.region_closing(region)

    def _changes_durable(self, region: Region) -> None:
        self.listener.changes_durable(region)

    async def close_table(self, name: str) -> None:
        """Close the table's regions in order; the caller has refused requests for them before."""
        self.openings.call_off(lambda info: info.table == name)
        await self.openings.folders_released(lambda info: info.table == name)
        await self.hosting.close_all(self.open_regions_of(name))
        await self.hosting.closed_aside(lambda info: info.table == name)

    async def close_regions(self, infos: list[RegionInfo]) -> None:
        """Close the regions until none of their stores is open.  No request may be routed to them any more."""
        self.openings.call_off(infos.__contains__)
        await self.openings.folders_released(infos.__contains__)
        for info in infos:
            region = self._open.get(info.region_id)
            if region is not None:
                with suppress(StoreClosed):
                    await region.flush()  # closing it would flush it on the loop
                await self.hosting.close(region)
        await self.hosting.closed_aside(infos.__contains__)

    async def close(self) -> None:
        """Sync and close every region."""
        self.read_only.stop()
        self.async_writes.stop()
        self.upkeep.stop()
        await self.openings.stop()
