"""Numbers of followers: none is given twice, and removed ones stay removed, through any history."""

from __future__ import annotations

import random

import pytest

from columnar.errors import DamagedData
from columnar.flows.follower_name import FollowerName, of_key, trigger
from columnar.model.derivations import Numbers, numbers_from_json, numbers_to_json


@pytest.mark.parametrize("seed", range(50))
def test_against_a_list(seed: int) -> None:
    rng = random.Random(seed)
    held, alive, removed, last = Numbers(), set[int](), set[int](), 0
    for _ in range(100):
        if rng.random() < 0.6:
            held = held.with_next()
            assert held.given == last + 1
            last = held.given
            alive.add(last)
        elif alive:
            gone = rng.choice(sorted(alive))
            alive.discard(gone)
            removed.add(gone)
            held = held.with_removed(gone)
        held = numbers_from_json(numbers_to_json(held))
        held.check_invariants()
        assert {n for n in range(last + 2) if held.is_removed(n)} == removed


def test_neighbours_share_a_span() -> None:
    held = Numbers(given=9)
    for number in (5, 1, 3, 4, 4, 2):
        held = held.with_removed(number)
    assert held.removed == ((1, 5),)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"given": 1, "removed": [1]}', b"\xff"])
def test_damaged_numbers_are_reported(data: bytes) -> None:
    with pytest.raises(DamagedData, match="numbers"):
        numbers_from_json(data)


def test_keys_of_cursors() -> None:
    assert trigger("links").key == "links", "as before there were kinds"
    for name in (trigger("links"), FollowerName("stream", "audit"), FollowerName("view", "a:b")):
        assert of_key(name.key) == name
