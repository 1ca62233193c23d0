"""Figures of followers and rates: what they hold is bounded, whoever asks for them."""

from __future__ import annotations

import random

import pytest

from columnar.flows.figures import FollowerFigures
from columnar.flows.rolling_rate import RATE_S, RollingRate


def test_the_rate_is_of_the_last_minute() -> None:
    figures = FollowerFigures(0.0)
    minute = int(RATE_S)
    for second in range(10 * minute):
        figures.delivery(float(second), 2)
    assert figures.delivered == 20 * minute
    assert figures.rate_per_s(10 * minute - 1.0) == pytest.approx(2.0, rel=0.05)
    assert figures.rate_per_s(10 * minute + 29.0) == pytest.approx(1.0, rel=0.05)
    assert figures.rate_per_s(11 * minute + 1.0) == 0.0


def test_a_rate_of_less_than_a_minute_is_over_what_has_passed() -> None:
    rate = RollingRate(100.0)
    rate.add_events(6, 100.0)
    assert rate.per_s(100.0) == 6.0, "over 1 s at least"
    assert rate.per_s(103.0) == 2.0
    rate.add_events(4, 90.0)
    assert rate.per_s(90.0) == 10.0, "the clock was set back"
    assert rate.per_s(110.0) == 1.0


def test_a_steady_rate_is_met_at_any_moment() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    rate, now_s = RollingRate(0.0), 0.0
    for number in range(5_000):
        now_s += rng.uniform(0.0, 0.4)  # 5 events a second
        rate.add_events(1, now_s)
        if number > 100:
            assert rate.per_s(now_s) == pytest.approx(5.0, rel=0.4), f"seed {seed}"
    assert rate.per_s(now_s + 2 * RATE_S) == 0.0
