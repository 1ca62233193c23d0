"""(pure) Confidence: how well the ratio of two measured systems is known, by pairs of tries or blocks of one run.

    pairs     the systems are measured in turn, and two neighbouring tries are a pair.  ln(b / a) of each pair is one
              observation; the answer is the t interval of their mean.  What slows the machine for minutes slows both
              tries of a pair, and cancels
    blocks    of one run each: the run is cut into blocks, the blocks are drawn again with replacement, and the spread
              of the ratios so made is the error.  One run says nothing of how much the next run would differ

Invariants:
    I1. If the systems are equal, 1 - CONFIDENCE of the intervals of pairs leave out 1, half of them on either side.  A
        difference that then has to show at CONFIRMED in twice as many pairs is found in 5 of 1,000 (simulated; of two
        figures either shows one in 10), and one of 5 % still in nine of ten, with five rounds and a noise of 3 %.
    I2. ``verdict`` names a difference only if the interval leaves out 1 and its middle is beyond the margin.

Knows nothing of what is measured, nor of clocks: chance is an argument.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import atan, ceil, cos, exp, log, pi, sin, sqrt
from statistics import fmean, stdev
from typing import Final, Literal, Protocol

from gauge.histogram import Histogram

CONFIDENCE: Final = 0.92  # 4 % on either side: equal systems are to be called worse in 5 % at most
CONFIRMED: Final = 0.99  # of a difference that is looked at again, with as many pairs more
POWER: Final = 0.9  # of the comparisons would have shown the smallest visible difference
LEAST_PAIRS: Final = 3  # fewer do not say how much pairs differ
LEAST_BLOCKS: Final = 4
RESAMPLES: Final = 600
T_HIGHEST: Final = 1e4  # above the quantiles of one degree of freedom that are wanted

Verdict = Literal["better", "worse", "same", "cannot tell"]
Figure = Callable[[Sequence[int]], float]  # of the blocks with these numbers, one number a draw


class Chooser(Protocol):
    """The part of ``random.Random`` that draws blocks."""

    def choices(self, population: Sequence[int], *, k: int) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Ratio:
    """b over a, with the ends of its interval.

    ``visible`` is the smallest difference, as a share of a, that POWER of such comparisons would have shown.
    """

    middle: float
    low: float
    high: float
    visible: float

    @classmethod
    def of_log(cls, mean: float, error: float, freedom: int, confidence: float = CONFIDENCE) -> Ratio:
        """Return the t interval of a logarithm with its standard error and degrees of freedom."""
        outside = t_quantile((1 + confidence) / 2, freedom)
        half = outside * error
        visible = (outside + t_quantile(POWER, freedom)) * error
        return cls(exp(mean), exp(mean - half), exp(mean + half), exp(visible) - 1)


def of_pairs(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> Ratio | None:
    """Return the ratio of figures that were measured in pairs; None for too few pairs or a figure of 0."""
    if len(a) != len(b):
        raise ValueError(f"{len(a)} figures and {len(b)} are no pairs")
    if len(a) < LEAST_PAIRS or min((*a, *b)) <= 0:
        return None
    logs = [log(of_b / of_a) for of_a, of_b in zip(a, b, strict=True)]
    return Ratio.of_log(fmean(logs), stdev(logs) / sqrt(len(logs)), len(logs) - 1, confidence)


def of_blocks(a: Figure, a_blocks: int, b: Figure, b_blocks: int, rng: Chooser) -> Ratio | None:
    """Return the ratio of two runs by their blocks; None for too few blocks or a figure of 0."""
    if min(a_blocks, b_blocks) < LEAST_BLOCKS or min(a(range(a_blocks)), b(range(b_blocks))) <= 0:
        return None
    errors = [_squared_error(a, a_blocks, rng), _squared_error(b, b_blocks, rng)]
    if None in errors:
        return None
    mean = log(b(range(b_blocks)) / a(range(a_blocks)))
    return Ratio.of_log(mean, sqrt(sum(filter(None, errors))), a_blocks + b_blocks - 2)


def _squared_error(figure: Figure, blocks: int, rng: Chooser) -> float | None:
    numbers = range(blocks)
    drawn = [figure(rng.choices(numbers, k=blocks)) for _ in range(RESAMPLES)]
    if min(drawn) <= 0:
        return None
    return float(stdev(map(log, drawn)) ** 2) * blocks / (blocks - 1)  # a draw varies less than a run of new blocks


def percentile_figure(blocks: Sequence[Histogram], percent: float) -> Figure:
    """Return the percentile of drawn blocks.

    A draw takes O(blocks * log(buckets)): each block's counts are added up beforehand.
    """
    values = sorted({value for block in blocks for value in block.counts})
    sums = [list(accumulate(block.counts.get(value, 0) for value in values)) for block in blocks]

    def figure(drawn: Sequence[int]) -> float:
        chosen = [sums[number] for number in drawn]
        total = sum(counted[-1] for counted in chosen) if values else 0
        if not total:
            return 0.0
        wanted = max(1, ceil(round(percent / 100 * total, 6)))
        at = bisect_left(range(len(values)), wanted, key=lambda index: sum(counted[index] for counted in chosen))
        return float(blocks[0].top_of(values[at]))

    return figure


def mean_figure(counts: Sequence[float]) -> Figure:
    """Return the mean of drawn blocks, such as of their requests per second."""
    return lambda drawn: fmean(counts[number] for number in drawn)


def verdict(ratio: Ratio | None, margin: float, *, is_less_better: bool = True) -> Verdict:
    """Return what the interval says of b; a difference within ``margin``, a share of a, is too small to count."""
    if ratio is None:
        return "cannot tell"
    if 1 - margin <= ratio.low and ratio.high <= 1 + margin:
        return "same"
    if ratio.low <= 1 <= ratio.high or 1 - margin <= ratio.middle <= 1 + margin:
        return "cannot tell"
    return "worse" if (ratio.low > 1) is is_less_better else "better"


@cache
def t_quantile(share: float, freedom: int) -> float:
    """Return the value below which Student's t lies with probability ``share``, from one half on."""
    low, high = 0.0, T_HIGHEST
    while high - low > 1e-9 * (1 + high):
        middle = (low + high) / 2
        if 0.5 + t_within(middle, freedom) / 2 < share:
            low = middle
        else:
            high = middle
    return low


def t_within(t: float, freedom: int) -> float:
    """Return the probability that Student's t lies between -t and t (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    term, total = 1.0, 0.0
    if freedom % 2:
        term = cos(angle)
        for number in range(1, freedom - 1, 2):
            total += term
            term *= cos(angle) ** 2 * (number + 1) / (number + 2)
        return 2 / pi * (angle + sin(angle) * total)
    for number in range(0, freedom, 2):
        total += term
        term *= cos(angle) ** 2 * (number + 1) / (number + 2)
    return sin(angle) * total
