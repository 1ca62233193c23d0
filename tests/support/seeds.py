"""The seed of a test that draws: the same in each run of ``make test``, a different one on request.

COLUMNAR_SEED=4711 repeats a run, COLUMNAR_SEED=new draws one: for long forms, which find what is new.
"""

from __future__ import annotations

import os
from random import SystemRandom


def seed(fixed: int) -> int:
    asked = os.environ.get("COLUMNAR_SEED", "")
    return SystemRandom().randrange(1, 1 << 32) if asked == "new" else int(asked or fixed)
