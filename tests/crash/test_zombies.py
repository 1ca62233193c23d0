"""The short form of ``python -m tests.crash.zombies``, and proof that it can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.zombies.trial import linked_logs, run_trial
from tests.support.deep import seeds

TRIALS = seeds("owners that are stopped and wake", deep=60, short=6)
UNTIL_NOTICED = 60  # one in five trials or so notices a linked log


@pytest.mark.parametrize("seed", range(1, TRIALS + 1))
def test_an_owner_that_wakes_reaches_nothing_of_the_next_owner(tmp_path: Path, seed: int) -> None:
    outcome = run_trial(tmp_path / "folder", seed)
    assert outcome.faults == []
    assert outcome.acknowledged >= 20
    assert outcome.woken >= 80, "it wrote on"


def test_a_log_that_is_linked_is_noticed(tmp_path: Path) -> None:
    with linked_logs():
        for seed in range(1, UNTIL_NOTICED + 1):
            try:
                outcome = run_trial(tmp_path / str(seed), seed)
            except TimeoutError:  # its engine met what the next owner wrote into its log, and ended the process
                continue
            if any(fault.startswith("Z3") for fault in outcome.faults):
                return
    pytest.fail(f"{UNTIL_NOTICED} owners wrote into linked logs, and nobody noticed")
