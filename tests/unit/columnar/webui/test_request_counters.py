"""What the wire's observer counts, and what the page makes of numbers."""

from __future__ import annotations

import math

import pytest

from columnar.webui.counters import BOUNDS_S, HISTORY_S, RequestCounters
from columnar.webui.pages import bytes_text, duration_text, seconds_text, sparkline


def test_counts_by_method_and_outcome() -> None:
    counters = RequestCounters()
    counters.request_done("get", 0.0002, None, 10, 20)
    counters.request_done("get", 0.0003, "NoSuchColumnFamily", 10, 5)
    counters.request_done("put", 99.0, None, 1, 1)
    held = counters.by_method["get"]
    assert (held.calls, held.failed, held.errors, held.bytes_in, held.bytes_out) == (
        2, 1, {"NoSuchColumnFamily": 1}, 20, 25,
    )  # fmt: skip
    assert held.seconds == pytest.approx(0.0005)
    assert counters.calls() == {"get": 2, "put": 1}
    assert counters.by_method["put"].buckets[-1] == 1


def test_a_latency_on_a_bound_belongs_under_it() -> None:
    counters = RequestCounters()
    for bound in BOUNDS_S:
        counters.request_done("get", bound, None, 0, 0)
    assert counters.by_method["get"].buckets == [1] * len(BOUNDS_S) + [0]


def test_quantiles_are_bounds() -> None:
    counters = RequestCounters()
    for _ in range(99):
        counters.request_done("get", 0.0002, None, 0, 0)
    counters.request_done("get", 60.0, None, 0, 0)
    held = counters.by_method["get"]
    assert held.quantile_s(0.5) == held.quantile_s(0.99) == 0.00025
    assert math.isinf(held.quantile_s(1.0))


def test_rates_come_from_samples() -> None:
    counters = RequestCounters()
    assert counters.rate() == 0.0
    assert counters.rates() == ()
    for second in range(4):
        counters.sample(100.0 + second)
        for _ in range(second * 10):
            counters.request_done("get", 0.001, None, 0, 0)
    assert counters.rates() == (0.0, 10.0, 20.0)
    assert counters.rate(2) == pytest.approx(15.0)


def test_the_history_is_bounded() -> None:
    counters = RequestCounters()
    for second in range(10 * HISTORY_S):
        counters.sample(float(second))
    assert len(counters.rates()) == HISTORY_S


def test_the_curve_ends_at_the_right_edge_and_touches_the_top() -> None:
    points = [tuple(map(float, point.split(","))) for point in sparkline((0.0, 5.0, 10.0)).split()]
    assert points[-1] == (600.0, 2.0)
    assert points[0][1] == 58.0
    assert sparkline(()) == ""


def test_numbers_for_people() -> None:
    assert [bytes_text(n) for n in (0, 999, 1_500, 150_000, 5 * 10**15)] == [
        "0 B", "999 B", "1.5 KB", "150 KB", "5000.0 TB",
    ]  # fmt: skip
    assert [seconds_text(s) for s in (0.00025, 0.5, 2.5, math.inf)] == ["0.25 ms", "500 ms", "2.5 s", "> 10 s"]
    assert [duration_text(s) for s in (5, 65, 3_700, 90_000)] == ["5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]
