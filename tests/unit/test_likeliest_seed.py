"""A search over seeds begins with the likeliest one, and leaves none out: a promise of ``tests.support.seeds``."""

from __future__ import annotations

import pytest

from tests.support.seeds import likeliest_first


@pytest.mark.parametrize(
    ("likely", "order"),
    [(None, [5, 6, 7]), (6, [6, 5, 7]), (5, [5, 6, 7]), (8, [5, 6, 7])],
)
def test_each_seed_is_tried_once(likely: int | None, order: list[int]) -> None:
    assert list(likeliest_first(likely, range(5, 8))) == order
