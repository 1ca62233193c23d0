"""Open loop as a table, as JSON, and what is said where the rate was not kept."""

from __future__ import annotations

from collections import Counter

from benchmarks.open_loop import OpenOutcome, rate_of, summed_open
from benchmarks.open_report import OpenLine, open_json, open_remarks_of, open_side_of, p999_ratio
from columnar.bench.generator import Outcome
from columnar.bench.workloads import STANDARD
from gauge.rounds import zigzag_rounds

NAMES = ("a:1", "b:2")


def outcome(slowest_us: int, *, backlog: int = 0, unanswered: int = 0) -> OpenOutcome:
    latencies = Counter({100: 9_980, slowest_us: 20})
    return OpenOutcome(1_000.0, latencies, Counter({5: 10}), backlog, unanswered, 64, 1.0, 0.5)


def line_of(a: OpenOutcome, b: OpenOutcome) -> OpenLine:
    return OpenLine(STANDARD["put"], 64, (open_side_of([a, a]), open_side_of([b])))


def test_the_ratio_is_of_the_slowest_in_a_thousand() -> None:
    line = line_of(outcome(2_000), outcome(8_000))
    assert p999_ratio(line.sides) is not None
    found = open_json(line, NAMES)
    assert round(found["p99.9_ratio"], 2) == 0.25
    assert found["endpoints"]["a:1"]["latency_us"]["max"] == 2_000
    assert found["endpoints"]["a:1"]["calls"] == 20_000
    assert p999_ratio(line.sides[:1]) is None


def test_a_rate_that_was_not_kept_is_said() -> None:
    assert outcome(100, backlog=100).kept  # as many as arrive in BACKLOG_S
    assert not outcome(100, backlog=101).kept
    assert not outcome(100, unanswered=1).kept
    remarks = open_remarks_of([line_of(outcome(100), outcome(100, backlog=500))], NAMES, ["scan-rows"])
    assert remarks[0].startswith("(!) RATE NOT KEPT: put at 64, b:2: of 1,000/s asked for, up to 500")
    assert remarks[1].startswith("No open loop for scan-rows")
    assert not open_remarks_of([line_of(outcome(100), outcome(100))], NAMES, [])


def test_processes_side_by_side_are_summed() -> None:
    both = summed_open([outcome(300, backlog=3), outcome(200)])
    assert (both.rate, both.backlog, both.connections, both.latencies_us.total()) == (2_000.0, 3, 128, 20_000)
    assert open_side_of([both]).generator_cpu == 1.0


def test_each_endpoint_is_asked_by_its_own_rate_and_in_turn() -> None:
    rounds = [Outcome(Counter({1: calls}), calls, 2.0, 0.1) for calls in (100, 900, 300)]
    assert rate_of(rounds) == 150.0
    assert list(zigzag_rounds(2, 2)) == [(0, 0), (0, 1), (1, 1), (1, 0)]
