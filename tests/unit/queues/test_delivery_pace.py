"""The pace of a served queue, in simulated time: rate, deliveries side by side, pauses of targets, failures."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from columnar.model.message_delivery import DONE, RETURNED, End, How
from columnar.queues.delivery_pace import (
    CULPRITS,
    KEPT,
    LONGEST_OBSTACLE_PAUSE_S,
    LONGEST_PAUSE_S,
    PAUSES_ASIDE,
    DeliveryPace,
    Settlement,
)
from columnar.queues.lease_ends import COMMIT, PUT_OFF, ROLL_BACK

FAILED = End(How.FAILED, why="Traceback ...\n  File x\nValueError: no such file\n")
DOWN = End(How.BLOCKED, why="its target cannot be reached")


def busy(seconds: float) -> End:
    return End(How.BLOCKED, seconds, "asked for a pause", is_requested=True)


def test_as_many_begin_as_may_run_side_by_side() -> None:
    pace = DeliveryPace(3, None, 0.0)
    assert pace.room(0.0) == 3
    pace.begin_messages(3)
    assert (pace.room(0.0), pace.due_s(0.0)) == (0, None), "only an end makes room"
    assert pace.end_message(DONE, 1, 1, 1.0) == Settlement(COMMIT)
    assert pace.room(1.0) == 1


def test_a_rate_spreads_the_beginnings() -> None:
    pace, begun, now_s = DeliveryPace(64, 10.0, 0.0), 0, 0.0
    while now_s < 10.0:
        room = pace.room(now_s)
        pace.begin_messages(room)
        begun += room
        for _ in range(room):
            pace.end_message(DONE, 1, 1, now_s)
        due_s = pace.due_s(now_s)
        assert due_s is not None, "the rate alone makes room"
        assert due_s > now_s
        now_s = due_s
    assert 98 <= begun <= 102


def test_a_message_that_fails_waits_longer_with_each_attempt_and_delays_no_other() -> None:
    pace = DeliveryPace(8, None, 0.0)
    delays = []
    for attempt in range(1, 12):
        pace.begin_messages(1)
        settled = pace.end_message(FAILED, 1, attempt, 0.0)
        assert (settled.what, settled.error) == (ROLL_BACK, b"ValueError: no such file")
        delays.append(settled.delay_ms)
        assert pace.room(0.0) == 8
    assert delays == [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000]


def test_later_and_returned_count_no_attempt() -> None:
    pace = DeliveryPace(8, None, 0.0)
    pace.begin_messages(2)
    assert pace.end_message(End(How.LATER, 30.0), 1, 1, 0.0) == Settlement(PUT_OFF, 30_000)
    assert pace.end_message(RETURNED, 1, 1, 0.0) == Settlement(PUT_OFF, 0)
    assert pace.room(0.0) == 8


def test_a_pause_that_the_target_asks_for_stops_the_queue_and_then_one_message_tries() -> None:
    pace = DeliveryPace(4, None, 0.0)
    pace.begin_messages(4)
    assert pace.end_message(busy(7.0), 1, 1, 10.0) == Settlement(KEPT), "it is the one message"
    assert pace.end_message(busy(2.0), 2, 1, 10.0) == Settlement(PUT_OFF, 7_000, b"asked for a pause")
    pace.end_message(DONE, 3, 1, 11.0)
    assert (pace.room(16.9), pace.due_s(16.9)) == (0, 17.0)
    pace.end_message(DONE, 4, 1, 12.0)
    assert (pace.kept_goes_first, pace.take_kept_end()) == (True, None), (
        "nothing is proved by what was under way before"
    )
    widths = []
    now_s = 17.0
    for _ in range(4):
        room = pace.room(now_s)
        widths.append(room)
        pace.begin_messages(room)
        for _ in range(room):
            pace.end_message(DONE, 1, 1, now_s)
    assert widths == [3, 4, 4, 4], "two went well meanwhile, and each lets one more go"


def test_a_target_that_is_down_is_tried_after_growing_pauses_by_one_message() -> None:
    pace, now_s, pauses = DeliveryPace(8, None, 0.0), 0.0, []
    pace.begin_messages(8)
    for _ in range(8):
        assert pace.end_message(DOWN, 1, 1, now_s).what == PUT_OFF
    for _ in range(12):
        due_s = pace.due_s(now_s)
        assert due_s is not None
        pauses.append(round(due_s - now_s, 3))
        now_s = due_s
        assert pace.room(now_s) == 1
        pace.begin_messages(1)
        pace.end_message(DOWN, 1, 1, now_s)
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8], "those that were under way together make one pause"
    assert pauses[-1] == LONGEST_OBSTACLE_PAUSE_S
    assert pace.why == "its target cannot be reached"
    now_s += LONGEST_OBSTACLE_PAUSE_S
    pace.begin_messages(1)
    pace.end_message(FAILED, 1, 1, now_s)
    assert pace.why == "", "a target that answers is there again"


def test_a_pause_has_a_bound() -> None:
    pace = DeliveryPace(8, None, 0.0)
    pace.begin_messages(1)
    pace.end_message(busy(1e9), 1, 1, 0.0)
    assert pace.due_s(0.0) == LONGEST_PAUSE_S


# --- a message at which the target always asks for a pause -------------------------------------------

BUSY_S = 10.0


class Served:
    """A queue in simulated time: its messages are ready at times, and the oldest ready one of a group goes first."""

    def __init__(self, attempts_allowed: int = 3, side_by_side: int = 8, groups: int = 1) -> None:
        self.pace = DeliveryPace(side_by_side, None, 0.0)
        self.now_s = 0.0
        self.ready_s: dict[int, float] = {}
        self.attempts: dict[int, int] = {}
        self.done: dict[int, float] = {}  # when
        self.dead: dict[int, float] = {}
        self.kept: int | None = None
        self._attempts_allowed = attempts_allowed
        self._groups = groups  # which take turns
        self._turn = 0

    def push(self, *numbers: int) -> None:
        for n in numbers:
            self.ready_s[n], self.attempts[n] = self.now_s, 0

    def run(self, seconds: float, answer: Callable[[int, float], End]) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            ready = [n for n, ready_s in self.ready_s.items() if ready_s <= self.now_s and n != self.kept]
            room = self.pace.room(self.now_s)
            begun = [] if self.kept is not None and self.pace.kept_goes_first else self._first(ready, room)
            if room and not begun and self.kept is not None:
                begun = [self.kept]
            if self.kept in begun:
                self.kept = None
            self.pace.begin_messages(len(begun))
            self.now_s += 0.05
            for n in begun:
                self._end(n, answer(n, self.now_s))

    def _first(self, ready: list[int], room: int) -> list[int]:
        found: list[int] = []
        while ready and len(found) < room:
            self._turn += 1
            one = min(ready, key=lambda n: ((n - self._turn) % self._groups, n))
            ready.remove(one)
            found.append(one)
        return found

    def _end(self, n: int, end: End) -> None:
        settled = self.pace.end_message(end, n, self.attempts[n] + 1, self.now_s)
        kept_end = self.pace.take_kept_end()
        if kept_end is not None:
            assert self.kept is not None
            self._settle(self.kept, kept_end)
            self.kept = None
        if settled.what == KEPT:
            assert self.kept is None, "one message"
            self.kept = n
        else:
            self._settle(n, settled)

    def _settle(self, n: int, settled: Settlement) -> None:
        self.attempts[n] += settled.what == ROLL_BACK
        self.ready_s[n] = self.now_s + settled.delay_ms / 1_000
        ended = self.done if settled.what == COMMIT else self.dead
        if settled.what == COMMIT or self.attempts[n] >= self._attempts_allowed:
            ended[n] = self.now_s
            del self.ready_s[n]


def busy_at(*poison: int) -> Callable[[int, float], End]:
    return lambda n, _now_s: busy(BUSY_S) if n in poison else DONE


@pytest.mark.parametrize("groups", [1, 5])
@pytest.mark.parametrize("side_by_side", [1, 8])
@pytest.mark.parametrize("poison", [(0,), (4,), (0, 1), (0, 5, 9)])
def test_messages_at_which_the_target_always_asks_for_a_pause_die_and_others_go_on(
    poison: tuple[int, ...], side_by_side: int, groups: int
) -> None:
    queue, answer, n = Served(side_by_side=side_by_side, groups=groups), busy_at(*poison), 20
    queue.push(*range(n))
    while len(queue.dead) < len(poison):
        assert queue.now_s < 40 * BUSY_S * len(poison), "its pauses are few"
        queue.run(1.0, answer)
        queue.push(n)
        n += 1
    queue.run(BUSY_S, answer)
    assert set(queue.dead) == set(poison)
    assert set(queue.done) == set(range(n)) - set(poison)
    assert all(queue.attempts[one] == 0 for one in queue.done), "nobody else lost an attempt"
    assert queue.pace.why == ""


def test_a_message_that_has_failed_so_stops_its_queue_no_more() -> None:
    queue = Served(attempts_allowed=1_000)  # it never dies
    queue.push(*range(20))
    queue.run(20 * BUSY_S, busy_at(0))
    assert queue.attempts[0] >= 1
    for n in range(100, 160):
        queue.push(n)
        queue.run(1.0, busy_at(0))
        assert n in queue.done, "at once"
    assert queue.attempts[0] >= 2


@pytest.mark.parametrize("side_by_side", [1, 8])
def test_a_target_that_asks_everybody_for_pauses_costs_no_attempt(side_by_side: int) -> None:
    queue = Served(attempts_allowed=1, side_by_side=side_by_side)
    tries: list[float] = []

    def down(_n: int, now_s: float) -> End:
        tries.append(now_s)
        return busy(BUSY_S)

    queue.push(*range(30))
    queue.run(100 * BUSY_S, down)
    assert len(tries) <= 100 + side_by_side, "the whole queue paused"
    assert not any(queue.attempts.values())
    queue.run((PAUSES_ASIDE + 1) * BUSY_S, busy_at())
    assert set(queue.done) == set(range(30)), "all go on soon after it is there again"
    assert not any(queue.attempts.values())


def test_a_target_that_is_down_costs_a_message_that_has_failed_so_no_more_attempts() -> None:
    queue = Served(attempts_allowed=1_000)
    queue.push(*range(20))
    queue.run(20 * BUSY_S, busy_at(0))
    before = queue.attempts[0]
    assert before >= 1
    queue.push(30, 31)
    queue.run(200 * BUSY_S, lambda _n, _now_s: busy(BUSY_S))
    assert queue.attempts[0] <= before + 1, "others were done before the target went down"
    assert (queue.attempts[30], queue.attempts[31]) == (0, 0)


def test_a_target_that_cannot_be_reached_costs_no_attempt_even_if_others_are_done_between() -> None:
    queue = Served(attempts_allowed=1)
    for n in range(1, 50):
        queue.push(0, n)
        queue.run(40.0, lambda n, _now_s: DOWN if n == 0 else DONE)
    assert not any(queue.attempts.values())


def test_the_only_message_that_waits_costs_no_attempt_until_others_are_done() -> None:
    queue = Served(attempts_allowed=1)
    queue.push(0)
    tries: list[float] = []

    def noted(n: int, now_s: float) -> End:
        tries.append(now_s)
        return busy_at(0)(n, now_s)

    queue.run(1_000.0, noted)
    assert queue.attempts[0] == 0
    assert all(BUSY_S <= after - before < BUSY_S + 0.2 for before, after in pairwise(tries)), "it is tried as asked"
    for n in range(1, 100):
        queue.push(n)
        queue.run(2.0, noted)
    assert 0 in queue.dead
    assert len(queue.done) == 99


@pytest.mark.parametrize("groups", [1, 7, 100])
@pytest.mark.parametrize("most", [1, 5])
@pytest.mark.parametrize("side_by_side", [1, 8, 64])
def test_a_limit_of_the_target_costs_no_attempt(side_by_side: int, most: int, groups: int) -> None:
    """The target takes so many messages a second, and asks for a pause of a second beyond it."""
    queue, taken = Served(attempts_allowed=1, side_by_side=side_by_side, groups=groups), []  # type: Served, list[float]

    def limited(_n: int, now_s: float) -> End:
        if sum(1 for one_s in taken if one_s > now_s - 1.0) >= most:
            return busy(1.0)
        taken.append(now_s)
        return DONE

    queue.push(*range(300))
    queue.run(700.0, limited)
    assert len(queue.done) == 300
    assert not any(queue.attempts.values())


def test_the_culprits_have_a_bound() -> None:
    queue = Served(attempts_allowed=1, side_by_side=1)
    for n in range(0, 6 * CULPRITS, 2):
        queue.push(n, n + 1)
        queue.run(10 * BUSY_S, lambda n, _now_s: DONE if n % 2 else busy(BUSY_S))
    assert len(queue.dead) > CULPRITS
    assert len(queue.pace._culprits._culprits) == CULPRITS


@pytest.mark.parametrize("seed", range(200))
def test_whatever_happens_the_bounds_hold(seed: int) -> None:
    rng = random.Random(seed)
    most, rate = rng.choice((1, 3, 64)), rng.choice((None, 0.5, 20.0, 5_000.0))
    pace, now_s, begun = DeliveryPace(most, rate, 0.0), 0.0, []  # type: DeliveryPace, float, list[float]
    paused_to_s = 0.0
    for _ in range(400):
        pace.check_invariants()
        room, due_s = pace.room(now_s), pace.due_s(now_s)
        if room:
            assert now_s >= paused_to_s, "I3"
            assert due_s == now_s
            taken = rng.randint(0, room)
            begun += [now_s] * taken
            pace.begin_messages(taken)
        elif due_s is not None:
            assert due_s >= now_s
            if rng.random() < 0.5:
                now_s = due_s
                assert pace.room(now_s) > 0, "a wait until the time that was named is not in vain"
        if pace.running and rng.random() < 0.7:
            end = rng.choice((DONE, DONE, FAILED, DOWN, busy(rng.choice((0.1, 5.0))), RETURNED, End(How.LATER, 1.0)))
            n = rng.randrange(4)
            is_culprit = end.is_requested and pace._culprits.has(n) and now_s >= paused_to_s
            settled = pace.end_message(end, n, rng.randint(1, 30), now_s)
            kept_end = pace.take_kept_end()
            if end.how is How.BLOCKED and not is_culprit:
                paused_to_s = max(paused_to_s, now_s + end.seconds)
                for one in (settled, kept_end):
                    assert one is None or one.what == KEPT or now_s + one.delay_ms / 1_000 >= paused_to_s - 0.001
        now_s += rng.choice((0.0, 0.0, 0.01, 1.0))
    if rate is not None:
        for at, first_s in enumerate(begun):
            within = sum(1 for one_s in begun[at:] if one_s - first_s <= 1.0)
            assert within <= rate + 3, "I2"
