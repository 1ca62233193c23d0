"""The cluster in virtual time, from printed seeds: C1 to C6 after every step, linearizability at the end.

``python -m tests.simulation --seed 1 --seeds 1000 --seconds 600`` is the long form.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.simulation.world import CHANCES, FAULTS, OF_MACHINES, Settings, World, run
from tests.support.deep import seeds
from tests.support.seeds import seed

SEEDS = seeds("seeds of the simulation", deep=300, short=30)
SECONDS = 10.0
TOGETHER = 10


@pytest.mark.parametrize("number", range(SEEDS // TOGETHER))
def test_whatever_happens_the_laws_of_the_cluster_hold(number: int) -> None:
    first = seed(1) + number * TOGETHER
    worlds = [run(one, SECONDS) for one in range(first, first + TOGETHER)]
    assert sum(world.calls for world in worlds) > 50 * TOGETHER, "clients are served"
    assert sum(world.laws.served for world in worlds) > 10 * TOGETHER, "regions change hands"


def test_a_seed_is_the_whole_run() -> None:
    """This also holds in a new process, whose hashes of strings differ."""
    text = "from tests.simulation.world import run; print(run(4, 3.0).summary())"
    told = {
        subprocess.run(
            [sys.executable, "-c", text],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": number},
        ).stdout
        for number in ("1", "2")
    }
    assert told == {run(4, 3.0).summary() + "\n"}


def test_every_kind_of_upheaval_of_machines_happens() -> None:
    """Leaders change while servers live and have regions, and servers end by time and run on."""
    chances = CHANCES | OF_MACHINES | {"change": 15.0, "lead": 2.0}
    settings = Settings(chances=chances, faults=FAULTS | {"commit": 0.1}, has_leases=True)
    seen: Counter[str] = Counter()
    for number in range(1, 31):
        world = World(number, settings)
        world.run(SECONDS)
        seen += world.seen
    assert all(
        seen[what] > 20
        for what in ("zombies", "folders taken over", "regions resumed", "messages withheld", "links reset")
    )
    assert all(seen[what] > 2 for what in ("changes called off", "commits found", "commits not found")), seen


def test_every_kind_of_upheaval_happens() -> None:
    """A world without deaths, unsure calls or power cuts would show nothing."""
    worlds: list[World] = [run(one, SECONDS) for one in range(1, 9)]
    assert any(world.master is not None and world.master.leader > 2 for world in worlds)
    assert all(sum(world.changes[kind] for world in worlds) > 8 for kind in (0, 1)), "splits and merges"
    assert any(world.unsure for world in worlds)
    assert any(op.applied_at for world in worlds for op, _ in world.unsure), "unsure, and done"
    assert any(not op.applied_at for world in worlds for op, _ in world.unsure), "unsure, and not done"
