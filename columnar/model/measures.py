"""(pure) Measures of a process: what ``/metrics`` shows, as values that can be sent to another process.

    counter, gauge   a sample has one number
    histogram        a sample has how many values were at or below each bound of BOUNDS_S and above the one before it,
                     those above the last bound, and last the sum of all values

Knows nothing of who counts, nor of Prometheus' form (``webui.metrics``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

BOUNDS_S: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"

Sample: TypeAlias = tuple[tuple[str, ...], tuple[float, ...]]  # values of the labels, numbers


@dataclass(frozen=True, slots=True)
class Family:
    name: str  # of a counter without ``_total``
    kind: str  # COUNTER, GAUGE or HISTOGRAM
    about: str
    labels: tuple[str, ...]
    samples: tuple[Sample, ...]


def single(name: str, kind: str, about: str, value: float) -> Family:
    """A counter or a gauge without labels."""
    return Family(name, kind, about, (), (((), (float(value),)),))


def by_label(name: str, kind: str, about: str, label: str, values: Iterable[tuple[str, float]]) -> Family:
    """A counter or a gauge with one label."""
    return Family(name, kind, about, (label,), tuple(((key,), (float(value),)) for key, value in values))


class Histogram:
    """Durations, counted.  Owned by the loop."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        self.seconds += seconds

    @property
    def numbers(self) -> tuple[float, ...]:
        """As of a sample."""
        return (*map(float, self.buckets), self.seconds)
