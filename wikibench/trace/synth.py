"""Traces that were never recorded: requests made from titles, popularity and the shape of a day (pure).

    arrivals  exponential gaps (visitors are independent), or equal gaps; with a day shape the rate follows a whole day,
              squeezed into the trace
    page      views are drawn by the law of views, edits by the law of edits over a rank order of their own: the most
              read pages are not the most edited ones
    missing   a page that is not among the titles, marked "missing"
    hot       from the middle of the trace on, a share of the views asks for one page, which was of middling popularity

HOURLY, the shape of a day, has the mean request rates of Wikipedia in the hours of a day (UTC), relative to the mean of
the day. They are means over 18 to 21 September 2007 (three or four days for each hour). The ratio of peak to trough is
2.2 (2.39 within single days), of peak to mean 1.35.

Source of the numbers: the hourly rates that the author of wesk124/wikitraces-toolkit
computed from the public 10 % trace of Wikipedia's requests (Urdaneta, Pierre and van
Steen, "Wikipedia workload analysis for decentralized hosting", Computer Networks 53,
2009; wikibench.eu).  Only these derived numbers are shipped.

An hour's rate stands for the middle of its hour-long log file, which began at a
quarter past; between two middles the rate is a straight line, and the day closes.

The same titles, options and seed give the same trace, byte for byte.

Knows nothing of files and of the source of the titles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Final, Protocol

from gauge.arrivals import gaps
from gauge.popularity import EDITS, VIEWS, RankLaw, Sampler, weights
from wikibench.addresses.paths import name_path
from wikibench.errors import PlanError

from .lines import MICROS, MISSING, SAVE, VIEW, Request

EPOCH_S: Final = 1_190_160_000  # 19 September 2007, 00:00 UTC: the first whole day of the original trace
HOURLY: Final = (
    *(0.967, 0.943, 0.951, 0.932, 0.864, 0.757, 0.651, 0.620, 0.690, 0.753, 0.820, 0.833),
    *(0.853, 0.969, 1.148, 1.297, 1.352, 1.337, 1.294, 1.281, 1.250, 1.230, 1.172, 1.037),
)
PEAK: Final = max(HOURLY)
DAY_S: Final = 86_400
_MIDDLE_H: Final = 0.75  # of the file of hour h: it runs from h:15 to (h+1):15
HOST: Final = "http://wiki.example"  # replays drop it


class Rng(Protocol):
    """The interface of a source of chance; ``random.Random`` is one."""

    def random(self) -> float: ...

    def shuffle(self, x: list[int]) -> None: ...

    def randrange(self, start: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """The properties of a trace.  Two of requests, rate and duration give the third."""

    requests: int
    rate: float  # per second, mean over the trace
    edits: float = 0.0  # share of the requests
    missing: float = 0.0  # share of the requests
    hot: float = 0.0  # share of the views of the second half
    day: bool = False
    even: bool = False
    views_law: RankLaw = field(default=VIEWS)
    edits_law: RankLaw = field(default=EDITS)
    start_s: int = EPOCH_S

    def __post_init__(self) -> None:
        if self.requests < 1 or not self.rate > 0:
            raise PlanError("a trace needs at least one request and a rate above 0")
        if self.edits < 0 or self.missing < 0 or self.edits + self.missing > 1:
            raise PlanError("--edits and --missing are shares of the requests: at least 0 and together at most 100%")
        if not 0 <= self.hot <= 1:
            raise PlanError("--hot is a share of the views: 0% to 100%")

    @property
    def duration_s(self) -> float:
        return self.requests / self.rate


def size_of(requests: int | None, rate: float | None, duration_s: float | None) -> tuple[int, float]:
    """Return requests and rate from any two of the three.  Raises PlanError unless exactly two are given."""
    if requests is not None and rate is not None and duration_s is None:
        return requests, rate
    if requests is not None and duration_s is not None and rate is None:
        return requests, requests / duration_s
    if rate is not None and duration_s is not None and requests is None:
        return max(1, round(rate * duration_s)), rate
    raise PlanError("give exactly two of --requests, --rate and --duration")


def synthesize(titles: Sequence[str], recipe: Recipe, rng: Rng) -> Iterator[Request]:
    """Yield the requests of a trace, in order of time."""
    if not titles:
        raise PlanError("no titles: a trace needs at least one page to ask for")
    known = frozenset(titles)
    read_order, edit_order = list(range(len(titles))), list(range(len(titles)))
    rng.shuffle(read_order)
    rng.shuffle(edit_order)
    views = Sampler(weights(recipe.views_law, len(titles)))
    edits = Sampler(weights(recipe.edits_law, len(titles)))
    for counter, at_s in enumerate(_arrivals(recipe, rng), start=1):
        chance = rng.random()
        if chance < recipe.edits:
            name, flag = titles[edit_order[edits.draw(rng)]], SAVE
        elif chance < recipe.edits + recipe.missing:
            name, flag = _missing_name(titles, known, rng), MISSING
        elif recipe.hot and counter > recipe.requests // 2 and rng.random() < recipe.hot:
            name, flag = titles[read_order[len(titles) // 2]], VIEW
        else:
            name, flag = titles[read_order[views.draw(rng)]], VIEW
        time_us = recipe.start_s * MICROS + round(at_s * 1000) * 1000  # the format's milliseconds
        yield Request(time_us, f"{HOST}/{name_path(name)}", flag, counter)


def _arrivals(recipe: Recipe, rng: Rng) -> Iterator[float]:
    """Yield the arrivals in seconds, from 0 on.

    Gaps are drawn on a clock of the mean rate; ``_DayClock`` turns its times into wall-clock times, which the day shape
    stretches and squeezes.
    """
    expected, between = 0.0, repeat(1.0) if recipe.even else gaps(rng)
    to_seconds = _day_clock(recipe.duration_s) if recipe.day else None
    for _ in range(recipe.requests):
        linear_s = expected / recipe.rate
        yield to_seconds.at(linear_s) if to_seconds else linear_s
        expected += next(between)


class _DayClock:
    """A clock that turns time at the mean rate into time at the rate of the day; for rising times only."""

    def __init__(self, duration_s: float, steps: int) -> None:
        self._step_s = duration_s / steps
        shares = [day_factor((i + 0.5) / steps * DAY_S) for i in range(steps)]
        mean = sum(shares) / steps
        self._factors = [share / mean for share in shares]
        self._step = 0
        self._done_s = 0.0  # mean-rate time spent before the current step

    def at(self, linear_s: float) -> float:
        while self._step < len(self._factors) - 1:
            spent = self._factors[self._step] * self._step_s
            if self._done_s + spent > linear_s:
                break
            self._done_s += spent
            self._step += 1
        return self._step * self._step_s + (linear_s - self._done_s) / self._factors[self._step]


def _day_clock(duration_s: float) -> _DayClock:
    return _DayClock(duration_s, steps=24 * 60)


def _missing_name(titles: Sequence[str], known: frozenset[str], rng: Rng) -> str:
    """Return a name that looks like a name of the wiki but is not in ``known``."""
    while True:
        name = f"{titles[rng.randrange(len(titles))]} {rng.randrange(1_000_000):06d}"
        if name not in known:
            return name


def day_factor(second_of_day: float) -> float:
    """Return the rate at this second of a day (UTC), relative to the mean of the day."""
    hours = (second_of_day / 3600 - _MIDDLE_H) % 24
    before = int(hours) % 24
    part = hours - int(hours)
    return HOURLY[before] * (1 - part) + HOURLY[(before + 1) % 24] * part
