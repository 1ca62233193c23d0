"""Shares of what is seeded or enumerated: ``make test`` runs a fixed part, ``make test-deep`` all of it.

COLUMNAR_DEEP=1 asks for a deep run.  A share holds at least one case of each kind and is the same in each run; a test
that draws from a seed names the seed, as before.  A run prints its shares at its end (``tests/conftest.py``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar
from zlib import crc32

T = TypeVar("T")
C = TypeVar("C", int, float)

IS_DEEP: Final = os.environ.get("COLUMNAR_DEEP", "") not in ("", "0")
SHARES: Final[dict[str, str]] = {}  # what -> how much of it is run; empty in a deep run


def seeds(what: str, *, deep: C, short: C) -> C:
    """How many seeds, rounds or seconds of ``what`` are run."""
    if IS_DEEP:
        return deep
    SHARES[what] = f"{short:,g} of {deep:,g}"
    return short


def cases(what: str, *, deep: Sequence[T], short: Sequence[T]) -> Sequence[T]:
    """Which of the enumerated cases are run; ``short`` are some of ``deep``, one of each kind at least."""
    if IS_DEEP:
        return deep
    assert all(one in deep for one in short), f"{what}: a case that a deep run does not have"
    SHARES[what] = f"{len(short):,} of {len(deep):,}"
    return short


def spread(what: str, numbers: Sequence[T], *, one_in: int, of: str = "") -> Sequence[T]:
    """One in so many of ``numbers``; another first one for each ``of``, so that cases beside each other differ."""
    if IS_DEEP:
        return numbers
    SHARES[what] = f"1 in {one_in}"
    return numbers[crc32(of.encode()) % one_in :: one_in]
