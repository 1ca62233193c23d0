"""(pure) Zipfian numbers: a few are requested very often, most hardly ever.

The k-th most wanted of n has the share 1 / (k ** theta * zeta(n)), where zeta(n) is the sum of all
1 / k ** theta.  Drawn in constant time, after Gray and others, "Quickly Generating Billion-Record
Synthetic Databases" (1994): the first two exactly, the others by a power law that is close to it.

``Scattered`` is the choice of YCSB: ranks of ten billion, hashed onto the rows, so that the wanted
ones lie anywhere in the table and their shares do not depend on how many rows there are.

Knows nothing of tables; chance comes in as a number between 0 and 1.
"""

from __future__ import annotations

import math
from typing import Final

THETA: Final = 0.99
SCATTERED_RANKS: Final = 10_000_000_000
SCATTERED_ZETA: Final = 26.46902820178302  # the sum of that many takes minutes; YCSB states it too

_FNV_BASIS: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_64_BITS: Final = (1 << 64) - 1


def zeta(items: int, theta: float = THETA) -> float:
    return math.fsum(rank**-theta for rank in range(1, items + 1))


class Zipf:
    """Ranks under ``items``, 0 the most wanted.  O(items) to make, unless the sum is given."""

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
    """Numbers under ``rows``: zipfian, the most wanted ones anywhere among them."""

    __slots__ = ("_ranks", "_rows")

    def __init__(self, rows: int) -> None:
        self._ranks = Zipf(SCATTERED_RANKS, known_zeta=SCATTERED_ZETA)
        self._rows = rows

    def number(self, chance: float) -> int:
        return fnv64(self._ranks.rank(chance)) % self._rows


def fnv64(number: int) -> int:
    """FNV-1a of the number's eight bytes, the lowest first."""
    found = _FNV_BASIS
    for byte in number.to_bytes(8, "little"):
        found = (found ^ byte) * _FNV_PRIME & _64_BITS
    return found
