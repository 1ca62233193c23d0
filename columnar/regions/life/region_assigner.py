"""Opens and closes the regions that a master assigns to this server: the shell of ``region_state``.

    OpenRegion        answered once the store is open with the unreplayed logs; if there are none, answered immediately
    CloseRegion       triggers paused, flushed while it serves, blocked, closed, then answered
    RenumberRegion    the epoch rises under an open store, too

Stores are opened in the background one after the other, those with unreplayed logs first.  A request opens its own
region by itself (``hosting``), so it waits for one other opening at most.

Invariants:
    W1. Each request is answered once: by the report of its epoch, or by the refusal.
    W2. A region's store is opened with the unreplayed logs that ``region_state`` names until one such
        opening succeeded, and later, if its disk failed, with this run's own log.
    W3. The master is notified of a region whose openings fail, and again at the first failure after REPORT_AGAIN_S: a
        report that comes while the region is split, merged or moved has no effect.

Knows nothing of links and frames.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any, Final

from columnar.errors import ColumnarError, DamagedData, HostError, NotServingRegion, RegionUnavailable
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import (
    CannotOpen,
    CloseRegion,
    GivenUp,
    OpenRegion,
    RenumberRegion,
    Segments,
)
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange
from columnar.regions.life.region_state import (
    SERVING,
    AssignmentOutput,
    CallOff,
    Leave,
    MayServe,
    RaiseEpoch,
    Recover,
    Refuse,
    ReportClosed,
    ReportFailed,
    ReportOpened,
    State,
    Why,
)
from columnar.regions.log.lacking_logs import LackingLogs, Logs
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS, surviving
from columnar.storage.ownership import Ownership

_log = logging.getLogger(__name__)

QUIESCE_TIMEOUT_S: Final = 10.0  # for trigger calls in flight; calls cut off run again at the next owner
UPKEEP_POLL_S: Final = 0.02
CLOSE_AGAIN_S: Final = 1.0  # after a fault; the master ends a server that never succeeds
REPORT_AGAIN_S: Final = 10.0
FIRST_EPOCH: Final = 1  # of the regions that a split or a merge makes


class RegionAssigner:
    def __init__(self, local_server: Incarnation, server: RegionServer, logs: Logs) -> None:
        self._state = server.hosting.state
        self.on_cannot_open: Callable[[CannotOpen], None] = lambda _report: None
        # Called with a region that a split or merge blocks: the change was called off, says the master.
        self.on_blocked: Callable[[RegionInfo], None] = lambda _region: None
        self._server = server
        self._hosting = server.hosting
        self._logs = logs
        self._infos: dict[int, RegionInfo] = {}  # of every assigned region, by id
        self._ids: dict[str, int] = {}  # the same by encoded name
        # By kind, region and epoch.
        self._pending_requests: dict[tuple[type[Any], int, int], list[asyncio.Future[Any]]] = {}
        self._lacking = LackingLogs(local_server, logs)
        self._to_open: list[tuple[bool, int, int]] = []  # a heap: those that may be served last, by order and region id
        self._order = itertools.count()
        self._opening: asyncio.Task[None] | None = None
        self._work = Background("work on the regions of this server")
        self._unopened: dict[int, tuple[int, float]] = {}  # region id -> its epoch, time of the report
        self._dropped: dict[int, RegionInfo] = {}  # of no table any more, and not forgotten yet

    # --- requests of a master ------------------------------------------------------------------------

    async def open_region(self, request: OpenRegion, leader: int) -> None:
        """Answer OpenRegion.  ``leader``: the epoch of the requesting master.

        An error means that the region is refused at that epoch for ever.
        """
        self._know(request.region, request.sealed)
        region, owner = request.region.region_id, request.owner
        doing = self._state.on_open_region(region, owner, leader, is_doubted=request.is_doubted)
        await self._answered(OpenRegion, region, owner.epoch, doing)

    async def renumber(self, request: RenumberRegion, leader: int) -> None:
        """Answer RenumberRegion; arguments and errors as of ``open``."""
        self._know(request.region, request.sealed)
        region, owner = request.region.region_id, request.owner
        await self._answered(OpenRegion, region, owner.epoch, self._state.on_renumber_region(region, owner, leader))

    async def close(self, request: CloseRegion, leader: int) -> GivenUp:
        self._know(request.region, ())
        region, epoch = request.region.region_id, request.epoch
        doing = self._state.on_close_region(region, epoch, leader)
        answer: GivenUp = await self._answered(CloseRegion, region, epoch, doing)
        return answer

    async def _answered(
        self, kind: type[Any], region_id: int, epoch: int, doing: tuple[AssignmentOutput, ...]
    ) -> Any:  # fmt: skip
        """Carry the request out and wait for its report (W1).  A cancelled caller cancels its own future only."""
        for one in doing:
            if isinstance(one, Refuse) and one.why is Why.OLD_LEADER:
                raise NotServingRegion(self._refused(one))  # a current leader's pending request of the same key goes on
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending_requests.setdefault((kind, region_id, epoch), []).append(future)
        self._carry_out(doing)
        return await future

    def _know(self, info: RegionInfo, sealed: tuple[tuple[Incarnation, Segments], ...]) -> None:
        self._infos[info.region_id] = info
        self._ids[info.encoded] = info.region_id
        self._dropped.pop(info.region_id, None)
        self._lacking.know(sealed)

    def serving(self) -> dict[int, int]:
        """Return the epochs of the assigned regions that may be served."""
        return self._state.serving()

    # --- instructions --------------------------------------------------------------------------------

    def _carry_out(self, instructions: Iterable[AssignmentOutput], failure: ColumnarError | None = None) -> None:
        """``failure``: the reason of a ``ReportFailed``."""
        for one in instructions:
            match one:
                case Recover():
                    self._lacking.lacks(one.region, one.unreplayed_logs)
                    self._open_soon(one.region)
                case CallOff():
                    self._call_off(one.region, one.epoch)
                case MayServe():
                    # Its store has the records that an earlier ownership period of this server left in this run's
                    # log: segments need not wait for it.
                    self._logs.server_log.brought_in(self._infos[one.region].encoded)
                    self._open_soon(one.region)
                case RaiseEpoch():
                    region = self._hosting.find_region(one.region)
                    if region is not None and region.is_open:
                        region.store.own(region.info.encoded, one.epoch)
                case Leave():
                    self._work.spawn(self._leave(self._infos[one.region], one.epoch))
                case ReportOpened():
                    self._answer(OpenRegion, one.region, one.epoch, None)
                case ReportClosed():
                    self._answer(CloseRegion, one.region, one.epoch, GivenUp(one.epoch, one.has_unreplayed_log))
                case ReportFailed():
                    assert failure is not None, "``not_opened`` has it"
                    self._fail(OpenRegion, one.region, one.epoch, failure)
                case Refuse():
                    self._fail(OpenRegion, one.region, one.epoch, NotServingRegion(self._refused(one)))

    def _answer(self, kind: type[Any], region: int, epoch: int, answer: Any) -> None:
        for future in self._pending_requests.pop((kind, region, epoch), ()):
            if not future.done():
                future.set_result(answer)

    def _fail(self, kind: type[Any], region: int, epoch: int, failure: ColumnarError) -> None:
        for future in self._pending_requests.pop((kind, region, epoch), ()):
            if not future.done():
                future.set_exception(failure)

    def _refused(self, refusal: Refuse) -> str:
        info = self._infos[refusal.region]
        return f"region {info.encoded} is refused at epoch {refusal.epoch}: {refusal.why.value}"

    # --- opening -------------------------------------------------------------------------------------

    def ownership_at(self, encoded: str, epoch: int) -> Ownership:
        """Return the ownership to open the region's store with (W2)."""
        region_id = self._ids.get(encoded)
        if region_id is None:
            return Ownership(encoded, max(epoch, FIRST_EPOCH))  # a split or a merge makes it
        epochs = self._state.find(region_id).epochs
        own = tuple(part for part in self._logs.server_log.unreplayed_parts(encoded) if part.epoch in epochs)
        return Ownership(encoded, epoch, self._lacking.parts_of(region_id) + own)

    def _call_off(self, region_id: int, epoch: int) -> None:
        """Cancel an opening that has not begun: an opening is one loop step.  Reading its logs may have begun."""
        self._lacking.has_all(region_id)
        self._hosting.call_off_openings(lambda one: one.region_id == region_id)
        self._carry_out(self._state.on_not_recovered(region_id, epoch))

    def _open_soon(self, region_id: int) -> None:
        heappush(self._to_open, (region_id not in self._lacking, next(self._order), region_id))
        if self._opening is None or self._opening.done():
            self._opening = self._work.spawn(self._open_all())

    async def _open_all(self) -> None:
        await asyncio.sleep(0)  # requests of the same loop iteration keep their order
        while self._to_open:
            may_serve, _, region_id = heappop(self._to_open)
            try:
                if not may_serve and region_id in self._lacking:
                    await self._open_with_logs(region_id)
                elif may_serve and self._is_worth_opening(region_id):
                    await self._open(region_id)
                else:
                    await asyncio.sleep(0)
            except Exception as fault:  # noqa: BLE001 - the next ones are opened, and this one is reported
                FAULTS.met("openings of the owner's regions", fault)
                with surviving("openings of the owner's regions"):
                    self._not_opened(region_id, fault)
                await asyncio.sleep(0)

    async def _open_with_logs(self, region_id: int) -> None:
        """Open the region with its logs.  Close it again if its table is disabled: no request would do so."""
        info = self._infos[region_id]
        try:
            await self._lacking.load(region_id)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is reported, and the next regions are opened
            _log.error("logs that region %s lacks cannot be read", info.encoded, exc_info=fault)
            if region_id in self._lacking and self._state.state(region_id) is State.NONE:
                self._not_opened(region_id, fault)  # else a request has it opened, which ends with a report
            return
        if region_id in self._lacking:  # else a request has had it opened meanwhile
            await self._open(region_id)
            region = self._hosting.find_region(region_id)
            if region is not None and self._server.serving(info) is None:
                await self._hosting.close(region)

    def _is_worth_opening(self, region_id: int) -> bool:
        """Tell whether to open the region before its first request.

        Not above the bound of open regions, unless a follower reads its changes; never if its store would be new.
        """
        info = self._infos.get(region_id)
        if info is None or not self._state.find(region_id).may_serve:
            return False
        if self._state.state(region_id) is not State.NONE or self._server.serving(info) is None:
            return False
        has_room = self._server.has_room or self._server.policy_of(info.table) is not None
        return has_room and not self._server.is_untouched(info)

    async def _open(self, region_id: int) -> None:
        """Wait until the opening has ended, with or without success; ``_settled`` was called by then."""
        try:
            unavailable = self._hosting.want(self._infos[region_id])
        except RegionUnavailable as waiting:
            unavailable = waiting
        except ColumnarError as refused:  # a close was requested meanwhile, or no table has it
            self._not_opened(region_id, refused)
            return
        await asyncio.wait([unavailable.available])

    def settled(self, info: RegionInfo, failure: Exception | None) -> None:
        """Report the end of an opening, for a request or in the background.  Without failure: opened or called off."""
        region_id = info.region_id
        if failure is not None:
            self._not_opened(region_id, failure)
        elif self._state.state(region_id) is State.NONE:
            if region_id in self._lacking:
                self._open_soon(region_id)
        elif region_id in self._lacking:
            self._lacking.has_all(region_id)
            self._carry_out(self._state.on_recovered(region_id, self._state.epoch_of(region_id)))
        else:
            self._unopened.pop(region_id, None)

    def _not_opened(self, region_id: int, failure: Exception) -> None:
        why = failure.text if isinstance(failure, ColumnarError) else repr(failure)
        is_damaged, epoch = isinstance(failure, DamagedData), self._state.epoch_of(region_id)
        if region_id in self._lacking:
            self._lacking.has_all(region_id)
            reported = DamagedData(why) if is_damaged else HostError(why)
            self._carry_out(self._state.on_not_recovered(region_id, epoch), reported)
        elif isinstance(failure, NotServingRegion) or not self._state.find(region_id).may_serve:
            pass  # it goes, or its table has
        else:
            self._report_unopened(region_id, epoch, why, is_damaged)

    def _report_unopened(self, region_id: int, epoch: int, why: str, is_damaged: bool) -> None:
        """Notify the master that the region cannot be opened, at the rate of W3."""
        reported_epoch, logged_s = self._unopened.get(region_id, (0, 0.0))
        now_s = asyncio.get_running_loop().time()
        if reported_epoch != epoch or now_s - logged_s >= REPORT_AGAIN_S:
            self._unopened[region_id] = (epoch, now_s)
            self.on_cannot_open(CannotOpen(self._infos[region_id], epoch, why, is_damaged))

    # --- closing -------------------------------------------------------------------------------------

    async def _leave(self, info: RegionInfo, epoch: int) -> None:
        """Close the region and report it.  A fault delays the report: no other server may open the region before."""
        closed: Region | None = None
        while True:
            try:
                closed = await self._close(info) or closed
                has_unreplayed_log = self._has_unreplayed_log(info)
                break
            except Exception:  # noqa: BLE001 - whatever it is, the region stays this server's until it is closed
                _log.exception("region %s is not closed; trying again", info.encoded)
                await asyncio.sleep(CLOSE_AGAIN_S)
        self._carry_out(self._state.on_closed(info.region_id, epoch, has_unreplayed_log=has_unreplayed_log))
        if closed is not None:
            self._server.listener.release(closed)  # the region may be assigned again
        self.forget_dropped()

    def _has_unreplayed_log(self, info: RegionInfo) -> bool:
        epochs = self._state.find(info.region_id).epochs
        return any(part.epoch in epochs for part in self._logs.server_log.unreplayed_parts(info.encoded))

    async def _close(self, info: RegionInfo) -> Region | None:
        """Close the region until no store of it is open and none will be.  Returns the region if one was open."""
        hosting, region_id = self._hosting, info.region_id
        closed = None
        while (state := hosting.state.state(region_id)) is not State.NONE:
            region = hosting.find_region(region_id)
            if state is State.OPENING:
                hosting.call_off_openings(lambda one: one.region_id == region_id)
            elif state is State.BLOCKED:
                self.on_blocked(info)
            elif region is None or state not in SERVING:
                await asyncio.wait([hosting.gate(region_id)])
            else:
                closed = region
                await self._prepare_to_close(region)
                await hosting.close(region)
        return closed

    async def _prepare_to_close(self, region: Region) -> None:
        """Pause its followers and flush it while it serves; faults are logged, as closing does not depend on it."""
        info = region.info
        try:
            busy = await self._server.listener.quiesce_region(region, QUIESCE_TIMEOUT_S)
            if busy:
                _log.warning("region %s leaves, and what is under way comes again: %s", info.encoded, busy)
        except Exception:  # noqa: BLE001 - whatever it is, the region leaves
            _log.exception("followers of region %s are not held: what is under way comes again", info.encoded)
        while region.upkeep:  # noqa: ASYNC110 - writers would wait for the compaction
            await asyncio.sleep(UPKEEP_POLL_S)
        try:
            with suppress(ColumnarError):  # closing it finds the same fault
                await region.flush()
        except Exception:  # noqa: BLE001 - whatever it is, the region leaves
            _log.exception("region %s is not flushed before it leaves", info.encoded)

    # --- splits, merges, dropped tables --------------------------------------------------------------

    def made(self, change: RegionChange) -> None:
        """Take over the successors of a split or merge that this server committed: no master requests their opening."""
        for info in change.fresh:
            self._infos[info.region_id] = info
            self._ids[info.encoded] = info.region_id
            self._state.made(info.region_id, FIRST_EPOCH)

    def dropped(self, infos: Iterable[RegionInfo]) -> None:
        """Forget each of these regions, which no table has any more, when its store is closed."""
        self._dropped.update((info.region_id, info) for info in infos if info.region_id in self._infos)
        self.forget_dropped()

    def forget_dropped(self) -> None:
        """Forget the dropped regions whose store is closed.  Called when one may have been closed."""
        for region_id, info in list(self._dropped.items()):
            is_closed = self._state.state(region_id) in (State.NONE, State.CLOSED)
            if not is_closed or region_id in self._lacking or self._state.find(region_id).is_leaving:
                continue
            del self._dropped[region_id]
            self._logs.server_log.brought_in(info.encoded)  # its records in this run's log are not needed
            self._infos.pop(region_id, None)
            self._ids.pop(info.encoded, None)
            self._unopened.pop(region_id, None)
            self._state.forget_region(region_id)

    # --- the end -------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop opening regions in the background."""
        self._to_open.clear()
        if self._opening is not None:
            self._opening.cancel()

    def check_invariants(self) -> None:
        self._state.check_invariants()
        self._lacking.check_invariants()
