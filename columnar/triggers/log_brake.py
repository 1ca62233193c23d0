"""(pure) What a long change log does to its writers: nothing, an alarm, a brake, a stop.

What a paused or slow trigger still needs of a log is kept, never dropped; so it needs a bound.  Below half of it
writers feel nothing; from there their acknowledgements are held back by up to LONGEST_DELAY_S, with
the third power of how far they are (as Scylla slows writers for a backlog of view updates: gentle
at first, then steep); at the bound writes are refused with RegionTooBusyException.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.limits import LOG_BYTES, LOG_RECORDS

ALARM_SHARE: Final = 0.5
LONGEST_DELAY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Of what the slowest trigger still needs of the change log of one region."""

    records: int = LOG_RECORDS
    size_bytes: int = LOG_BYTES


@dataclass(frozen=True, slots=True)
class Brake:
    share: float  # of the bound, 1.0 is full
    delay_s: float
    refuses: bool

    @property
    def alarms(self) -> bool:
        return self.share >= ALARM_SHARE


NO_BRAKE: Final = Brake(0.0, 0.0, False)


def brake_for(records: int, size_bytes: int, bounds: LogBounds = LogBounds()) -> Brake:
    share = max(records / bounds.records, size_bytes / bounds.size_bytes)
    if share < ALARM_SHARE:
        return Brake(share, 0.0, False)
    pressed = min(1.0, (share - ALARM_SHARE) / (1.0 - ALARM_SHARE))
    return Brake(share, LONGEST_DELAY_S * pressed**3, share >= 1.0)
