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
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError, NotServingRegion, RegionAway, RegionTooBusy
from columnar.limits import GATHERED_BYTES, OPEN_REGIONS, STEP_BYTES
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.gathering import Gathering
from columnar.regions.hooks import ChangeListener, LogPolicy, NoListener
from columnar.regions.read_only_regions import ReadOnlyRegions
from columnar.regions.region import Region, spaces_of
from columnar.regions.spaces import options_of_spaces, untuned
from columnar.regions.sweeper import needs_sweep, sweep
from columnar.regions.tables import ServedTable, Tables
from columnar.storage.api import Engine, Store, StoreClosed
from columnar.storage.commit import Committer

_log = logging.getLogger(__name__)

ASYNC_SYNC_S: Final = 1.0  # unsynced writes are synced within this time
SWEEP_EVERY_S: Final = 600.0
UPKEEP_LOOK_S: Final = 0.01
FOLLOW_PAUSE_S: Final = 0.005  # between two steps of following an altered table, each some 3 ms on the loop
CLOSING_S: Final = 10.0  # what the server's own closing waits for stores that failed
LOOKED_AT: Final = 16  # regions that may not be closed are passed over at one opening


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
        self._pinned: set[int] = set()  # being split or merged: not closed for being little used, nor swept
        self._shut: dict[int, Region] = {}  # open, but no longer served: others are about to stand in their place
        self._gates: dict[int, asyncio.Future[None]] = {}  # resolved when the region, or others for it, may be opened
        self._adopted: dict[int, Store] = {}  # opened for regions that are not served yet
        self.gathering = Gathering(GATHERED_BYTES, STEP_BYTES)
        self._policies: dict[str, LogPolicy] = {}
        self._closed = False
        self._sweeping: asyncio.Future[None] | None = None
        self._async_timer: asyncio.TimerHandle | None = None
        self._read_only = ReadOnlyRegions(engine, committer, clock)
        committer.on_broken = self._broken

    # --- tables ------------------------------------------------------------------------------------

    def install(self, served: ServedTable) -> None:
        self.tables.install(served)

    def folder_of(self, info: RegionInfo) -> str:
        return os.path.join(self._folder, info.encoded)

    def is_untouched(self, info: RegionInfo) -> bool:
        """Nobody has opened the region since it was made: it has no rows, and no store."""
        return info.region_id not in self._open and self._engine.is_untouched(self.folder_of(info))

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
        if last is not None and last.info is info and last.table is served.schema:
            return last
        region = self._open.get(info.region_id)
        if region is not None:
            self._open.move_to_end(info.region_id)
            self._last_used = region
            if region.table is not served.schema:
                self._follow(region)
            return region
        if self._closed:
            raise NotServingRegion("the server is stopping; try another or try again")
        gate = self._gates.get(info.region_id)
        if gate is not None:
            raise RegionAway(info.encoded, gate)
        # The caller may have waited since he looked: an older schema would drop spaces of newer families.
        current = self.tables.named(info.table)
        if current is None or not self.tables.serves(info):
            raise NotServingRegion(f"region {info.encoded} of {info.table} was split, merged or dropped; ask again")
        path, store = self.folder_of(info), self._adopted.get(info.region_id)
        region = self._read_only.open(path, info, current.schema, store)
        self._adopted.pop(info.region_id, None)
        region.log_policy = self._policies.get(served.schema.name)
        region.on_durable = self._changes_durable
        self._open[info.region_id] = self._last_used = region
        _log.debug("region %s of %s is open", info.encoded, info.table)
        self._close_surplus()
        if region.is_read_only:
            self._read_only.retry(self._close_read_only)
        elif region.log_policy is not None:
            self.listener.region_opened(region)
        return region

    def _close_read_only(self) -> None:
        for region in [region for region in self._open.values() if region.is_read_only]:
            if not self._may_close(region):
                self._read_only.retry(self._close_read_only)
                continue
            self._close(region)
            served = self.tables.named(region.info.table)
            if region.log_policy is not None and served is not None and self.tables.serves(region.info):
                with suppress(ColumnarError):  # its changes are still to be delivered, whether anybody asks or not
                    self.open_region(served, region.info)

    def _follow(self, region: Region) -> None:
        """The table was altered, or the caller remembers an older schema of it."""
        current = self.tables.named(region.info.table)
        if current is not None and region.table is not current.schema:
            region.follow(current.schema)

    async def follow_schema(self, table: str) -> None:
        """Bring every open region of the table to its schema, one after the other."""
        for region in self.open_regions_of(table):
            if region.is_open:
                self._follow(region)
                await asyncio.sleep(FOLLOW_PAUSE_S)
                with suppress(StoreClosed):  # somebody else closed it: its next opening is by the schema
                    await self._tune(region)

    async def _tune(self, region: Region) -> None:
        """Tell the engine how spaces are to be kept; what it takes at an opening only, by opening it anew."""
        store = region.store
        changes = untuned(store, region.table)
        if any(store.options_of(name).cache != options.cache for name, options in changes.items()):
            await self.reopen(region)
            return
        for name, options in changes.items():
            store.set_options(name, options)
            await asyncio.sleep(FOLLOW_PAUSE_S)

    async def reopen(self, region: Region) -> None:
        """Close the region and open it again.  Writers wait meanwhile; readers open it where they come first."""
        with suppress(StoreClosed):  # somebody else closed it: the next one to open it does so by the schema
            await self.flush(region)  # so that the opening finds little in the log
        region.hold_writes(True)
        try:
            await self.quiesce(region)
            if region.is_open:
                self._close(region)
        finally:
            region.hold_writes(False)
        served = self.tables.named(region.info.table)
        if served is not None and served.enabled and region.info in served.regions:
            self.open_region(served, region.info)

    def open_regions_of(self, table: str) -> list[Region]:
        return [region for region in self._open.values() if region.info.table == table]

    def is_open(self, info: RegionInfo) -> bool:
        return info.region_id in self._open

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
            if self._may_close(region) and (region.log_policy is None or self.listener.may_close(region)):
                self._close(region)
                surplus -= 1
            else:
                newest = next(reversed(self._open))
                self._open.move_to_end(region_id)
                self._open.move_to_end(newest)
            if surplus == 0:
                return

    def _may_close(self, region: Region) -> bool:
        return region.info.region_id not in self._pinned and not region.upkeep and region.is_quiet

    def _close(self, region: Region) -> None:
        self._leave(region)
        region.close()

    def _leave(self, region: Region) -> None:
        self.listener.region_closing(region)
        self._open.pop(region.info.region_id, None)
        if self._last_used is region:
            self._last_used = None

    def _close_aside(self, region: Region) -> None:
        """A store that failed needs a second to close: a thread does it, and who asks for the region waits."""
        loop, region_id = asyncio.get_running_loop(), region.info.region_id
        self._leave(region)
        region.leave()
        gate = self._gates[region_id] = loop.create_future()

        def closed(ended: asyncio.Future[None]) -> None:
            ended.exception()  # none: closing never fails
            del self._gates[region_id]
            gate.set_result(None)

        loop.run_in_executor(None, region.store.close).add_done_callback(closed)

    # --- regions in whose place others will stand (``replacing``) ------------------------------------

    @property
    def engine(self) -> Engine:
        return self._engine

    def is_pinned(self, region: Region) -> bool:
        return region.info.region_id in self._pinned

    def pin(self, region: Region) -> None:
        """It stays open until ``unpin``, unless its disk fails."""
        self._pinned.add(region.info.region_id)

    def unpin(self, region: Region) -> None:
        self._pinned.discard(region.info.region_id)

    def shut(self, region: Region) -> None:
        """From now on requests for it wait.  The region stays open for whoever shut it."""
        region_id = region.info.region_id
        self._shut[region_id] = self._open.pop(region_id)
        if self._last_used is region:
            self._last_used = None
        self._gates[region_id] = asyncio.get_running_loop().create_future()

    def lift(self, region: Region) -> None:
        """Requests that wait look anew for the region of their row: this one where it is open, else others."""
        region_id = region.info.region_id
        self._shut.pop(region_id, None)
        if region.is_open:
            self._open[region_id] = region
        self._gates.pop(region_id).set_result(None)

    def condemn(self, region: Region, why: str) -> None:
        """Nobody knows whether the region or others in its place are those of the catalogue: it is not served."""
        gate = self._gates[region.info.region_id]
        gate.set_exception(NotServingRegion(why))
        gate.exception()  # seen: there may be nobody waiting

    def pardon(self, region: Region) -> None:
        """After ``condemn``: it is served, and opened at once where its changes are still to be delivered."""
        info = region.info
        self._shut.pop(info.region_id, None)
        del self._gates[info.region_id]
        served = self.tables.named(info.table)
        if region.log_policy is not None and served is not None and self.tables.serves(info):
            with suppress(ColumnarError):
                self.open_region(served, info)

    def adopt(self, info: RegionInfo, store: Store) -> None:
        """The region's store, made and open; ``open_region``, ``disown`` or ``destroy_region`` takes it."""
        self._adopted[info.region_id] = store

    def disown(self, info: RegionInfo) -> None:
        store = self._adopted.pop(info.region_id, None)
        if store is not None:
            store.close()

    async def all_there(self, timeout_s: float) -> bool:
        """Return when no region is in the middle of a split or a merge; False: not in time."""
        gates = [gate for gate in self._gates.values() if not gate.done()]
        if not gates:
            return True
        _, missing = await asyncio.wait(gates, timeout=timeout_s)
        return not missing

    def _changes_durable(self, region: Region) -> None:
        self.listener.changes_durable(region)

    def _broken(self, store: Store, failure: ColumnarError) -> None:
        for region in [r for r in self._open.values() if r.store is store]:
            _log.error("region %s of %s: fsync failed: %s", region.info.encoded, region.info.table, failure.text)
            if self.is_pinned(region):
                self._close(region)  # whoever pinned it sees that
            else:
                self._close_aside(region)
        for region in [r for r in self._shut.values() if r.store is store]:
            _log.error("region %s of %s: fsync failed: %s", region.info.encoded, region.info.table, failure.text)
            region.close()  # whoever shut it sees that

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

    async def flush(self, region: Region) -> None:
        """What the region holds in memory, to files; others are served meanwhile."""
        region.store.settle()
        await region.aside(region.store.flush)

    async def compact(self, region: Region) -> None:
        """Merge the region's files; others are served meanwhile.  RegionTooBusy while it is split or merged."""
        self._refuse_pinned(region)
        await region.aside(region.store.compact)

    async def major_compact(self, region: Region) -> None:
        """Sweep the region and have the engine write all its files anew; others are served meanwhile."""
        self._refuse_pinned(region)
        with region.kept_up():
            await _sweep(region)
            await region.aside(partial(region.store.compact, everything=True))

    def _refuse_pinned(self, region: Region) -> None:
        if self.is_pinned(region):
            raise RegionTooBusy(f"region {region.info.encoded} is being split or merged; compact it afterwards")

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
                if region_id in self._pinned:
                    continue
                try:
                    with region.kept_up():
                        gone = await _sweep(region)
                except ColumnarError as error:  # closed meanwhile, or the disk refuses: its writers hear that
                    _log.warning("sweep of region %s stopped: %s", region.info.encoded, error.text)
                    continue
                swept[region_id] = writes
                _log.debug("sweep of region %s removed %d stored values", region.info.encoded, gone)

    # --- leaving -----------------------------------------------------------------------------------

    async def quiesce(self, region: Region) -> None:
        """Wait until no write of ``region`` waits for its fsync, and nothing keeps it up in a thread."""
        while region.upkeep:  # noqa: ASYNC110 - rarely anything, and then for seconds
            await asyncio.sleep(UPKEEP_LOOK_S)
        while not region.is_quiet:
            under_way = region.sync_async_writes() or self._committer.under_way(region.store)
            assert under_way is not None, "else it is quiet"
            await asyncio.wait([under_way])

    async def close_table(self, name: str) -> None:
        """Close the table's regions in order; requests for them have been turned away before."""
        for region in self.open_regions_of(name):
            await self.quiesce(region)
            self._close(region)

    def make_regions(self, infos: list[RegionInfo]) -> None:
        """Their folders, without which none is served; in any thread.  HostError: the disk refuses."""
        self._engine.make_folders([self.folder_of(info) for info in infos])

    async def prepare_regions(self, table: Table, infos: list[RegionInfo]) -> None:
        """Make the stores of regions that will soon be served: making one costs some 40 ms, opening it 6."""
        for info in infos:
            self._engine.open(self.folder_of(info), spaces_of(table), options_of_spaces(table)).close()
            await asyncio.sleep(FOLLOW_PAUSE_S)

    async def close_regions(self, infos: list[RegionInfo]) -> None:
        """Close those that are open; nobody may be led to them any more."""
        for info in infos:
            region = self._open.get(info.region_id)
            if region is not None:
                with suppress(StoreClosed):
                    await self.flush(region)  # closing it would do so on the loop
                region.hold_writes(True)
                await self.quiesce(region)
                if region.is_open:
                    self._close(region)

    def destroy_region(self, info: RegionInfo) -> None:
        self.disown(info)
        self._engine.destroy(self.folder_of(info))

    async def close(self) -> None:
        """Sync and close every region."""
        self._closed = True
        self._read_only.stop()
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._async_timer is not None:
            self._async_timer.cancel()
        for region in self.all_open():
            await self.quiesce(region)
            self._close(region)
        await self.all_there(CLOSING_S)


async def _sweep(region: Region) -> int:
    """Sweep it by the schema that it has at the end."""
    gone, schema = 0, None
    while schema is not region.table:
        schema = region.table
        is_current = partial(_has_schema, region, schema)
        gone += await sweep(region.store, schema, region.views, region.now_ms, is_current)
    return gone


def _has_schema(region: Region, schema: Table) -> bool:
    return region.table is schema
