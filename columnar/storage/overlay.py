"""(pure) Overlay for readers: lays the few pairs that are not yet written to RocksDB over the pairs in RocksDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from columnar.storage.api import PAIR_COST

NO_BOUND: Final = 1 << 60  # on the cost of a range


def overlaid(
    items: Iterator[tuple[bytes, bytes]],
    fresh: list[tuple[bytes, bytes | None]],
    before: Callable[[bytes, bytes], bool],
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs of ``items`` with the newer pairs of ``fresh`` laid over them.

    A value of None in ``fresh`` means that the key is deleted.  Both are sorted, and ``before`` is their order.
    """
    position = 0
    for key, value in items:
        while position < len(fresh) and before(fresh[position][0], key):
            newer = fresh[position]
            position += 1
            if newer[1] is not None:
                yield newer[0], newer[1]
        if position < len(fresh) and fresh[position][0] == key:
            continue  # the loop above yields the newer pair before the next key, or the loop below
        yield key, value
    for key, latest in fresh[position:]:
        if latest is not None:
            yield key, latest


def within(items: Iterator[tuple[bytes, bytes]], cost: int) -> list[tuple[bytes, bytes]] | None:
    """Return what ``Store.range_within`` returns, from a scan."""
    pairs: list[tuple[bytes, bytes]] = []
    for pair in items:
        if cost < 0:
            return None
        pairs.append(pair)
        cost -= PAIR_COST + len(pair[1])
    return pairs
