"""(pure) Backpressure of a change log on its writers: none, an alarm, a delay, a refusal.

The records that a paused or slow follower still needs are never dropped, so they need a bound.  Below half of the bound
writers are not affected.  Above that, acknowledgements are delayed by up to LONGEST_DELAY_S, with the third power of
the share of the second half that is used: gently at first, then steeply, as Scylla slows writers for a backlog of view
updates.  At the bound writes are refused with RegionTooBusyException.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.limits import LOG_BYTES, LOG_RECORDS

ALARM_SHARE: Final = 0.5
LONGEST_DELAY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Bounds on the part of a region's change log that its slowest promising follower (``Kind.promises``) needs."""

    records: int = LOG_RECORDS
    size_bytes: int = LOG_BYTES


@dataclass(frozen=True, slots=True)
class Backpressure:
    share: float  # of the bound, 1.0 is full
    delay_s: float
    refuses: bool

    @property
    def alarms(self) -> bool:
        return self.share >= ALARM_SHARE


NO_BACKPRESSURE: Final = Backpressure(0.0, 0.0, False)


def backpressure_of(records: int, size_bytes: int, bounds: LogBounds = LogBounds()) -> Backpressure:
    share = max(records / bounds.records, size_bytes / bounds.size_bytes)
    if share < ALARM_SHARE:
        return Backpressure(share, 0.0, False)
    pressed = min(1.0, (share - ALARM_SHARE) / (1.0 - ALARM_SHARE))
    return Backpressure(share, LONGEST_DELAY_S * pressed**3, share >= 1.0)
