"""Splits and merges at a simulated server, as ``regions.region_changes`` and ``regions.replacing`` carry them out.

begin     the regions are opened and copied while they serve; ``touched`` rows follow
finish    synced -> HELD: requests wait -> the last rows, synced -> COMMIT is asked of the master -> successors serve
answers   of the commit: COMMITTED; UNSURE: shut until ``settle``; anything else: called off
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange
from columnar.regions.life.region_state import Event, State
from columnar.storage.ownership import COMPLETE, complete_in, pack_complete
from tests.simulation.agenda import MS
from tests.simulation.disk import Files, Pair
from tests.simulation.stores import OpenStore, is_row, region_name

if TYPE_CHECKING:
    from tests.simulation.master import Master
    from tests.simulation.server import Server

COMMITTED, UNSURE = "committed", "nobody knows"
FIRST_EPOCH = 1
TRIES = 5  # within pauses
Answer = Callable[["Server", "str | None"], None]
HELD_BY_CHANGES = (State.REPLACING, State.HOLDING, State.REPLACED, State.BLOCKED, State.FAILED)


class Work:
    """A change under way; ``sources`` are the stores of the old regions, ``fresh`` those of the new regions."""

    def __init__(self, change: RegionChange) -> None:
        self.change = change
        self.sources: dict[int, OpenStore] = {}
        self.base: OpenStore | None = None  # the new stores begin as copies of it
        self.fresh: dict[int, OpenStore] = {}
        self.tries = 0
        self.is_committing = False  # the master was asked to commit it
        self.finished: Answer | None = None


class Changing:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._world = server.world
        self._agenda = server.world.agenda
        self._owning = server.owning
        self._hosting = server.owning.hosting
        self._under_way: dict[RegionChange, Work] = {}
        self._unsure: dict[RegionChange, Work] = {}
        self._asked: dict[RegionChange, int] = {}  # of these: the leader that was asked to commit
        self._works: dict[int, Work] = {}  # by old region, in a state that only a change knows

    # --- begin ---------------------------------------------------------------------------------------

    def begin(self, change: RegionChange, answer: Answer, master: Master | None = None) -> None:
        """Begin a change; it is answered when the new stores have nearly all rows."""
        asked_by = master or self._server.master
        if asked_by is not self._server.master:
            return  # another leads by now
        regions = [info.region_id for info in change.gone]
        if not all(map(self._hosting.owns, regions)):
            answer(self._server, "not owned here")
            return
        if max(map(self._hosting.epoch_of, regions)) != change.epoch:
            answer(self._server, "owned at another epoch")
            return
        for region in regions:
            state = self._hosting.state(region)
            if state in (State.NONE, State.OPENING, State.BROKEN, State.CLOSING):
                self._owning.when_settled(region, lambda: self.begin(change, answer, asked_by))
                return
            if state is not State.OPEN:
                answer(self._server, f"region {region} is {state.name}")
                return
        work = self._under_way[change] = Work(change)
        for region in regions:
            self._hosting.apply_event(region, Event.REPLACEMENT_BEGINS)
            self._works[region] = work
            work.sources[region] = self._owning.stores[region]
            work.sources[region].touched = {}
        self._step(work, answer, (3 * MS, 20 * MS), lambda: self._checkpoint(work, answer))

    def _step(self, work: Work, answer: Answer, within_us: tuple[int, int], then: Callable[[], None]) -> None:
        """Continue in a moment, unless the change has ended meanwhile."""

        def go_on() -> None:
            if self._under_way.get(work.change) is not work:
                return  # it was called off
            if self._is_whole(work):
                then()
            else:
                self.call_off(work.change, None)
                answer(self._server, "a region was closed meanwhile")

        self._agenda.later(self._server.process, self._agenda.drawn(*within_us), go_on)

    def _is_whole(self, work: Work) -> bool:
        states = (State.REPLACING, State.HOLDING)
        return all(self._works.get(region) is work and self._hosting.state(region) in states for region in work.sources)

    def _checkpoint(self, work: Work, answer: Answer) -> None:
        """Copy everything of the base, ``meta`` and marks too, without foreign rows; then the other source's rows."""
        base = work.base = max(work.sources.values(), key=lambda source: len(source.data))
        base.hand_over()
        for info in work.change.fresh:
            held = {key: value for key, value in base.files.read().items() if not is_row(key) or info.contains_row(key)}
            files = self._world.disk.stores[info.region_id] = Files()
            files.append(list(held.items()))
            is_claimed = not (self._world.has("unclaimed") or self._world.has("no complete"))
            claim = (COMPLETE, pack_complete(FIRST_EPOCH, region_name(info.region_id))) if is_claimed else None
            work.fresh[info.region_id] = OpenStore(info.region_id, FIRST_EPOCH, files, held, claim)
        for source in (source for source in work.sources.values() if source is not base):
            self._copy(work, source, list(source.data))
        self._step(work, answer, (MS, 20 * MS), lambda: self._prepared(work, answer))

    def _prepared(self, work: Work, answer: Answer) -> None:
        self._catch_up(work)
        answer(self._server, None)

    def _catch_up(self, work: Work) -> None:
        for source in work.sources.values():
            rows, source.touched = list(source.touched or ()), {}
            self._copy(work, source, rows)

    def _copy(self, work: Work, source: OpenStore, keys: list[bytes]) -> None:
        for info in work.change.fresh:
            target = work.fresh[info.region_id]
            pairs: list[Pair] = [(key, source.data[key]) for key in keys if is_row(key) and info.contains_row(key)]
            if pairs:
                target.files.append(pairs)
                target.data.update((key, value) for key, value in pairs if value is not None)

    # --- finish --------------------------------------------------------------------------------------

    def finish(self, change: RegionChange, answer: Answer) -> None:
        work = self._under_way.get(change)
        if work is None:
            answer(self._server, "it was called off")
            return
        work.finished = answer
        self._hold(work, answer)

    def _hold(self, work: Work, answer: Answer) -> None:
        """Hold the regions' requests after nearly all rows are on disk."""
        self._catch_up(work)

        def synced() -> None:
            self._catch_up(work)
            self._step(work, answer, (0, 4 * MS), lambda: self._shut(work, answer))

        self._sync(work, answer, synced)

    def _sync(self, work: Work, answer: Answer, then: Callable[[], None]) -> None:
        written = {region: len(store.files.log) for region, store in work.fresh.items()}

        def synced() -> None:
            if self._world.happens("fsync"):
                for store in work.fresh.values():
                    store.files.lose(self._world.rng)
                self.call_off(work.change, None)
                answer(self._server, "a new store was not synced")
                return
            if not self._world.has("daughters unsynced"):
                for region, count in written.items():
                    work.fresh[region].files.sync(count)
            then()

        self._step(work, answer, (MS, 8 * MS), synced)

    def _shut(self, work: Work, answer: Answer) -> None:
        for region in work.sources:
            self._hosting.apply_event(region, Event.PAUSE_BEGINS)
        self._quiesce(work, answer)

    def _quiesce(self, work: Work, answer: Answer) -> None:
        """Wait until every write is on disk and answered."""
        if not self._is_whole(work):
            self._step(work, answer, (0, 1), lambda: None)
            return
        for store in work.sources.values():
            if store.gathered or not store.is_quiet:
                self._server.committing.commit(store, lambda _is_on_disk: self._step_now(work, answer))
                return
        self._make(work, answer)

    def _step_now(self, work: Work, answer: Answer) -> None:
        self._step(work, answer, (0, 1), lambda: self._quiesce(work, answer))

    def _make(self, work: Work, answer: Answer) -> None:
        if not self._world.has("last rows uncopied"):
            self._catch_up(work)
        assert work.base is not None, "it was copied"
        for info in work.change.fresh:
            self._finish_meta(work.fresh[info.region_id], work.base)
        self._sync(work, answer, lambda: self._made(work, answer))

    def _finish_meta(self, target: OpenStore, base: OpenStore) -> None:
        """Write ``meta`` as the base has it now; its ``complete`` names a different region and so does not count."""
        pair = base.files.read().get(COMPLETE)
        if pair is not None and self._world.has("complete inherited"):
            pair = pack_complete(complete_in(pair, base.name), target.name)
        if pair is not None:
            target.files.append([(COMPLETE, pair)])
            target.data[COMPLETE] = pair

    def _made(self, work: Work, answer: Answer) -> None:
        work.tries += 1
        if self._world.happens("pause"):
            self._let_in(work)
            if work.tries < TRIES:
                self._hold(work, answer)
            else:
                self.call_off(work.change, None)
                answer(self._server, "requests would have waited for too long")
            return
        here, change = self._server, work.change
        work.is_committing = True
        self._server.to_master(lambda master: master.region_changes.commit(here, change))

    def _let_in(self, work: Work) -> None:
        for region in work.sources:
            self._tell(work, region, Event.LET_IN)

    def _tell(self, work: Work, region: int, event: Event) -> None:
        """Report an event of a region, unless it was closed meanwhile."""
        if self._works.get(region) is not work:
            return
        had_store = self._hosting.state(region) in (State.HOLDING, State.REPLACED)
        self._hosting.apply_event(region, event)
        state = self._hosting.state(region)
        if state not in HELD_BY_CHANGES:
            del self._works[region]
        if had_store and state in (State.NONE, State.BLOCKED):
            self._owning.close_now(work.sources[region])
        if state is not State.REPLACED:
            self._owning.release(region)

    # --- the commit's answer -------------------------------------------------------------------------

    def commit_answered(self, change: RegionChange, what: str) -> None:
        work = self._under_way.pop(change, None)
        if work is None:
            return
        answer = work.finished
        assert answer is not None, "it is finished"
        if what == COMMITTED:
            self._owning.made(change)
            self._succeed(work)
            answer(self._server, None)
        elif what == UNSURE and not self._world.has("unsure served"):
            self._suspend(work)
            answer(self._server, what)
        else:
            self._leave(work)
            answer(self._server, what)

    def _suspend(self, work: Work) -> None:
        self._unsure[work.change] = work
        master = self._server.master
        self._asked[work.change] = master.leader if master is not None else 0
        for region in work.sources:
            self._tell(work, region, Event.UNSURE)

    def leader_ended(self, leader: int) -> None:
        """End the changes of a leader: those without a request to commit are called off."""
        for work in list(self._under_way.values()):
            if work.is_committing and not self._world.has("unsure served"):
                del self._under_way[work.change]
                self._suspend(work)
                self._asked[work.change] = leader
            else:
                self._world.seen["changes called off"] += 1
                self.call_off(work.change, None)

    def settle_table(self, regions: Collection[int], leader: int) -> None:
        """Settle unsure changes by the regions that a leader publishes."""
        for change in list(self._unsure):
            if all(info.region_id in regions for info in change.fresh):
                self._world.seen["commits found"] += 1
                self._succeed_late(self._unsure.pop(change))
            elif leader > self._asked[change]:
                self._world.seen["commits not found"] += 1
                self.settle(change)

    def _succeed_late(self, work: Work) -> None:
        for region in work.sources:
            self._tell(work, region, Event.SETTLED)
        self._owning.made(work.change)
        self._owning.dropped(work.change.gone)
        for region in work.sources:
            self._owning.look(region)

    def _succeed(self, work: Work) -> None:
        for region in work.sources:
            self._tell(work, region, Event.COMMITTED)
        for store in work.fresh.values():
            self._owning.open_in(store)
        for region in work.sources:
            self._tell(work, region, Event.SUCCEEDED)
            work.sources[region].touched = None
        self._owning.forget_dropped()

    def call_off(self, change: RegionChange, answer: Answer | None) -> None:
        work = self._under_way.pop(change, None)
        if work is not None:
            self._leave(work)
        if answer is not None:
            answer(self._server, None)

    def _leave(self, work: Work) -> None:
        for region, store in work.sources.items():
            store.touched = None
            self._tell(work, region, Event.CALLED_OFF)

    def settle(self, change: RegionChange) -> None:
        """Settle a change after which the catalogue names the old regions, each of which the next request opens."""
        work = self._unsure.pop(change, None)
        if work is not None:
            for region in work.sources:
                self._tell(work, region, Event.SETTLED)
                self._owning.look(region)

    def settle_for(self, region: int) -> None:
        for change in [change for change in self._unsure if region in self._unsure[change].sources]:
            self.settle(change)

    def lost(self, region: int) -> None:
        """Give the region's change up, because its store failed."""
        if self._hosting.state(region) not in HELD_BY_CHANGES:
            self._works.pop(region, None)

    # --- looks ---------------------------------------------------------------------------------------

    def as_served(self, info: RegionInfo, row: bytes) -> RegionInfo:
        """Return the region that is served for the row: the old one while a change here has not gone on."""
        for change in self._under_way:
            if info in change.fresh:
                return next(old for old in change.gone if old.contains_row(row))
        return info

    def check(self) -> None:
        for region, work in self._works.items():
            assert self._hosting.state(region) in HELD_BY_CHANGES, "a change holds it"
            assert work.change in self._under_way or work.change in self._unsure, "it ends"
