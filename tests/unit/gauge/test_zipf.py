"""Zipfian numbers have the shares that they should."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from gauge.popularity import SCATTERED_ZETA, THETA, Scattered, Zipf, fnv64, zeta

ITEMS = 1_000
DRAWS = 200_000


def drawn() -> Counter[int]:
    zipf, rng = Zipf(ITEMS), Random(5)
    return Counter(zipf.rank(rng.random()) for _ in range(DRAWS))


def test_the_wanted_ones_have_the_shares_of_the_law() -> None:
    found, total = drawn(), zeta(ITEMS)
    for rank in (0, 1):  # drawn exactly
        assert found[rank] / DRAWS == pytest.approx(1 / ((rank + 1) ** THETA * total), rel=0.03)
    for upto in (10, 100, 500):  # by a power law close to it
        share = sum(found[rank] for rank in range(upto)) / DRAWS
        assert share == pytest.approx(zeta(upto) / total, rel=0.05)


def test_every_rank_is_within_and_some_are_hardly_wanted() -> None:
    found = drawn()
    assert min(found) == 0
    assert max(found) < ITEMS
    assert len(found) > 0.95 * ITEMS
    zipf = Zipf(ITEMS)
    assert zipf.rank(0.0) == 0
    assert zipf.rank(1.0 - 2**-53) == ITEMS - 1


def test_a_known_sum_gives_the_same_numbers() -> None:
    one, other = Zipf(ITEMS), Zipf(ITEMS, known_zeta=zeta(ITEMS))
    assert [one.rank(number / 97) for number in range(97)] == [other.rank(number / 97) for number in range(97)]


def test_scattered_ones_are_as_wanted_but_anywhere() -> None:
    rows, rng = Scattered(ITEMS), Random(9)
    found = Counter(rows.number(rng.random()) for _ in range(DRAWS))
    hottest, second = (number for number, _ in found.most_common(2))
    assert (hottest, second) == (fnv64(0) % ITEMS, fnv64(1) % ITEMS)
    assert found[hottest] / DRAWS == pytest.approx(1 / SCATTERED_ZETA, rel=0.05)
    assert max(found) < ITEMS
    assert len(found) > 0.95 * ITEMS


def test_the_hash_is_the_known_one() -> None:
    """FNV-1a of eight zero bytes: the basis times the prime, eight times over."""
    assert fnv64(0) == 0xCBF29CE484222325 * 0x100000001B3**8 % 2**64 == 0xA8C7F832281A39C5
    assert len({fnv64(number) for number in range(10_000)}) == 10_000
