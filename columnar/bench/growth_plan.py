"""(pure) Which parts of the growth measurement run, how large they get, and in which order steps are taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

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
        """Rows: 10,000 and on by powers of ten, then the largest; of a small table a tenth and the whole."""
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
        """Overwrites of one cell."""
        return (*(count for count in _HISTORIES if count < self.overwrites), self.overwrites)


class Watcher(Protocol):
    """Is notified of the work under way and its progress."""

    def began(self, what: str, total: int) -> None: ...

    def advance(self, count: int) -> None: ...


def zigzag_places(places: int, rounds: int) -> Iterator[int]:
    """0, 1, 2, then 2, 1, 0, and so on: what else the machine does meets every place alike."""
    for number in range(rounds):
        yield from range(places) if number % 2 == 0 else range(places - 1, -1, -1)
