"""(pure) Measures of a process: the contents of ``/metrics``, as values that one process can send to another.

    counter, gauge   a sample has one number
    histogram        a sample has one count for each bound of ``histogram.BOUNDS_S`` (values up to the bound and above
                     the previous one), the count of values above the last bound, and the sum of all values

Knows nothing of who counts, nor of the format of Prometheus (``webui.metrics``).
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
    name: str  # a counter's name lacks ``_total``
    kind: str  # COUNTER, GAUGE or HISTOGRAM
    about: str
    labels: tuple[str, ...]
    samples: tuple[Sample, ...]


def single(name: str, kind: str, about: str, value: float) -> Family:
    """Return a counter or a gauge without labels."""
    return Family(name, kind, about, (), (((), (float(value),)),))


def by_label(name: str, kind: str, about: str, label: str, values: Iterable[tuple[str, float]]) -> Family:
    """Return a counter or a gauge with one label."""
    return Family(name, kind, about, (label,), tuple(((key,), (float(value),)) for key, value in values))


@dataclass(frozen=True, slots=True)
class RequestTime:
    """The time, the size and the outcome of an answered request.  The rest of the time it was worked on."""

    took_s: float  # from the handler's start to the answer
    waited_s: float = 0.0  # of that, from the first pause to the answer
    waited_for: str = ""  # a word: see ``wire.caller``; empty: it never paused
    reply_bytes: int = 0
    error: str = ""  # the class of the error that was answered
    trace_parent: str = ""  # of an HTTP request: its header traceparent


@dataclass(frozen=True, slots=True)
class SlowRequest:
    at_ms: int  # when it was answered, since the Unix epoch
    took_ms: int
    method: str
    about: str  # table, region, row, sizes, peer: as in the log
    server: str = ""  # the server that answered it; empty in a standalone process
