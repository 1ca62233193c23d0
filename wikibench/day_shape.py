"""How the rate of requests rises and falls over a day (pure).

HOURLY are the mean request rates of the hours of a day (UTC) relative to the mean of
the day, of Wikipedia on 18 to 21 September 2007: the mean over the three or four days
at hand.  Peak to trough 2.2 here (2.39 within the single days), peak to mean 1.35.

Source of the numbers: the hourly rates that the author of wesk124/wikitraces-toolkit
computed from the public 10 % trace of Wikipedia's requests (Urdaneta, Pierre and van
Steen, "Wikipedia workload analysis for decentralized hosting", Computer Networks 53,
2009; wikibench.eu).  Only these derived numbers are shipped.

An hour's rate stands for the middle of its hour-long log file, which began at a
quarter past; between two middles the rate is a straight line, and the day closes.
"""

from __future__ import annotations

from typing import Final

HOURLY: Final = (
    *(0.967, 0.943, 0.951, 0.932, 0.864, 0.757, 0.651, 0.620, 0.690, 0.753, 0.820, 0.833),
    *(0.853, 0.969, 1.148, 1.297, 1.352, 1.337, 1.294, 1.281, 1.250, 1.230, 1.172, 1.037),
)
PEAK: Final = max(HOURLY)
DAY_S: Final = 86_400
_MIDDLE_H: Final = 0.75  # of the file of hour h: it runs from h:15 to (h+1):15


def factor(second_of_day: float) -> float:
    """Return the rate at this second of a day (UTC), relative to the mean of the day."""
    hours = (second_of_day / 3600 - _MIDDLE_H) % 24
    before = int(hours) % 24
    part = hours - int(hours)
    return HOURLY[before] * (1 - part) + HOURLY[(before + 1) % 24] * part
