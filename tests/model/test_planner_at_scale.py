"""The planner alone, small; ``python -m tests.proofs.planner`` is the long form, with 1,000 servers."""

from __future__ import annotations

import pytest

from tests.proofs.planner import Size, tried
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
