"""How alike two traces are (pure).

    hours        share of the requests by hour: the largest difference, as a part of the mean hour's share
    popularity   share of the requests that the most popular pages have, by share of the pages: the largest gap between
                 the two curves.  If most pages of the second trace have all their requests of the first one, it is a
                 sample by pages: the others, which were thinned, are left out of both curves
    hot pages    pages with over HOT of the first trace: the largest difference of their share, as a part of it; 1 for
                 one that the second trace lacks.  If most requests of the second trace are of pages that the first one
                 does not have, their names were changed (``scrub --rename``, ``map``), and only names of both count
    kinds        share of views, edits, views of missing pages: the largest difference
    gaps         times between two requests of a page, by powers of two: the largest gap between the two curves

Each is 0 for a trace and itself.  Knows nothing of files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final

from .lines import MICROS, Request
from .sampling import HOT, PAGE_COUNTERS, PageCounts

MEASURES: Final = ("hours", "popularity", "hot pages", "kinds", "gaps")
HOUR_US: Final = 3_600 * MICROS
_POINTS: Final = 400  # of a curve, from 1 page to all


class Profile:
    """The figures by which a trace is compared: bounded by hours and PAGE_COUNTERS."""

    def __init__(self) -> None:
        self.hours: Counter[int] = Counter()
        self.kinds: Counter[str] = Counter()
        self.gaps: Counter[int] = Counter()  # by bits of the microseconds
        self.pages = PageCounts()
        self._latest: dict[str, int] = {}

    def add_request(self, request: Request, page: str) -> None:
        self.hours[request.time_us // HOUR_US] += 1
        self.kinds[request.kind] += 1
        self.pages.add(page)
        before = self._latest.get(page)
        if before is not None:
            self.gaps[max(0, request.time_us - before).bit_length()] += 1
        elif len(self._latest) >= PAGE_COUNTERS:
            return
        self._latest[page] = request.time_us

    @property
    def count(self) -> int:
        return self.kinds.total()


def differences(whole: Profile, part: Profile) -> dict[str, float]:
    """Return the difference by each of MEASURES."""
    return {
        "hours": _hours(whole.hours, part.hours),
        "popularity": _popularity(whole.pages.counts, part.pages.counts),
        "hot pages": _hot_pages(whole, part),
        "kinds": max((abs(a - b) for a, b in _shares(whole.kinds, part.kinds)), default=0.0),
        "gaps": max(
            (abs(a - b) for a, b in zip(*map(_steps, (whole.gaps, part.gaps)), strict=True)),
            default=0.0,
        ),
    }


def _shares(
    first: Mapping[int | str, int] | Counter[str] | Counter[int],
    second: Mapping[int | str, int] | Counter[str] | Counter[int],
) -> list[tuple[float, float]]:
    totals = max(1, sum(first.values())), max(1, sum(second.values()))
    keys = first.keys() | second.keys()
    return [(first.get(key, 0) / totals[0], second.get(key, 0) / totals[1]) for key in keys]  # type: ignore[arg-type]


def _hours(first: Counter[int], second: Counter[int]) -> float:
    if not first.keys() & second.keys() and first and second:  # moved by weeks: hour by hour from the first
        second = Counter({hour - min(second) + min(first): count for hour, count in second.items()})
    if not first or not second:
        return float(bool(first) != bool(second))
    hours = max(first.keys() | second.keys()) - min(first.keys() | second.keys()) + 1
    return max(abs(a - b) for a, b in _shares(first, second)) * hours


def _popularity(first: Mapping[str, int], second: Mapping[str, int]) -> float:
    thinned = {page for page, count in second.items() if page in first and first[page] != count}
    if 2 * len(thinned) > len(second):
        thinned = set()
    curves = [_curve(count for page, count in counts.items() if page not in thinned) for counts in (first, second)]
    return max((abs(a - b) for a, b in zip(*curves, strict=True)), default=0.0)


def _curve(counts: Iterable[int]) -> list[float]:
    """Return the share of the requests of the most popular 1 / _POINTS, 2 / _POINTS ... of the pages."""
    sums = [0, *accumulate(sorted(counts, reverse=True))]
    pages = len(sums) - 1
    if not pages:
        return [0.0] * _POINTS
    found = []
    for point in range(1, _POINTS + 1):
        at = pages * point / _POINTS
        low = min(int(at), pages - 1)
        found.append((sums[low] + (sums[low + 1] - sums[low]) * (at - low)) / sums[-1])
    return found


def _hot_pages(whole: Profile, part: Profile) -> float:
    hot = {page: n / whole.count for page, n in whole.pages.counts.items() if n > HOT * whole.count}
    kept = part.pages.counts
    named = sum(n for page, n in kept.items() if page in whole.pages.counts)
    is_renamed = 2 * named <= sum(kept.values())
    return max(
        (
            abs(kept.get(page, 0) / part.count / share - 1)
            for page, share in hot.items()
            if page in kept or not is_renamed
        ),
        default=0.0,
    )


def _steps(counts: Counter[int]) -> list[float]:
    """Return the share of the gaps of at most 0, 1, 2, ... bits."""
    total = max(1, counts.total())
    return list(accumulate(counts[bits] / total for bits in range(64)))
