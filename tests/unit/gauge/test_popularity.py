"""The rank laws have the shape and the concentration that was measured."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gauge.popularity import EDITS, UNIFORM, VIEWS, RankLaw, Sampler, by_rank, weights


def test_views_are_concentrated_as_measured() -> None:
    shares = weights(VIEWS, VIEWS.measured_pages)
    assert sum(shares[:1_000]) == pytest.approx(0.202, abs=0.01)
    assert sum(shares[:10_000]) == pytest.approx(0.508, abs=0.01)
    assert sum(shares[:100_000]) == pytest.approx(0.863, abs=0.01)


def test_edits_are_concentrated_as_measured() -> None:
    assert sum(weights(EDITS, EDITS.measured_pages)[:1_000]) == pytest.approx(0.31, abs=0.01)


@given(st.sampled_from([VIEWS, EDITS, UNIFORM]), st.integers(1, 3000), st.booleans())
@settings(max_examples=60)
def test_weights_fall_bend_down_and_add_up(law: RankLaw, pages: int, ranked: bool) -> None:
    shares = weights(by_rank(law, pages) if ranked else law, pages)
    assert sum(shares) == pytest.approx(1.0)
    assert all(a >= b * (1 - 1e-12) for a, b in pairwise(shares))
    if pages >= 100:
        slopes = [
            (log(shares[i]) - log(shares[j])) / (log(j + 1) - log(i + 1))
            for i, j in ((1, 5), (5, pages // 4), (pages // 4, pages - 1))
        ]
        assert all(a <= b + 1e-9 for a, b in pairwise(slopes))


def test_by_rank_is_flatter_on_a_small_wiki() -> None:
    assert weights(by_rank(VIEWS, 1000), 1000)[0] < weights(VIEWS, 1000)[0] / 2
    assert by_rank(VIEWS, VIEWS.measured_pages).bends == pytest.approx(VIEWS.bends)


def test_a_law_that_is_not_concave_is_refused() -> None:
    with pytest.raises(ValueError, match="concave"):
        RankLaw((1.0, 0.5), (0.5,), 10)
    with pytest.raises(ValueError, match="bend"):
        RankLaw((0.5, 1.0), (), 10)


def test_the_sampler_draws_after_the_weights() -> None:
    shares = weights(VIEWS, 50)
    rng = random.Random(5)
    sampler = Sampler(shares)
    counts = Counter(sampler.draw(rng) for _ in range(50_000))
    for rank in (0, 3, 10):
        assert counts[rank] / 50_000 == pytest.approx(shares[rank], rel=0.1)


class _Edge:
    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


def test_the_ends_of_chance_stay_inside() -> None:
    sampler = Sampler([0.1] * 10)
    assert sampler.draw(_Edge(0.0)) == 0
    assert sampler.draw(_Edge(1 - 2**-53)) == 9
    with pytest.raises(ValueError, match="nothing"):
        Sampler([])
