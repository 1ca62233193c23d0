"""Parallel seeds: the failing seed is found, and its history is made as short as possible."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from tests.support.many_seeds import Left, Tell, run_many, shrunk

STEPS = 30
NEEDED = {4, 17, 18}
BAD = 137


def play(seed: int, left: Left, tell: Tell) -> Counter[str]:
    for step in range(STEPS):
        if step not in left:
            tell(str(step))
    assert seed != BAD or NEEDED & left, "these steps together"
    return Counter({"runs": 1})


def test_the_first_seed_that_fails_is_found() -> None:
    quiet = Console(quiet=True)
    played = run_many(play, 100, 200, 1, quiet)
    assert (played.failed, played.count, played.seen["runs"]) == (BAD, BAD - 100, BAD - 100)
    assert run_many(play, 200, 45, 2, quiet) == (Counter({"runs": 45}), 45, None)


def test_its_history_is_made_as_short_as_it_can_be() -> None:
    assert set(range(STEPS)) - shrunk(play, BAD, STEPS) == NEEDED
