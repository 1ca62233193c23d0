"""(pure) The choice of regions to close if more regions are open than the bound allows.

    older half      by the last use; a random one of it is closed
    younger half    closed only if no region of the older half may be closed, least used first

The least recently used region would be the wrong choice for clients that cycle through more regions than may be open,
as all clients do after a server has died: that region is the one that is wanted next, so every request would open a
region.  With the random choice some 4 of 10 requests find their region open while a quarter more regions are in use
than may be open.  Regions in constant use are in the younger half and stay open.

Knows nothing of stores, and of which region may be closed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final, Protocol

MOST_CANDIDATES: Final = 16  # of each half, at one opening; regions that may not be closed are passed over


class Chance(Protocol):
    """``random.Random``, or a part of it."""

    def sample(self, population: list[int], k: int) -> list[int]: ...


def to_close(by_use: Collection[int], surplus: int, rng: Chance) -> Iterator[int]:
    """Region ids in the order in which they should be closed.  ``by_use``: least used first; the last one stays.

    The caller takes ``surplus`` of them, and passes over those that may not be closed.  O(open regions), some 10 us a
    thousand.
    """
    older = list(islice(by_use, len(by_use) // 2))
    count = surplus + MOST_CANDIDATES
    yield from rng.sample(older, min(count, len(older)))
    last = min(len(older) + count, len(by_use) - 1)
    yield from list(islice(by_use, len(older), max(last, len(older))))
