"""(pure) The report of the open loop, as a table for a person and as JSON for a program.

Latencies count from the moment at which the operation was due, over all rounds together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from rich.table import Table

from benchmarks.open_loop import BACKLOG_S, OpenOutcome
from columnar.bench.workloads import Workload
from gauge.histogram import percentiles_us


@dataclass(frozen=True, slots=True)
class OpenSide:
    """An endpoint at one workload in open loop."""

    rate: float  # requested, operations per second
    calls: int  # counted
    latency_us: dict[str, int]
    late_us: dict[str, int]  # of the generator, for calls that found a free connection
    backlogs: tuple[int, ...]  # of the rounds: due and not begun when the last one arrived
    unanswered: int
    kept: bool  # the endpoint kept up with the rate
    generator_cpu: float  # cores, its waiting for the next arrival among it


@dataclass(frozen=True, slots=True)
class OpenLine:
    workload: Workload
    connections: int
    sides: tuple[OpenSide, ...]


def open_side_of(outcomes: Sequence[OpenOutcome]) -> OpenSide:
    latencies: Counter[int] = Counter()
    late: Counter[int] = Counter()
    for outcome in outcomes:
        latencies.update(outcome.latencies_us)
        late.update(outcome.late_us)
    return OpenSide(
        fmean(outcome.rate for outcome in outcomes),
        latencies.total(),
        percentiles_us(latencies),
        percentiles_us(late),
        tuple(outcome.backlog for outcome in outcomes),
        sum(outcome.unanswered for outcome in outcomes),
        all(outcome.kept for outcome in outcomes),
        fmean(outcome.cpu_s / outcome.wall_s if outcome.wall_s else 0.0 for outcome in outcomes),
    )


def p999_ratio(sides: Sequence[OpenSide]) -> float | None:
    """Return the first endpoint's p99.9 over the second's: a value under 1 means that the first endpoint is quicker."""
    if len(sides) != 2 or not all(side.latency_us for side in sides):
        return None
    return sides[0].latency_us["p99.9"] / sides[1].latency_us["p99.9"]


def open_json(line: OpenLine, names: Sequence[str]) -> dict[str, Any]:
    return {
        "workload": line.workload.name,
        "connections": line.connections,
        "endpoints": {name: asdict(side) for name, side in zip(names, line.sides, strict=True)},
        "p99.9_ratio": p999_ratio(line.sides),
    }


def open_table_of(lines: Sequence[OpenLine], names: Sequence[str], share: float) -> Table:
    table = Table(
        title=f"Open loop: arrivals at {share:.0%} of the endpoint's own closed-loop rate, ms since due",
        title_justify="left",
    )
    table.add_column("workload")
    table.add_column("conn.", justify="right")
    for name in names:
        table.add_column(f"{name}\nper second", justify="right")
        table.add_column("p50 / p99", justify="right")
        table.add_column("p99.9 / max", justify="right")
        table.add_column("sent late\np50 / p99", justify="right")
    if len(names) == 2:
        table.add_column("ratio\nof p99.9", justify="right")
    for line in lines:
        cells = [line.workload.title, str(line.connections)]
        for side in line.sides:
            cells += [f"{side.rate:,.0f}" + ("" if side.kept else " (!)")]
            cells += [_pair(side.latency_us, "p50", "p99"), _pair(side.latency_us, "p99.9", "max")]
            cells += [_pair(side.late_us, "p50", "p99", "none was free")]
        ratio = p999_ratio(line.sides)
        table.add_row(*cells, *([f"{ratio:.2f}"] if ratio is not None else []))
    return table


def _pair(found: dict[str, int], low: str, high: str, nothing: str = "no calls") -> str:
    return f"{found[low] / 1_000:.2f} / {found[high] / 1_000:.2f}" if found else nothing


def open_remarks_of(lines: Sequence[OpenLine], names: Sequence[str], left_out: Sequence[str]) -> list[str]:
    """Return lines below the table: rates that could not be kept, and workloads that have no open loop."""
    found = [
        f"(!) RATE NOT KEPT: {line.workload.name} at {line.connections}, {name}: of {side.rate:,.0f}/s asked for,"
        f" up to {max(side.backlogs):,} still waited when the last one arrived (bound: arrivals of"
        f" {BACKLOG_S:g} s), {side.unanswered:,} were never answered; its latencies say how long the"
        " test was, not how quick the endpoint is."
        for line in lines
        for name, side in zip(names, line.sides, strict=True)
        if not side.kept
    ]
    if left_out:
        found.append(f"No open loop for {', '.join(left_out)}: its calls hold a connection for long; closed loop only.")
    return found
