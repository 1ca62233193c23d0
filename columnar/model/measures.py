"""(pure) Measures of a process: what ``/metrics`` shows, as values that can be sent to another process.

    counter, gauge   a sample has one number
    histogram        a sample has how many values lie at or below each bound of ``histogram.BOUNDS_S`` and above the one
                     before it, those above the last bound, and last the sum of all values

Knows nothing of who counts, nor of Prometheus' form (``webui.metrics``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

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


@dataclass(frozen=True, slots=True)
class SlowRequest:
    at_ms: int  # when it was answered, of the Unix epoch
    took_ms: int
    method: str
    about: str  # table, region, row, sizes, peer: as in the log
    server: str = ""  # that answered it; empty in a process that is alone
