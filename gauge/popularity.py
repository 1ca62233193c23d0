"""How often the page or row of each rank is asked for: concave rank laws, Zipf's law, samplers (pure).

Wikipedia's page views are not one Zipf law: on a log-log plot of views by rank the
line bends down.  A law here is a chain of power laws that meet at the bends:

    weight(rank) ~ rank ** -slope_i      between bend i-1 and bend i

VIEWS is fitted to a month of page views of a whole language edition with 1.06 million
addresses (May 2015 Greek Wikipedia, computed from its public counts): the first 1,000 pages get 20.2 % of the views,
the first 10,000 get 50.8 % and the first 100,000 get 86.3 %; the law gives 20.4, 51.3 and 86.4 %.  EDITS is fitted to a
month of edits of the same Wikipedia: 58,857 edits over 24,955 pages, with a slope of 0.60 over the first 1,000 pages,
which get 31 % of all edits.

Bends are kept as shares of the number of pages, because a small wiki stands here for
a sample of the pages of a large one, and a sample keeps the shape by share, not by
rank.  ``by_rank`` instead keeps the bends at the measured ranks, which makes the law flatter on a small wiki, and so
harder on caches.

Zipfian: of n rows the k-th most popular has the share 1 / (k ** theta * zeta(n)), where zeta(n) is the sum of all 1 / k
** theta.  A rank is drawn in constant time, after Gray and others, "Quickly Generating Billion-Record Synthetic
Databases" (1994): the first two exactly, the others by a power law that is close to it.  ``Scattered`` is YCSB's
choice: ranks of ten billion are hashed onto the rows, so that popular rows lie anywhere in the table and their shares
do not depend on the number of rows.

Invariants:
    I1. Weights fall or stay with the rank; slopes rise from segment to segment (concave).
    I2. The weights of ``weights(law, n)`` add up to 1.

Knows nothing of names of pages; chance comes from the caller's ``rng``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, fsum, log
from typing import Final

from .arrivals import Uniform

THETA: Final = 0.99
SCATTERED_RANKS: Final = 10_000_000_000
SCATTERED_ZETA: Final = 26.46902820178302  # the sum of that many takes minutes; YCSB states it too
_FNV_BASIS: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_64_BITS: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class RankLaw:
    """Slopes of the segments, and the shares of the pages at which they meet (one fewer)."""

    slopes: tuple[float, ...]
    bends: tuple[float, ...]  # shares in (0, 1), rising
    measured_pages: int  # of the wiki the law was fitted to

    def __post_init__(self) -> None:
        if len(self.bends) != len(self.slopes) - 1 or list(self.bends) != sorted(self.bends):
            raise ValueError("a law has one bend fewer than slopes, and they rise")
        if list(self.slopes) != sorted(self.slopes):
            raise ValueError("slopes rise from segment to segment, or the law is not concave")


VIEWS: Final = RankLaw((0.55, 0.72, 1.15, 1.8), (1_000 / 1_060_000, 10_000 / 1_060_000, 100_000 / 1_060_000), 1_060_000)
EDITS: Final = RankLaw((0.60, 0.68, 0.80), (1_000 / 24_955, 5_000 / 24_955), 24_955)
UNIFORM: Final = RankLaw((0.0,), (), 1)


def by_rank(law: RankLaw, pages: int) -> RankLaw:
    """Return the law with its bends at the ranks where they were measured, for a wiki of ``pages``."""
    ranks = [bend * law.measured_pages for bend in law.bends]
    return RankLaw(law.slopes, tuple(rank / pages for rank in ranks), pages)


def weights(law: RankLaw, pages: int) -> list[float]:
    """Return the share of the requests that each of ``pages`` ranks gets, most popular first.  Takes O(pages)."""
    bends = [bend * pages for bend in law.bends]
    raw, segment, from_rank, from_log = [], 0, 1.0, 0.0
    for rank in range(1, pages + 1):
        while segment < len(bends) and rank > bends[segment]:
            # a bend below rank 1 (a small wiki) only switches the slope
            bend = max(bends[segment], 1.0)
            from_log -= law.slopes[segment] * log(bend / from_rank)
            from_rank = bend
            segment += 1
        raw.append(exp(from_log - law.slopes[segment] * log(rank / from_rank)))
    total = sum(raw)
    return [weight / total for weight in raw]


class Sampler:
    """A sampler that draws ranks (from 0) by ``weights``, in O(log n) a draw."""

    def __init__(self, shares: Sequence[float]) -> None:
        if not shares:
            raise ValueError("nothing to draw from")
        self._cumulative = list(accumulate(shares))

    def draw(self, rng: Uniform) -> int:
        at = bisect_left(self._cumulative, rng.random() * self._cumulative[-1])
        return min(at, len(self._cumulative) - 1)


def zeta(items: int, theta: float = THETA) -> float:
    return fsum(rank**-theta for rank in range(1, items + 1))


class Zipf:
    """Ranks below ``items``; rank 0 is the most popular.  Takes O(items) to make, unless the sum is given."""

    __slots__ = ("_alpha", "_eta", "_first_two", "_items", "_zeta")

    def __init__(self, items: int, theta: float = THETA, known_zeta: float | None = None) -> None:
        self._items = items
        self._alpha = 1.0 / (1.0 - theta)
        self._zeta = zeta(items, theta) if known_zeta is None else known_zeta
        self._first_two = 1.0 + 0.5**theta
        self._eta = (1.0 - (2.0 / items) ** (1.0 - theta)) / (1.0 - self._first_two / self._zeta)

    def rank(self, chance: float) -> int:
        """Return the rank for ``chance``, a number that is uniform in [0, 1)."""
        share = chance * self._zeta
        if share < 1.0:
            return 0
        if share < self._first_two:
            return 1
        return min(int(self._items * (self._eta * chance - self._eta + 1.0) ** self._alpha), self._items - 1)


class Scattered:
    """Zipfian numbers below ``rows``; the most popular ones lie anywhere among the numbers."""

    __slots__ = ("_ranks", "_rows")

    def __init__(self, rows: int) -> None:
        self._ranks = Zipf(SCATTERED_RANKS, known_zeta=SCATTERED_ZETA)
        self._rows = rows

    def number(self, chance: float) -> int:
        return fnv64(self._ranks.rank(chance)) % self._rows


def fnv64(number: int) -> int:
    """Return the FNV-1a hash of the number's eight bytes, the lowest byte first."""
    found = _FNV_BASIS
    for byte in number.to_bytes(8, "little"):
        found = (found ^ byte) * _FNV_PRIME & _64_BITS
    return found
