"""Figures of followers: what they hold is bounded, whoever asks for them."""

from __future__ import annotations

from columnar.flows.figures import RATE_S, FollowerFigures


def test_the_rate_is_of_the_last_minute() -> None:
    figures = FollowerFigures(0.0)
    for second in range(10 * RATE_S):
        figures.delivery(float(second), 2)
    assert figures.delivered == 20 * RATE_S
    assert figures.rate_per_s(10 * RATE_S - 1.0) == 2.0
    assert figures.rate_per_s(10 * RATE_S + 29.0) == 1.0


def test_deliveries_that_nobody_asks_about_are_held_for_a_minute() -> None:
    figures = FollowerFigures(0.0)
    for second in range(10 * RATE_S):
        figures.delivery(float(second))
        assert len(figures._by_second) <= RATE_S
