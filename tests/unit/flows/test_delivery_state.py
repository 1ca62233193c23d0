"""The delivery state against any sequence of events, restarts from any saved cursor among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.flows.delivery_cursor import pack_cursor, unpack_cursor
from columnar.flows.delivery_state import FIRST_PAUSE_S, LONGEST_PAUSE_S, Delivery, DeliveryState, pause_s
from columnar.regions.log.change_record import Sequence, SequenceRange

BOUND = 8
ATTEMPTS = 3


@dataclass
class World:
    """A log, one consumer of it, and everything that was observed."""

    log: list[tuple[Sequence, bytes, bool]] = field(default_factory=list)  # sequence, row, is for this trigger
    state: DeliveryState = field(default_factory=lambda: DeliveryState(None, bound=BOUND))
    now_s: float = 0.0
    in_flight: dict[Sequence, Delivery] = field(default_factory=dict)
    ended: set[Sequence] = field(default_factory=set)  # done or given up at any time
    saved: bytes = b""
    ended_when_saved: set[Sequence] = field(default_factory=set)
    numbers: count[int] = field(default_factory=lambda: count(1))

    def write(self, row: bytes, mine: bool) -> None:
        self.log.append((Sequence(1, 1, next(self.numbers)), row, mine))

    def fill(self) -> None:
        for sequence, row, mine in self.log:
            if self.state.room <= 0:
                return
            if self.state.read_to is None or sequence > self.state.read_to:
                if mine:
                    self.state.read_change(sequence, row)
                else:
                    self.state.passed(sequence)

    def take(self) -> None:
        delivery = self.state.take(self.now_s)
        if delivery is None:
            return
        assert delivery.sequence not in self.in_flight
        assert delivery.row not in {other.row for other in self.in_flight.values()}, "one at a time of each row"
        earlier = {s for s, row, mine in self.log if mine and row == delivery.row and s < delivery.sequence}
        assert earlier <= self.ended, "in the order of the row"
        self.in_flight[delivery.sequence] = delivery

    def end(self, how: str, which: int) -> None:
        if not self.in_flight:
            return
        sequence = sorted(self.in_flight)[which % len(self.in_flight)]
        delivery = self.in_flight.pop(sequence)
        if how == "lost":
            self.state.requeue_changes([sequence])
        elif how == "done":
            self.state.done(sequence)
            self.ended.add(sequence)
        elif self.state.fail_change(sequence, "why", self.now_s, ATTEMPTS):
            assert delivery.attempt == ATTEMPTS
            self.state.given_up(sequence)
            self.ended.add(sequence)

    def save(self) -> None:
        self.saved, self.ended_when_saved = pack_cursor(self.state.cursor()), set(self.ended)

    def restart(self) -> None:
        """What ended since the save may come again; what had ended by then may not."""
        self.in_flight.clear()
        self.ended = set(self.ended_when_saved)
        if not self.saved:
            self.state = DeliveryState(None, bound=BOUND)
            return
        cursor = unpack_cursor(self.saved)
        self.state = DeliveryState(cursor.read_to, bound=BOUND)
        rows = {sequence: row for sequence, row, _ in self.log}
        for sequence, attempts in cursor.open:
            self.state.read_change(sequence, rows[sequence], attempts)
        assert not {sequence for sequence, _ in cursor.open} & self.ended_when_saved

    def drain(self) -> None:
        while self.in_flight:
            self.end("done", 0)
        while self.ended < {sequence for sequence, _, mine in self.log if mine}:
            before = len(self.ended)
            self.fill()
            self.now_s += LONGEST_PAUSE_S + 1
            self.take()
            self.end("done", 0)
            assert len(self.ended) > before, "it goes on for ever"


EVENTS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("fill")),
    st.tuples(st.just("take")),
    st.tuples(st.just("take")),
    st.tuples(st.just("end"), st.sampled_from(["done", "failed", "lost"]), st.integers(0, 7)),
    st.tuples(st.just("pass"), st.sampled_from([0.05, 0.2, 1.0])),
    st.tuples(st.just("save")),
    st.tuples(st.just("restart")),
)


@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=80))
def test_any_events_keep_the_invariants_and_end_with_all_delivered(events: list[tuple[object, ...]]) -> None:
    world = World()
    for event in events:
        match event:
            case ["write", int(row), bool(mine)]:
                world.write(b"row-%d" % row, mine)
            case ["end", str(how), int(which)]:
                world.end(how, which)
            case ["pass", float(seconds)]:
                world.now_s += seconds
            case [str(name)]:
                getattr(world, name)()
        world.state.check_invariants()
        assert world.state.open_count <= BOUND
    world.drain()
    world.state.check_invariants()
    assert world.state.open_count == 0
    if world.log:
        world.fill()
        assert world.state.is_delivered_up_to(world.log[-1][0])
        assert all(world.state.is_delivered(SequenceRange(sequence, sequence)) for sequence, _, _ in world.log)


def test_a_parked_row_does_not_stop_its_neighbours() -> None:
    state = DeliveryState(None)
    for n in range(1, 5):
        state.read_change(Sequence(1, 1, n), b"bad" if n % 2 else b"good")
    bad, good = state.take(0.0), state.take(0.0)
    assert bad is not None
    assert good is not None
    assert not state.fail_change(bad.sequence, "why", 0.0, 2)
    state.done(good.sequence)
    assert state.take(0.05) == Delivery(Sequence(1, 1, 4), b"good", 1)
    assert state.take(0.05) is None
    assert state.next_due_s() == FIRST_PAUSE_S
    assert state.take(FIRST_PAUSE_S) == Delivery(bad.sequence, b"bad", 2)
    assert not state.is_delivered_up_to(good.sequence)
    assert state.is_delivered(SequenceRange(good.sequence, good.sequence))
    assert state.fail_change(bad.sequence, "why", 1.0, 2)
    assert state.take(100.0) is None, "until it is in the dead letters"
    state.given_up(bad.sequence)
    assert state.take(100.0) == Delivery(Sequence(1, 1, 3), b"bad", 1)


def test_pauses_grow_to_a_minute() -> None:
    pauses = [pause_s(attempts) for attempts in range(1, 2_000)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert all(earlier <= later for earlier, later in pairwise(pauses))
    assert pauses[-1] == LONGEST_PAUSE_S
