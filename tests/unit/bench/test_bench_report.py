"""What was measured, as ratios and lines for a person."""

from __future__ import annotations

from collections import Counter

import pytest

from columnar.bench.address import Endpoint, parse_endpoint
from columnar.bench.generator import Outcome
from columnar.bench.measuring import Line, summed
from columnar.bench.report import Footprint, Report, cpu_ratio_of, ratio_of, remarks_of, side_of, sides_of
from columnar.bench.workloads import STANDARD
from gauge.histogram import percentiles_us


def outcome(units: int, cpu_s: float = 0.5) -> Outcome:
    return Outcome(Counter({100: units - 1, 5_000: 1}), units, 1.0, cpu_s)


def test_the_median_round_counts_and_latencies_are_of_all() -> None:
    side = side_of([outcome(100), outcome(300), outcome(200)])
    assert (side.rate, side.rates, side.calls) == (200.0, (100.0, 300.0, 200.0), 600)
    assert (side.latency_us["p50"], side.latency_us["max"]) == (100, 5_000)


def test_percentiles_of_nothing() -> None:
    assert percentiles_us(Counter()) == {}


def test_ratio_is_of_two_only() -> None:
    two = [side_of([outcome(200)]), side_of([outcome(100)])]
    assert ratio_of(two) == 2.0
    assert ratio_of(two[:1]) is None


def served(units: int, *servers_cpu_s: float) -> Outcome:
    return Outcome(Counter({100: units}), units, 1.0, 0.5, servers_cpu_s)


def test_the_processor_time_of_two_servers_is_compared_round_by_round() -> None:
    first = side_of([served(100, 0.2), served(200, 0.2), served(100, 0.9)])
    second = side_of([served(100, 0.1), served(100, 0.1), served(100, 0.3)])
    assert [round(each) for each in first.server_us] == [2_000, 1_000, 9_000]
    assert cpu_ratio_of([first, second]) == pytest.approx(2.0)
    assert cpu_ratio_of([first]) is None
    assert cpu_ratio_of([first, side_of([outcome(100), outcome(100), outcome(100)])]) is None, "not asked for"
    assert cpu_ratio_of([first, side_of([served(100, 0.0)] * 3)]) is None, "below a tick of its clock"


def test_the_server_s_time_is_that_of_the_generator_that_read_it() -> None:
    both = summed([served(100, 0.2), outcome(100)])
    assert both.server_us == pytest.approx(1_000.0)


def test_the_busiest_server_s_time_counts_for_the_work_of_all() -> None:
    side = side_of([served(100, 0.2, 0.1), served(100, 0.1, 0.4)])
    assert [round(each) for each in side.server_us] == [3_000, 5_000]
    assert [round(each) for each in side.busiest_us] == [2_000, 4_000]


def test_generators_side_by_side_are_summed() -> None:
    both = summed([outcome(100), outcome(50)])
    assert (both.units, both.wall_s, both.cpu_s, both.calls) == (150, 1.0, 1.0, 150)


def test_a_report_names_busy_generators_and_footprints() -> None:
    line = Line(STANDARD["get-cell"], 64, ([outcome(200, 0.99)], [outcome(100)]))
    report = Report(
        "then", "here", ("a:1", "b:2"), {"generators": 1}, [sides_of(line)], (Footprint(0.5, 90.0, 120.0), Footprint())
    )
    first, second = remarks_of(report)
    assert first == "a:1: start to first answer 0.50 s, resident when idle 90 MB, resident after the load 120 MB"
    assert "get-cell at 64" in second
    assert report.as_json()["lines"][0]["ratio"] == 2.0


def test_addresses() -> None:
    assert parse_endpoint("localhost:9090") == Endpoint("localhost", 9090)
    for bad in ("localhost", ":9090", "host:port"):
        with pytest.raises(ValueError, match="HOST:PORT"):
            parse_endpoint(bad)
