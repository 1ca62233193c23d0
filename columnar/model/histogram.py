"""(pure) A histogram of durations, with the bounds that all pages and metrics use.  Knows nothing of clocks."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BOUNDS_S: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)


class Histogram:
    """Counts of durations.  Owned by the loop."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float, count: int = 1) -> None:
        """Count ``count`` durations of ``seconds`` each."""
        self.buckets[bisect_left(BOUNDS_S, seconds)] += count
        self.seconds += seconds * count

    @property
    def numbers(self) -> tuple[float, ...]:
        """The counts of the buckets and the sum of the durations, as a sample has them (``model.measures``)."""
        return (*map(float, self.buckets), self.seconds)
