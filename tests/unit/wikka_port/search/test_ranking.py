"""The order of equally good pages."""

from __future__ import annotations

import random

import pytest

from wikka_port.search.searching import ordered, ties, with_links


def test_ties_are_whole_and_bounded() -> None:
    scores = {b"a": 3.0, b"b": 2.0, b"c": 2.0, b"d": 1.0, b"e": 1.0, b"f": 1.0, b"g": 0.5, b"h": 0.5}
    order = ordered(scores)
    assert order == sorted(scores)
    assert ties(order, scores, 7) == [[b"b", b"c"], [b"d", b"e", b"f"], [b"g", b"h"]]
    assert ties(order, scores, 6) == [[b"b", b"c"], [b"d", b"e", b"f"]]
    assert ties(order, scores, 4) == [[b"b", b"c"]]
    assert ties(order, scores, 1) == []


@pytest.mark.parametrize("seed", range(20))
def test_links_order_ties_and_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    scores = {b"%d" % n: rng.choice((1.0, 2.0, 3.0)) for n in range(30)}
    links = {page: rng.randrange(3) for page in scores}
    order = ordered(scores)
    made = with_links(order, ties(order, scores, 40), links)
    assert made == sorted(scores, key=lambda page: (-scores[page], -links[page], page))
