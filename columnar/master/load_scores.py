"""(pure) Loads: what a region costs its server, averaged over a minute.

    load of a region  1 + reads/s + 2 writes/s + 2 deliveries/s + MiB/100
    load of a server  the sum over its regions, divided by the server's weight

Popularity (requests and deliveries) and size go into one figure, so balancing considers both.  A report has more
weight, the longer it is since the last one.  The average forgets: it has no data from before the last two minutes, so
two minutes after loads have become steady nothing changes any more, however high they were before.  A report costs the
same however long a region exists.
"""

from __future__ import annotations

from typing import Final

from columnar.limits import MIB
from columnar.model.owner_messages import RegionRates

AVERAGED_OVER_MS: Final = 60_000
IDLE: Final = 1.0  # a region without requests
MIB_OF_ONE: Final = 100  # this many MiB weigh as much as one read a second


def score(rates: RegionRates) -> float:
    requests = rates.reads_per_s + 2 * rates.writes_per_s + 2 * rates.deliveries_per_s
    return IDLE + requests + rates.size_bytes / MIB / MIB_OF_ONE


def summed(before: float, total: float, passed_ms: int, load: float, for_ms: int) -> tuple[float, float, int]:
    """Return the first three arguments after adding ``load``, which lasted for ``for_ms``.

    ``before``: the mean of the minute before this one; ``total``: of this one, the sum of loads by milliseconds;
    ``passed_ms``: of this one.  A clock that goes back stands still.
    """
    total, passed_ms = total + load * max(0, for_ms), passed_ms + max(0, for_ms)
    return (before, total, passed_ms) if passed_ms < AVERAGED_OVER_MS else (total / passed_ms, 0.0, 0)


def averaged(before: float, total: float, passed_ms: int) -> float:
    """Average over a minute: the passed part of this minute, and for the rest of it the minute before."""
    return (total + before * (AVERAGED_OVER_MS - passed_ms)) / AVERAGED_OVER_MS
