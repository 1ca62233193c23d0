"""Faults made on purpose in the simulated world: each is found within a bounded number of seeds."""

from __future__ import annotations

import pytest

from tests.simulation.deliberate import FAULTS, FAULTS_OF_LEASES, FOUND_BY
from tests.simulation.world import run
from tests.support.seeds import likeliest_first, seed

SECONDS = 10.0
SEEDS = 30
SEEDS_OF_LEASES = 200


@pytest.mark.parametrize("fault", FAULTS)
def test_a_deliberate_fault_is_found(fault: str) -> None:
    first, count = seed(1), SEEDS_OF_LEASES if fault in FAULTS_OF_LEASES else SEEDS
    for number in likeliest_first(FOUND_BY.get(fault), range(first, first + count)):
        try:
            run(number, SECONDS, fault)
        except AssertionError:
            return
    pytest.fail(f"{fault}: {FAULTS[fault]}; {count} seeds from {first} did not find it")
