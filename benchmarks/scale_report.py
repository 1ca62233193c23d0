"""(pure) How rates and processor time change with the number of servers, as a table for a person and as JSON.

Ratios relate to the first number of servers; each is the median of the ratios of the rounds.  The processor time for a
unit of the whole store's work is that of the busiest server alone.  With enough cores that server is the limit, and the
rate of the store goes up as this time goes down.

Knows nothing of stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.table import Table

from columnar.bench.report import BUSY_GENERATOR, Side
from columnar.bench.workloads import Workload


@dataclass(frozen=True, slots=True)
class Scaled:
    """A workload with one number of servers."""

    side: Side
    rate_ratio: float  # to the first number of servers
    busiest_us: float  # processor time of the busiest server for a unit of the work of all
    busiest_ratio: float  # the same, to the first number of servers; 0: below a tick of its clock


def scaled(sides: Sequence[Side]) -> list[Scaled]:
    """Return the figures of one workload; ``sides`` has its measurements with each number of servers."""
    first = sides[0]
    return [
        Scaled(
            side,
            _ratio(side.rates, first.rates),
            median(side.busiest_us) if side.busiest_us else 0.0,
            _ratio(side.busiest_us, first.busiest_us),
        )
        for side in sides
    ]


def _ratio(several: Sequence[float], first: Sequence[float]) -> float:
    if not first or not min(first):
        return 0.0
    return median(one / other for one, other in zip(several, first, strict=True))


def table_of_scale(title: str, counts: Sequence[int], lines: Sequence[tuple[Workload, Sequence[Scaled]]]) -> Table:
    """Return the table of ``lines``, one for each workload, with a figure for each number of servers in ``counts``."""
    table = Table(title=title, title_justify="left")
    table.add_column("workload")
    for count in counts:
        name = f"{count} server{'s' if count > 1 else ''}"
        table.add_column(f"{name}\nper second", justify="right")
        table.add_column("times", justify="right")
        table.add_column("busiest\nus each", justify="right")
        table.add_column("ratio", justify="right")
    for workload, found in lines:
        cells = [workload.title]
        for one in found:
            cells += [f"{one.side.rate:,.0f}", f"{one.rate_ratio:.2f}"]
            cells += [f"{one.busiest_us:,.1f}", f"{one.busiest_ratio:.2f}" if one.busiest_ratio else ""]
        table.add_row(*cells)
    return table


def remarks_of_scale(
    lines: Sequence[tuple[Workload, Sequence[Scaled]]], generators: int, cores: int, most: int
) -> list[str]:
    """Return lines below the table.  ``most`` is the number of servers of the largest store."""
    found = []
    busy = [
        workload.name
        for workload, several in lines
        if any(one.side.generator_cpu > BUSY_GENERATOR * generators for one in several)
    ]
    if busy:
        found.append(f"The generator was at its own limit in: {', '.join(busy)}; take --generators {generators + 1}.")
    if cores < most + generators:
        found.append(
            f"{most} servers and {generators} generator{'s' if generators > 1 else ''} share {cores} cores here: the"
            " rates say less than the processor time of the busiest server."
        )
    return found


def as_json(counts: Sequence[int], lines: Sequence[tuple[Workload, Sequence[Scaled]]]) -> list[dict[str, Any]]:
    return [
        {
            "workload": workload.name,
            "unit": workload.unit,
            "servers": {str(count): asdict(one) for count, one in zip(counts, found, strict=True)},
        }
        for workload, found in lines
    ]
