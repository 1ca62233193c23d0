"""Shares of seeded or enumerated cases: ``make test`` runs a fixed share, ``make test-deep`` runs all cases.

COLUMNAR_DEEP=1 requests a deep run.  A share has at least one case of each kind and is the same in each run; a test
that draws from a seed names the seed.  A run prints its shares at its end (``tests/conftest.py``).
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
    """Return the number of seeds, rounds or seconds of ``what`` to run."""
    if IS_DEEP:
        return deep
    SHARES[what] = f"{short:,g} of {deep:,g}"
    return short


def cases(what: str, *, deep: Sequence[T], short: Sequence[T]) -> Sequence[T]:
    """Return the enumerated cases to run; ``short`` are some of ``deep``, at least one of each kind."""
    if IS_DEEP:
        return deep
    assert all(one in deep for one in short), f"{what}: a case that a deep run does not have"
    SHARES[what] = f"{len(short):,} of {len(deep):,}"
    return short


def spread(what: str, numbers: Sequence[T], *, one_in: int, of: str = "") -> Sequence[T]:
    """Return one in ``one_in`` of ``numbers``; the first one depends on ``of``, so that neighbouring cases differ."""
    if IS_DEEP:
        return numbers
    SHARES[what] = f"1 in {one_in}"
    return numbers[crc32(of.encode()) % one_in :: one_in]
