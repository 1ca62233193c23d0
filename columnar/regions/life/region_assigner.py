"""Opens and closes the regions that a master assigns to this server: the shell of ``region_state``.

    OpenRegion        answered once the store is open with the unreplayed logs, or immediately if no log is unreplayed
    CloseRegion       triggers are paused; the region is flushed while it serves, blocked and closed; then answered
    RenumberRegion    the epoch rises, under an open store, too

Stores are opened in the background (``assigned_openings``).

Invariants:
    W1. Each request is answered once: by the report for its epoch, or by a refusal.
    W2. A region's store is opened with the unreplayed logs that ``region_state`` names until one such opening has
        succeeded.  Later, if its disk failed, the store is opened with the log of this server process.
    W3. The master is notified when a region cannot be opened, and again at the first failure after REPORT_AGAIN_S,
        because a report has no effect while the region is split, merged or moved.

Knows nothing of links and frames.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from columnar.errors import ColumnarError, DamagedData, HostError, NotServingRegion
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
from columnar.regions.life.assigned_openings import AssignedOpenings
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
from columnar.storage.ownership import Ownership

_log = logging.getLogger(__name__)

QUIESCE_TIMEOUT_S: Final = 10.0  # for trigger calls in flight; calls cut off run again at the next owner
UPKEEP_POLL_S: Final = 0.02
CLOSE_AGAIN_S: Final = 1.0  # after a fault; the master ends a server that never succeeds
REPORT_AGAIN_S: Final = 10.0
FIRST_EPOCH: Final = 1  # of the regions that a split or a merge makes

PendingKey = tuple[type[Any], int, int]  # kind of request, region, epoch


class PendingRequests:
    """Requests that wait for their report (W1)."""

    def __init__(self) -> None:
        self._futures: dict[PendingKey, list[asyncio.Future[Any]]] = {}

    def add_request(self, key: PendingKey) -> asyncio.Future[Any]:
        """Return the future of one more request.  A cancelled caller cancels its own future only."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(key, []).append(future)
        return future

    def answer(self, key: PendingKey, answer: Any) -> None:
        for future in self._futures.pop(key, ()):
            if not future.done():
                future.set_result(answer)

    def fail(self, key: PendingKey, failure: ColumnarError) -> None:
        for future in self._futures.pop(key, ()):
            if not future.done():
                future.set_exception(failure)


class RegionAssigner:
    def __init__(self, local_server: Incarnation, server: RegionServer, logs: Logs) -> None:
        self.state = server.hosting.state
        self.on_cannot_open: Callable[[CannotOpen], None] = lambda _report: None
        # Called with a region that a split or merge blocks, as the master's request shows that the change was called
        # off.
        self.on_blocked: Callable[[RegionInfo], None] = lambda _region: None
        self._server = server
        self._hosting = server.hosting
        self._logs = logs
        self._infos: dict[int, RegionInfo] = {}  # of every assigned region, by id
        self._ids: dict[str, int] = {}  # region ids by encoded name
        self._generations: dict[str, int] = {}  # of the folders, by encoded name; only those above 0
        self._pending = PendingRequests()
        self._lacking = LackingLogs(local_server, logs)
        self._work = Background("work on the regions of this server")
        self.openings = AssignedOpenings(server, self._lacking, self._infos, self._work, self._not_opened)
        self._unopened: dict[int, tuple[int, float]] = {}  # region id -> its epoch, time of the report
        self._dropped: dict[int, RegionInfo] = {}  # no table has them any more; not forgotten yet

    # --- requests of a master ------------------------------------------------------------------------

    async def open_region(self, request: OpenRegion, leader: int) -> None:
        """Answer OpenRegion.  ``leader`` is the epoch of the requesting master.

        An error means that this server refuses the region at the request's epoch for ever.
        """
        self._know(request.region, request.sealed, request.owner.generation)
        region, owner = request.region.region_id, request.owner
        doing = self.state.on_open_region(region, owner, leader, is_doubted=request.is_doubted)
        await self._answered(OpenRegion, region, owner.epoch, doing)

    async def renumber(self, request: RenumberRegion, leader: int) -> None:
        """Answer RenumberRegion; arguments and errors as of ``open_region``."""
        self._know(request.region, request.sealed, request.owner.generation)
        region, owner = request.region.region_id, request.owner
        await self._answered(OpenRegion, region, owner.epoch, self.state.on_renumber_region(region, owner, leader))

    async def close(self, request: CloseRegion, leader: int) -> GivenUp:
        self._know(request.region, (), 0)
        region, epoch = request.region.region_id, request.epoch
        doing = self.state.on_close_region(region, epoch, leader)
        answer: GivenUp = await self._answered(CloseRegion, region, epoch, doing)
        return answer

    async def _answered(
        self, kind: type[Any], region_id: int, epoch: int, doing: tuple[AssignmentOutput, ...]
    ) -> Any:  # fmt: skip
        """Carry the request out and wait for its report (W1)."""
        for one in doing:
            if isinstance(one, Refuse) and one.why is Why.OLD_LEADER:
                raise NotServingRegion(self._refused(one))  # a current leader's pending request of this key stays
        future = self._pending.add_request((kind, region_id, epoch))
        self._carry_out(doing)
        return await future

    def _know(self, info: RegionInfo, sealed: tuple[tuple[Incarnation, Segments], ...], generation: int) -> None:
        """Note what a request says.  A generation never falls: a request that comes late has a lower one."""
        if generation > self._generations.get(info.encoded, 0):
            self._generations[info.encoded] = generation
        self._infos[info.region_id] = info
        self._ids[info.encoded] = info.region_id
        self._dropped.pop(info.region_id, None)
        self._lacking.know(sealed)

    # --- instructions --------------------------------------------------------------------------------

    def _carry_out(self, instructions: Iterable[AssignmentOutput], failure: ColumnarError | None = None) -> None:
        """Carry the instructions out in order.  ``failure`` is the reason that a ``ReportFailed`` gives."""
        for one in instructions:
            match one:
                case Recover():
                    self._lacking.lacks(one.region, one.unreplayed_logs)
                    self.openings.open_soon(one.region)
                case CallOff():
                    self._call_off(one.region, one.epoch)
                case MayServe():
                    # The region's store has every record that an earlier ownership period left in the log of this
                    # server process, so the log need not keep segments for the region.
                    self._logs.server_log.brought_in(self._infos[one.region].encoded)
                    self.openings.open_soon(one.region)
                case RaiseEpoch():
                    region = self._hosting.find_region(one.region)
                    if region is not None and region.is_open:
                        region.store.own(region.info.encoded, one.epoch)
                case Leave():
                    self._work.spawn(self._leave(self._infos[one.region], one.epoch))
                case ReportOpened():
                    self._pending.answer((OpenRegion, one.region, one.epoch), None)
                case ReportClosed():
                    given_up = GivenUp(one.epoch, one.has_unreplayed_log)
                    self._pending.answer((CloseRegion, one.region, one.epoch), given_up)
                case ReportFailed():
                    assert failure is not None, "``not_opened`` has it"
                    self._pending.fail((OpenRegion, one.region, one.epoch), failure)
                case Refuse():
                    refused = NotServingRegion(self._refused(one))
                    self._pending.fail((OpenRegion, one.region, one.epoch), refused)

    def _refused(self, refusal: Refuse) -> str:
        info = self._infos[refusal.region]
        return f"region {info.encoded} is refused at epoch {refusal.epoch}: {refusal.why.value}"

    # --- opening -------------------------------------------------------------------------------------

    def ownership_at(self, encoded: str, epoch: int) -> Ownership:
        """Return the ownership to open the region's store with (W2)."""
        region_id = self._ids.get(encoded)
        if region_id is None:
            return Ownership(encoded, max(epoch, FIRST_EPOCH))  # a split or a merge makes the region
        epochs = self.state.find(region_id).epochs
        own = tuple(part for part in self._logs.server_log.unreplayed_parts(encoded) if part.epoch in epochs)
        return Ownership(encoded, epoch, self._lacking.parts_of(region_id) + own)

    def generation_of(self, encoded: str) -> int:
        """Return the generation of the region's folder; 0 for a region that a split or a merge makes."""
        return self._generations.get(encoded, 0)

    async def load_logs(self, region_id: int) -> None:
        """Read the logs that the region lacks, in a thread.  If a log cannot be read, its opening raises the error."""
        await self._lacking.load(region_id)

    def _call_off(self, region_id: int, epoch: int) -> None:
        """Cancel an opening that has not begun, as it is one loop step.

        Reading the region's logs and preparing its folder may have begun; the region is left when the latter is over.
        """
        self._lacking.has_all(region_id)
        self._server.openings.call_off(lambda one: one.region_id == region_id)
        if self._server.openings.shared_folders is None:
            self._carry_out(self.state.on_not_recovered(region_id, epoch))
        else:
            self._work.spawn(self._end_recovery(region_id, epoch))

    async def _end_recovery(self, region_id: int, epoch: int) -> None:
        await self._server.openings.folders_released(lambda one: one.region_id == region_id)
        self._carry_out(self.state.on_not_recovered(region_id, epoch))

    def settled(self, info: RegionInfo, failure: Exception | None) -> None:
        """Handle the end of an opening, for a request or in the background.

        ``failure`` is None if the region was opened or its opening was called off.
        """
        region_id = info.region_id
        if failure is not None:
            self._not_opened(region_id, failure)
        elif self.state.state(region_id) is State.NONE:
            if region_id in self._lacking:
                self.openings.open_soon(region_id)
        elif region_id in self._lacking:
            self._lacking.has_all(region_id)
            self._carry_out(self.state.on_recovered(region_id, self.state.epoch_of(region_id)))
        else:
            self._unopened.pop(region_id, None)

    def _not_opened(self, region_id: int, failure: Exception) -> None:
        why = failure.text if isinstance(failure, ColumnarError) else repr(failure)
        is_damaged, epoch = isinstance(failure, DamagedData), self.state.epoch_of(region_id)
        if region_id in self._lacking:
            self._lacking.has_all(region_id)
            reported = DamagedData(why) if is_damaged else HostError(why)
            self._carry_out(self.state.on_not_recovered(region_id, epoch), reported)
        elif isinstance(failure, NotServingRegion) or not self.state.find(region_id).may_serve:
            pass  # it is leaving, or its table was dropped
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
        """Close the region, then report it closed.

        A fault delays the report: no other server may open the region before the report.
        """
        closed: Region | None = None
        while True:
            try:
                closed = await self._close(info) or closed
                await self._server.openings.folders_released(info.__eq__)
                has_unreplayed_log = self._has_unreplayed_log(info)
                break
            except Exception:  # noqa: BLE001 - whatever it is, the region stays this server's until it is closed
                _log.exception("region %s is not closed; trying again", info.encoded)
                await asyncio.sleep(CLOSE_AGAIN_S)
        self._carry_out(self.state.on_closed(info.region_id, epoch, has_unreplayed_log=has_unreplayed_log))
        if closed is not None:
            self._server.listener.release(closed)  # the region may be assigned again
        self.forget_dropped()

    def _has_unreplayed_log(self, info: RegionInfo) -> bool:
        epochs = self.state.find(info.region_id).epochs
        return any(part.epoch in epochs for part in self._logs.server_log.unreplayed_parts(info.encoded))

    async def _close(self, info: RegionInfo) -> Region | None:
        """Close the region; on return no opening of it is queued either.  Returns the region if its store was open."""
        hosting, region_id = self._hosting, info.region_id
        closed = None
        while (state := hosting.state.state(region_id)) is not State.NONE:
            region = hosting.find_region(region_id)
            if state is State.OPENING:
                self._server.openings.call_off(lambda one: one.region_id == region_id)
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
        """Pause the region's followers and flush the region while it serves.

        Faults are only logged, as closing depends on neither.
        """
        info = region.info
        try:
            busy = await self._server.listener.quiesce_region(region, QUIESCE_TIMEOUT_S)
            if busy:
                _log.warning("region %s leaves, and what is under way comes again: %s", info.encoded, busy)
        except Exception:  # noqa: BLE001 - whatever it is, the region leaves
            _log.exception("followers of region %s are not held: what is under way comes again", info.encoded)
        while region.work.running:  # noqa: ASYNC110 - writers would wait for the compaction
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
            self.state.made(info.region_id, FIRST_EPOCH)

    def found_made(self, change: RegionChange) -> None:
        """Take over the successors of a change whose commit became known later: open them, and forget the old."""
        self.made(change)
        for info in change.fresh:
            self.openings.open_soon(info.region_id)
        self.dropped(change.gone)

    def dropped(self, infos: Iterable[RegionInfo]) -> None:
        """Forget each of these regions when its store is closed: no table has the region any more."""
        self._dropped.update((info.region_id, info) for info in infos if info.region_id in self._infos)
        self.forget_dropped()

    def forget_dropped(self) -> None:
        """Forget the dropped regions whose store is closed.  Called whenever a store may have been closed."""
        for region_id, info in list(self._dropped.items()):
            is_closed = self.state.state(region_id) in (State.NONE, State.CLOSED)
            if not is_closed or region_id in self._lacking or self.state.find(region_id).is_leaving:
                continue
            del self._dropped[region_id]
            self._logs.server_log.brought_in(info.encoded)  # the log of this process need not keep its records
            self._infos.pop(region_id, None)
            self._ids.pop(info.encoded, None)
            self._generations.pop(info.encoded, None)
            self._unopened.pop(region_id, None)
            self.state.forget_region(region_id)

    def check_invariants(self) -> None:
        self.state.check_invariants()
        self._lacking.check_invariants()
