"""The warm-up's end and a growing backlog, of simulated runs."""

from __future__ import annotations

from random import Random

import pytest

from gauge.steadiness import LEAST_S, is_backlog_growing, warm_up_end

SEEDS = 200


def seconds(rng: Random, length: int, warm_up: int, noise: float = 0.05) -> list[float]:
    """Return service times that begin three times as long as they become."""
    return [
        10 * (1 + 2 * max(warm_up - at, 0) / max(warm_up, 1)) * rng.lognormvariate(0, noise) for at in range(length)
    ]


@pytest.mark.parametrize(("length", "warm_up"), [(20, 4), (60, 15), (600, 100)])
def test_the_warm_up_is_left_out(length: int, warm_up: int) -> None:
    cuts = [warm_up_end(seconds(Random(seed), length, warm_up)) for seed in range(SEEDS)]
    print(f"{length} s, warm-up {warm_up} s: cut at {sorted(set(cuts), key=str)}")
    right = sum(cut is not None and warm_up * 0.7 <= cut <= length / 2 for cut in cuts)
    assert right / SEEDS >= 0.85


@pytest.mark.parametrize("length", [20, 40, 60, 600])
def test_a_steady_run_is_called_steady(length: int) -> None:
    cuts = [warm_up_end(seconds(Random(seed), length, 0)) for seed in range(SEEDS)]
    unsteady = sum(cut is None for cut in cuts) / SEEDS
    print(f"{length} s: {unsteady:.1%} called not steady")
    assert unsteady <= 0.1


def test_a_run_that_warms_up_to_its_end_is_not_steady() -> None:
    assert sum(warm_up_end(seconds(Random(seed), 30, 30)) is None for seed in range(SEEDS)) / SEEDS >= 0.9


def test_a_run_too_short_to_judge_counts_whole() -> None:
    assert warm_up_end([100.0] + [1.0] * (LEAST_S - 2)) == 0
    assert warm_up_end([100.0] + [1.0] * (LEAST_S - 1)) == 1
    assert not is_backlog_growing([0.0, 1_000.0], 10)


def backlog(rng: Random, offered: float, capacity: float, stall_at: int | None = None) -> list[float]:
    open_requests, found = 0.0, []
    for second in range(20):
        served = 0.0 if second == stall_at else capacity
        open_requests = max(open_requests + rng.gauss(offered, offered**0.5) - served, offered * 0.02)
        found.append(open_requests)
    return found


def test_a_backlog_grows_over_the_capacity_and_not_by_a_stall() -> None:
    growing = [is_backlog_growing(backlog(Random(seed), 1_050, 1_000), 1_050) for seed in range(SEEDS)]
    steady = [is_backlog_growing(backlog(Random(seed), 900, 1_000), 900) for seed in range(SEEDS)]
    stalled = [is_backlog_growing(backlog(Random(seed), 500, 1_000, seed % 20), 500) for seed in range(SEEDS)]
    print(f"growing {sum(growing)}, steady {sum(steady)}, stalled {sum(stalled)} of {SEEDS} called growing")
    assert sum(growing) / SEEDS >= 0.95
    assert sum(steady) == 0
    assert sum(stalled) == 0


def test_many_open_requests_are_no_growing_backlog() -> None:
    """A slow wiki has 0.6 s of arrivals open, from the first second to the last."""
    assert not is_backlog_growing([300.0] * 20, 500)
