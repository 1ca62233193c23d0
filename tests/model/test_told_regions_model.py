"""Regions that a master assigns to a server: any order of requests and reports, with a shell that obeys.

The model knows the rules for any order: a region is served only at an epoch that was assigned and never given up, and
only after all unreplayed logs were replayed; each request is answered; a close never denies records that only the log
has.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.model.owner_messages import Holdings
from columnar.regions.life.hosting_state import HostingState
from columnar.regions.life.region_state import (
    HAS_STORE,
    SERVING,
    AssignmentOutput,
    CallOff,
    Do,
    Event,
    Leave,
    MayServe,
    OutOfPlace,
    RaiseEpoch,
    Recover,
    Refuse,
    ReportClosed,
    ReportFailed,
    ReportOpened,
    State,
    Why,
)
from tests.support.seeds import seed

HERE, OTHER = Incarnation("s1", 3), Incarnation("s2", 1)
REGIONS = 3
STEPS = 600
RUNS = 40


@dataclass
class Model:
    """The knowledge of the master and the disk about one region."""

    epoch: int = 1  # the highest that was ever told
    closed: int = 0  # the highest that was reported closed, or failed
    opened: int = 0  # the highest that was reported open
    waiting: Counter[tuple[str, int]] = field(default_factory=Counter)  # asks: kind, epoch
    to_recover: Recover | None = None
    to_leave: Leave | None = None
    may_serve: set[int] = field(default_factory=set)  # epochs of rows that named no log
    is_complete: bool = True  # the store has what the logs behind have
    lacks_own: bool = False  # this server's log has what the store lacks, and no row says otherwise
    store_epoch: int = 0  # of the open store


class World:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.hosting = HostingState(None)
        self.models = [Model() for _ in range(REGIONS)]
        self.leader = 1
        self.seen: Counter[str] = Counter()

    # --- a master that may do anything ---------------------------------------------------------------

    def ask(self) -> None:
        rng, region = self.rng, self.rng.randrange(REGIONS)
        model, kind = self.models[region], self.rng.choice(("open", "open", "renumber", "close", "close"))
        epoch = max(1, model.epoch + rng.choice((-2, -1, 0, 0, 0, 1, 1, 1, 3)))
        if rng.random() < 0.05:
            self.leader += 1
        leader = self.leader if rng.random() < 0.95 else self.leader - 1
        self.hosting.leader = max(self.hosting.leader, self.leader)
        is_new = epoch > model.epoch
        model.epoch = max(epoch, model.epoch) if leader == self.leader else model.epoch
        model.waiting["close" if kind == "close" else "open", epoch] += 1
        if kind == "close":
            self.carry_out(region, self.hosting.on_close_region(region, epoch, leader))
            return
        behind = (OwnershipPeriod(HERE, epoch - 1),) if model.lacks_own or kind == "renumber" else ()
        if epoch > 2 and rng.random() < 0.5:
            behind = (OwnershipPeriod(OTHER, epoch - 2), *behind)
        if is_new and leader == self.leader and not self.hosting.owns(region):
            model.is_complete = model.is_complete and not behind
        owner = Owner(HERE, epoch, unreplayed_logs=behind)
        model.may_serve |= set() if behind else {epoch}
        if kind == "open":
            doing = self.hosting.on_open_region(region, owner, leader, is_doubted=rng.random() < 0.2)
        else:
            doing = self.hosting.on_renumber_region(region, owner, leader)
        self.carry_out(region, doing)

    # --- the shell -----------------------------------------------------------------------------------

    def carry_out(self, region: int, doing: tuple[AssignmentOutput, ...]) -> None:
        model = self.models[region]
        for do in doing:
            self.seen[type(do).__name__] += 1
            assert do.region == region
            if isinstance(do, Recover):
                assert model.to_recover is None
                self.may_begin(model, do.epoch)
                self.hosting.apply_event(region, Event.WANTED)
                model.to_recover, model.is_complete = do, False
            elif isinstance(do, CallOff):
                assert model.to_recover is not None, "its opening was not reported yet"
                if self.rng.random() < 0.5:  # it has not begun
                    model.to_recover = None
                    self.hosting.apply_event(region, Event.NOT_OPENED)
                    self.carry_out(region, self.hosting.on_not_recovered(region, do.epoch))
            elif isinstance(do, MayServe):
                self.may_begin(model, do.epoch)
                assert do.epoch in model.may_serve, "T2"
                model.is_complete = True
            elif isinstance(do, RaiseEpoch):
                assert do.epoch > max(model.closed, model.opened), "T1"
                model.store_epoch = do.epoch
            elif isinstance(do, Leave):
                assert model.to_leave is None, "told once"
                model.to_leave = do
            else:
                self.report(region, model, do)

    def may_begin(self, model: Model, epoch: int) -> None:
        assert epoch > model.closed, "T1"
        assert epoch > model.opened, "T1"
        assert model.to_leave is None, "C2"

    def report(self, region: int, model: Model, do: AssignmentOutput) -> None:
        if isinstance(do, Refuse):
            self.seen[do.why.name] += 1
            assert do.why is Why.OLD_LEADER or do.epoch <= max(model.epoch, model.closed)
            ended = {("open", do.epoch), ("close", do.epoch)} if do.why is Why.OLD_LEADER else {("open", do.epoch)}
        elif isinstance(do, ReportOpened):
            assert model.is_complete, "T2: C4"
            assert do.epoch > model.closed, "T1: C2"
            assert self.hosting.owns(region)
            assert do.epoch == self.hosting.epoch_of(region)
            model.opened = do.epoch
            ended = {("open", do.epoch)}
        elif isinstance(do, ReportFailed):
            model.closed = max(model.closed, do.epoch)
            ended = {("open", do.epoch)}
        else:
            assert isinstance(do, ReportClosed)
            if do.epoch >= self.hosting.epoch_of(region):
                assert self.hosting.state(region) is State.CLOSED, "T2"
                assert do.has_unreplayed_log or not model.lacks_own, "the log has what the store lacks"
            model.closed = max(model.closed, do.epoch)
            ended = {("close", do.epoch)}
        for ask in ended:
            model.waiting.pop(ask, None)

    def report_something(self) -> None:
        region = self.rng.randrange(REGIONS)
        model = self.models[region]
        if model.to_recover is not None:
            do, model.to_recover = model.to_recover, None
            if self.rng.random() < 0.7:
                self.hosting.apply_event(region, Event.OPENED)
                model.is_complete, model.lacks_own, model.store_epoch = True, False, do.epoch
                self.carry_out(region, self.hosting.on_recovered(region, do.epoch))
            else:
                self.hosting.apply_event(region, Event.NOT_OPENED)
                self.carry_out(region, self.hosting.on_not_recovered(region, do.epoch))
        elif model.to_leave is not None:
            self.leave(region, model)

    def leave(self, region: int, model: Model) -> None:
        state = self.hosting.state(region)
        if state in (State.OPEN, State.CLOSING):
            self.hosting.apply_event(region, Event.LEAVES if state is State.OPEN else Event.QUIET)
        elif state is State.BROKEN:
            self.hosting.apply_event(region, Event.STORE_CLOSED)
        elif state is State.OPENING:  # for a request
            self.hosting.apply_event(region, Event.OPENED)
        elif state is State.NONE:
            assert model.to_leave is not None
            do, model.to_leave = model.to_leave, None
            model.lacks_own = model.lacks_own or self.rng.random() < 0.2
            self.carry_out(region, self.hosting.on_closed(region, do.epoch, has_unreplayed_log=model.lacks_own))

    def request(self) -> None:
        """Let the store of a region that may be served open, close or break by itself."""
        region = self.rng.randrange(REGIONS)
        model, before = self.models[region], self.hosting.state(region)
        events = (Event.WANTED, Event.OPENED, Event.NOT_OPENED, Event.EVICTED, Event.FSYNC_FAILED, Event.STORE_CLOSED)
        event = self.rng.choice(events)
        if model.to_recover is not None or (event is Event.STORE_CLOSED and before is not State.BROKEN):
            return
        try:
            doing = self.hosting.apply_event(region, event)
        except OutOfPlace:
            return
        if Do.OPEN_STORE in doing:
            epoch = self.hosting.epoch_of(region)
            assert epoch > model.closed, "C2"
            assert model.opened == epoch, "C1"
            assert model.is_complete, "C4"
            model.store_epoch = epoch

    def check(self) -> None:
        self.hosting.check_invariants()
        for region, model in enumerate(self.models):
            if self.hosting.state(region) in HAS_STORE and self.hosting.owns(region):
                assert model.store_epoch == self.hosting.epoch_of(region)
            if self.hosting.state(region) in SERVING:
                assert model.closed < self.hosting.epoch_of(region), "C2"
            epochs = self.hosting.find(region).epochs
            assert not epochs or epochs[-1] > model.closed or self.hosting.find(region).is_leaving

    def step(self) -> None:
        chance = self.rng.random()
        if chance < 0.3:
            self.ask()
        elif chance < 0.7:
            self.report_something()
        else:
            self.request()
        self.check()


def test_whatever_is_told_a_region_is_served_only_by_right() -> None:
    seen: Counter[str] = Counter()
    for number in range(RUNS):
        world = World(random.Random(seed(23_000) + number))
        for _ in range(STEPS):
            world.step()
        for _ in range(60 * REGIONS):  # nothing is told any more
            world.report_something()
        for model in world.models:
            assert not model.waiting, f"T3: {model.waiting}"
        seen += world.seen
    forms = {
        "Recover",
        "CallOff",
        "MayServe",
        "RaiseEpoch",
        "Leave",
        "ReportOpened",
        "ReportClosed",
        "ReportFailed",
        "Refuse",
    }
    assert forms | {"OLD_LEADER", "OLD_EPOCH", "GIVEN_UP"} <= set(seen), "the sequences do not reach everything"


# --- single ways -------------------------------------------------------------------------------------


def served(epoch: int = 8) -> HostingState:
    hosting = HostingState(None)
    assert hosting.on_open_region(1, Owner(HERE, epoch), 1)[-1] == ReportOpened(1, epoch)
    return hosting


def test_a_region_that_nobody_named_is_not_opened() -> None:
    hosting = served()
    assert hosting.owns(1)
    assert not hosting.owns(2)
    hosting.on_close_region(1, 8, 1)
    assert not hosting.owns(1), "what leaves is not opened any more"


def test_a_close_of_what_was_never_had_is_remembered() -> None:
    hosting = served()
    assert hosting.on_close_region(2, 5, 1) == (ReportClosed(2, 5, has_unreplayed_log=False),)
    assert hosting.on_open_region(2, Owner(HERE, 5), 1) == (Refuse(2, 5, Why.GIVEN_UP),)
    assert hosting.on_open_region(2, Owner(HERE, 6), 1)[-1] == ReportOpened(2, 6)


def test_a_log_that_is_behind_stays_so_until_it_is_brought_in() -> None:
    """The server never had the region at 9, but its log of 8 is unreplayed, and a denial would lose that log."""
    hosting = served()
    hosting.on_close_region(1, 8, 1)
    assert hosting.on_closed(1, 8, has_unreplayed_log=True) == (ReportClosed(1, 8, has_unreplayed_log=True),)
    assert hosting.on_close_region(1, 9, 1) == (ReportClosed(1, 9, has_unreplayed_log=True),)
    row = Owner(HERE, 10, unreplayed_logs=(OwnershipPeriod(HERE, 8), OwnershipPeriod(HERE, 9)))
    assert hosting.on_open_region(1, row, 1) == (Recover(1, 10, row.unreplayed_logs),)
    hosting.apply_event(1, Event.WANTED)
    hosting.apply_event(1, Event.NOT_OPENED)
    hosting.on_not_recovered(1, 10)
    assert hosting.on_close_region(1, 11, 1) == (ReportClosed(1, 11, has_unreplayed_log=True),)
    assert hosting.on_open_region(1, Owner(HERE, 12), 1)[-1] == ReportOpened(1, 12), "another server had brought it in"
    hosting.on_close_region(1, 12, 1)
    assert hosting.on_closed(1, 12, has_unreplayed_log=False)[-1] == ReportClosed(1, 12, has_unreplayed_log=False)


def test_a_move_that_is_called_off_raises_the_epoch_in_place() -> None:
    hosting = served()
    row = Owner(HERE, 10, unreplayed_logs=(OwnershipPeriod(HERE, 8),))
    assert hosting.on_renumber_region(1, row, 1) == (RaiseEpoch(1, 10), ReportOpened(1, 10))
    assert hosting.on_renumber_region(1, row, 1) == (ReportOpened(1, 10),)
    assert hosting.epoch_of(1) == 10
    assert list(hosting.find(1).epochs) == [8, 9, 10], "a store that fails gets its records of both epochs"
    assert hosting.on_close_region(1, 8, 1) == (ReportClosed(1, 8, has_unreplayed_log=True),), (
        "writes of 8 may stand in the log alone"
    )


def test_a_move_that_is_called_off_too_late_opens_what_has_closed() -> None:
    hosting = served()
    assert hosting.on_close_region(1, 8, 1) == (Leave(1, 8),)
    row = Owner(HERE, 10, unreplayed_logs=(OwnershipPeriod(HERE, 8),))
    assert hosting.on_renumber_region(1, row, 1) == ()
    assert hosting.on_closed(1, 8, has_unreplayed_log=False) == (
        ReportClosed(1, 8, has_unreplayed_log=False),
        Recover(1, 10, row.unreplayed_logs),
    )
    hosting.apply_event(1, Event.WANTED)
    hosting.apply_event(1, Event.OPENED)
    assert hosting.on_recovered(1, 10) == (ReportOpened(1, 10),)
    assert list(hosting.find(1).epochs) == [10], "its records of 8 do not come again"


def test_a_close_above_the_epoch_at_which_it_is_had_answers_when_it_has_left() -> None:
    """The renumbering to 10 never reached this server."""
    hosting = served()
    assert hosting.on_close_region(1, 10, 1) == (Leave(1, 8),)
    assert hosting.on_open_region(1, Owner(HERE, 10), 1) == (Refuse(1, 10, Why.GIVEN_UP),)
    assert hosting.on_closed(1, 8, has_unreplayed_log=False) == (ReportClosed(1, 10, has_unreplayed_log=False),)
    assert hosting.on_open_region(1, Owner(HERE, 9), 1) == (Refuse(1, 9, Why.GIVEN_UP),)


def test_a_close_while_it_is_brought_in_calls_the_opening_off() -> None:
    hosting = served()
    row = Owner(HERE, 4, unreplayed_logs=(OwnershipPeriod(OTHER, 3),))
    assert hosting.on_open_region(2, row, 1) == (Recover(2, 4, row.unreplayed_logs),)
    hosting.apply_event(2, Event.WANTED)
    assert hosting.on_close_region(2, 4, 1) == (Refuse(2, 4, Why.GIVEN_UP), CallOff(2, 4))
    hosting.apply_event(2, Event.NOT_OPENED)
    assert hosting.on_not_recovered(2, 4) == (ReportClosed(2, 4, has_unreplayed_log=False),)


def test_a_close_while_it_is_brought_in_waits_for_an_opening_that_has_begun() -> None:
    hosting = served()
    row = Owner(HERE, 4, unreplayed_logs=(OwnershipPeriod(OTHER, 3),))
    assert hosting.on_open_region(2, row, 1) == (Recover(2, 4, row.unreplayed_logs),)
    hosting.apply_event(2, Event.WANTED)
    assert hosting.on_close_region(2, 4, 1) == (Refuse(2, 4, Why.GIVEN_UP), CallOff(2, 4))
    hosting.apply_event(2, Event.OPENED)
    assert hosting.on_recovered(2, 4) == (Leave(2, 4),)


def test_a_region_that_is_called_off_keeps_what_this_servers_own_log_has_of_it_behind() -> None:
    """The move back was called off; the store was closed meanwhile and not opened again."""
    hosting = served()
    row = Owner(HERE, 4, unreplayed_logs=(OwnershipPeriod(HERE, 3),))
    assert hosting.on_open_region(2, row, 1) == (Recover(2, 4, row.unreplayed_logs),)
    hosting.on_close_region(2, 4, 1)
    assert hosting.on_not_recovered(2, 4) == (ReportClosed(2, 4, has_unreplayed_log=True),)


def test_a_leader_that_was_replaced_is_refused_by_all() -> None:
    hosting = served()
    assert hosting.on_open_region(2, Owner(HERE, 5), 2)[-1] == ReportOpened(2, 5)
    assert hosting.on_close_region(1, 8, 1) == (Refuse(1, 8, Why.OLD_LEADER),)
    assert hosting.on_open_region(3, Owner(HERE, 5), 1) == (Refuse(3, 5, Why.OLD_LEADER),)
    assert hosting.on_renumber_region(1, Owner(HERE, 9, unreplayed_logs=(OwnershipPeriod(HERE, 8),)), 1) == (
        Refuse(1, 9, Why.OLD_LEADER),
    )
    assert hosting.serving() == {1: 8, 2: 5}


def test_a_server_that_stops_gives_up_what_it_is_told() -> None:
    hosting = served()
    hosting.stop()
    assert hosting.on_open_region(2, Owner(HERE, 5), 1) == (Refuse(2, 5, Why.STOPPING),)
    assert not hosting.find(2).is_assigned
    assert hosting.on_close_region(2, 5, 1) == (ReportClosed(2, 5, has_unreplayed_log=False),)


def test_regions_that_a_split_made_are_owned_and_the_parent_is_forgotten() -> None:
    hosting = served()
    hosting.made(2, 1)
    hosting.forget_region(1)
    assert hosting.serving() == {2: 1}
    assert not hosting.owns(1)
    hosting.check_invariants()


def test_a_region_that_is_doubted_is_opened_before_its_server_says_so() -> None:
    hosting = HostingState(None)
    assert hosting.on_open_region(1, Owner(HERE, 5), 1, is_doubted=True) == (Recover(1, 5, ()),)
    assert hosting.on_not_recovered(1, 5) == (ReportFailed(1, 5),)
    assert hosting.on_open_region(1, Owner(HERE, 6), 1)[-1] == ReportOpened(1, 6), "the doubt was about one opening"


def test_a_new_leader_learns_what_is_served_left_and_closed_and_is_the_only_one_from_then_on() -> None:
    hosting = served()
    hosting.on_open_region(2, Owner(HERE, 3), 1)
    assert hosting.on_close_region(2, 3, 1) == (Leave(2, 3),)
    assert hosting.on_close_region(3, 6, 1) == (ReportClosed(3, 6, has_unreplayed_log=False),)
    hosting.on_open_region(4, Owner(HERE, 5, unreplayed_logs=(OwnershipPeriod(OTHER, 4),)), 1)  # it is recovering
    assert hosting.holdings(2) == Holdings(((1, 8),), ((2, 3),), ((3, 6, False),))
    assert hosting.on_close_region(1, 8, 1) == (Refuse(1, 8, Why.OLD_LEADER),)
    assert hosting.holdings(1) is None
    hosting.on_closed(2, 3, has_unreplayed_log=True)
    hosting.on_recovered(4, 5)
    assert hosting.holdings(3) == Holdings(((1, 8), (4, 5)), (), ((2, 3, True), (3, 6, False)))
