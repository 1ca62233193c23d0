"""(pure) Response times that follow from the stops of a server, without a load generator.

    start s outside all stops   answered at s + service
    start s within [b, e)       answered at e + service, so its visitor waits e - s + service

    a stop of 1 s in 10, even starts:  p95 0.5 s, p99 0.9 s, max 1 s, and the other nine in ten take the service time

Invariants:
    I1. A response time is at least the service time, and at most that and the longest stop.
    I2. Nothing of a generator is used: neither its clock nor its histogram.  The begin of a plan is known from the
        moments at which the server read the requests.

Knows nothing of clocks; moments are seconds of the server's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

PERCENTS: Final = (50, 90, 95, 99)
NAMES: Final = (*(f"p{percent}" for percent in PERCENTS), "max", "mean")
STOPPED: Final = ("p95", "p99", "max")  # what lies well within the stops, if a tenth of all requests meets one

Figures = dict[str, float]  # milliseconds by NAMES


class Stop(NamedTuple):
    """A stretch of the server's clock in which it did nothing."""

    begin_s: float
    end_s: float


def even_starts(begin_s: float, rate: float, seconds: float) -> list[float]:
    return [begin_s + number / rate for number in range(round(rate * seconds))]


def starts_by_connection(first_s: Iterable[float], rate: float, begin_s: float, end_s: float) -> list[float]:
    """Return the starts of connections that share a rate, each evenly from its first request, in [begin, end)."""
    first_s = list(first_s)
    gap_s = len(first_s) / rate
    return [
        one_s + number * gap_s
        for one_s in first_s
        for number in range(ceil((begin_s - one_s) / gap_s), ceil((end_s - one_s) / gap_s))
    ]


def response_times(starts_s: Iterable[float], stops: Sequence[Stop], service_s: float) -> list[float]:
    """Return the seconds that each request waits for its answer."""
    return [
        service_s + max((stop.end_s - start_s for stop in stops if stop.begin_s <= start_s < stop.end_s), default=0.0)
        for start_s in starts_s
    ]


def begin_of(planned_s: Mapping[str, float], read_s: Mapping[str, float]) -> float:
    """Return the moment of the server's clock from which a plan counts.

    No request is read before it was due, so the begin is at or before each difference; the smallest one is late by the
    shortest way from the generator to the server.  Raises ValueError if the server read no request of the plan.
    """
    return min(moment_s - planned_s[path] for path, moment_s in read_s.items() if path in planned_s)


def noted_times(planned_s: Mapping[str, float], begin_s: float, read_s: Mapping[str, float]) -> list[float]:
    """Return the seconds from the start of each request to the moment at which the server read and answered it.

    They have in them what the stops alone do not say: after a stop the server reads those that waited one by one, and
    a machine that is busy makes it stand still by itself.  Raises KeyError if the server did not read a request.
    """
    return [read_s[path] - begin_s - at_s for path, at_s in planned_s.items()]


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value such that ``percent`` of all are at most as large."""
    return sorted(values)[max(1, ceil(round(percent / 100 * len(values), 6))) - 1]


def figures_of(seconds: Sequence[float]) -> Figures:
    """Return the figures of response times.  Raises IndexError if there are none."""
    found = {f"p{percent}": percentile(seconds, percent) * 1000 for percent in PERCENTS}
    return {**found, "max": max(seconds) * 1000, "mean": sum(seconds) / len(seconds) * 1000}


def off_percent(found: Figures, reckoned: Figures) -> Figures:
    """Return by how much each figure is above the reckoned one, in percent of it."""
    return {name: (found[name] / reckoned[name] - 1) * 100 for name in NAMES}
