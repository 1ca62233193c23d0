"""The region server: finds the region of a row, and opens a region at the first request for it.

A quiet region that was not used lately is closed over ``limits.OPEN_REGIONS`` (design D1).  A region whose disk
refused an fsync is closed and opened again from its data on disk; its writers got "outcome unknown" (house rule 5).
``region_state`` decides on the states of a region, and ``hosting`` carries the decisions out.  A region is opened with
the current schema only, and follows every later schema before it serves.

Owned by one event loop; only the methods that close regions wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from random import Random
from typing import Final, Protocol

from columnar.clock import Clock
from columnar.errors import ColumnarError, NotServingRegion
from columnar.limits import FLUSHED_AT_ONCE, GATHERED_BYTES, OPEN_REGIONS, STEP_BYTES
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.hooks import ChangeListener, LogPolicy
from columnar.regions.life.hosting import Hosting
from columnar.regions.life.opening import RETRY_S, WriteFault
from columnar.regions.life.region_state import Event, State
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.reply_memory import ReplyMemoryBudget
from columnar.regions.region import Region
from columnar.regions.region_upkeep import RegionUpkeep
from columnar.regions.tables import ServedTable, Tables
from columnar.regions.write.guards import NeededFrom, nobody_needs
from columnar.runtime.faults import FAULTS, surviving
from columnar.runtime.planned_step import PlannedStep
from columnar.storage.api import Engine, StoreClosed
from columnar.storage.commit import Committer
from columnar.storage.region_folders import RegionFolders

READ_ONLY_LOOP: Final = "openings of regions for writers"
FIRST_EPOCH: Final = 1


MOST_CANDIDATES: Final = 16  # of each half, at one opening; regions that may not be closed are passed over


ASYNC_SYNC_S: Final = 1.0  # unsynced writes are synced within this time


class AsyncWrites:
    """Writes that were acknowledged without an fsync (``SKIP_WAL``, ``ASYNC_WAL``) are synced within a second.

    A timer for all open regions of a server, set by the first such write since it last rang.
    """

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting
        self._timer: asyncio.TimerHandle | None = None

    def happened(self) -> None:
        """Note a write that requested no fsync: it is synced within ASYNC_SYNC_S.  Costs O(1)."""
        if self._timer is None and not self._hosting.state.is_stopping:
            self._timer = asyncio.get_running_loop().call_later(ASYNC_SYNC_S, self._sync)

    def stop(self) -> None:
        """The closing of a region syncs what is left of it."""
        if self._timer is not None:
            self._timer.cancel()

    def _sync(self) -> None:
        self._timer = None
        for region in list(self._hosting.serving.values()):  # one whose disk fails leaves them
            with surviving("syncs of ASYNC_WAL writes"):
                region.sync_async_writes()


class Chance(Protocol):
    """``random.Random``, or a part of it."""

    def sample(self, population: list[int], k: int) -> list[int]: ...


def to_close(by_use: Collection[int], surplus: int, rng: Chance) -> Iterator[int]:
    """Choose the regions to close if more regions are open than the bound allows.

        older half      by the last use; a random one of it is closed
        younger half    closed only if no region of the older half may be closed, least used first

    The least recently used region would be the wrong choice for clients that cycle through more regions than may be
    open, as all clients do after a server has died: that region is the one that is wanted next, so every request would
    open a region.  With the random choice some 4 of 10 requests find their region open while a quarter more regions are
    in use than may be open.  Regions in constant use are in the younger half and stay open.

    ``by_use``: least used first; the last one stays.

    The caller takes ``surplus`` of them, and passes over those that may not be closed.  O(open regions), some 10 us a
    thousand.
    """
    older = list(islice(by_use, len(by_use) // 2))
    count = surplus + MOST_CANDIDATES
    yield from rng.sample(older, min(count, len(older)))
    last = min(len(older) + count, len(by_use) - 1)
    yield from list(islice(by_use, len(older), max(last, len(older))))


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
        epoch: int | None = FIRST_EPOCH,
    ) -> None:
        self.tables = Tables()
        self.listener: ChangeListener = ChangeListener()
        self.clock = clock
        self.reply_memory = ReplyMemoryBudget(GATHERED_BYTES, STEP_BYTES)
        self.folders = RegionFolders(regions_folder, engine)
        self.hosting = Hosting(engine, self.folders, committer, clock, epoch, self)
        self.upkeep = RegionUpkeep(self)
        self.async_writes = AsyncWrites(self.hosting)
        self._open: OrderedDict[int, Region] = self.hosting.serving  # by region id, least used first
        self._awaited = self.hosting.awaited
        self._last_used: Region | None = None  # the last of ``_open``, unless it was closed
        self._open_bound = open_regions
        self._evicted: dict[int, asyncio.Future[None]] = {}  # over the bound: they are flushed, and closed then
        self._chance = Random(1)  # seeded: the same requests close the same regions
        self._policies: dict[str, LogPolicy] = {}
        self.guards_needed_from: NeededFrom = nobody_needs  # replaced by the sender of contributions
        self._retry = PlannedStep(READ_ONLY_LOOP, self._retry_read_only)  # of regions whose disk takes no writes

    # --- tables ------------------------------------------------------------------------------------

    def folder_of(self, info: RegionInfo) -> str:
        return self.folders.path(info.encoded)

    def is_untouched(self, info: RegionInfo) -> bool:
        """The region was never opened since it was made: it has no rows, and no store."""
        return info.region_id not in self._open and self.folders.is_untouched(info.encoded)

    def set_policy(self, table: str, policy: LogPolicy | None) -> None:
        """Log changes of the regions of ``table`` by ``policy`` from now on (None: not at all)."""
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

    # --- the region of a row -----------------------------------------------------------------------

    def open_region(self, served: ServedTable, info: RegionInfo) -> Region:
        """Return the region if it is open, else have it opened and raise RegionUnavailable.

        Retry after the error's ``available``, which raises the error of the opening: HostError, DamagedData.
        Raises RegionNotLocal, NotServingRegion, too.
        """
        last = self._last_used
        if last is not None and last.info is info and last.table is served.schema:
            return last
        region = self._open.get(info.region_id)
        if region is None:
            self.schema_of(info)
            raise self.hosting.want(info)
        if self._awaited:
            self._awaited.pop(info.region_id, None)
        self._open.move_to_end(info.region_id)
        self._last_used = region
        if region.table is not served.schema:
            self.follow_schema(region)
        return region

    async def opened(self, served: ServedTable, info: RegionInfo) -> Region:
        """Wait for ``open_region``.  The region is open as long as the caller does not wait again."""
        return await retry_until_ready(partial(self.open_region, served, info))

    def schema_of(self, info: RegionInfo) -> Table:
        """Return the current schema: a region opened by the older one of a waiting caller would drop newer families."""
        current = self.tables.named(info.table)
        if current is None or not self.tables.serves(info):
            raise NotServingRegion(f"region {info.encoded} of {info.table} was split, merged or dropped; ask again")
        return current.schema

    def region_opened(self, region: Region) -> None:
        region.log_policy = self._policies.get(region.info.table)
        region.on_durable = self._changes_durable
        self._close_surplus()
        if self.hosting.state_of(region) is State.READ_ONLY:
            self.write_failed()
            return
        if self.hosting.read_only.faults:
            asyncio.get_running_loop().call_soon(self._open_faulty)
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

    @property
    def has_room(self) -> bool:
        """Whether one more region may be open without closing another."""
        return len(self._open) < self._open_bound

    def all_open(self) -> list[Region]:
        return list(self._open.values())

    # --- closing -----------------------------------------------------------------------------------

    def _close_surplus(self) -> None:
        """Close the regions over the bound that ``surplus.to_close`` chooses.

        Clean regions are closed at once; a flush waits for the disk, so the rest is flushed in a thread first.
        """
        surplus = len(self._open) - self._open_bound - len(self._evicted)
        if surplus <= 0:
            return
        for region_id in list(to_close(self._open, surplus, self._chance)):
            region = self._open[region_id]
            if not self._may_evict(region) or not self._is_idle(region):
                continue
            if region.store.files.is_clean or len(self._evicted) >= FLUSHED_AT_ONCE:
                self.evict(region)
            else:
                is_idle = partial(self._is_idle, region)  # a change may be logged while it is flushed
                self._evicted[region_id] = closing = asyncio.ensure_future(self.hosting.close(region, is_idle))
                closing.add_done_callback(partial(self._was_evicted, region_id))
            surplus -= 1
            if surplus == 0:
                return

    def _is_idle(self, region: Region) -> bool:
        """Tell whether every follower has read its log."""
        return region.log_policy is None or self.listener.may_close(region)

    def _was_evicted(self, region_id: int, _closing: asyncio.Future[None]) -> None:
        del self._evicted[region_id]

    def _may_evict(self, region: Region) -> bool:
        may_close = self.hosting.state_of(region) in (State.OPEN, State.READ_ONLY)
        may_close = may_close and region.info.region_id not in self._evicted
        return may_close and not region.upkeep and region.is_quiet and not self.hosting.is_awaited(region)

    def evict(self, region: Region) -> None:
        """Close a quiet region; the next request opens it again."""
        self.hosting.report_event(region, Event.EVICTED)

    def write_failed(self) -> None:
        """Plan to open read-only regions for writing again, if the disk takes writes by then."""
        self._retry.after(RETRY_S)

    def _retry_read_only(self) -> None:
        for region in self.all_open():
            try:
                self._retry_one(region)
            except Exception as fault:  # noqa: BLE001 - it would be for readers only for ever
                FAULTS.met(READ_ONLY_LOOP, fault)
                self.write_failed()
        self._open_faulty()

    def _open_faulty(self) -> None:
        """Open a closed region whose disk took no writes, to notice without requests that the disk takes them again."""
        faults = (fault.info for fault in self.write_faults() if fault.passes)
        closed = next((info for info in faults if not self.is_open(info)), None)
        served = self.serving(closed) if closed is not None else None
        if closed is not None and served is not None:
            with suppress(ColumnarError):  # RegionUnavailable: it is being opened
                self.open_region(served, closed)
            self.write_failed()

    def write_faults(self) -> list[WriteFault]:
        """Return the faults of regions that this server owns and that cannot be written."""
        faults = self.hosting.read_only.faults
        for region_id, fault in list(faults.items()):
            if not self.owns(fault.info) or self.serving(fault.info) is None:
                self.hosting.read_only.forget_region(region_id)  # it was moved, split, merged, dropped or disabled
        return list(faults.values())

    def _retry_one(self, region: Region) -> None:
        if self.hosting.state_of(region) is not State.READ_ONLY:
            return
        if self._may_evict(region):
            self.evict(region)
            self.open_for_consumers(region)
        else:
            self.write_failed()

    def region_unserved(self, region: Region) -> None:
        if self._last_used is region:
            self._last_used = None

    def region_closing(self, region: Region) -> None:
        self.listener.region_closing(region)

    def _changes_durable(self, region: Region) -> None:
        self.listener.changes_durable(region)

    async def close_table(self, name: str) -> None:
        """Close the table's regions in order; the caller has refused requests for them before."""
        self.hosting.call_off_openings(lambda info: info.table == name)
        await self.hosting.close_all(self.open_regions_of(name))
        await self.hosting.closed_aside(lambda info: info.table == name)

    async def close_regions(self, infos: list[RegionInfo]) -> None:
        """Close the regions until none of their stores is open.  No request may be routed to them any more."""
        self.hosting.call_off_openings(infos.__contains__)
        for info in infos:
            region = self._open.get(info.region_id)
            if region is not None:
                with suppress(StoreClosed):
                    await region.flush()  # closing it would do so on the loop
                await self.hosting.close(region)
        await self.hosting.closed_aside(infos.__contains__)

    async def close(self) -> None:
        """Sync and close every region."""
        self._retry.cancel()
        self.async_writes.stop()
        self.upkeep.stop()
        await self.hosting.stop()
