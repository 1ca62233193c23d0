"""The search for the largest rate finds it on machines that vary and stall, and says how well it knows."""

from __future__ import annotations

from bisect import bisect_left
from math import exp, log
from random import Random
from statistics import fmean, pstdev

import pytest

from gauge.rate_search import (
    LEAST_TRIES,
    TRIES,
    Found,
    SearchPlan,
    Step,
    Try,
    answer,
    bracket_of,
    next_step,
)
from gauge.steadiness import is_backlog_growing
from tests.support.deep import seeds

STALLS = 0.03  # of the tries of full length


def searched(capacity: float, plan: SearchPlan, rng: Random | None = None, noise: float = 0.0) -> list[Try]:
    """Search a system of this capacity, whose speed varies by ``noise`` from try to try and which stalls at times."""
    tries: list[Try] = []
    while (step := next_step(tries, plan)) is not None:
        now = capacity if rng is None else capacity * exp(rng.gauss(0, noise))
        is_stalled = rng is not None and rng.random() < STALLS * step.seconds / plan.long_s
        tries.append(Try(step.rate, step.rate <= now and not is_stalled, step.is_short))
        assert len(tries) < 100, "it ends"
    return tries


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.08])
def test_on_a_machine_that_varies_the_answer_is_right_and_the_interval_holds_it(noise: float) -> None:
    errors, held = [], []
    for seed in range(seeds("seeds of a search for a rate", deep=200, short=12)):
        rng = Random(seed)
        capacity = exp(rng.uniform(log(100), log(5_000)))
        found = answer(searched(capacity, SearchPlan(), rng, noise), SearchPlan())
        errors.append(found.rate / capacity - 1)
        held.append(found.low <= capacity <= found.high)
    print(f"noise {noise}: bias {fmean(errors):+.3f}, spread {pstdev(errors):.3f}, holds it in {fmean(held):.0%}")
    assert abs(fmean(errors)) <= 0.015
    assert pstdev(errors) <= 0.05
    assert fmean(held) >= 0.8


def test_the_interval_is_as_narrow_as_wanted_where_the_search_says_so() -> None:
    found = answer(searched(777.0, SearchPlan(precision=0.05)), SearchPlan(precision=0.05))
    assert found.why == "precise"
    assert found.width <= 0.05
    assert found.low < 777.0 < found.high
    assert found.safe_rate < found.rate


def test_the_rates_of_the_bracket_double_and_a_miss_is_tried_again() -> None:
    plan = SearchPlan(first=100, highest=1_000)
    assert next_step([], plan) == Step(100, 8.0, is_short=True)
    tries = [Try(100, True, True), Try(200, False, True)]
    assert next_step(tries, plan) == Step(200, 8.0, is_short=True)
    assert bracket_of([*tries, Try(200, True, True)], plan) == 400, "a stall is no limit"
    assert bracket_of([*tries, Try(200, False, True)], plan) == (100, 200)
    step = next_step([*tries, Try(200, False, True)], plan)
    assert step is not None
    assert (step.seconds, step.is_short) == (20.0, False)
    assert 100 < step.rate < 200


def test_it_goes_down_where_the_first_rate_is_missed() -> None:
    found = answer(searched(30.0, SearchPlan(first=400)), SearchPlan(first=400))
    assert found.rate == pytest.approx(30.0, rel=0.03)


def test_a_system_that_keeps_nothing_and_one_that_keeps_all() -> None:
    nothing = answer(searched(0.5, SearchPlan()), SearchPlan())
    assert (nothing.rate, nothing.why) == (0.0, "no rate kept")
    plan = SearchPlan(highest=1_000)
    everything = answer(searched(1e9, plan), plan)
    assert (everything.rate, everything.why) == (1_000, "every rate kept")


def test_short_tries_that_were_wrong_do_not_hold_the_answer() -> None:
    """A backlog needs time to grow: 8 s keep twice the rate that 20 s keep."""
    tries: list[Try] = []
    while (step := next_step(tries, SearchPlan())) is not None:
        tries.append(Try(step.rate, step.rate <= (2_000 if step.is_short else 700), step.is_short))
    assert answer(tries, SearchPlan()).rate == pytest.approx(700, rel=0.05)


def is_kept(step: Step, capacity: float, rng: Random) -> bool:
    """Try a server that works at requests one by one, in their order; each takes as long, and they come at random."""
    free_s, count = 0.0, round(step.rate * step.seconds)
    waits, ends = [], []
    starts = sorted(rng.uniform(0, step.seconds) for _ in range(count))
    for start_s in starts:
        free_s = max(free_s, start_s) + 1 / capacity
        waits.append(free_s - start_s)
        ends.append(free_s)
    seconds = range(1, int(step.seconds) + 1)
    open_requests = [float(bisect_left(starts, at) - bisect_left(ends, at)) for at in seconds]
    return sorted(waits)[count * 95 // 100] <= 0.2 and not is_backlog_growing(open_requests, step.rate)


@pytest.mark.parametrize("capacity", [500.0, 1_000.0])
def test_short_tries_find_the_capacity_of_a_server_too(capacity: float) -> None:
    """8 s keep a p95 of 200 ms up to 2.6 % over the capacity, as the backlog has had no more time to grow."""
    errors = []
    for seed in range(seeds("seeds of a search by tries of 8 s", deep=40, short=5)):
        rng, tries = Random(seed), [Try(capacity / 2, True, True), Try(capacity * 2, False, True)]
        tries.append(tries[-1])
        plan = SearchPlan(short_s=8.0, long_s=8.0)
        while (step := next_step(tries, plan)) is not None:
            tries.append(Try(step.rate, is_kept(step, capacity, rng)))
        errors.append(answer(tries, plan).rate / capacity - 1)
    print(f"{capacity:.0f}/s: bias {fmean(errors):+.3f}, spread {pstdev(errors):.3f}")
    assert abs(fmean(errors)) <= 0.015


def test_it_ends_without_an_answer_to_be_had() -> None:
    """A coin keeps or misses: no rate is known, and the interval says so."""
    rng, tries = Random(5), [Try(100, True, True), Try(200, False, True), Try(200, False, True)]
    while (step := next_step(tries, SearchPlan())) is not None:
        tries.append(Try(step.rate, rng.random() < 0.5))
    assert sum(not one.is_short for one in tries) <= TRIES
    assert answer(tries, SearchPlan()).why in ("tries", "precise")


def test_few_tries_are_never_enough_and_a_budget_ends_it() -> None:
    tries = searched(500.0, SearchPlan(precision=0.9))
    assert sum(not one.is_short for one in tries) == LEAST_TRIES
    plan = SearchPlan(budget_s=150.0)
    tries = searched(500.0, plan)
    assert sum(8.0 if one.is_short else 20.0 for one in tries) <= 150.0
    assert answer(tries, plan).why == "budget"
    short = SearchPlan(budget_s=20.0)
    assert answer(searched(500.0, short), short) == Found(100.0, 100.0, 100.0, 100.0, "budget")
