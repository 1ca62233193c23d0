"""Leases and elections in virtual time, from printed seeds, and deliberate faults, each of which the law must find.

``python -m tests.simulation --world lease --seeds 10000`` is the long form.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.lease_faults import FAULTS, FOUND_BY
from tests.simulation.lease_world import SECONDS, first_found, run
from tests.support.deep import seeds
from tests.support.seeds import likeliest_first, seed

SEEDS = seeds("seeds of the simulation of leases", deep=2_000, short=60)
TOGETHER = 20
FOUND_WITHIN = 200


@pytest.mark.parametrize("number", range(SEEDS // TOGETHER))
def test_whatever_happens_the_law_of_leases_holds(number: int) -> None:
    first = seed(1) + number * TOGETHER
    seen: Counter[str] = Counter()
    for one in range(first, first + TOGETHER):
        seen += run(one).seen
    assert seen["answers"] > 1_000 * TOGETHER, "servers answer most of the time"
    often = ("fences", "withheld", "elected", "outage", "cut_node", "takeovers", "observed")
    assert all(seen[kind] > TOGETHER for kind in often), seen
    rare = (
        "deposed",
        "lifted",
        "resign_candidate",
        "step_down_candidate",
        "withdraw_node",
        "request_fence",
        "short reads",
    )
    assert all(seen[kind] for kind in rare), seen


@pytest.mark.parametrize("fault", FAULTS)
def test_a_deliberate_fault_of_leases_is_found(fault: str) -> None:
    first = seed(1)
    numbers = likeliest_first(FOUND_BY.get(fault), range(first, first + FOUND_WITHIN))
    assert first_found(fault, numbers, SECONDS), FAULTS[fault]


def test_a_seed_is_the_whole_run_of_leases() -> None:
    assert run(7).summary() == run(7).summary()
