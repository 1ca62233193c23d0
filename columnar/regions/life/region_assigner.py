"""Owns the regions that a master gives to this server: the shell of ``told``, over a region server.

    OpenRegion        the store is opened with the logs that are behind, then answered; where none is, answered at once
    CloseRegion       triggers held, flushed while it serves, shut, closed, then answered
    RenumberRegion    the epoch rises under an open store, too

Stores are opened in the background one after the other, those with logs behind them first.  A request opens its own
region by itself (``hosting``), so it waits for one other at most.

Invariants:
    W1. Each ask is answered once: by the report of its epoch, or by the refusal.
    W2. A region's store is opened with what ``told`` says is behind until it was opened so once, and later with this
        run's own log where its disk failed.
    W3. The master is told of a region whose openings fail, and again after REPORT_AGAIN_S at the next that does: a
        report that comes while the region is split, merged or moved changes nothing.

Knows nothing of links and frames.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, TypeVar

from columnar.errors import ColumnarError, DamagedData, HostError, NotServingRegion, RegionUnavailable
from columnar.model.owner import Incarnation, Owner, first_owner
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
from columnar.regions.life.hosting_state import SERVING, State
from columnar.regions.life.region_assignment_state import (
    AssignedRegions,
    AssignmentOutput,
    BringIn,
    CallOff,
    Leave,
    MayServe,
    RaiseEpoch,
    Refuse,
    ReportClosed,
    ReportFailed,
    ReportOpened,
    Stage,
    Why,
)
from columnar.regions.log.lacking_logs import LackingLogs, Logs
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.runtime.faults import FAULTS, surviving
from columnar.storage.ownership import Ownership

_log = logging.getLogger(__name__)

QUIESCE_TIMEOUT_S: Final = 10.0  # for the calls of triggers that are under way; then they come again at the next owner
UPKEEP_POLL_S: Final = 0.02
CLOSE_AGAIN_S: Final = 1.0  # after a fault; the master ends a server that does not come to an end with it
REPORT_AGAIN_S: Final = 10.0
FIRST_EPOCH: Final = 1  # of the regions that a split or a merge makes
T = TypeVar("T")

_WORDS: Final = {
    Why.OLD_LEADER: "another master leads by now",
    Why.OLD_EPOCH: "it was told at a later epoch",
    Why.GIVEN_UP: "this server has given it up at that epoch",
    Why.STOPPING: "this server is stopping",
}


def _nobody(_report: CannotOpen) -> None:
    pass


def _ignore_blocked(_region: RegionInfo) -> None:
    pass


class RegionAssigner:
    def __init__(self, here: Incarnation, server: RegionServer, logs: Logs) -> None:
        self.assigned_regions = AssignedRegions(here, server.hosting.state)
        self.on_cannot_open: Callable[[CannotOpen], None] = _nobody
        self.on_blocked: Callable[[RegionInfo], None] = (
            _ignore_blocked  # its split or merge was called off, says the master
        )
        self._local_server = here
        self._server = server
        self._hosting = server.hosting
        self._logs = logs
        self._infos: dict[int, RegionInfo] = {}  # of every region that was told, by id
        self._ids: dict[str, int] = {}  # the same by encoded name
        self._pending_requests: dict[
            tuple[type[Any], int, int], list[asyncio.Future[Any]]
        ] = {}  # by kind, region and epoch
        self._lacking = LackingLogs(here, logs)
        self._to_bring_in: OrderedDict[int, None] = OrderedDict()  # regions that lack logs, as they were told
        self._to_open: OrderedDict[int, None] = OrderedDict()  # and those that may be served, after them
        self._opening: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._unopened: dict[int, tuple[int, float]] = {}  # region id -> its epoch, and when the master was told
        self._dropped: dict[int, RegionInfo] = {}  # of no table any more, and not forgotten yet
        self._hosting.ownership_at = self._ownership
        self._hosting.on_settled = self._settled

    # --- told by a master ----------------------------------------------------------------------------

    async def open(self, asked: OpenRegion, leader: int) -> None:
        """``leader``: the epoch of the master that asks.  An error: the region is refused at that epoch for ever."""
        self._know(asked.region, asked.sealed)
        if asked.is_doubted:
            self.assigned_regions.doubt(asked.region.region_id, asked.owner.epoch)
        told = self.assigned_regions.on_open_region
        await self._answered(OpenRegion, asked.region, asked.owner.epoch, lambda: told(*_row(asked), leader))

    async def renumber(self, asked: RenumberRegion, leader: int) -> None:
        """As ``open``."""
        self._know(asked.region, asked.sealed)
        told = self.assigned_regions.on_renumber_region
        await self._answered(OpenRegion, asked.region, asked.owner.epoch, lambda: told(*_row(asked), leader))

    async def close(self, asked: CloseRegion, leader: int) -> GivenUp:
        self._know(asked.region, ())
        region, epoch = asked.region.region_id, asked.epoch
        answer: GivenUp = await self._answered(
            CloseRegion, asked.region, epoch, lambda: self.assigned_regions.on_close_region(region, epoch, leader)
        )
        return answer

    async def _answered(
        self, kind: type[Any], info: RegionInfo, epoch: int, tell: Callable[[], Iterable[AssignmentOutput]]
    ) -> Any:  # fmt: skip
        """W1.  An asker that goes takes its own future with it: what it asked is done all the same."""
        doing = tuple(tell())
        for one in doing:
            if isinstance(one, Refuse) and one.why is Why.OLD_LEADER:
                raise NotServingRegion(self._refused(one))  # it is no news for a leader that has asked the same
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending_requests.setdefault((kind, info.region_id, epoch), []).append(future)
        self._carry_out(doing)
        return await future

    def _know(self, info: RegionInfo, sealed: tuple[tuple[Incarnation, Segments], ...]) -> None:
        self._infos[info.region_id] = info
        self._ids[info.encoded] = info.region_id
        self._dropped.pop(info.region_id, None)
        self._lacking.know(sealed)

    # --- instructions --------------------------------------------------------------------------------

    def _carry_out(self, instructions: Iterable[AssignmentOutput]) -> None:
        for one in instructions:
            match one:
                case BringIn():
                    self._bring_in(one.region, one.owner)
                case CallOff():
                    self._call_off(one.region, one.epoch)
                case MayServe():
                    # Its store has what an earlier tenure here left in this run's log: segments need not wait for it.
                    self._logs.server_log.brought_in(self._infos[one.region].encoded)
                    self._open_soon(one.region)
                case RaiseEpoch():
                    self._raise_epoch(one.region, one.epoch)
                case Leave():
                    self._leave_soon(one.region, one.epoch)
                case ReportOpened():
                    self._answer(OpenRegion, one.region, one.epoch, None)
                case ReportClosed():
                    self._answer(CloseRegion, one.region, one.epoch, GivenUp(one.epoch, one.has_unreplayed_log))
                case ReportFailed():
                    failure = DamagedData(one.why) if one.is_damaged else HostError(one.why)
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
        return f"region {info.encoded} is refused at epoch {refusal.epoch}: {_WORDS[refusal.why]}"

    def _raise_epoch(self, region_id: int, epoch: int) -> None:
        region = self._hosting.find_region(region_id)
        if region is not None and region.is_open:
            region.store.own(region.info.encoded, epoch)

    # --- opening -------------------------------------------------------------------------------------

    def _ownership(self, encoded: str, epoch: int) -> Ownership:
        """W2."""
        region_id = self._ids.get(encoded)
        if region_id is None:
            return Ownership(encoded, max(epoch, FIRST_EPOCH))  # a split or a merge makes it
        epochs = self.assigned_regions.epochs_of(region_id)
        own = tuple(part for part in self._logs.server_log.unreplayed_parts(encoded) if part.epoch in epochs)
        return Ownership(encoded, epoch, self._lacking.parts_of(region_id) + own)

    def _bring_in(self, region_id: int, owner: Owner) -> None:
        self._lacking.lacks(region_id, owner.unreplayed_logs)
        self._bring_in_soon(region_id)

    def _call_off(self, region_id: int, epoch: int) -> None:
        """An opening is one step of the loop, so one that has not ended has not begun; reading its logs may have."""
        self._lacking.has_all(region_id)
        self._hosting.call_off_openings(lambda one: one.region_id == region_id)
        self._carry_out(
            self.assigned_regions.not_opened(region_id, epoch, "it was given to another server", is_damaged=False)
        )

    def _bring_in_soon(self, region_id: int) -> None:
        self._to_bring_in[region_id] = None
        self._ensure_opening()

    def _open_soon(self, region_id: int) -> None:
        self._to_open[region_id] = None
        self._ensure_opening()

    def _ensure_opening(self) -> None:
        if self._opening is None or self._opening.done():
            self._opening = asyncio.ensure_future(_logged(self._open_all()))

    async def _open_all(self) -> None:
        await asyncio.sleep(0)  # what is told in the same iteration comes in its order
        while self._to_bring_in or self._to_open:
            is_behind = bool(self._to_bring_in)
            region_id, _ = (self._to_bring_in or self._to_open).popitem(last=False)
            try:
                if is_behind and region_id in self._lacking:
                    await self._open_with_logs(region_id)
                elif not is_behind and self._is_worth_opening(region_id):
                    await self._open(region_id)
                else:
                    await asyncio.sleep(0)
            except Exception as fault:  # noqa: BLE001 - the others are opened, and the master hears of this one
                FAULTS.met("openings of the owner's regions", fault)
                with surviving("openings of the owner's regions"):
                    self._not_opened(region_id, fault)
                await asyncio.sleep(0)

    async def _open_with_logs(self, region_id: int) -> None:
        """Open the region with its logs; of a disabled table it is closed again, as nobody else would close it."""
        info = self._infos[region_id]
        try:
            await self._lacking.load(region_id)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the master hears of it, and the others are opened
            _log.error("logs that region %s lacks cannot be read", info.encoded, exc_info=fault)
            if region_id in self._lacking and self._hosting.state.state(region_id) is State.NONE:
                self._not_opened(region_id, fault)  # else a request has it opened, which ends with a report
            return
        if region_id in self._lacking:  # else a request has had it opened meanwhile
            await self._open(region_id)
            region = self._hosting.find_region(region_id)
            if region is not None and self._server.serving(info) is None:
                await self._hosting.close(region)

    def _is_worth_opening(self, region_id: int) -> bool:
        """Before anybody asks for it: not over the bound, unless somebody follows its changes; no new store."""
        info = self._infos.get(region_id)
        if info is None or self.assigned_regions.stage_of(region_id) is not Stage.SERVING:
            return False
        if self._hosting.state.state(region_id) is not State.NONE or self._server.serving(info) is None:
            return False
        has_room = self._server.has_room or self._server.policy_of(info.table) is not None
        return has_room and not self._server.is_untouched(info)

    async def _open(self, region_id: int) -> None:
        """Return when the opening has ended, however; ``_settled`` has heard of it then."""
        try:
            away = self._hosting.want(self._infos[region_id])
        except RegionUnavailable as waiting:
            away = waiting
        except ColumnarError as refused:  # it was told to close meanwhile, or no table has it any more
            self._not_opened(region_id, refused)
            return
        await asyncio.wait([away.available])

    def _settled(self, info: RegionInfo, failure: Exception | None) -> None:
        """An opening has ended, for a request or in the background; without failure it may have been called off."""
        region_id = info.region_id
        if failure is not None:
            self._not_opened(region_id, failure)
        elif self._hosting.state.state(region_id) is State.NONE:
            if region_id in self._lacking:
                self._bring_in_soon(region_id)
        elif region_id in self._lacking:
            self._lacking.has_all(region_id)
            self._carry_out(self.assigned_regions.opened(region_id, self._hosting.state.epoch_of(region_id)))
        else:
            self._unopened.pop(region_id, None)

    def _not_opened(self, region_id: int, failure: Exception) -> None:
        why = failure.text if isinstance(failure, ColumnarError) else repr(failure)
        is_damaged, epoch = isinstance(failure, DamagedData), self._hosting.state.epoch_of(region_id)
        if region_id in self._lacking:
            self._lacking.has_all(region_id)
            self._carry_out(self.assigned_regions.not_opened(region_id, epoch, why, is_damaged=is_damaged))
        elif isinstance(failure, NotServingRegion) or self.assigned_regions.stage_of(region_id) is not Stage.SERVING:
            pass  # it goes, or its table has
        else:
            self._report_unopened(region_id, epoch, why, is_damaged)

    def _report_unopened(self, region_id: int, epoch: int, why: str, is_damaged: bool) -> None:
        """W3."""
        told_epoch, logged_s = self._unopened.get(region_id, (0, 0.0))
        now_s = asyncio.get_running_loop().time()
        if told_epoch != epoch or now_s - logged_s >= REPORT_AGAIN_S:
            self._unopened[region_id] = (epoch, now_s)
            self.on_cannot_open(CannotOpen(self._infos[region_id], epoch, why, is_damaged))

    # --- closing -------------------------------------------------------------------------------------

    def _leave_soon(self, region_id: int, epoch: int) -> None:
        task = asyncio.ensure_future(_logged(self._leave(self._infos[region_id], epoch)))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _leave(self, info: RegionInfo, epoch: int) -> None:
        """A fault delays the report, which comes when the region is closed: nobody else may open it before."""
        closed: Region | None = None
        while True:
            try:
                closed = await self._close(info) or closed
                is_behind = self._has_unreplayed_log(info)
                break
            except Exception:  # noqa: BLE001 - whatever it is, the region stays this server's until it is closed
                _log.exception("region %s is not closed; trying again", info.encoded)
                await asyncio.sleep(CLOSE_AGAIN_S)
        self._carry_out(self.assigned_regions.closed(info.region_id, epoch, is_behind=is_behind))
        if closed is not None:
            self._server.listener.release(closed)  # it may come back
        self.forget_dropped()

    def _has_unreplayed_log(self, info: RegionInfo) -> bool:
        epochs = self.assigned_regions.epochs_of(info.region_id)
        return any(part.epoch in epochs for part in self._logs.server_log.unreplayed_parts(info.encoded))

    async def _close(self, info: RegionInfo) -> Region | None:
        """When this returns, no store of the region is open, and none will be; the region, if one was open."""
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
        """Hold its followers and flush it while it serves, as far as that goes: closing it does without."""
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
        """A split or a merge here is committed: this server owns the successors, whom nobody tells it to open."""
        for info in change.fresh:
            self._infos[info.region_id] = info
            self._ids[info.encoded] = info.region_id
            self.assigned_regions.made(info.region_id, first_owner(self._local_server, FIRST_EPOCH))

    def dropped(self, infos: Iterable[RegionInfo]) -> None:
        """No table has them any more: forget each when its store is closed."""
        self._dropped.update((info.region_id, info) for info in infos if info.region_id in self._infos)
        self.forget_dropped()

    def forget_dropped(self) -> None:
        """Called when regions that no table has may have been closed."""
        for region_id, info in list(self._dropped.items()):
            is_closed = self._hosting.state.state(region_id) in (State.NONE, State.CLOSED)
            if (
                not is_closed
                or region_id in self._lacking
                or self.assigned_regions.stage_of(region_id) is Stage.LEAVING
            ):
                continue
            del self._dropped[region_id]
            self._logs.server_log.brought_in(info.encoded)  # nobody needs what this run's log has of it
            self._infos.pop(region_id, None)
            self._ids.pop(info.encoded, None)
            self._unopened.pop(region_id, None)
            self._to_open.pop(region_id, None)
            self.assigned_regions.forget([region_id])

    # --- the end -------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Nothing more is opened in the background."""
        self._to_bring_in.clear()
        self._to_open.clear()
        if self._opening is not None:
            self._opening.cancel()

    def check(self) -> None:
        self.assigned_regions.check()
        self._lacking.check()


def _row(asked: OpenRegion | RenumberRegion) -> tuple[int, Owner]:
    return asked.region.region_id, asked.owner


async def _logged(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except Exception:
        _log.exception("work on the regions of this server failed")
        raise
