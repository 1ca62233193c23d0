"""What a process holds when a replay begins is out of the collector's sight while the clock runs, and not after it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from wikibench.pacing import Planned
from wikibench.run import replay
from wikibench.targets.target import parse_target
from wikibench.visits import Load


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


def frozen_while_it_runs() -> int:
    seen = []

    def nothing_to_send() -> Iterator[Planned]:
        seen.append(gc.get_freeze_count())
        yield from ()

    replay(Load(parse_target("http://127.0.0.1:1")), nothing_to_send())
    (count,) = seen
    return count


@pytest.mark.usefixtures("nothing_frozen")
def test_what_is_held_is_frozen_for_a_replay() -> None:
    assert frozen_while_it_runs() > 1_000
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_frozen")
def test_a_process_that_is_frozen_stays_so() -> None:
    gc.freeze()
    held = gc.get_freeze_count()
    assert frozen_while_it_runs() > held / 2
    assert gc.get_freeze_count() > held / 2
