"""Carries out the instructions of ``region_state``: opens and closes stores, pauses requests and releases them.

Callers report events (``report_event``), and the state machine returns the instructions that follow.  A paused request
waits for a future, its region's gate; when the gate is resolved, the request locates the region of its row again.

Invariants:
    I1. ``serving`` contains exactly the regions in a state of ``region_state.SERVING``, least used first.
    I2. A region that was opened for a request stays open until the request arrives, AWAITED_S at most: otherwise
        requests for more regions than may be open would close each other's regions.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from columnar.errors import (
    ColumnarError,
    NotServingRegion,
    RegionNotLocal,
    RegionUnavailable,
)
from columnar.limits import FLUSHED_AT_ONCE
from columnar.model.region_info import RegionInfo
from columnar.regions.life.hosting_state import HostingState
from columnar.regions.life.read_only_regions import ReadOnlyRegions
from columnar.regions.life.region_state import HAS_STORE, SERVING, WAITING, Do, Event, State
from columnar.regions.region import Region
from columnar.runtime.faults import surviving
from columnar.storage.api import Store, StoreBusy
from columnar.storage.commit import Committer

_log = logging.getLogger(__name__)

LOOP: Final = "the hosting of regions"

UPKEEP_POLL_S: Final = 0.01
AWAITED_S: Final = 1.0
_ENDS: Final = frozenset({Event.EVICTED, Event.QUIET, Event.FSYNC_FAILED})  # the region's consumers release it


class HostingEvents(Protocol):
    """``regions.server.RegionServer``."""

    def region_opened(self, region: Region) -> None: ...

    def region_unserved(self, region: Region) -> None:
        """Send no more requests to the region."""

    def region_closing(self, region: Region) -> None:
        """Release the region before its store closes."""


class Hosting:
    def __init__(
        self, committer: Committer, epoch: int | None, read_only: ReadOnlyRegions, events: HostingEvents
    ) -> None:
        """``epoch`` has the meaning that it has in ``HostingState``."""
        self.state = HostingState(epoch)
        self._events = events
        self.serving: OrderedDict[int, Region] = OrderedDict()
        self._committer = committer
        self.awaited: dict[int, float] = {}  # region id -> deadline; opened for requests that are still to come (I2)
        self._regions: dict[int, Region] = {}  # in every state but NONE, OPENING and CLOSED
        self._gates: dict[int, asyncio.Future[None]] = {}  # of the regions for which requests wait
        self._refusals: dict[int, str] = {}
        self._read_only = read_only
        committer.call_if_broken(self._broken)

    def state_of(self, region: Region) -> State:
        """Return the state of this region object: NONE once it was closed, even if the region was opened again."""
        region_id = region.info.region_id
        return self.state.state(region_id) if self._regions.get(region_id) is region else State.NONE

    def find_region(self, region_id: int) -> Region | None:
        """Return the region unless its state is NONE, OPENING or CLOSED.  The region's store may be closed."""
        return self._regions.get(region_id)

    def check_may_open(self, info: RegionInfo) -> None:
        """Raise RegionUnavailable (retry after its ``available``) or NotServingRegion if the region may not be opened.

        Raises RegionNotLocal, a NotServingRegion, if another server owns the region.
        """
        if self.state.is_stopping:
            raise NotServingRegion("the server is stopping; try another or try again")
        state = self.state.state(info.region_id)
        if state in WAITING:
            raise RegionUnavailable(info.encoded, self.gate(info.region_id), is_opening=state is State.OPENING)
        if state is State.BLOCKED:
            raise NotServingRegion(self._refusals[info.region_id])
        if not self.state.owns(info.region_id):
            raise RegionNotLocal(info.table, info.encoded)

    def serve(self, region: Region, *, for_requests: bool = False) -> None:
        """Serve a region that was opened.

        ``for_requests`` says that it was opened for requests that are still to come (I2).
        """
        region_id = region.info.region_id
        if for_requests:
            self.awaited[region_id] = asyncio.get_running_loop().time() + AWAITED_S
        self._regions[region_id] = self.serving[region_id] = region
        _log.debug("region %s of %s is open", region.info.encoded, region.info.table)
        self._events.region_opened(region)

    def is_awaited(self, region: Region) -> bool:
        """Tell whether the request for which the region was opened is still to come (I2)."""
        until_s = self.awaited.get(region.info.region_id)
        return until_s is not None and asyncio.get_running_loop().time() < until_s

    # --- events ------------------------------------------------------------------------------------

    def report_event(self, region: Region, event: Event, why: str = "") -> None:
        """Apply the event and carry out the resulting instructions.  No effect if the region was closed meanwhile.

        ``why`` is the reason that refused requests get.
        """
        region_id = region.info.region_id
        if self._regions.get(region_id) is not region:
            return
        doing = self.state.apply_event(region_id, event)
        state = self.state.state(region_id)
        if state not in SERVING and self.serving.pop(region_id, None) is not None:
            with surviving(LOOP):  # the instructions are carried out even if the callback fails
                self._events.region_unserved(region)
        if doing and event in _ENDS:
            with surviving(LOOP):
                self._events.region_closing(region)
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
            self.release(region_id)
        elif do is Do.REFUSE:
            self._refuse(region_id, why)
        elif do is Do.PAUSE_WRITES:
            what = f"region {region.info.encoded} of {region.info.table} is being opened anew; try again"
            region.refuse_writes(StoreBusy(what))
        elif do is Do.LET_WRITES:
            region.refuse_writes(None)

    def gate(self, region_id: int) -> asyncio.Future[None]:
        """Return the future that resolves when requests need not wait any more.  Call only in a state of WAITING."""
        gate = self._gates.get(region_id)
        if gate is None:
            gate = self._gates[region_id] = asyncio.get_running_loop().create_future()
        return gate

    def release(self, region_id: int) -> None:
        gate = self._gates.pop(region_id, None)
        if gate is not None:
            gate.set_result(None)

    def _refuse(self, region_id: int, why: str) -> None:
        self._refusals[region_id] = why
        self.fail(region_id, NotServingRegion(why))

    def fail(self, region_id: int, failure: Exception) -> None:
        gate = self._gates.pop(region_id, None)
        if gate is not None:
            gate.set_exception(failure)
            gate.exception()  # so that asyncio does not log it: the waiting clients may have gone

    def _close_aside(self, region: Region) -> None:
        region.leave()

        def closed(ended: asyncio.Future[None]) -> None:
            ended.exception()  # none: closing never fails
            self.report_event(region, Event.STORE_CLOSED)

        asyncio.get_running_loop().run_in_executor(None, region.store.close).add_done_callback(closed)

    def _broken(self, store: Store, failure: ColumnarError) -> None:
        for region in [region for region in self._regions.values() if region.store is store and region.is_open]:
            _log.error("region %s of %s: fsync failed: %s", region.info.encoded, region.info.table, failure.text)
            self._read_only.note_fault(region.info, failure)
            self.report_event(region, Event.FSYNC_FAILED)

    # --- closing -----------------------------------------------------------------------------------

    async def quiesce(self, region: Region) -> None:
        """Wait until no write of the region waits for its fsync and no upkeep of the region runs."""
        while region.work.running:  # noqa: ASYNC110 - rarely anything, and then for seconds
            await asyncio.sleep(UPKEEP_POLL_S)
        while not region.syncs.is_quiet:
            under_way = region.syncs.sync_async_writes() or self._committer.pending_sync(region.store)
            assert under_way is not None, "else it is quiet"
            await asyncio.wait([under_way])

    async def close(self, region: Region, may_close: Callable[[], bool] = lambda: True) -> None:
        """Close the region when every write is on disk; until then reads are served and writers wait.

        A region that needs a flush is flushed in a thread first, so that closing its store does no writes on the loop.
        The region stays open if ``may_close`` returns False after that.
        """
        while self.state_of(region) in SERVING:
            self.report_event(region, Event.LEAVES)
            try:
                await self.quiesce(region)
                if not region.store.files.is_clean:
                    with suppress(ColumnarError):  # closing it finds the same fault
                        await region.flush()
                    await self.quiesce(region)
                if not may_close():
                    return
                self.report_event(region, Event.QUIET)
            finally:
                self.report_event(region, Event.STAYS)

    async def close_all(self, regions: Sequence[Region]) -> None:
        """Close the regions, FLUSHED_AT_ONCE concurrently: a flush waits for the disk."""
        left = iter(regions)

        async def some() -> None:
            for region in left:
                await self.close(region)

        tasks = [asyncio.ensure_future(some()) for _ in range(min(FLUSHED_AT_ONCE, len(regions)) - 1)]
        try:
            await some()
            for task in tasks:
                await task
        finally:
            for task in tasks:
                task.cancel()

    async def closed_aside(self, is_meant: Callable[[RegionInfo], bool]) -> None:
        """Wait until no thread is closing a store of the regions that ``is_meant`` selects."""
        broken = self.state.in_states(frozenset({State.BROKEN}))
        gates = [self.gate(region_id) for region_id in broken if is_meant(self._regions[region_id].info)]
        if gates:
            await asyncio.wait(gates)

    async def all_there(self, timeout_s: float) -> bool:
        """Wait until no region is in a state of WAITING.  Returns False at the timeout."""
        gates = [self.gate(region_id) for region_id in self.state.in_states(WAITING)]
        if not gates:
            return True
        _, missing = await asyncio.wait(gates, timeout=timeout_s)
        return not missing

    def check_invariants(self) -> None:
        """Assert I1 and the invariants of the state machine."""
        self.state.check_invariants()
        assert set(self.awaited) <= set(self._regions)
        assert set(self.serving) == set(self.state.in_states(SERVING))
        has_region = frozenset(State) - {State.NONE, State.OPENING, State.CLOSED}
        assert set(self._regions) == set(self.state.in_states(has_region))
        assert set(self._gates) <= set(self.state.in_states(WAITING))
        for region_id in self.state.in_states(HAS_STORE):
            assert self._regions[region_id].is_open or self.state.state(region_id) is State.REPLACED
