"""(pure) Loads: what a region costs its server, averaged over a minute.

    load of a region  1 + reads/s + 2 writes/s + 2 deliveries/s + MiB/100
    load of a server  the sum over its regions, divided by the server's weight

Popularity (requests and deliveries) and size go into one figure, so balancing looks at both.  The average is
exponential: a report counts the more, the longer it is since the last one, and after a minute two thirds of an average
are the new load.  A report costs the same however long a region exists.
"""

from __future__ import annotations

import math
from typing import Final

from columnar.limits import MIB
from columnar.model.owner_messages import RegionRates

AVERAGED_OVER_MS: Final = 60_000
IDLE: Final = 1.0  # a region that nobody asks for
MIB_OF_ONE: Final = 100  # so many MiB weigh as much as one read a second


def score(rates: RegionRates) -> float:
    requests = rates.reads_per_s + 2 * rates.writes_per_s + 2 * rates.deliveries_per_s
    return IDLE + requests + rates.size_bytes / MIB / MIB_OF_ONE


def averaged(before: float, now: float, passed_ms: int) -> float:
    """The average after a load of ``now`` for ``passed_ms``."""
    return now + (before - now) * math.exp(-max(0, passed_ms) / AVERAGED_OVER_MS)
