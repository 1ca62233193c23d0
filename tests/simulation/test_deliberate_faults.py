"""Faults made on purpose in the simulated world: each is found within a bounded number of seeds."""

from __future__ import annotations

import pytest

from tests.simulation.deliberate import FAULTS
from tests.simulation.world import run
from tests.support.seeds import seed

SECONDS = 10.0
SEEDS = 30


@pytest.mark.parametrize("fault", FAULTS)
def test_a_deliberate_fault_is_found(fault: str) -> None:
    first = seed(1)
    for number in range(first, first + SEEDS):
        try:
            run(number, SECONDS, fault)
        except AssertionError:
            return
    pytest.fail(f"{fault}: {FAULTS[fault]}; {SEEDS} seeds from {first} did not find it")
