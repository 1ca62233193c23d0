"""(pure) The report of a measurement, as a table for a person and as JSON for a program.

Rates are units of work per second, the median of the rounds.  Latencies are of all rounds together, from the call to
its whole answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, Final

from rich.table import Table

from columnar.bench.generator import Outcome
from columnar.bench.measuring import Line
from columnar.bench.protocols import BINARY
from columnar.bench.workloads import Workload
from gauge.histogram import percentiles_us

BUSY_GENERATOR: Final = 0.9  # of a core; above it the generator itself may be the limit


@dataclass(frozen=True, slots=True)
class Side:
    """The figures of an endpoint at one workload."""

    rate: float
    rates: tuple[float, ...]  # of the rounds
    calls: int
    latency_us: dict[str, int]
    generator_cpu: float  # cores that the generators used, median of the rounds
    server_us: tuple[float, ...] = ()  # processor time of the server for a unit, of the rounds; empty: not requested
    busiest_us: tuple[float, ...] = ()  # the same of the busiest of its processes alone


@dataclass(frozen=True, slots=True)
class Footprint:
    """The figures of a server's processes; a figure that was not requested is None."""

    start_s: float | None = None
    resident_mb_idle: float | None = None
    resident_mb_after: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    taken_at: str
    machine: str
    names: tuple[str, ...]
    plan: dict[str, Any]
    lines: list[tuple[Workload, int, tuple[Side, ...]]]
    footprints: tuple[Footprint, ...]

    def as_json(self) -> dict[str, Any]:
        lines = [
            {
                "workload": workload.name,
                "connections": connections,
                "unit": workload.unit,
                "endpoints": {name: asdict(side) for name, side in zip(self.names, sides, strict=True)},
                "ratio": ratio_of(sides),
                "server_cpu_ratio": cpu_ratio_of(sides),
            }
            for workload, connections, sides in self.lines
        ]
        return asdict(replace(self, lines=[])) | {"lines": lines}


def side_of(outcomes: Sequence[Outcome]) -> Side:
    together: Counter[int] = Counter()
    for outcome in outcomes:
        together.update(outcome.latencies_us)
    rates = tuple(outcome.rate for outcome in outcomes)
    busy = median(outcome.cpu_share for outcome in outcomes)
    served = tuple(outcome.server_us for outcome in outcomes if outcome.server_us is not None)
    busiest = tuple(outcome.busiest_us for outcome in outcomes if outcome.busiest_us is not None)
    return Side(median(rates), rates, together.total(), percentiles_us(together), busy, served, busiest)


def sides_of(line: Line) -> tuple[Workload, int, tuple[Side, ...]]:
    return line.workload, line.connections, tuple(side_of(outcomes) for outcomes in line.outcomes)


def ratio_of(sides: Sequence[Side]) -> float | None:
    """Return the first endpoint's rate over the second's."""
    if len(sides) != 2 or not sides[1].rate:
        return None
    return sides[0].rate / sides[1].rate


def cpu_ratio_of(sides: Sequence[Side]) -> float | None:
    """Return the ratio of the servers' processor time for a unit of work, first over second: the median of the rounds.

    A ratio below 1 means that the first server needs less.  Returns None unless the time of both is known.
    """
    if len(sides) != 2 or not all(len(side.server_us) == len(side.rates) and min(side.server_us) for side in sides):
        return None
    return median(a / b for a, b in zip(sides[0].server_us, sides[1].server_us, strict=True))


def table_of(report: Report) -> Table:
    protocol = report.plan.get("protocol", BINARY.name)
    table = Table(title=f"{report.taken_at}, {report.machine}, {protocol} protocol", title_justify="left")
    table.add_column("workload")
    table.add_column("conn.", justify="right")
    for name in report.names:
        table.add_column(f"{name}\nper second", justify="right")
        table.add_column("p50 / p99 ms", justify="right")
        table.add_column("gen.\nCPU", justify="right")
        table.add_column("server\nus each", justify="right")
    if len(report.names) == 2:
        table.add_column("ratio", justify="right")
        table.add_column("CPU\nratio", justify="right")
    for workload, connections, sides in report.lines:
        cells = [workload.title, str(connections)]
        for side in sides:
            cells += [f"{side.rate:,.0f}", _latency(side), f"{side.generator_cpu:.0%}", _processor(side)]
        if len(sides) == 2:
            cells += ["" if ratio is None else f"{ratio:.2f}" for ratio in (ratio_of(sides), cpu_ratio_of(sides))]
        table.add_row(*cells)
    return table


def _latency(side: Side) -> str:
    found = side.latency_us
    return f"{found['p50'] / 1_000:.2f} / {found['p99'] / 1_000:.2f}" if found else "no calls"


def _processor(side: Side) -> str:
    return f"{median(side.server_us):,.1f}" if side.server_us else ""


def remarks_of(report: Report) -> list[str]:
    """Return lines below the table: start, memory, and workloads at which the generator was short of time."""
    found = []
    for name, footprint in zip(report.names, report.footprints, strict=True):
        known = [
            f"{label} {value:,.{digits}f} {unit}"
            for label, value, digits, unit in (
                ("start to first answer", footprint.start_s, 2, "s"),
                ("resident when idle", footprint.resident_mb_idle, 0, "MB"),
                ("resident after the load", footprint.resident_mb_after, 0, "MB"),
            )
            if value is not None
        ]
        found += [f"{name}: {', '.join(known)}"] if known else []
    busy = [
        f"{workload.name} at {connections}"
        for workload, connections, sides in report.lines
        if any(side.generator_cpu > BUSY_GENERATOR * report.plan["generators"] for side in sides)
    ]
    if busy:
        found.append(f"The generator was at its own limit in: {', '.join(busy)}; take --generators 2.")
    return found
