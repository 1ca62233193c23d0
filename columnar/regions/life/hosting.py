"""Carries out what ``hosting_state`` says of each region: opens and closes stores, lets requests wait and go on.

Callers report events (``tell``), and the machine says what follows from them.  Requests that wait hold a future,
their region's gate, and look anew for the region of their row when it is resolved.

Regions are opened in the order in which they were wanted, one per iteration of the loop: an opening takes the engine
some 6 ms, and the requests for open regions are served between two of them.

Invariants:
    I1. ``serving`` holds exactly the regions in a state of ``hosting_state.SERVING``, least used first.
    I2. A region in OPENING is in ``_wanted``: it is opened, or its requests hear why not, within as many iterations
        as regions were wanted before it.
    I3. A region that was opened for a request stays open until the request has reached it, AWAITED_S at most: else
        requests for more regions than may be open would close each other's.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from columnar.clock import Clock
from columnar.errors import (
    ColumnarError,
    DamagedData,
    DiskFails,
    HostError,
    NotServingRegion,
    RegionNotLocal,
    RegionUnavailable,
)
from columnar.limits import FLUSHED_AT_ONCE
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.life.hosting_state import HAS_STORE, SERVING, WAITING, Do, Event, HostingState, State
from columnar.regions.life.opening import opened_again, region_of
from columnar.regions.life.read_only_regions import ReadOnlyRegions
from columnar.regions.region import Region, spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.runtime.faults import surviving
from columnar.storage.api import Engine, Store, StoreBusy
from columnar.storage.commit import Committer
from columnar.storage.ownership import Ownership
from columnar.storage.region_folders import RegionFolders

_log = logging.getLogger(__name__)

LOOP: Final = "the hosting of regions"

UPKEEP_POLL_S: Final = 0.01
PREPARE_PAUSE_S: Final = 0.005  # between two stores that are made, each some 3 ms on the loop
CLOSING_S: Final = 10.0  # what the server's own closing waits for stores that failed
AWAITED_S: Final = 1.0
_ENDS: Final = frozenset({Event.EVICTED, Event.QUIET, Event.FSYNC_FAILED})  # its consumers let go of it


def _nobody(_region: Region) -> None:
    pass


def _nothing_follows() -> None:
    pass


def _settled_for_nobody(_info: RegionInfo, _failure: Exception | None) -> None:
    pass


def _noted_by_nobody(_region_id: int) -> None:
    pass


def _no_schema(info: RegionInfo) -> Table:
    raise NotServingRegion(f"region {info.encoded} of {info.table}: no table is served yet")


class Hosting:
    def __init__(
        self, engine: Engine, folders: RegionFolders, committer: Committer, clock: Clock, epoch: int | None
    ) -> None:
        self.state = HostingState(epoch)
        self.engine = engine
        self.folders = folders
        self.serving: OrderedDict[int, Region] = OrderedDict()
        self.on_unserved: Callable[[Region], None] = _nobody  # called first: requests are led to it no more
        self.on_closing: Callable[[Region], None] = _nobody  # called before its store closes: nothing may touch it then
        self.on_opened: Callable[[Region], None] = _nobody
        self.on_write_fault: Callable[[], None] = _nothing_follows  # a region failed that requests need not open soon
        self.on_opening: Callable[[int], None] = _noted_by_nobody  # a region's store is opened from now on ...
        self.on_ended: Callable[[int], None] = _noted_by_nobody  # ... and has been, or could not be
        self.on_settled: Callable[[RegionInfo, Exception | None], None] = _settled_for_nobody  # an opening has ended
        self.schema_of: Callable[[RegionInfo], Table] = _no_schema  # asked when its turn to be opened has come
        self.ownership_at: Callable[[str, int], Ownership] = Ownership  # of a region, encoded, at an epoch
        self._committer = committer
        self._clock = clock
        self.awaited: dict[int, float] = {}  # opened for requests that have not reached them yet: until when (I3)
        self._wanted: OrderedDict[int, RegionInfo] = OrderedDict()  # in OPENING, the next one first
        self._regions: dict[int, Region] = {}  # of every state but NONE and OPENING, closed ones too
        self._gates: dict[int, asyncio.Future[None]] = {}  # of those for which requests wait
        self._refusals: dict[int, str] = {}
        self.read_only = ReadOnlyRegions(engine, committer, clock)
        committer.on_broken = self._broken

    def state_of(self, region: Region) -> State:
        """NONE where it was closed meanwhile, even if it is open anew."""
        region_id = region.info.region_id
        return self.state.state(region_id) if self._regions.get(region_id) is region else State.NONE

    def find_region(self, region_id: int) -> Region | None:
        """The region in every state but NONE, OPENING and CLOSED; its store may be closed."""
        return self._regions.get(region_id)

    # --- opening -----------------------------------------------------------------------------------

    def want(self, info: RegionInfo) -> RegionUnavailable:
        """Have a region opened that is not served; the answer says when to retry.  NotServingRegion."""
        self._check_may_open(info)
        region_id = info.region_id
        self.state.apply_event(region_id, Event.WANTED)
        self._wanted[region_id] = info
        if len(self._wanted) == 1:
            asyncio.get_running_loop().call_soon(self.open_next)
        return RegionUnavailable(info.encoded, self.gate(region_id), is_opening=True)

    def open_in(self, info: RegionInfo, store: Store) -> Region:
        """The region in a store that is open already, at once.  Errors as of ``want``; HostError, DamagedData."""
        self._check_may_open(info)
        self.state.apply_event(info.region_id, Event.WANTED)
        event = Event.NOT_OPENED
        try:
            table = self.schema_of(info)
            region = region_of(store, info, table, self._committer, self._clock)
            event = Event.OPENED
        finally:
            self.state.apply_event(info.region_id, event)
        self._serve(region)
        return region

    def _check_may_open(self, info: RegionInfo) -> None:
        """RegionUnavailable: retry after its ``back``.  NotServingRegion."""
        if self.state.is_stopping:
            raise NotServingRegion("the server is stopping; try another or try again")
        state = self.state.state(info.region_id)
        if state in WAITING:
            raise RegionUnavailable(info.encoded, self.gate(info.region_id), is_opening=state is State.OPENING)
        if state is State.BLOCKED:
            raise NotServingRegion(self._refusals[info.region_id])
        if not self.state.owns(info.region_id):
            raise RegionNotLocal(info.table, info.encoded)

    def open_next(self) -> None:
        if not self._wanted:
            return
        region_id, info = next(iter(self._wanted.items()))
        failure: Exception | None = None
        try:
            self._open(info)
        except Exception as fault:  # noqa: BLE001 - the requests that wait for it hear of it, whatever it is
            failure = fault
            self._fail(region_id, fault)
        try:
            self.on_settled(info, failure)
        finally:  # I2: no fault of one region keeps the others waiting
            if self._wanted:
                asyncio.get_running_loop().call_soon(self.open_next)

    def _open(self, info: RegionInfo) -> None:
        event = Event.NOT_OPENED
        self.on_opening(info.region_id)
        try:
            region, event = self._opened(info, self.schema_of(info))
        finally:
            self.on_ended(info.region_id)
            del self._wanted[info.region_id]
            self.state.apply_event(info.region_id, event)
        self.awaited[info.region_id] = asyncio.get_running_loop().time() + AWAITED_S
        self._serve(region)
        self._release(info.region_id)

    def _opened(self, info: RegionInfo, table: Table) -> tuple[Region, Event]:
        path, ownership = self.folders.path(info.encoded), self.ownership(info)
        try:
            region = opened_again(self.engine, path, info, table, self._committer, self._clock, ownership)
        except (DiskFails, DamagedData) as fault:
            self.read_only.note(info, fault)
            self.on_write_fault()
            raise
        except HostError as cause:
            self.read_only.note(info, cause)
            self.on_write_fault()
            if ownership.unreplayed_logs and not ownership.is_sole:
                raise  # it is served only when all that is behind is on disk; another server may succeed
            return self.read_only.opened(path, info, table, cause, ownership), Event.OPENED_READING
        self.read_only.takes_writes(info)
        return region, Event.OPENED

    def _serve(self, region: Region) -> None:
        region_id = region.info.region_id
        self._regions[region_id] = self.serving[region_id] = region
        _log.debug("region %s of %s is open", region.info.encoded, region.info.table)
        self.on_opened(region)

    def call_off_openings(self, is_meant: Callable[[RegionInfo], bool]) -> None:
        """Their requests look anew for the region of their row."""
        for info in [info for info in self._wanted.values() if is_meant(info)]:
            del self._wanted[info.region_id]
            self.state.apply_event(info.region_id, Event.NOT_OPENED)
            self._release(info.region_id)
            self.on_settled(info, None)

    def ownership(self, info: RegionInfo) -> Ownership:
        """With which the region's store is opened now: at the owner's epoch, and with the logs that are behind."""
        return self.ownership_at(info.encoded, self.state.epoch_of(info.region_id))

    async def prepare(self, table: Table, infos: list[RegionInfo]) -> None:
        """Make the stores of regions that will soon be served: making one costs some 40 ms, opening it 6."""
        for info in infos:
            path = self.folders.path(info.encoded)
            self.engine.open(path, spaces_of(table), options_of_spaces(table)).close()
            await asyncio.sleep(PREPARE_PAUSE_S)

    def is_awaited(self, region: Region) -> bool:
        """The request that it was opened for has not reached it yet (I3)."""
        until_s = self.awaited.get(region.info.region_id)
        return until_s is not None and asyncio.get_running_loop().time() < until_s

    # --- events ------------------------------------------------------------------------------------

    def report_event(self, region: Region, event: Event, why: str = "") -> None:
        """Does nothing where the region was closed meanwhile.  ``why``: what requests hear that are refused."""
        region_id = region.info.region_id
        if self._regions.get(region_id) is not region:
            return
        doing = self.state.apply_event(region_id, event)
        state = self.state.state(region_id)
        if state not in SERVING and self.serving.pop(region_id, None) is not None:
            with surviving(LOOP):  # what the state machine says is carried out, whoever else has a fault
                self.on_unserved(region)
        if doing and event in _ENDS:
            with surviving(LOOP):
                self.on_closing(region)
        if state is State.NONE:
            del self._regions[region_id]
            self._refusals.pop(region_id, None)
            self.awaited.pop(region_id, None)
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
        elif do is Do.PAUSE_WRITES:
            what = f"region {region.info.encoded} of {region.info.table} is being opened anew; try again"
            region.refuse_writes(StoreBusy(what))
        elif do is Do.LET_WRITES:
            region.refuse_writes(None)

    def gate(self, region_id: int) -> asyncio.Future[None]:
        """Resolved when requests need not wait for the region any more.  Only in a state of WAITING."""
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
        self._fail(region_id, NotServingRegion(why))

    def _fail(self, region_id: int, failure: Exception) -> None:
        gate = self._gates.pop(region_id, None)
        if gate is not None:
            gate.set_exception(failure)
            gate.exception()  # seen: the clients that waited may have gone

    def _close_aside(self, region: Region) -> None:
        region.leave()

        def closed(ended: asyncio.Future[None]) -> None:
            ended.exception()  # none: closing never fails
            self.report_event(region, Event.STORE_CLOSED)

        asyncio.get_running_loop().run_in_executor(None, region.store.close).add_done_callback(closed)

    def _broken(self, store: Store, failure: ColumnarError) -> None:
        for region in [region for region in self._regions.values() if region.store is store and region.is_open]:
            _log.error("region %s of %s: fsync failed: %s", region.info.encoded, region.info.table, failure.text)
            self.read_only.note(region.info, failure)
            self.report_event(region, Event.FSYNC_FAILED)
            self.on_write_fault()

    # --- closing -----------------------------------------------------------------------------------

    async def quiesce(self, region: Region) -> None:
        """Wait until no write of ``region`` waits for its fsync, and nothing keeps it up in a thread."""
        while region.upkeep:  # noqa: ASYNC110 - rarely anything, and then for seconds
            await asyncio.sleep(UPKEEP_POLL_S)
        while not region.is_quiet:
            under_way = region.sync_async_writes() or self._committer.pending_sync(region.store)
            assert under_way is not None, "else it is quiet"
            await asyncio.wait([under_way])

    async def close(self, region: Region, may_close: Callable[[], bool] = lambda: True) -> None:
        """Close the region when every write is on disk; until then reads are served and writers wait.

        It is flushed in a thread first, where it must be, so that closing its store writes nothing on the loop.  It
        stays open if ``may_close`` says no by then.
        """
        while self.state_of(region) in SERVING:
            self.report_event(region, Event.LEAVES)
            try:
                await self.quiesce(region)
                if not region.store.is_clean:
                    with suppress(ColumnarError):  # closing it finds the same fault
                        await region.flush()
                    await self.quiesce(region)
                if not may_close():
                    return
                self.report_event(region, Event.QUIET)
            finally:
                self.report_event(region, Event.STAYS)

    async def close_all(self, regions: Sequence[Region]) -> None:
        """``close`` of each, FLUSHED_AT_ONCE of them side by side: a flush waits for the disk."""
        left = iter(regions)

        async def some() -> None:
            for region in left:
                await self.close(region)

        others = [asyncio.ensure_future(some()) for _ in range(min(FLUSHED_AT_ONCE, len(regions)) - 1)]
        try:
            await some()
            for other in others:
                await other
        finally:
            for other in others:
                other.cancel()

    async def closed_aside(self, is_meant: Callable[[RegionInfo], bool]) -> None:
        """Return when no thread closes a store of these regions any more."""
        broken = self.state.in_states(frozenset({State.BROKEN}))
        gates = [self.gate(region_id) for region_id in broken if is_meant(self._regions[region_id].info)]
        if gates:
            await asyncio.wait(gates)

    async def all_there(self, timeout_s: float) -> bool:
        """Return when requests wait for no region any more; False: not in time."""
        gates = [self.gate(region_id) for region_id in self.state.in_states(WAITING)]
        if not gates:
            return True
        _, missing = await asyncio.wait(gates, timeout=timeout_s)
        return not missing

    async def stop(self) -> None:
        """Sync and close every region; none is opened any more."""
        self.state.stop()
        self.call_off_openings(lambda _info: True)
        await self.close_all(list(self.serving.values()))
        await self.all_there(CLOSING_S)

    def check(self) -> None:
        """I1, I2, and the invariants of the machine."""
        self.state.check()
        assert set(self._wanted) == set(self.state.in_states(frozenset({State.OPENING}))), "I2"
        assert set(self.awaited) <= set(self._regions)
        assert set(self.serving) == set(self.state.in_states(SERVING))
        assert set(self._regions) == set(self.state.in_states(frozenset(State) - {State.OPENING, State.CLOSED}))
        assert set(self._gates) <= set(self.state.in_states(WAITING))
        for region_id in self.state.in_states(HAS_STORE):
            assert self._regions[region_id].is_open or self.state.state(region_id) is State.REPLACED
