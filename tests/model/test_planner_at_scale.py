"""The planner alone, small; ``python -m tests.proofs.planner`` is the long form, with 1,000 servers."""

from __future__ import annotations

import pytest

from tests.proofs.planner import Size, loads_of, tried
from tests.support.seeds import seed

SMALL = Size(servers=20, regions=600, upheaval_minutes=4, deaths_per_minute=2)


@pytest.mark.parametrize("number", range(4))
def test_the_planner_keeps_its_promises(number: int) -> None:
    found = tried(SMALL, seed(40) + number)
    assert found.problems == []
    assert found.deaths > 4
    assert found.balance_moves > 0


def test_the_same_seed_gives_the_same_decisions() -> None:
    size = Size(servers=8, regions=100, upheaval_minutes=2, deaths_per_minute=2)
    digests = [tried(size, number).digest for number in (5, 5, 6)]
    assert digests[0] == digests[1]
    assert digests[1] != digests[2]


def test_loads_of_a_trace_are_balanced_too() -> None:
    rows = [f"{100_000 // rank} Page_{rank}" for rank in range(1, 3_000)]
    found = tried(Size(20, 1_000, upheaval_minutes=2), 1, loads_of(rows, 1_000))
    assert found.problems == []
    assert found.balance_moves


def test_lines_that_are_no_counts_are_refused() -> None:
    for rows in (["3"], ["x Page"], [], ["0 Page"]):
        with pytest.raises(ValueError, match="count"):
            loads_of(rows, 10)
