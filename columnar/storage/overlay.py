"""(pure) Pairs that the engine has not taken yet, laid over those that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator


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
