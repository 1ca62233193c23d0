"""Promise 1 against a power cut: the short form of ``python -m tests.crash.cuts``, and proof that it can fail.

COLUMNAR_SEED chooses the cuts (fixed; the long form draws new ones), COLUMNAR_CUTS is their number.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.crash.cuts.cutting import Cut, chosen, run
from tests.crash.cuts.disk import replay
from tests.crash.cuts.order import LOG, SEGMENT, too_early
from tests.crash.cuts.recording import SERVER, SHARING, Recording, differences, may_trace, record
from tests.crash.cuts.system_calls import Synced
from tests.support.deep import seeds
from tests.support.seeds import seed

SEED = seed(1569563059)
CUTS = int(os.environ.get("COLUMNAR_CUTS") or seeds("power cuts", deep=40, short=24))

METHODS = {"columnarSnapshotTake", "columnarSnapshotClone", "columnarSnapshotRestore", "columnarSnapshotDelete"} | {
    f"columnar {command}" for command in ("export", "import", "backup", "restore-backup")
}


pytestmark = pytest.mark.skipif(not may_trace(), reason="there is no strace, or this container forbids ptrace")


@pytest.fixture(scope="module", params=[SERVER, SHARING], ids=["own logs", "server's log"])
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    print(f"COLUMNAR_SEED={SEED} COLUMNAR_CUTS={CUTS}")
    root = tmp_path_factory.mktemp("cuts") / "root"
    recording = record(root, seed=SEED, calls=16, server=request.param)
    shared = any(isinstance(event, Synced) and event.path.endswith(SEGMENT) for event in recording.events)
    assert shared or request.param == SERVER
    assert differences(replay(recording.events), root) == [], "the disk that was followed is not the real one"
    return recording


def after_answers(recording: Recording, count: int) -> list[Cut]:
    """Return cuts right after an answer, which leave only synced data."""
    answers = [
        event for call, event in zip(recording.calls, recording.acknowledged, strict=True) if call.method == "mutateRow"
    ]
    return [Cut(event, "lost", 0) for event in sorted(random.Random(SEED).sample(answers, count))]


def test_nothing_acknowledged_is_lost_by_a_power_cut(recording: Recording) -> None:
    found = run(recording, chosen(recording, CUTS, random.Random(SEED)), serve_every=CUTS // 2)
    assert found.broken == []
    assert found.cuts == CUTS
    assert found.opened > 10, "nearly all cuts left the same: the test shows nothing"


def test_no_acknowledged_copy_is_lost_by_a_power_cut(tmp_path: Path) -> None:
    """This covers snapshots, clones, restores, exports, imports and backups; all listed copies are whole, too."""
    recording = record(tmp_path / "root", seed=SEED, calls=0, trigger=False, copies=True, ends=(signal.SIGTERM,))
    assert differences(replay(recording.events), tmp_path / "root") == []
    answers = [
        Cut(event, "lost", 0)
        for call, event in zip(recording.calls, recording.acknowledged, strict=True)
        if call.method in METHODS
    ]
    assert {call.method for call in recording.calls} > METHODS
    cuts = sorted([*answers, *chosen(recording, CUTS // 2, random.Random(SEED))])
    found = run(recording, cuts, serve_every=CUTS // 2)
    assert found.broken == []


def test_no_answer_leaves_before_the_fsync_of_its_write(recording: Recording) -> None:
    assert too_early(recording) == []
    assert sum(1 for call in recording.calls if call.mark) > 30


def test_a_disk_that_lies_about_syncs_is_noticed(recording: Recording) -> None:
    """Otherwise the harness could be blind, and a run without findings would mean nothing."""
    found = run(recording, after_answers(recording, 6), drops_syncs_of=(LOG, SEGMENT))
    lines = [line for _, lines in found.broken for line in lines]
    assert any("LOST" in line or "were synced" in line for line in lines), "bounds notice it first"


def test_a_store_that_answers_before_its_fsync_is_noticed(tmp_path: Path) -> None:
    hasty = record(tmp_path / "root", seed=SEED, calls=6, trigger=False, server=("-m", "tests.support.hasty_store"))
    assert any("no fsync of that log lies between" in line for line in too_early(hasty))
    found = run(hasty, after_answers(hasty, 8))
    assert any("LOST" in line for _, lines in found.broken for line in lines)
