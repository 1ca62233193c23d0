"""How many calls of a trigger may be in the worker."""

from __future__ import annotations

from columnar.triggers.frames import PLACES
from columnar.triggers.places import Places


def fill(places: Places, name: str, side_by_side: int) -> int:
    taken = 0
    while places.has_room(name, side_by_side):
        places.take(name)
        taken += 1
    for _ in range(taken):
        places.give_back(name)
    return taken


def test_a_trigger_nobody_knows_has_what_runs_side_by_side() -> None:
    places = Places()
    assert fill(places, "t", 3) == 3
    assert places.has_room("t", 3)


def test_a_quick_one_has_more_and_a_slow_one_has_not() -> None:
    places = Places()
    for _ in range(200):
        places.used("quick", 20e-6)
        places.used("slow", 3.0)
    assert fill(places, "quick", 8) == PLACES
    assert fill(places, "slow", 8) == 8


def test_one_that_becomes_slow_loses_them_within_a_few_calls() -> None:
    places = Places()
    for _ in range(200):
        places.used("t", 20e-6)
    places.used("t", 3.0)
    assert fill(places, "t", 8) == 8


def test_a_removed_one_leaves_nothing_but_its_calls() -> None:
    places = Places()
    for _ in range(200):
        places.used("t", 20e-6)
    places.take("t")
    places.forget("t")
    assert not places.has_room("t", 1)
    places.give_back("t")
    assert fill(places, "t", 1) == 1
    assert not places._taken
    assert not places._mean_s
