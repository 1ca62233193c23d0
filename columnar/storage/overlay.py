"""(pure) Overlay for readers: the few pairs that the engine has not taken yet over the pairs that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from columnar.storage.api import PAIR_COST

NO_BOUND: Final = 1 << 60  # of the cost of a range


def overlaid(
    items: Iterator[tuple[bytes, bytes]],
    fresh: list[tuple[bytes, bytes | None]],
    before: Callable[[bytes, bytes], bool],
) -> Iterator[tuple[bytes, bytes]]:
    """The engine's pairs with newer ones laid over them (None: deleted), both in the order of ``before``."""
    position = 0
    for key, value in items:
        while position < len(fresh) and before(fresh[position][0], key):
            newer = fresh[position]
            position += 1
            if newer[1] is not None:
                yield newer[0], newer[1]
        if position < len(fresh) and fresh[position][0] == key:
            continue  # the loop above gives the newer one before the next key, or the loop below at the end
        yield key, value
    for key, latest in fresh[position:]:
        if latest is not None:
            yield key, latest


def within(items: Iterator[tuple[bytes, bytes]], cost: int) -> list[tuple[bytes, bytes]] | None:
    """``Store.range_within`` over a scan."""
    pairs: list[tuple[bytes, bytes]] = []
    for pair in items:
        if cost < 0:
            return None
        pairs.append(pair)
        cost -= PAIR_COST + len(pair[1])
    return pairs
