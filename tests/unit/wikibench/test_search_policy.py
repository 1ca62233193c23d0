"""The search for the largest rate ends at it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from wikibench.search import SearchPlan, Try, best_rate, next_rate


def search(capacity: float, plan: SearchPlan) -> list[Try]:
    tries: list[Try] = []
    while (rate := next_rate(tries, plan)) is not None:
        before = [one.met for one in tries if one.rate == rate]
        assert before in ([], [False]), "only a miss is tried again, and only once"
        tries.append(Try(rate, rate <= capacity))
        assert len(tries) < 120
    return tries


@given(st.floats(2, 19_000), st.floats(1, 5_000), st.floats(0.01, 0.3))
@settings(max_examples=200)
def test_it_finds_the_capacity(capacity: float, first: float, precision: float) -> None:
    best = best_rate(search(capacity, SearchPlan(first=first, precision=precision)))
    assert best is not None
    assert capacity * (1 - precision) * 0.999 <= best <= capacity


def test_a_wiki_that_keeps_nothing_and_one_that_keeps_all() -> None:
    assert best_rate(search(0.5, SearchPlan())) is None
    assert best_rate(search(1e9, SearchPlan(highest=1000))) == 1000


def test_a_rate_above_a_failure_does_not_count() -> None:
    assert best_rate([Try(100, True), Try(200, False), Try(300, True)]) == 100
    assert best_rate([Try(100, False), Try(200, True)]) is None


def test_one_miss_by_chance_does_not_end_a_search() -> None:
    plan = SearchPlan(first=100, highest=400)
    tries = [Try(100, False)]
    assert next_rate(tries, plan) == 100
    tries.append(Try(100, True))
    assert (best_rate(tries), next_rate(tries, plan)) == (100, 200)
    tries += [Try(200, False), Try(200, False)]
    assert (best_rate(tries), next_rate(tries, plan)) == (100, 150)
