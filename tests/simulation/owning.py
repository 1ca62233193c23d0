"""The shell of a simulated server around ``HostingState``: its stores and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from columnar.errors import DamagedData
from columnar.master.instructions import Close, Open, OwnerRequest
from columnar.model.owner import Incarnation, OwnershipPeriod, incarnation_of
from columnar.model.owner_messages import Segments
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange
from columnar.model.route import Route
from columnar.regions.life.region_state import (
    AssignmentOutput,
    CallOff,
    Event,
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
from columnar.storage.ownership import COMPLETE, THIS_RUN, LogPart, Ownership, pack_complete
from tests.simulation.agenda import MS
from tests.simulation.clients import NOT_SERVED, TABLE, Op
from tests.simulation.deliberate import hosting_of
from tests.simulation.disk import Files
from tests.simulation.stores import Behind, Lapses, OpenStore, bring_in, region_name, unpacked
from tests.simulation.watching import watch

if TYPE_CHECKING:
    from tests.simulation.server import Server


@dataclass(frozen=True, slots=True)
class Done:
    answer: object


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Raised if the region is not served here; nothing was done."""


@dataclass(frozen=True, slots=True)
class Unsure:
    """Raised if the write may have been done."""


Outcome = Done | Elsewhere | Unsure
Reply = Callable[[Outcome], None]
Sealed = dict[Incarnation, Segments]
SERVES_WRITES = (State.OPEN, State.REPLACING)
WAITS = (State.CLOSING, State.OPENING, State.BROKEN, State.HOLDING, State.REPLACED, State.FAILED)


class Owning:
    """The owner; ``gates`` has the requests that wait for a region whose store is being opened or closed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._world = server.world
        self._agenda = server.world.agenda
        self.hosting = hosting_of(self._world)
        watch(self.hosting, lambda: self._world.changed.setdefault(server))
        self.stores: dict[int, OpenStore] = {}
        self.former: dict[int, OpenStore] = {}  # closed; only a deliberate fault reads them
        self._gates: dict[int, list[Callable[[], None]]] = {}
        self._lacking: dict[int, None] = {}  # closed without an fsync: its store lacks what the server's log has
        self._sealed: Sealed = {}
        self._flushing: dict[int, None] = {}
        self._bringing: dict[int, None] = {}
        self._wants: dict[int, object] = {}  # openings that have not begun
        self._dropped: dict[int, None] = {}  # no table has them any more, and they are not forgotten yet
        self._generations: dict[int, int] = {}  # of the regions' folders

    # --- told by a master ----------------------------------------------------------------------------

    def ask(self, ask: OwnerRequest, leader: int, sealed: Sealed) -> None:
        self._know(sealed)
        heard = self.hosting.leader
        if isinstance(ask, Close):
            doing = self.hosting.on_close_region(ask.region, ask.epoch, leader)
        elif isinstance(ask, Open):
            doing = self.hosting.on_open_region(ask.region, ask.owner, leader)
        else:
            doing = self.hosting.on_renumber_region(ask.region, ask.owner, leader)
        if not isinstance(ask, Close) and leader == self.hosting.leader:
            self._generations[ask.region] = max(ask.owner.generation, self._generations.get(ask.region, 0))
        self._world.laws.told_by(leader, heard, doing)
        self.carry_out(doing)

    def _know(self, sealed: Sealed) -> None:
        """Keep the longest extent of each segment, because a live server writes on (``regions.lacking_logs``)."""
        for server, extents in sealed.items():
            longest = dict(self._sealed.get(server, ()))
            if longest and self._world.has("extents kept"):
                continue
            for name, length in extents:
                longest[name] = max(length, longest.get(name, 0))
            self._sealed[server] = tuple(longest.items())

    def carry_out(self, doing: tuple[AssignmentOutput, ...]) -> None:
        for do in doing:
            self._world.trace(self._server.process, do)
            if isinstance(do, Recover):
                self._world.laws.begins(self._server, do.region, do.epoch)
                self._bringing[do.region] = None
                self._want(do.region, do.unreplayed_logs)
            elif isinstance(do, CallOff):
                self._call_off(do.region, do.epoch)
            elif isinstance(do, MayServe):
                self._world.laws.begins(self._server, do.region, do.epoch)
                self._lacking.pop(do.region, None)
                self._server.committing.brought_in(region_name(do.region))
            elif isinstance(do, RaiseEpoch):
                store = self.stores.get(do.region)
                if store is not None and self._world.chance(0.5):  # its records may keep the epoch before
                    store.raise_epoch(do.epoch)
            elif isinstance(do, Leave):
                self._flush_and_leave(do.region)
            elif isinstance(do, ReportOpened):
                self._server.report("opened", do.region, do.epoch)
            elif isinstance(do, ReportClosed):
                self._server.report("closed", do.region, do.epoch, is_behind=do.has_unreplayed_log)
            elif isinstance(do, ReportFailed):
                self._server.report("failed", do.region, do.epoch, why="it cannot be opened", is_damaged=False)
            else:
                assert isinstance(do, Refuse)
                if do.why is not Why.OLD_LEADER:
                    self._server.report("failed", do.region, do.epoch, why=do.why.name, is_damaged=False)

    # --- opening -------------------------------------------------------------------------------------

    def _want(self, region: int, unreplayed_logs: tuple[OwnershipPeriod, ...] | None) -> None:
        """Queue an opening; ``unreplayed_logs`` are those of a recovering region, None for a request."""
        self.hosting.apply_event(region, Event.WANTED)
        own = self.hosting.find(region).epochs
        epoch = self.hosting.epoch_of(region)
        parts = [self._part(tenure) for tenure in unreplayed_logs or ()]
        if unreplayed_logs is None and region in self._lacking:
            parts = [LogPart(THIS_RUN, one) for one in own]
        ownership = Ownership(region_name(region), epoch, tuple(parts))
        want = self._wants[region] = object()

        def begin() -> None:
            if self._wants.get(region) is want:
                del self._wants[region]
                self._take_over(region, ownership)

        self._agenda.later(self._server.process, self._agenda.drawn(3 * MS, 12 * MS), begin)

    def _take_over(self, region: int, ownership: Ownership) -> None:
        """Find the folder, which is taken over in a first step if it is of an earlier generation."""
        disk, is_linked = self._world.disk, self._world.has("linked logs")
        before, generation = disk.stores.get(region), self._generations.get(region, 0)
        files = disk.folder(region, generation, is_linked=is_linked)
        if files is None:
            self._not_opened(region, ownership.epoch)
        elif files is before:
            self._open(region, files, ownership)
        else:
            self._world.seen["folders taken over"] += 1
            delay_us = self._agenda.drawn(MS, 30 * MS)
            self._agenda.later(self._server.process, delay_us, lambda: self._open(region, files, ownership))

    def _call_off(self, region: int, epoch: int) -> None:
        """Call an opening off, unless it has begun."""
        if self._wants.pop(region, None) is not None:
            del self._bringing[region]
            self.hosting.apply_event(region, Event.NOT_OPENED)
            self.carry_out(self.hosting.on_not_recovered(region, epoch))
            self.release(region)

    def _part(self, tenure: OwnershipPeriod) -> LogPart:
        return LogPart(THIS_RUN if tenure.server == self._server.me else str(tenure.server), tenure.epoch)

    def _open(self, region: int, files: Files, ownership: Ownership) -> None:
        if self._world.disk.stores.get(region) is not files:
            self._not_opened(region, ownership.epoch)  # it was taken over meanwhile
            return
        self._world.laws.opens(self._server, region)
        data = files.recover()
        world = self._world
        lapses = Lapses(world.has("no complete"), world.has("no epochs"))
        work = bring_in(files, data, ownership, self._find, lapses)

        def go_on() -> None:
            try:
                if next(work, "over") is None:
                    self._agenda.later(self._server.process, self._agenda.drawn(MS, 15 * MS), go_on)
                    return
            except DamagedData as error:
                self._world.laws.broken(f"{region_name(region)} is damaged: {error.text}")
            if ownership.unreplayed_logs:
                self._lacking.pop(region, None)
                self._server.committing.brought_in(ownership.region)
            is_claimed = not (lapses.no_complete or world.has("unclaimed"))
            claim = (COMPLETE, pack_complete(ownership.epoch, ownership.region)) if is_claimed else None
            self._opened(OpenStore(region, ownership.epoch, files, data, claim))

        go_on()

    def _find(self, name: str) -> Behind:
        if name == THIS_RUN:
            return self._server.log, self._server.log.measured()
        server = incarnation_of(name)
        log = self._world.disk.logs.get(server)
        if log is None:
            self._world.laws.broken(f"C6: the log of {name} is gone, and it is needed")
        extents = log.measured() if self._world.has("seal ignored") else self._sealed.get(server, ())
        there = {name for name, _ in log.measured()}
        self._world.laws.reads(server, tuple((name, length) for name, length in extents if name in there))
        self._world.laws.finds(server, there)
        return log, extents

    def _opened(self, store: OpenStore) -> None:
        region = store.region_id
        is_told = region in self._bringing
        if is_told and self._world.happens("unopened"):
            self._not_opened(region, store.epoch)
            return
        self._bringing.pop(region, None)
        self.hosting.apply_event(region, Event.OPENED)
        self.stores[region] = store
        store.epoch = max(store.epoch, self.hosting.epoch_of(region))
        self._world.laws.serves(self._server, region, store.data)
        self.former.pop(region, None)
        if is_told:
            self.carry_out(self.hosting.on_recovered(region, store.epoch))
        self.release(region)
        self.look(region)

    def _not_opened(self, region: int, epoch: int) -> None:
        is_told = self._bringing.pop(region, 0) is None
        self.hosting.apply_event(region, Event.NOT_OPENED)
        if is_told:
            self.carry_out(self.hosting.on_not_recovered(region, epoch))
            self.release(region)
        elif self.hosting.find(region).is_leaving:
            self.look(region)
        else:  # the next request tries again; the master hears of it
            self._agenda.later(self._server.process, 50 * MS, lambda: self.release(region))
            self._server.report("unopened", region, epoch, why="its folder is gone", is_damaged=False)

    # --- closing -------------------------------------------------------------------------------------

    def _flush_and_leave(self, region: int) -> None:
        self._flushing[region] = None

        def flushed() -> None:
            self._flushing.pop(region, None)
            self.look(region)

        self._agenda.later(self._server.process, self._agenda.drawn(MS, 10 * MS), flushed)

    def look(self, region: int) -> None:
        """Continue the close of a region that must leave, as far as its store allows."""
        if not self.hosting.find(region).is_leaving or region in self._flushing:
            return
        state = self.hosting.state(region)
        store = self.stores.get(region)
        if state is State.NONE:
            self.carry_out(
                self.hosting.on_closed(
                    region, self.hosting.epoch_of(region), has_unreplayed_log=region in self._lacking
                )
            )
            self.release(region)
            self.forget_dropped()
        elif state is State.BLOCKED:
            self._server.changing.settle_for(region)  # its commit is undone, says the master
        elif state is State.OPEN:
            self.hosting.apply_event(region, Event.LEAVES)
            self.look(region)
        elif state is State.CLOSING and store is not None:
            self._quiet(store)

    def _quiet(self, store: OpenStore) -> None:
        if self._world.has("answers unchecked"):
            self._close(store, Event.QUIET, is_synced=store.is_synced)
        elif store.gathered or not store.is_quiet:
            if store.under_way is None:
                self._server.committing.commit(store, lambda _is_on_disk: None)
        elif store.capture is not None and store.capture.synced < store.capture.last:
            self._server.committing.sync_own(store, lambda _is_on_disk: None)
        else:
            is_replaced = self._world.is_replaced(self._server.me)
            assert store.is_synced or is_replaced, "all that it was written is on disk"
            self._close(store, Event.QUIET, is_synced=True)

    def _close(self, store: OpenStore, event: Event, *, is_synced: bool) -> None:
        region = store.region_id
        self.hosting.apply_event(region, event)
        store.is_open = False
        self.former[region] = self.stores.pop(region)
        self._server.committing.closed(store, is_synced=is_synced)
        self.look(region)
        self.release(region)
        self.forget_dropped()

    def close_now(self, store: OpenStore) -> None:
        """Close a store that was replaced or may not be used; sync its writes as far as the disk allows."""
        region = store.region_id
        if store.gathered:
            store.hand_over()
        is_synced = not self._world.happens("fsync")
        if is_synced:
            store.files.sync(len(store.files.log))
        else:
            store.files.lose(self._world.rng)
            self._lacking[region] = None
        store.is_open = False
        self.former[region] = self.stores.pop(region)
        self._server.committing.closed(store, is_synced=is_synced)

    def evict(self, region: int) -> None:
        """Evict a region that is little used."""
        store = self.stores.get(region)
        if store is None or self.hosting.state(region) is not State.OPEN or not store.is_quiet or store.gathered:
            return
        if store.capture is not None and store.capture.synced < store.capture.last:
            return
        if self.hosting.find(region).may_serve:
            self._close(store, Event.EVICTED, is_synced=True)

    def store_failed(self, store: OpenStore) -> None:
        """Handle a failed fsync of the store."""
        region = store.region_id
        if self.stores.get(region) is not store:
            return  # a deliberate fault closed it meanwhile
        self.hosting.apply_event(region, Event.FSYNC_FAILED)
        self._world.trace(self._server.process, f"fsync of {store.name} failed")
        self._lacking[region] = None
        self.former[region] = self.stores.pop(region)
        self._server.committing.closed(store, is_synced=False)
        self._server.changing.lost(region)
        store.fail()
        if self.hosting.state(region) is State.FAILED:
            return  # its split or merge ends first

        def closed() -> None:
            self.hosting.apply_event(region, Event.STORE_CLOSED)
            self.look(region)
            self.release(region)
            self.forget_dropped()

        self._agenda.later(self._server.process, self._agenda.drawn(MS, 5 * MS), closed)

    # --- splits and merges ---------------------------------------------------------------------------

    def made(self, change: RegionChange) -> None:
        """Note that a change which was carried out here is committed."""
        for info in change.fresh:
            self._world.laws.begins(self._server, info.region_id, 1)
            self.hosting.made(info.region_id, 1)

    def open_in(self, store: OpenStore) -> None:
        region = store.region_id
        self.hosting.apply_event(region, Event.WANTED)
        self.hosting.apply_event(region, Event.OPENED)
        self.stores[region] = store
        self._world.laws.serves(self._server, region, store.data)

    def dropped(self, infos: Iterable[RegionInfo]) -> None:
        had = (info.region_id for info in infos if self.hosting.epoch_of(info.region_id))
        self._dropped.update(dict.fromkeys(had))
        self.forget_dropped()

    def forget_dropped(self) -> None:
        for region in list(self._dropped):
            is_closed = self.hosting.state(region) in (State.NONE, State.CLOSED)
            if is_closed and region not in self._bringing and not self.hosting.find(region).is_leaving:
                del self._dropped[region]
                self._lacking.pop(region, None)
                self._server.committing.brought_in(region_name(region))
                self.hosting.forget_region(region)

    def had(self) -> list[int]:
        """Return the regions that no other server may own."""
        return [region for region in self._world.infos if self.hosting.find(region).is_assigned]

    def served_rows(self) -> Iterator[bytes]:
        """Yield the rows that this server serves now."""
        for region in self.stores:
            if self.hosting.state(region) in (*SERVES_WRITES, State.CLOSING):
                yield from self._world.rows_of(region)

    # --- serving -------------------------------------------------------------------------------------

    def serve(self, op: Op, reply: Reply) -> None:
        """Carry out an operation in the region that has the row by now."""
        route = self._server.gateway.routes.find(TABLE, op.row)
        if route is None:
            reply(Elsewhere())
            return
        info = self._server.changing.as_served(route.region, op.row)
        region = info.region_id
        state = self.hosting.state(region)
        store = self.stores.get(region)
        if store is not None and (state in SERVES_WRITES or (state is State.CLOSING and not op.is_write)):
            self._execute(store, info, op, reply)
        elif state in WAITS:
            self._wait(region, lambda: self.serve(op, reply))
        elif state is State.NONE and self.hosting.owns(region):
            self._wait(region, lambda: self.serve(op, reply))
            self._want(region, None)
        elif state is State.BLOCKED:
            reply(Done(NOT_SERVED))
        else:
            reply(Elsewhere())

    def _wait(self, region: int, again: Callable[[], None]) -> None:
        self._gates.setdefault(region, []).append(again)

    def when_settled(self, region: int, again: Callable[[], None]) -> None:
        """Call ``again`` when the region is open, or cannot be; it is opened if no store of it is."""
        self._wait(region, again)
        if self.hosting.state(region) is State.NONE:
            self._want(region, None)

    def release(self, region: int) -> None:
        for again in self._gates.pop(region, ()):
            self._agenda.later(self._server.process, 0, again)

    def _execute(self, store: OpenStore, info: RegionInfo, op: Op, reply: Reply) -> None:
        if not op.is_write:
            self._read(store, info, op, reply)
            return
        answer, value = op.changed(unpacked(store.data.get(op.row)), self._world.next_version())
        if value is not None:
            op.applied()
            store.write(op.row, value)

        def ended(is_on_disk: bool) -> None:
            if not is_on_disk:
                reply(Unsure())
                return
            versions = {op.row: value.version} if value is not None else {}
            self._answers(store.region_id, versions)
            reply(Done(answer))

        self._server.committing.commit(store, ended)

    def _read(self, store: OpenStore, info: RegionInfo, op: Op, reply: Reply) -> None:
        found = {row: unpacked(store.data.get(row)) for row in op.rows_in(info)}

        def ended(is_on_disk: bool) -> None:
            if not is_on_disk:  # what it saw is not on disk: it looks again
                self._agenda.later(self._server.process, 0, lambda: self.serve(op, reply))
                return
            versions = {row: value.version for row, value in found.items()}
            self._answers(store.region_id, versions)
            reply(Done((info, found)))

        if store.gathered:
            self._server.committing.commit(store, ended)
        elif store.under_way is not None:
            store.under_way.append(ended)
        else:
            ended(True)

    def _answers(self, region: int, versions: dict[bytes, int]) -> None:
        """Have the laws check an answer: the region now, and the process when the answer leaves."""
        self._world.laws.has_region(self._server, region)
        self._server.leave(lambda: self._world.laws.answers(self._server, region, versions))

    def reads_unchecked(self, route: Route | None, op: Op, reply: Reply) -> bool:
        """Answer a read without checks, as a deliberate fault: a region that was served here once answers for ever."""
        store = self.former.get(route.region.region_id) if route is not None else None
        if op.is_write or store is None or route is None or not self._world.has("reads unchecked"):
            return False
        found = {row: unpacked(store.data.get(row)) for row in op.rows_in(route.region)}
        versions = {row: value.version for row, value in found.items()}
        self._answers(store.region_id, versions)
        reply(Done((route.region, found)))
        return True

    def check(self) -> None:
        self.hosting.check_invariants()
