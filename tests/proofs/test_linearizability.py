"""The checker accepts possible histories and rejects impossible ones, like a search through every order."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.client import Append, Delete, Expect, Increment, Put
from tests.proofs.linearizability import NO_ANSWER, Event, judge
from tests.proofs.row_semantics import EMPTY, Call, Change, Changed, Read, State, step

X = b"f:x"
DONE = Changed(True)


def put(value: bytes) -> Change:
    return Change((Put(X, value),))


def cell(value: bytes) -> State:
    return ((X, value),)


def is_good(*events: Event, start: State = EMPTY) -> bool:
    return judge(events, step, [start]).is_linearizable


def test_one_after_the_other() -> None:
    assert is_good(Event(0, 1, put(b"1"), DONE), Event(2, 3, Read(), cell(b"1")))
    assert not is_good(Event(0, 1, put(b"1"), DONE), Event(2, 3, Read(), EMPTY))


def test_a_stale_read_is_found() -> None:
    writes = [Event(0, 1, put(b"1"), DONE), Event(2, 3, put(b"2"), DONE)]
    assert not is_good(*writes, Event(4, 5, Read(), cell(b"1")))
    assert is_good(*writes, Event(4, 5, Read(), cell(b"2")))


def test_a_read_under_way_with_a_write_may_see_either_but_time_does_not_go_back() -> None:
    write = Event(0, 9, put(b"1"), DONE)
    assert is_good(write, Event(1, 2, Read(), EMPTY), Event(3, 4, Read(), cell(b"1")))
    assert not is_good(write, Event(1, 2, Read(), cell(b"1")), Event(3, 4, Read(), EMPTY))


def test_a_lost_update_is_found() -> None:
    inc = Change((Increment(X),))
    assert not is_good(Event(0, 3, inc, Changed(True, (1,))), Event(1, 2, inc, Changed(True, (1,))))
    assert is_good(Event(0, 3, inc, Changed(True, (2,))), Event(1, 2, inc, Changed(True, (1,))))


def test_two_checks_cannot_both_succeed() -> None:
    take = Change((Put(X, b"mine"),), (Expect.absent(X),))
    assert not is_good(Event(0, 3, take, DONE), Event(1, 2, take, DONE))
    assert is_good(Event(0, 3, take, Changed(False)), Event(1, 2, take, DONE))
    assert not is_good(Event(0, 1, take, Changed(False)), Event(2, 3, take, DONE))


def test_half_a_row_is_found() -> None:
    both = Change((Put(b"f:x", b"1"), Put(b"g:y", b"1")))
    assert not is_good(Event(0, 3, both, DONE), Event(1, 2, Read(), ((b"f:x", b"1"),)))


def test_what_got_no_answer_may_have_happened_or_not() -> None:
    lost = Event(0, 5, put(b"1"), NO_ANSWER)
    assert is_good(lost, Event(6, 7, Read(), EMPTY))
    assert is_good(lost, Event(6, 7, Read(), cell(b"1")))
    assert is_good(lost, Event(1, 2, Read(), EMPTY), Event(3, 4, Read(), cell(b"1")))
    assert not is_good(lost, Event(1, 2, Read(), cell(b"1")), Event(6, 7, Read(), EMPTY)), "it went away again"


def test_what_got_no_answer_does_not_happen_after_its_end() -> None:
    lost = Event(0, 3, put(b"1"), NO_ANSWER)
    assert not is_good(lost, Event(4, 5, Read(), EMPTY), Event(6, 7, Read(), cell(b"1")))


def test_nor_does_it_happen_twice() -> None:
    lost = Event(0, 3, Change((Append(X, b"a"),)), NO_ANSWER)
    assert is_good(lost, Event(4, 5, Read(), cell(b"a")))
    assert not is_good(lost, Event(4, 5, Read(), cell(b"aa")))


def test_the_next_window_begins_where_this_one_may_have_ended() -> None:
    found = judge([Event(0, 1, put(b"1"), NO_ANSWER), Event(2, 3, put(b"1"), DONE)], step, [EMPTY])
    assert found.final_states == {cell(b"1")}
    both = judge([Event(0, 1, put(b"1"), NO_ANSWER)], step, [EMPTY])
    assert both.final_states == {EMPTY, cell(b"1")}
    assert judge([Event(0, 1, Read(), cell(b"1"))], step, both.final_states).is_linearizable


def test_it_says_where_it_is_stuck() -> None:
    wrong = Event(4, 5, Read(), EMPTY, "client 7")
    found = judge([Event(0, 1, put(b"1"), DONE), Event(2, 9, put(b"2"), DONE), wrong], step, [EMPTY])
    assert found.stuck_at == wrong
    assert found.states == {cell(b"1")}
    assert set(found.under_way) == {wrong, Event(2, 9, put(b"2"), DONE)}


def test_too_many_calls_at_once_are_left_undecided_and_said_to_be() -> None:
    many = [Event(n, 100 - n, Change((Increment(X, 1 << n),)), NO_ANSWER) for n in range(12)]
    found = judge(many, step, [EMPTY], most=100)
    assert not found.is_linearizable
    assert not found.is_decided


CALLS: list[Call] = [
    Read(),
    put(b"1"),
    put(b"2"),
    Change((Delete(b"f"),), way="delete"),
    Change((Put(X, b"2"),), (Expect(X, b"1"),), way="checkAndPut"),
    Change((Append(X, b"1"),), way="append"),
]


def by_trying_every_order(history: list[Event], start: State) -> bool:
    sure = [event for event in history if event.answer is not NO_ANSWER]
    unsure = [event for event in history if event.answer is NO_ANSWER]
    for chosen in range(1 << len(unsure)):
        events = sure + [event for n, event in enumerate(unsure) if chosen >> n & 1]
        if any(explains(order, start) for order in permutations(events)):
            return True
    return False


def explains(order: tuple[Event, ...], state: State) -> bool:
    for n, event in enumerate(order):
        if any(later.ended < event.began for later in order[n + 1 :]):
            return False
        answer, state = step(state, event.call)
        if event.answer is not NO_ANSWER and answer != event.answer:
            return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Return random calls in any overlap, with answers that are often those of some order, and often not."""
    count = draw(st.integers(1, 5))
    moments = draw(st.permutations(range(2 * count)))
    events, state = [], EMPTY
    for n in range(count):
        began, ended = sorted(moments[2 * n : 2 * n + 2])
        call = draw(st.sampled_from(CALLS))
        answer, state = step(state, call)
        if draw(st.integers(0, 5)) == 0:
            events.append(Event(began, ended, call, NO_ANSWER))
            continue
        if isinstance(call, Read) and draw(st.booleans()):
            answer = draw(st.sampled_from([EMPTY, cell(b"1"), cell(b"2"), cell(b"21")]))
        events.append(Event(began, ended, call, answer))
    return events


@settings(max_examples=250)
@given(histories())
def test_it_agrees_with_trying_every_order(history: list[Event]) -> None:
    assert judge(history, step, [EMPTY]).is_linearizable == by_trying_every_order(history, EMPTY)


def happened(rng: random.Random, calls: int, clients: int) -> list[Event]:
    """Return a history made by really doing one call after the other, each at a moment within its own time."""
    free_from, history, state = [0.0] * clients, [], EMPTY
    for n in range(calls):
        at, call, who = 10.0 * (n + 1), rng.choice(CALLS), rng.randrange(clients)
        began = rng.uniform(max(free_from[who], at - 60), at)
        ended = free_from[who] = at + rng.uniform(0, 9)
        answer, after = step(state, call)
        if rng.random() < 0.05:
            history.append((began, ended, call, NO_ANSWER))
            state = after if rng.random() < 0.5 else state
        else:
            history.append((began, ended, call, answer))
            state = after
    order = sorted(moment for event in history for moment in event[:2])
    rank = {moment: n for n, moment in enumerate(order)}
    return [Event(rank[began], rank[ended], call, answer) for began, ended, call, answer in history]


@pytest.mark.parametrize("seed", range(8))
def test_what_happened_passes_and_one_changed_answer_does_not(seed: int) -> None:
    rng = random.Random(seed)
    history = happened(rng, 300, 5)
    assert judge(history, step, [EMPTY]).is_linearizable
    reads = [n for n, event in enumerate(history) if isinstance(event.call, Read) and event.answer is not NO_ANSWER]
    at = rng.choice(reads)
    event = history[at]
    history[at] = Event(event.began, event.ended, event.call, cell(b"never written"))
    found = judge(history, step, [EMPTY])
    assert found.is_decided
    assert found.stuck_at == history[at]
