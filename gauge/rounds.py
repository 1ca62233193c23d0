"""(pure) Rounds: who is measured when, if several are measured within one run."""

from __future__ import annotations

from collections.abc import Iterator


def zigzag_rounds(rounds: int, places: int) -> Iterator[tuple[int, int]]:
    """Yield (round, place) as A B, then B A, and so on, so that other load of the machine affects every place alike."""
    for number in range(rounds):
        yield from ((number, place) for place in (range(places) if number % 2 == 0 else reversed(range(places))))
