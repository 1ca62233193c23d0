"""Carries out what ``hosting_state`` says of each region: opens and closes stores, lets requests wait and go on.

Callers report events (``tell``), and the machine says what follows from them.  Requests that wait hold a future,
their region's gate, and look anew for the region of their row when it is resolved.

Invariant: ``serving`` holds exactly the regions in a state of ``hosting_state.SERVING``, least used first.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError, DiskFails, HostError, NotServingRegion, RegionAway
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.hosting_state import HAS_STORE, SERVING, WAITING, Do, Event, HostingState, State
from columnar.regions.opening import opened_again, region_of
from columnar.regions.read_only_regions import ReadOnlyRegions
from columnar.regions.region import Region, spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.storage.api import Engine, Store, StoreBusy
from columnar.storage.commit import Committer
from columnar.storage.region_folders import RegionFolders

_log = logging.getLogger(__name__)

UPKEEP_LOOK_S: Final = 0.01
PREPARE_PAUSE_S: Final = 0.005  # between two stores that are made, each some 3 ms on the loop
CLOSING_S: Final = 10.0  # what the server's own closing waits for stores that failed
_ENDS: Final = frozenset({Event.EVICTED, Event.QUIET, Event.FSYNC_FAILED})  # its consumers let go of it


def _nobody(_region: Region) -> None:
    pass


class Hosting:
    def __init__(self, engine: Engine, folders: RegionFolders, committer: Committer, clock: Clock, epoch: int) -> None:
        self.state = HostingState(epoch)
        self.engine = engine
        self.folders = folders
        self.serving: OrderedDict[int, Region] = OrderedDict()
        self.on_unserved: Callable[[Region], None] = _nobody  # called first: requests are led to it no more
        self.on_closing: Callable[[Region], None] = _nobody  # called before its store closes: nothing may touch it then
        self._committer = committer
        self._clock = clock
        self._regions: dict[int, Region] = {}  # of every state but NONE and OPENING, closed ones too
        self._gates: dict[int, asyncio.Future[None]] = {}  # of those for which requests wait
        self._refusals: dict[int, str] = {}
        self._read_only = ReadOnlyRegions(engine, committer, clock)
        committer.on_broken = self._broken

    def state_of(self, region: Region) -> State:
        """NONE where it was closed meanwhile, even if it is open anew."""
        region_id = region.info.region_id
        return self.state.state(region_id) if self._regions.get(region_id) is region else State.NONE

    # --- opening -----------------------------------------------------------------------------------

    def check_may_open(self, info: RegionInfo) -> None:
        """RegionAway: retry after its ``back``.  NotServingRegion."""
        if self.state.is_stopping:
            raise NotServingRegion("the server is stopping; try another or try again")
        state = self.state.state(info.region_id)
        if state in WAITING:
            raise RegionAway(info.encoded, self._gate(info.region_id))
        if state is State.SHUT:
            raise NotServingRegion(self._refusals[info.region_id])
        if state is State.CLOSED:
            raise NotServingRegion(f"region {info.encoded} of {info.table} is served by another; ask again")

    def open(self, info: RegionInfo, table: Table, store: Store | None = None) -> Region:
        """After ``check_may_open``; ``store`` where it is open already.  HostError, DamagedData."""
        region_id = info.region_id
        self.state.told(region_id, Event.WANTED)
        event = Event.NOT_OPENED
        try:
            region, event = self._opened(info, table, store)
            self._regions[region_id] = self.serving[region_id] = region
        finally:
            self.state.told(region_id, event)
            self._release(region_id)
        _log.debug("region %s of %s is open", info.encoded, info.table)
        return region

    def _opened(self, info: RegionInfo, table: Table, store: Store | None) -> tuple[Region, Event]:
        if store is not None:
            return region_of(store, info, table, self._committer, self._clock), Event.OPENED
        path = self.folders.path(info.encoded)
        try:
            region = opened_again(self.engine, path, info, table, self._committer, self._clock)
        except DiskFails:
            raise
        except HostError as cause:
            return self._read_only.opened(path, info, table, cause), Event.OPENED_READING
        self._read_only.takes_writes(info)
        return region, Event.OPENED

    async def prepare(self, table: Table, infos: list[RegionInfo]) -> None:
        """Make the stores of regions that will soon be served: making one costs some 40 ms, opening it 6."""
        for info in infos:
            path = self.folders.path(info.encoded)
            self.engine.open(path, spaces_of(table), options_of_spaces(table)).close()
            await asyncio.sleep(PREPARE_PAUSE_S)

    # --- events ------------------------------------------------------------------------------------

    def tell(self, region: Region, event: Event, why: str = "") -> None:
        """Does nothing where the region was closed meanwhile.  ``why``: what requests hear that are refused."""
        region_id = region.info.region_id
        if self._regions.get(region_id) is not region:
            return
        doing = self.state.told(region_id, event)
        state = self.state.state(region_id)
        if state not in SERVING and self.serving.pop(region_id, None) is not None:
            self.on_unserved(region)
        if doing and event in _ENDS:
            self.on_closing(region)
        if state is State.NONE:
            del self._regions[region_id]
            self._refusals.pop(region_id, None)
        elif state in SERVING:
            self.serving.setdefault(region_id, region)
        for do in doing:
            self._carry_out(do, region, why)

    def _carry_out(self, do: Do, region: Region, why: str) -> None:
        region_id = region.info.region_id
        if do is Do.CLOSE:
            region.close()
        elif do is Do.CLOSE_ASIDE:
            self._close_aside(region)
        elif do is Do.RELEASE:
            self._release(region_id)
        elif do is Do.REFUSE:
            self._refuse(region_id, why)
        elif do is Do.HOLD_WRITES:
            what = f"region {region.info.encoded} of {region.info.table} is being opened anew; try again"
            region.refuse_writes(StoreBusy(what))
        elif do is Do.LET_WRITES:
            region.refuse_writes(None)

    def _gate(self, region_id: int) -> asyncio.Future[None]:
        gate = self._gates.get(region_id)
        if gate is None:
            gate = self._gates[region_id] = asyncio.get_running_loop().create_future()
        return gate

    def _release(self, region_id: int) -> None:
        gate = self._gates.pop(region_id, None)
        if gate is not None:
            gate.set_result(None)

    def _refuse(self, region_id: int, why: str) -> None:
        self._refusals[region_id] = why
        gate = self._gates.pop(region_id, None)
        if gate is not None:
            gate.set_exception(NotServingRegion(why))
            gate.exception()  # seen: whoever waited may have gone

    def _close_aside(self, region: Region) -> None:
        region.leave()

        def closed(ended: asyncio.Future[None]) -> None:
            ended.exception()  # none: closing never fails
            self.tell(region, Event.STORE_CLOSED)

        asyncio.get_running_loop().run_in_executor(None, region.store.close).add_done_callback(closed)

    def _broken(self, store: Store, failure: ColumnarError) -> None:
        for region in [region for region in self._regions.values() if region.store is store and region.is_open]:
            _log.error("region %s of %s: fsync failed: %s", region.info.encoded, region.info.table, failure.text)
            self.tell(region, Event.FSYNC_FAILED)

    # --- closing -----------------------------------------------------------------------------------

    async def quiesce(self, region: Region) -> None:
        """Wait until no write of ``region`` waits for its fsync, and nothing keeps it up in a thread."""
        while region.upkeep:  # noqa: ASYNC110 - rarely anything, and then for seconds
            await asyncio.sleep(UPKEEP_LOOK_S)
        while not region.is_quiet:
            under_way = region.sync_async_writes() or self._committer.under_way(region.store)
            assert under_way is not None, "else it is quiet"
            await asyncio.wait([under_way])

    async def close(self, region: Region) -> None:
        """When every write is on disk; until then reads are served and writers wait."""
        while self.state_of(region) in SERVING:
            self.tell(region, Event.LEAVES)
            try:
                await self.quiesce(region)
                self.tell(region, Event.QUIET)
            finally:
                self.tell(region, Event.STAYS)

    async def all_there(self, timeout_s: float) -> bool:
        """Return when requests wait for no region any more; False: not in time."""
        gates = [self._gate(region_id) for region_id in self.state.in_states(WAITING)]
        if not gates:
            return True
        _, missing = await asyncio.wait(gates, timeout=timeout_s)
        return not missing

    async def stop(self) -> None:
        """Sync and close every region; none is opened any more."""
        self.state.stop()
        for region in list(self.serving.values()):
            await self.close(region)
        await self.all_there(CLOSING_S)

    def check(self) -> None:
        """The invariant, and those of the machine."""
        self.state.check()
        assert set(self.serving) == set(self.state.in_states(SERVING))
        assert set(self._regions) == set(self.state.in_states(frozenset(State) - {State.OPENING, State.CLOSED}))
        assert set(self._gates) <= set(self.state.in_states(WAITING))
        for region_id in self.state.in_states(HAS_STORE):
            assert self._regions[region_id].is_open or self.state.state(region_id) is State.REPLACED
