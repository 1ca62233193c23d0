"""(pure) The search for the largest rate that a system keeps: which rate to try next, and the answer with its interval.

A try at one rate is kept or missed.  On a real machine the same rate is kept in one try and missed in the next: its
speed differs by some per cent from minute to minute, and now and then it stalls.  A search that believes each try ends
low (a stall is believed for ever) and answers without saying how well it knows.  So the tries are evidence:

    bracket   rates are doubled (halved) in short tries, from the first on, until one is kept and the next is missed.
              A miss is tried once more, because one stall would else set the bracket
    bisect    with m the logarithm of the rate that half of the tries keep, and s the spread of the machine,

                  P(kept at r) = LAPSE + (1 - 2 LAPSE) Phi((m - ln r) / s)

              on a grid of m and s, flat at first.  Each try, of full length, is at the median of m
    answer    the median of m, and the interval that holds 90 % of it; it is over when the interval is narrow enough

Invariants:
    I1. The search ends: after TRIES tries, or the budget, at the latest.
    I2. ``next_step`` and ``answer`` depend on the tries alone; a search can be stopped and taken up again.

Knows nothing of clocks and systems: the caller makes the tries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import erf, exp, log, sqrt
from typing import Final, Literal

TRIES: Final = 30  # of full length, at most
LEAST_TRIES: Final = 6  # of full length: so few can agree by chance
SHORT_TRIES: Final = 40  # of the bracket: doubling reaches any rate in fewer, each miss tried twice
LAPSE: Final = 0.03  # share of the tries that end against all odds, either way
SPREADS: Final = (0.01, 0.02, 0.04, 0.08, 0.16)
GRID: Final = 300
MARGIN: Final = 1.3  # the grid goes so far beyond the bracket, because a short try may be wrong
INTERVAL: Final = 0.9
_SQRT2: Final = sqrt(2.0)

Why = Literal["precise", "tries", "budget", "every rate kept", "no rate kept"]


@dataclass(frozen=True, slots=True)
class Try:
    rate: float
    is_kept: bool
    is_short: bool = False  # of the bracket


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """``first``, ``lowest`` and ``highest`` in requests per second; ``precision`` as a share of the answer."""

    first: float = 50.0
    lowest: float = 1.0
    highest: float = 20_000.0
    precision: float = 0.1  # the width of the interval
    short_s: float = 8.0
    long_s: float = 20.0
    budget_s: float | None = None  # of the tries together


@dataclass(frozen=True, slots=True)
class Step:
    rate: float
    seconds: float
    is_short: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The answer: half of the tries keep ``rate``, nine of ten keep ``safe_rate``.

    ``low`` and ``high`` are the ends of the interval that holds the rate with 90 %.  If no rate was kept all four are
    0, and if every rate was kept they are the highest one that was tried.
    """

    rate: float
    low: float
    high: float
    safe_rate: float
    why: Why

    @property
    def width(self) -> float:
        return (self.high - self.low) / self.rate if self.rate else 0.0


def next_step(tries: Sequence[Try], plan: SearchPlan) -> Step | None:
    """Return the next try; None when the search is over."""
    bracket = bracket_of(tries, plan)
    seconds = min(plan.short_s, plan.long_s)
    if isinstance(bracket, float):
        is_affordable = plan.budget_s is None or _spent_s(tries, plan) + seconds <= plan.budget_s
        return Step(bracket, seconds, is_short=True) if is_affordable else None
    if isinstance(bracket, str):
        return None
    belief = Belief.after(tries, *bracket)
    if _over(tries, plan, belief) is not None:
        return None
    return Step(min(max(belief.rate_at(0.5), plan.lowest), plan.highest), plan.long_s, is_short=False)


def answer(tries: Sequence[Try], plan: SearchPlan) -> Found:
    """Return the answer as far as the tries go."""
    bracket = bracket_of(tries, plan)
    if not isinstance(bracket, tuple):
        kept = max((one.rate for one in tries if one.is_kept), default=0.0)
        why: Why = "budget" if isinstance(bracket, float) else bracket
        return Found(kept, kept, kept, kept, why)
    belief = Belief.after(tries, *bracket)
    outside = (1 - INTERVAL) / 2
    found = [belief.rate_at(share) for share in (0.5, outside, 1 - outside)]
    return Found(found[0], found[1], found[2], belief.kept_in(0.9), _over(tries, plan, belief) or "budget")


def bracket_of(
    tries: Sequence[Try], plan: SearchPlan
) -> tuple[float, float] | float | Literal["every rate kept", "no rate kept"]:
    """Return the kept and the missed rate of the short tries, or else the rate to try next, or why there is none."""
    short = [one for one in tries if one.is_short]
    if not short:
        return float(min(max(plan.first, plan.lowest), plan.highest))
    kept = {one.rate for one in short if one.is_kept}
    missed = {one.rate for one in short} - kept
    last = short[-1]
    if len(short) < SHORT_TRIES and not last.is_kept and sum(one.rate == last.rate for one in short) == 1:
        return float(last.rate)
    low = max((rate for rate in kept if rate < min(missed, default=float("inf"))), default=None)
    high = min(missed, default=None)
    if low is not None and high is not None:
        return low, high
    if high is None:
        return "every rate kept" if low is None or low >= plan.highest else float(min(low * 2, plan.highest))
    return "no rate kept" if high <= plan.lowest else float(max(high / 2, plan.lowest))


def _spent_s(tries: Sequence[Try], plan: SearchPlan) -> float:
    return sum(min(plan.short_s, plan.long_s) if one.is_short else plan.long_s for one in tries)


def _over(tries: Sequence[Try], plan: SearchPlan, belief: Belief) -> Why | None:
    count = sum(not one.is_short for one in tries)
    outside = (1 - INTERVAL) / 2
    middle, low, high = (belief.rate_at(share) for share in (0.5, outside, 1 - outside))
    if count >= LEAST_TRIES and high - low <= plan.precision * middle:
        return "precise"
    if count >= TRIES:
        return "tries"
    if plan.budget_s is not None and _spent_s(tries, plan) + plan.long_s > plan.budget_s:
        return "budget"
    return None


class Belief:
    """A belief about m and s after some tries: the weights of a grid."""

    __slots__ = ("_logs", "_weights")

    def __init__(self, logs: Sequence[float], weights: Sequence[Sequence[float]]) -> None:
        """Take the values of m, and for each of SPREADS the weights of these values; they add up to 1."""
        self._logs = logs
        self._weights = weights

    @classmethod
    def after(cls, tries: Sequence[Try], low: float, high: float) -> Belief:
        """Return the belief after the tries of full length, within the bracket and MARGIN around it.

        Rates that were missed below the bracket, or kept above it, widen it: the short tries were wrong then.  Takes
        O(grid * tries).
        """
        long = [one for one in tries if not one.is_short]
        low = min([low, *(one.rate for one in long if not one.is_kept)])
        high = max([high, *(one.rate for one in long if one.is_kept)])
        begin, end = log(low / MARGIN), log(high * MARGIN)
        logs = [begin + (end - begin) * at / (GRID - 1) for at in range(GRID)]
        weights = [[1.0] * GRID for _ in SPREADS]
        for one in long:
            at = log(one.rate)
            for spread, of_spread in zip(SPREADS, weights, strict=True):
                scale = 1 / (spread * _SQRT2)
                for number, m in enumerate(logs):
                    half = 0.5 * erf((m - at) * scale)
                    of_spread[number] *= LAPSE + (1 - 2 * LAPSE) * (0.5 + half if one.is_kept else 0.5 - half)
            total = sum(map(sum, weights))
            weights = [[weight / total for weight in of_spread] for of_spread in weights]
        return cls(logs, weights)

    def _marginal(self) -> Iterator[float]:
        return (sum(column) for column in zip(*self._weights, strict=True))

    def rate_at(self, share: float) -> float:
        """Return the rate below which m lies with probability ``share``."""
        marginal = list(self._marginal())
        wanted, total = share * sum(marginal), 0.0
        for m, weight in zip(self._logs, marginal, strict=True):
            total += weight
            if total >= wanted:
                return exp(m)
        return exp(self._logs[-1])

    def kept_in(self, share: float) -> float:
        """Return the rate that ``share`` of the tries keep, stalls aside, by the mean spread."""
        total = sum(map(sum, self._weights))
        spread = sum(one * sum(weights) for one, weights in zip(SPREADS, self._weights, strict=True)) / total
        return self.rate_at(0.5) * exp(-_quantile(share) * spread)


def _quantile(share: float) -> float:
    """Return the standard normal quantile, by halving."""
    low, high = -8.0, 8.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if 0.5 * (1 + erf(middle / _SQRT2)) < share else (low, middle)
    return (low + high) / 2
