"""The rate to try next in the search for the largest that keeps a requirement (pure).

First in steps of a factor until one try fails (downwards if the first one did), then
by halving the gap between the largest rate that kept the requirement below every
failure and the smallest that did not, until the gap is below the precision.

A miss is tried once more: one stall of the machine at a low rate would cap the search for good.

Invariants:
    I1. The answer kept the requirement in a try; it is never inferred.
    I2. A rate is tried twice at most, and only after a miss; the search ends.

Knows nothing of HTTP and of what the requirement is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Try:
    rate: float
    met: bool


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """``first``, ``lowest`` and ``highest`` in requests per second; ``precision`` as a share of the answer."""

    first: float = 50.0
    step: float = 2.0
    precision: float = 0.05
    lowest: float = 1.0
    highest: float = 20_000.0


def best_rate(tries: Sequence[Try]) -> float | None:
    """Return the largest rate that kept the requirement with no failure at or below it; None if there is none."""
    ceiling = min(_missed(tries), default=float("inf"))
    return max((one.rate for one in tries if one.met and one.rate < ceiling), default=None)


def _missed(tries: Sequence[Try]) -> set[float]:
    """Rates that missed, and missed again if they were tried again."""
    return {one.rate for one in tries} - {one.rate for one in tries if one.met}


def next_rate(tries: Sequence[Try], plan: SearchPlan) -> float | None:
    """Return the rate to try next, None when the search is over."""
    if not tries:
        return min(max(plan.first, plan.lowest), plan.highest)
    last = tries[-1]
    if not last.met and sum(one.rate == last.rate for one in tries) == 1:
        return last.rate
    best = best_rate(tries)
    ceiling = min(_missed(tries), default=None)
    if ceiling is None and best is not None:
        return min(best * plan.step, plan.highest) if best < plan.highest else None
    if ceiling is not None and best is None:
        return max(ceiling / plan.step, plan.lowest) if ceiling > plan.lowest else None
    if ceiling is None or best is None or ceiling - best <= plan.precision * ceiling:
        return None
    return (best + ceiling) / 2
