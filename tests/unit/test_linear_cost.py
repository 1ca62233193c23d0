"""The check that work costs time as its size grows, by a clock that the work itself moves on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat

import pytest

from tests.support import linear_cost
from tests.support.linear_cost import require_linear


def costing(cost_s: Callable[[int], float], monkeypatch: pytest.MonkeyPatch) -> tuple[Callable[[int], None], list[int]]:
    """Return work that costs so much, and the sizes that it was asked for."""
    sizes: list[int] = []
    monkeypatch.setattr(linear_cost, "process_time", lambda: sum(spent))
    spent: list[float] = []

    def work(size: int) -> None:
        sizes.append(size)
        spent.append(cost_s(size))

    return work, sizes


def test_what_costs_little_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    work, sizes = costing(lambda size: size**2 / 1e4, monkeypatch)
    require_linear(work, 100, usual_s=1.0)
    assert sizes == [100]


def test_a_slow_machine_is_no_fault_of_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    work, _ = costing(lambda size: size * 50.0, monkeypatch)
    require_linear(work, 100, usual_s=1.0)


def test_a_machine_that_is_slow_now_and_then_is_none_either(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = chain([9.0, 1.0, 7.0], repeat(1.0))
    work, _ = costing(lambda size: size * next(slow), monkeypatch)
    require_linear(work, 100, usual_s=1.0)


def test_what_is_quadratic_and_costs_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = chain([1.0, 1.2, 0.9, 1.1, 1.3], repeat(1.0))
    work, _ = costing(lambda size: size**2 * next(noise), monkeypatch)
    with pytest.raises(AssertionError, match="50 cost"):
        require_linear(work, 100, usual_s=1.0)
