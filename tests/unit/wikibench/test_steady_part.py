"""Tries of a search: the warm-up does not count, a growing backlog misses, an unsteady try is made longer."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from gauge.rate_search import SearchPlan, Step, Try
from tests.unit.wikibench.test_latency import replay_of
from wikibench.commands.ab import Alternation, GeneratorTooLate
from wikibench.commands.search import Searching
from wikibench.latency import Recorder, Sample
from wikibench.outcome import Kind, Outcome
from wikibench.pacing import TraceShape
from wikibench.requirements import parse_requirements
from wikibench.steady_part import judge_try
from wikibench.summary import Replay

P95 = parse_requirements("p95<200ms,errors<1%")


def a_try(
    seconds: int = 20, slow_s: float = 0.0, growing: float = 0.0, failed_s: float = 0.0, ending: str = "complete"
) -> Replay:
    """Return a try of 50 requests a second of 50 ms; in the first ``slow_s`` they take 600 ms, then less and less."""
    rng, recorder = Random(4), Recorder(seconds)
    for number in range(50 * seconds):
        at = number / 50
        took = (0.6 if at < slow_s else 0.05) * rng.uniform(0.9, 1.1) + growing * at
        outcome = Outcome.SERVER_ERROR if at < failed_s else Outcome.OK
        recorder.add(Sample(Kind.PAGE, outcome, at, at, at + took))
    return replace(replay_of(recorder, planned_s=float(seconds), elapsed_s=float(seconds)), ending=ending)


def test_the_warm_up_is_not_judged() -> None:
    found = judge_try(a_try(slow_s=3), P95)
    assert found.is_kept
    assert found.steady_from_s is not None
    assert 3 <= found.steady_from_s <= 10
    assert judge_try(a_try(slow_s=3, failed_s=2), P95).is_kept, "its failures neither"
    assert not judge_try(a_try(), parse_requirements("p95<40ms")).is_kept


@pytest.mark.parametrize("required", ["p95<200ms", "mean<100ms", "max<300ms", "errors<=0", "rate>=45", "p50>1ms"])
def test_each_figure_is_that_of_the_steady_part(required: str) -> None:
    assert judge_try(a_try(slow_s=3, failed_s=2), parse_requirements(required)).is_kept


def test_what_is_asked_of_one_kind_is_judged_by_the_whole_try() -> None:
    assert not judge_try(a_try(slow_s=3), parse_requirements("page.p95<200ms")).is_kept


def test_a_growing_backlog_misses_whatever_the_percentile_says() -> None:
    found = judge_try(a_try(growing=0.02), parse_requirements("p95<10s"))
    assert (found.is_kept, found.why_missed) == (False, "its backlog grew")


def test_a_try_that_slows_down_half_way_is_not_steady_unless_all_of_it_is_good() -> None:
    slow = a_try(slow_s=12)
    assert judge_try(slow, P95).why_missed == "it was not steady"
    assert judge_try(slow, parse_requirements("p95<1s")).is_kept
    assert judge_try(a_try(ending="overloaded"), P95).why_missed == "overloaded"
    assert judge_try(a_try(seconds=8, slow_s=1), P95).why_missed == "a requirement", "too short to judge"


class Run:
    """A run that answers with tries that are there."""

    def __init__(self, *results: Replay, valid: bool = True) -> None:
        self.results = list(results)
        self.valid = valid
        self.seconds: list[float | None] = []
        self.skips: list[int] = []
        self.shape = TraceShape(100, 1_000_000)
        self.load = type("Load", (), {"seed": 1})

    def go(self, pace: Any, _title: str, _watched: Any = None) -> Replay:
        self.seconds.append(pace.duration_s)
        self.skips.append(pace.skip)
        return self.results.pop(0)

    def summary(self, _result: Replay, _required: Any, _pace: Any, _verdicts: Any = None) -> dict[str, Any]:
        return {"valid": self.valid, "not_valid_because": ["too late"], "ending": "complete", "requirements": []}


def searching(run: Run) -> Searching:
    return Searching(run, SearchPlan(), P95, even=True, from_start=False)  # type: ignore[arg-type]


def test_a_try_that_was_not_steady_is_made_once_more_and_twice_as_long() -> None:
    step = Step(50.0, 20.0, is_short=False)
    run = Run(a_try(slow_s=12), a_try(seconds=40, slow_s=13))
    made = searching(run)._made(step)
    assert made is not None
    assert (run.seconds, made[0].is_kept, made[2]["steady_from_s"] >= 12) == ([20.0, 40.0], True, True)
    run = Run(a_try(slow_s=12), a_try(slow_s=13))
    made = searching(run)._made(step)
    assert made is not None
    assert (run.seconds, made[0].is_kept, made[2]["missed_because"]) == ([20.0, 40.0], False, "it was not steady")


def test_a_try_that_is_not_valid_is_not_made_longer() -> None:
    run = Run(a_try(slow_s=12), valid=False)
    made = searching(run)._made(Step(50.0, 20.0, is_short=False))
    assert (run.seconds, made is not None and made[0].is_kept) == ([20.0], False)
    assert searching(Run(a_try(ending="interrupted")))._made(Step(50.0, 20.0, is_short=False)) is None


class Page:
    """A dashboard whose button is pressed between two tries."""

    is_stopping = False
    ending = ""

    def begin_try(self, _search: Any) -> None:
        self.is_stopping = True

    def tick(self, _now: Any) -> None:
        """Nobody looks at it."""

    def end_try(self, search: Any) -> None:
        self.last = search

    def note_ending(self, ending: str) -> None:
        self.ending = ending


def test_the_stop_button_ends_a_search_also_between_two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Searching, "judged", lambda _self: [])  # the tries here have no figures
    run, page = Run(*[a_try()] * 3), Page()
    search = searching(run)
    search.find(page, with_curve=True)  # type: ignore[arg-type]
    assert (len(run.seconds), len(search.made), page.ending) == (1, 1, "interrupted")


def test_a_curve_is_measured_only_around_an_answer_each_try_from_a_place_of_its_own() -> None:
    run = Run()
    search = searching(run)
    search.measure_curve()
    search.tries = [Try(100.0, is_kept=True, is_short=True)]
    search.is_generators = True
    search.measure_curve()
    assert run.seconds == [], "no rate, or one that is the generator's"
    step = Step(50.0, 20.0, is_short=False)
    before = search._pace(step).skip, search._pace(step).skip
    search.curve.append({})
    assert before == (before[0],) * 2 != (search._pace(step).skip,) * 2


def test_a_generator_that_is_too_late_says_nothing_of_a() -> None:
    run = Run(*[a_try()] * 5, valid=False)
    with pytest.raises(GeneratorTooLate):
        Alternation([run], None, even=True, margin=0.02).light_rate(P95)  # type: ignore[list-item]
    assert len(run.seconds) == 3


def test_each_try_for_the_largest_rate_of_a_begins_at_a_place_of_its_own() -> None:
    run = Run(*[a_try()] * 8)
    with pytest.raises(IndexError):  # each try keeps its rate, until no result is left
        Alternation([run], None, even=True, margin=0.02).light_rate(P95)  # type: ignore[list-item]
    assert len(set(run.skips)) >= 7
