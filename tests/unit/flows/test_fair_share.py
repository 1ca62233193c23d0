"""Turns of triggers, one rule at a time; loads and random events: ``tests/model/test_fair_share_model.py``."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument
from columnar.flows.fair_share import FairShare
from columnar.flows.scheduled_trigger import QUICK_S, ScheduledSlice, Terms
from columnar.model.trigger_registration import rate_per_s

LONG_AGO_S = -1_000_000.0


def shared(places: int = 64, **terms: Terms) -> FairShare:
    """Triggers with a change each, which have run in slices of eight milliseconds."""
    fair = FairShare(places)
    for name in terms:
        fair.allow(name, Terms(), LONG_AGO_S)
        fair.ready(name, "r1")
        measured(fair, name, 0.008)
        fair.resting(name, "r1")
    for name, held in terms.items():
        fair.allow(name, held, 0.0)
        fair.ready(name, "r1")
    return fair


def taken(fair: FairShare, most: int = 1_000, now_s: float = 0.0) -> list[ScheduledSlice]:
    found = []
    while len(found) < most and (turn := fair.take_slice(now_s)) is not None:
        found.append(turn)
        fair.check_invariants()
    return found


def names(turns: list[ScheduledSlice]) -> str:
    return "".join(turn.trigger for turn in turns)


def measured(fair: FairShare, trigger: str, used_s: float) -> None:
    """Let the trigger run one call, alone."""
    turn = fair.take_slice(0.0)
    assert turn is not None
    assert turn.trigger == trigger
    fair.ended(trigger, used_s)


def test_triggers_take_turns() -> None:
    assert names(taken(shared(6, a=Terms(), b=Terms(), c=Terms()))) == "abcabc"


def test_a_share_of_twenty_gets_twice_the_turns_of_a_share_of_ten() -> None:
    assert sorted(names(taken(shared(6, a=Terms(share=10), b=Terms(share=20))))) == list("aabbbb")


def test_no_more_calls_of_a_trigger_than_its_side_by_side() -> None:
    fair = shared(64, a=Terms(side_by_side=3))
    assert len(taken(fair)) == 3
    fair.ended("a", 0.008)
    assert len(taken(fair)) == 1


def test_no_more_slices_than_places() -> None:
    fair = shared(4, a=Terms(), b=Terms())
    assert len(taken(fair)) == 4 == fair.running_count
    fair.ended("a", 0.001)
    assert len(taken(fair)) == 1


def test_regions_of_a_trigger_take_turns() -> None:
    fair = shared(64, a=Terms())
    fair.ready("a", "r2")
    fair.ready("a", "r3")
    assert [turn.key for turn in taken(fair, 5)] == ["r1", "r2", "r3", "r1", "r2"]
    fair.resting("a", "r3")
    assert [turn.key for turn in taken(fair, 3)] == ["r1", "r2", "r1"]


def test_a_paused_call_frees_its_place_and_still_counts_as_begun() -> None:
    fair = shared(1, a=Terms(side_by_side=2))
    taken(fair)
    fair.paused("a", 0.02)
    assert (fair.running_count, fair.begun_count("a")) == (0, 1)
    taken(fair)
    fair.paused("a", 0.02)
    assert taken(fair) == [], "two calls are begun"
    fair.continue_call("a", "call 1")
    assert taken(fair) == [ScheduledSlice("a", "call 1", False)]
    fair.ended("a", QUICK_S / 2)
    assert taken(fair) == [ScheduledSlice("a", "r1", True)]


def test_calls_that_go_on_and_new_ones_take_turns() -> None:
    fair = shared(1, a=Terms())
    seen = []
    for _ in range(3):
        taken(fair)
        fair.paused("a", 0.001)
    fair.continue_call("a", 1)
    fair.continue_call("a", 2)
    for _ in range(4):
        seen += [turn.begins for turn in taken(fair)]
        fair.ended("a", 0.001)
    assert seen == [False, True, False, True], "the last one because no call goes on"


def test_a_dropped_call_is_not_taken_and_makes_room() -> None:
    fair = shared(1, a=Terms(side_by_side=1))
    taken(fair)
    fair.paused("a", 0.001)
    fair.continue_call("a", "call")
    fair.dropped("a", "call")
    fair.check_invariants()
    assert taken(fair) == [ScheduledSlice("a", "r1", True)]


def test_a_trigger_pays_nothing_for_waiting_for_the_interpreter() -> None:
    """I8: beside a trigger that fails at once, again and again, another's slices last long and compute little."""
    fair = shared(64, failing=Terms(side_by_side=1), mine=Terms(side_by_side=1))
    for name in ("failing", "mine"):
        fair.resting(name, "r1")
    fair.ready("failing", "r1")
    taken(fair)
    fair.ended("failing", 0.0002, 0.0002)
    fair.ready("mine", "r1")
    computed_s = {"failing": 0.0, "mine": 0.0}
    for _ in range(1_000):
        for turn in taken(fair):
            used_s, cpu_s = (0.0002, 0.0002) if turn.trigger == "failing" else (0.03, 0.0002)
            computed_s[turn.trigger] += cpu_s
            fair.ended(turn.trigger, used_s, cpu_s)
            if computed_s["failing"] + computed_s["mine"] >= 0.1:
                break
    assert computed_s["mine"] >= 0.3 * computed_s["failing"]


def test_a_trigger_saves_up_nothing_while_it_is_idle() -> None:
    fair = shared(1, a=Terms(), b=Terms())
    fair.resting("b", "r1")
    for _ in range(1_000):
        taken(fair)
        fair.ended("a", 0.01)
    fair.ready("b", "r1")
    seen = ""
    for _ in range(20):
        (turn,) = taken(fair)
        seen += turn.trigger
        fair.ended(turn.trigger, 0.01)
    assert 9 <= seen.count("b") <= 11


def test_a_trigger_saves_up_nothing_while_its_rate_holds_it() -> None:
    fair = shared(1, a=Terms(), b=Terms(rate_per_s=0.1))
    for step in range(1_000):
        turns = taken(fair, now_s=step * 0.01)
        fair.ended(turns[0].trigger, 0.01)
    fair.allow("b", Terms(), 10.0)
    fair.allow("b", Terms(), 10.0)
    seen = ""
    for _ in range(20):
        (turn,) = taken(fair, now_s=10.0)
        seen += turn.trigger
        fair.ended(turn.trigger, 0.01)
    assert 9 <= seen.count("b") <= 11


def test_a_guess_that_was_too_high_is_no_credit() -> None:
    fair = shared(8, a=Terms(side_by_side=4), b=Terms())
    for _ in range(8):  # b has run in calls of 3 s, alone
        fair.resting("a", "r1")
        measured(fair, "b", 3.0)
    fair.ready("a", "r1")
    fair.resting("a", "r1")
    taken(fair, 4)
    for _ in range(4):
        fair.ended("b", 0.0)
    fair.ready("a", "r1")
    assert names(taken(fair, 2)).count("b") <= 1


def test_a_long_call_is_charged_when_it_is_over() -> None:
    fair = shared(1, a=Terms(), b=Terms())
    measured(fair, "a", 0.1)
    for _ in range(10):
        measured(fair, "b", 0.01)
    assert names(taken(fair)) == "a"


def test_slow_triggers_leave_an_eighth_of_the_places_to_quick_ones() -> None:
    slow = {name: Terms(side_by_side=16) for name in "abcd"}
    fair = FairShare(16)
    for name, terms in slow.items():
        fair.allow(name, terms, 0.0)
        fair.ready(name, "r1")
        measured(fair, name, 3.0)
        fair.resting(name, "r1")
    for name in slow:
        fair.ready(name, "r1")
    assert len(taken(fair)) == 14
    fair.allow("q", Terms(), 0.0)
    fair.ready("q", "r1")
    fair.allow("n", Terms(), 0.0)
    fair.ready("n", "r1")
    assert names(taken(fair)) == "q", "half of it is for triggers that are known to be quick"
    fair.ended("q", QUICK_S / 2)
    assert sorted(names(taken(fair))) == ["n", "q"]
    fair.ended("n", 9.0)
    assert names(taken(fair)) == "q", "n is slow"


def test_slow_and_new_triggers_have_their_turns_beside_quick_ones_that_never_rest() -> None:
    fair = shared(16, a=Terms(side_by_side=64), b=Terms())
    taken(fair)
    for _ in range(8):  # of b, which is slow then
        fair.ended("b", 3.0)
    for _ in range(10_000):
        taken(fair)
        fair.ended("a", QUICK_S / 2)
    fair.allow("n", Terms(), 0.0)
    fair.ready("n", "r1")
    for _ in range(30):
        taken(fair)
        fair.ended("a", QUICK_S / 2)
    assert fair.begun_count("b") > 0
    assert fair.begun_count("n") == 1


def test_a_trigger_that_was_never_measured_runs_one_slice() -> None:
    fair = FairShare(64)
    fair.allow("a", Terms(), 0.0)
    fair.ready("a", "r1")
    assert len(taken(fair)) == 1
    assert fair.next_due_s() == QUICK_S
    assert taken(fair, now_s=QUICK_S / 2) == []
    assert len(taken(fair, now_s=QUICK_S)) == 7, "it is slow, and has its side_by_side"
    assert fair.next_due_s() is None
    fair.allow("b", Terms(), 0.0)
    fair.ready("b", "r1")
    assert len(taken(fair)) == 1
    fair.ended("b", 0.001)
    assert fair.next_due_s() is None
    assert len(taken(fair)) == 8


def test_a_few_places_are_not_reserved() -> None:
    fair = shared(2, a=Terms())
    measured(fair, "a", 3.0)
    assert len(taken(fair)) == 2


def test_a_rate_holds_calls_back_and_says_when_the_next_may_begin() -> None:
    fair = shared(64, a=Terms(rate_per_s=10.0), b=Terms(side_by_side=1))
    assert names(taken(fair)) == "ab"
    assert fair.next_due_s() == pytest.approx(0.1)
    assert taken(fair, now_s=0.09) == []
    assert names(taken(fair, now_s=0.1)) == "a"
    assert fair.next_due_s() == pytest.approx(0.2)
    assert names(taken(fair, now_s=5.0)) == "aa", "no more than two are saved up"


def test_slices_that_go_on_cost_no_token() -> None:
    fair = shared(64, a=Terms(rate_per_s=0.001))
    taken(fair)
    for _ in range(5):
        fair.paused("a", 0.001)
        fair.continue_call("a", "call")
        assert taken(fair) == [ScheduledSlice("a", "call", False)]


def test_nothing_is_due_where_a_rate_is_not_what_holds_a_trigger() -> None:
    fair = shared(64, a=Terms(rate_per_s=1.0, side_by_side=1))
    taken(fair)
    assert fair.next_due_s() is None, "its side_by_side holds it"
    fair.ended("a", 0.001)
    assert fair.next_due_s() == pytest.approx(1.0)
    fair.resting("a", "r1")
    assert fair.next_due_s() is None


def test_what_is_due_while_no_place_is_free_is_not_due_for_ever() -> None:
    fair = shared(1, a=Terms(rate_per_s=10.0), b=Terms())
    assert names(taken(fair, now_s=0.0)) == "a"
    assert fair.take_slice(0.5) is None
    assert fair.next_due_s() is None, "a dispatcher that waits for it would not sleep"


def test_a_turn_that_found_nothing_costs_nothing() -> None:
    fair = shared(64, a=Terms(rate_per_s=1.0))
    (turn,) = taken(fair)
    fair.returned(turn)
    fair.check_invariants()
    assert fair.running_count == 0
    assert taken(fair) == [turn]


def test_a_trigger_that_is_held_back_takes_no_turn_and_saves_up_nothing() -> None:
    fair = shared(1, a=Terms(), b=Terms())
    assert names(taken(fair)) == "a"
    fair.paused("a", 0.01)
    fair.continue_call("a", "call")
    fair.suspend_trigger("a")
    for _ in range(100):
        assert names(taken(fair)) == "b"
        fair.ended("b", 0.01)
    fair.let_go("a")
    seen = ""
    for _ in range(10):
        (turn,) = taken(fair)
        seen += turn.trigger
        fair.ended(turn.trigger, 0.01)
    assert 4 <= seen.count("a") <= 6
    fair.suspend_trigger("unknown")


def test_a_removed_trigger_ends_what_it_began() -> None:
    fair = shared(64, a=Terms(side_by_side=2))
    taken(fair)
    fair.remove_trigger("a")
    fair.ready("a", "r2")
    fair.ended("a", 0.001)
    fair.paused("a", 0.001)
    fair.continue_call("a", "call")
    assert taken(fair) == [ScheduledSlice("a", "call", False)]
    fair.ended("a", 0.001)
    fair.check_invariants()
    assert fair.begun_count("a") == 0
    fair.resting("a", "r1")  # of a trigger that is no longer known
    fair.allow("a", Terms(), 1.0)
    fair.ready("a", "r1")
    assert len(taken(fair)) == 1, "it is new"


def test_a_lower_side_by_side_holds_for_calls_to_come() -> None:
    fair = shared(64, a=Terms(side_by_side=8))
    taken(fair)
    fair.allow("a", Terms(side_by_side=2), 0.0)
    for _ in range(6):
        fair.ended("a", 0.001)
        fair.check_invariants()
    assert taken(fair) == []
    fair.ended("a", 0.001)
    assert len(taken(fair)) == 1


def test_lines_stay_as_long_as_there_are_triggers() -> None:
    fair = shared(64, **{f"t{i}": Terms() for i in range(20)})
    for step in range(20_000):
        fair.ready(f"t{step % 20}", "r2")
        turn = fair.take_slice(0.0)
        assert turn is not None
        fair.ended(turn.trigger, 0.001 * (step % 3))
        fair.resting(f"t{step % 20}", "r2")
    assert sum(len(line) for line in fair._lines) <= 2 * (2 * 20 + 65)


# --- runs ----------------------------------------------------------------------------------------------


def quick(*names: str, places: int = 64, used_s: float = 0.00002, **terms: Terms) -> FairShare:
    """Triggers whose slices take that long."""
    fair = FairShare(places)
    for name in names:
        fair.allow(name, terms.get(name, Terms()), 0.0)
        fair.ready(name, "r1")
        measured(fair, name, used_s)
        fair.resting(name, "r1")
    for name in names:
        fair.ready(name, "r1")
    return fair


def widened(fair: FairShare, now_s: float = 0.0) -> int:
    """How many slices of the next trigger run together."""
    turn = fair.take_slice(now_s)
    assert turn is not None
    count = 1 + fair.widen(turn, 1_000)
    fair.check_invariants()
    return count


def test_slices_of_a_quick_trigger_run_together_up_to_all_places() -> None:
    fair = quick("a")
    assert widened(fair) == 64
    assert fair.take_slice(0.0) is None
    fair.ended("a", 64 * 0.00002, 0.0, 64)
    fair.check_invariants()
    assert widened(fair) == 64


def test_a_run_is_as_long_as_a_neighbour_may_wait() -> None:
    assert widened(quick("a", used_s=0.001)) == 2
    assert widened(quick("a", used_s=0.005)) == 1
    assert widened(quick("a", used_s=QUICK_S * 2)) == 1


def test_a_run_leaves_places_to_triggers_in_line() -> None:
    fair = quick("a", "b")
    assert (widened(fair), widened(fair)) == (32, 16)


def test_a_run_takes_no_more_than_a_rate_allows() -> None:
    fair = quick("a", a=Terms(rate_per_s=10.0))
    assert widened(fair, 10.0) == 2


def test_a_trigger_with_paused_calls_begins_no_run() -> None:
    fair = quick("a", a=Terms(side_by_side=2))
    turn = fair.take_slice(0.0)
    assert turn is not None
    fair.paused("a", 0.00002)
    assert widened(fair) == 1


def test_slices_that_found_nothing_cost_nothing() -> None:
    fair = quick("a", a=Terms(rate_per_s=10.0))
    turn = fair.take_slice(10.0)
    assert turn is not None
    assert fair.widen(turn, 5) == 1
    fair.returned(turn, 2)
    fair.check_invariants()
    assert fair.running_count == 0
    assert widened(fair, 10.0) == 2


@pytest.mark.parametrize(("text", "rate"), [("10/s", 10.0), ("600/min", 10.0), ("0.5/s", 0.5), ("36/h", 0.01)])
def test_a_rate_is_a_number_in_a_time(text: str, rate: float) -> None:
    assert rate_per_s(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["", "10", "0/s", "-1/s", "10/week", "1e3/s", "10 / s", "nan/s", "0.0/h"])
def test_another_text_is_no_rate(text: str) -> None:
    with pytest.raises(IllegalArgument, match="write it as 10/s"):
        rate_per_s(text)
