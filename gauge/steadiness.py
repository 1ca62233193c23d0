"""(pure) Steadiness: where the warm-up of a run ends, and whether its backlog grows.

    warm-up   MSER (White, 1997): of the means of a run, leave out so many of the first that the squared standard error
              of the mean of the others is smallest.  A long run is cut into batches of five seconds (MSER-5), a run of
              less than LONG_S into seconds
    backlog   the requests that are open at the end of each second.  It grows if the median of the last third is over
              that of the first third by more than BACKLOG_S of arrivals; a median does not see a stall of a second.
              In less than LEAST_S a backlog has less time to grow: BACKLOG_SHARE of the run's arrivals, and at least
              BACKLOG_LEAST requests, which chance makes at low rates

Knows nothing of requests: a second is a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import fmean, median
from typing import Final

LEAST_S: Final = 10  # a shorter run has too few seconds to judge
LONG_S: Final = 50
BATCH_S: Final = 5
LEAST_LEFT: Final = 5  # means that are left, because fewer can agree by chance
LEFT_SHARE: Final = 0.33  # of the means, at least: in 20 s of noise 5 means agree in one run of seven, 7 in one of 14
BACKLOG_S: Final = 0.1
BACKLOG_SHARE: Final = 0.0075
BACKLOG_LEAST: Final = 10
SHORTEST_S: Final = 3  # a third has a second


def warm_up_end(seconds: Sequence[float]) -> int | None:
    """Return the seconds of the warm-up; None if it does not end in the first half: the run is not steady then.

    ``seconds`` are means of the figure that is to be steady, such as the service time; a run of less than LEAST_S
    counts as steady from its beginning.
    """
    if len(seconds) < LEAST_S:
        return 0
    batch = BATCH_S if len(seconds) >= LONG_S else 1
    means = [fmean(seconds[at : at + batch]) for at in range(0, len(seconds) - batch + 1, batch)]
    left = max(LEAST_LEFT, ceil(len(means) * LEFT_SHARE))
    cut = min(range(len(means) - left + 1), key=lambda first: _squared_error(means[first:]))
    return None if cut * batch > len(seconds) / 2 else cut * batch


def _squared_error(means: Sequence[float]) -> float:
    middle = fmean(means)
    return sum((one - middle) ** 2 for one in means) / len(means) ** 2


def is_backlog_growing(open_requests: Sequence[float], rate_per_s: float) -> bool:
    """Return whether the open requests at the ends of the seconds grow, at so many arrivals per second."""
    seconds = len(open_requests)
    if seconds < SHORTEST_S:
        return False
    most = BACKLOG_S * rate_per_s
    if seconds < LEAST_S:
        most = max(BACKLOG_SHARE * seconds * rate_per_s, BACKLOG_LEAST)
    third = seconds // 3
    return median(open_requests[-third:]) - median(open_requests[:third]) > most
