"""The seed of a test that draws: the same in each run of ``make test``, a different one on request.

COLUMNAR_SEED=4711 repeats a run, COLUMNAR_SEED=new draws one: for long forms, which find what is new.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import SystemRandom


def seed(fixed: int) -> int:
    asked = os.environ.get("COLUMNAR_SEED", "")
    return SystemRandom().randrange(1, 1 << 32) if asked == "new" else int(asked or fixed)


def likeliest_first(likely: int | None, seeds: range) -> Iterator[int]:
    """Yield the seeds, and before them the likely one if it is among them: a search that ends sooner, and as surely."""
    if likely in seeds:
        yield likely
    yield from (number for number in seeds if number != likely)
