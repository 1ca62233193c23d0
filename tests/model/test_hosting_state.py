"""The life of regions in any order of events, with a shell that only carries out instructions."""

from __future__ import annotations

import random

import pytest

from columnar.regions.life.hosting_state import HostingState
from columnar.regions.life.region_state import HAS_STORE, REFUSING, SERVING, WAITING, Do, Event, OutOfPlace, State
from tests.support.seeds import seed

REGIONS = 4
STEPS = 1_000
OFTEN = [
    event for event in Event if event is not Event.GIVEN_UP
]  # it ends a region's life here until it is named again


class Shell:
    """The state of one region at a server after its instructions."""

    def __init__(self) -> None:
        self.is_store_open = False
        self.is_closing_aside = False
        self.do_requests_wait = False
        self.are_refused = False
        self.are_writes_held = False

    def carry_out(self, do: Do) -> None:
        if do is Do.OPEN_STORE:
            assert not self.is_store_open, "I3"
            assert not self.is_closing_aside, "I3"
            self.is_store_open = True
        elif do in (Do.CLOSE, Do.CLOSE_ASIDE):
            assert self.is_store_open, "I3"
            self.is_store_open, self.are_writes_held = False, False
            self.is_closing_aside = do is Do.CLOSE_ASIDE
        elif do is Do.PAUSE_REQUESTS:
            assert not self.do_requests_wait, "I4"
            self.do_requests_wait = True
        elif do in (Do.RELEASE, Do.REFUSE):
            assert self.do_requests_wait, "I4"
            self.do_requests_wait, self.are_refused = False, do is Do.REFUSE
        elif do is Do.PAUSE_WRITES:
            assert not self.are_writes_held
            self.are_writes_held = True
        elif do is Do.LET_WRITES:
            assert self.are_writes_held
            self.are_writes_held = False

    def heard(self, event: Event) -> None:
        if event is Event.NOT_OPENED:
            self.is_store_open = False
        elif event is Event.STORE_CLOSED:
            self.is_closing_aside = False
        elif event is Event.SETTLED:
            self.are_refused = False

    def check(self, state: State) -> None:
        assert self.is_store_open == (state in HAS_STORE or state is State.OPENING), state
        assert self.is_closing_aside == (state is State.BROKEN), state
        assert self.do_requests_wait == (state in WAITING), state
        assert self.are_refused == (state is State.BLOCKED), state
        assert self.are_writes_held == (state is State.CLOSING), state
        assert (state in SERVING) + (state in WAITING) + (state in REFUSING) == (state is not State.NONE)


def is_possible(state: State, event: Event) -> bool:
    """Return whether the shell could report the event: a store closes only after an instruction."""
    return event is not Event.STORE_CLOSED or state is State.BROKEN


def test_any_order_of_events_keeps_the_invariants() -> None:
    seen = {state for number in range(20) for state in walked(random.Random(seed(1_000) + number))}
    assert seen == set(State), "the sequences do not reach every state"


def walked(rng: random.Random) -> set[State]:
    """Return the states after a random sequence of events; every invariant is checked after each event."""
    hosting, shells = HostingState(1), [Shell() for _ in range(REGIONS)]
    given_up, owned, seen = [0] * REGIONS, [1] * REGIONS, set()
    for _ in range(STEPS):
        region_id = rng.randrange(REGIONS)
        shell, before = shells[region_id], hosting.state(region_id)
        doing: tuple[Do, ...] = ()
        if rng.random() < 0.1:
            epoch = owned[region_id] + rng.randrange(-1, 3)
            is_taken = hosting.own(region_id, epoch)
            assert is_taken == (epoch > given_up[region_id] and epoch >= owned[region_id]), "I2"
            owned[region_id] = epoch if is_taken else owned[region_id]
        else:
            event = rng.choice(OFTEN) if rng.random() < 0.97 else Event.GIVEN_UP
            if not is_possible(before, event):
                continue
            try:
                doing = hosting.apply_event(region_id, event)
            except OutOfPlace:
                assert hosting.state(region_id) is before, "refused, so nothing changed"
                continue
            if event is Event.GIVEN_UP:
                given_up[region_id] = owned[region_id]
            if hosting.state(region_id) is not before:
                shell.heard(event)
            for do in doing:
                shell.carry_out(do)
        if Do.OPEN_STORE in doing:
            assert owned[region_id] > given_up[region_id], "I2"
        hosting.check_invariants()
        seen.add(hosting.state(region_id))
        for number, one in enumerate(shells):
            one.check(hosting.state(number))
    return seen


def after(*events: Event) -> tuple[HostingState, tuple[Do, ...]]:
    hosting = HostingState(7)
    doing: tuple[Do, ...] = ()
    for event in events:
        doing = hosting.apply_event(1, event)
    return hosting, doing


OPEN = (Event.WANTED, Event.OPENED)
HOLDING = (*OPEN, Event.REPLACEMENT_BEGINS, Event.PAUSE_BEGINS)


def test_a_region_that_is_given_up_is_refused_at_that_epoch_for_ever() -> None:
    hosting, _ = after(*OPEN, Event.LEAVES, Event.QUIET, Event.GIVEN_UP)
    assert hosting.state(1) is State.CLOSED
    with pytest.raises(OutOfPlace):
        hosting.apply_event(1, Event.WANTED)
    assert not hosting.own(1, 7)
    assert not hosting.own(1, 6)
    assert hosting.own(1, 8)
    assert Do.OPEN_STORE in hosting.apply_event(1, Event.WANTED)
    assert not hosting.own(1, 7), "it is remembered while it is owned at a later one"


def test_a_region_whose_disk_fails_in_the_pause_is_not_opened_before_the_pause_is_over() -> None:
    """The catalogue may name its successors already, so later writes to the region would be lost."""
    hosting, doing = after(*HOLDING, Event.FSYNC_FAILED)
    assert doing == (Do.CLOSE,)
    with pytest.raises(OutOfPlace):
        hosting.apply_event(1, Event.WANTED)
    hosting.apply_event(1, Event.COMMITTED)
    assert hosting.state(1) in WAITING
    assert hosting.apply_event(1, Event.SUCCEEDED) == (Do.RELEASE,), "it is closed already"


def test_a_region_of_unknown_outcome_opens_when_it_is_settled_and_not_before() -> None:
    hosting, doing = after(*HOLDING, Event.UNSURE)
    assert doing == (Do.REFUSE, Do.CLOSE)
    for event in (Event.WANTED, Event.COMMITTED, Event.EVICTED, Event.LET_IN):
        with pytest.raises(OutOfPlace):
            hosting.apply_event(1, event)
    hosting.apply_event(1, Event.SETTLED)
    assert Do.OPEN_STORE in hosting.apply_event(1, Event.WANTED)


def test_one_that_is_copied_for_a_split_is_not_closed_for_being_little_used() -> None:
    hosting, _ = after(*OPEN, Event.REPLACEMENT_BEGINS)
    with pytest.raises(OutOfPlace):
        hosting.apply_event(1, Event.EVICTED)
    with pytest.raises(OutOfPlace):
        hosting.apply_event(1, Event.REPLACEMENT_BEGINS)


def test_a_server_that_stops_opens_nothing_more() -> None:
    hosting, _ = after(*OPEN)
    hosting.stop()
    with pytest.raises(OutOfPlace):
        hosting.apply_event(2, Event.WANTED)
    assert hosting.apply_event(1, Event.LEAVES) == (Do.PAUSE_WRITES,)


def test_what_comes_too_late_changes_nothing() -> None:
    """These events were under way when the store failed."""
    hosting, _ = after(*OPEN, Event.REPLACEMENT_BEGINS, Event.FSYNC_FAILED)
    for event in (Event.CALLED_OFF, Event.STAYS, Event.QUIET, Event.FSYNC_FAILED):
        assert hosting.apply_event(1, event) == ()
    assert hosting.state(1) is State.BROKEN
