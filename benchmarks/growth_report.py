"""(pure) The plan of the growth benchmark and its report: groups of steps side by side, as a table and as JSON.

A group is flat if its most expensive step costs about as much as its cheapest; ``spread`` returns the ratio.

Knows nothing of endpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.table import Table

PARTS: Final = ("rows", "regions", "puts", "histories")
SMALLEST_TABLE: Final = 10_000
_REGIONS: Final = (1, 10, 100)
_REGIONS_OF_PUTS: Final = (1, 4, 16, 64)
_HISTORIES: Final = (1, 100)


@dataclass(frozen=True, slots=True)
class GrowthPlan:
    rows: int  # of the largest table
    regions: int  # of a table, at most
    overwrites: int  # of one cell, at most
    duration_s: float  # of one run of puts
    calls: int  # that a figure is the median of
    parts: tuple[str, ...] = PARTS

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of rows: powers of ten from 10,000, then the largest; a tenth and the whole of a small table."""
        powers: list[int] = []
        while SMALLEST_TABLE * 10 ** len(powers) < self.rows:
            powers.append(SMALLEST_TABLE * 10 ** len(powers))
        return (*(powers or [max(1, self.rows // 10)]), self.rows)

    @property
    def region_counts(self) -> tuple[int, ...]:
        return tuple(count for count in _REGIONS if count <= self.regions)

    @property
    def region_counts_of_puts(self) -> tuple[int, ...]:
        return tuple(count for count in _REGIONS_OF_PUTS if count <= self.regions)

    @property
    def histories(self) -> tuple[int, ...]:
        """The numbers of overwrites of one cell."""
        return (*(count for count in _HISTORIES if count < self.overwrites), self.overwrites)


@dataclass(frozen=True, slots=True)
class Step:
    what: str
    figures: dict[str, float]  # by the name of the column; microseconds, or a rate per second


@dataclass(frozen=True, slots=True)
class Group:
    """Steps that differ in one thing only."""

    part: str  # of PARTS
    title: str
    steps: tuple[Step, ...] = ()
    left_out: str = ""  # why there are no steps

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.steps[0].figures) if self.steps else ()


def spread(group: Group, column: str) -> float:
    """Return worst over best; 1 is flat.

    It is the longest over the shortest time, or the highest over the lowest rate.
    """
    found = [step.figures[column] for step in group.steps]
    return max(found) / max(min(found), 1e-9)


def remarks_of(groups: Sequence[Group]) -> list[str]:
    return [f"{group.title}: left out, {group.left_out}" for group in groups if group.left_out]


def table_of_group(group: Group) -> Table:
    """Return the table of a group with steps, without the group's title, which may be wider than the table."""
    table = Table(show_footer=True)
    table.add_column("step", footer="worst / best")
    for column in group.columns:
        table.add_column(column, justify="right", footer=f"{spread(group, column):.2f}")
    for step in group.steps:
        table.add_row(step.what, *(_format_figure(column, figure) for column, figure in step.figures.items()))
    return table


def _format_figure(column: str, figure: float) -> str:
    return f"{figure:.2f}" if figure < 10 and column.endswith(("ms", "CPU")) else f"{figure:,.0f}"


def as_json(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [
        {
            "part": group.part,
            "title": group.title,
            "left_out": group.left_out or None,
            "steps": [{"what": step.what, **step.figures} for step in group.steps],
            "worst_over_best": {column: round(spread(group, column), 3) for column in group.columns},
        }
        for group in groups
    ]
