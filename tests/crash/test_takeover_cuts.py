"""Takeovers of a region's folder against power cuts at any system call.

Three owners write, each takes the folder over from the one before.  Whatever a cut leaves, the next owner, or one
machine that takes the folder back, finds every acknowledged batch, and nothing amid the batches is missing.
COLUMNAR_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from columnar.errors import ColumnarError
from columnar.storage.region_folders import RegionFolders
from columnar.storage.region_takeover import end_generations
from columnar.storage.rocks import RocksEngine
from tests.crash.cuts.copied import write_files
from tests.crash.cuts.disk import Disk, Kind, replay
from tests.crash.cuts.opening import scratch
from tests.crash.cuts.recording import KEPT_BYTES, differences, may_trace
from tests.crash.cuts.system_calls import TRACED, Event, Renamed, Synced, Written, events_of
from tests.support.deep import spread
from tests.support.seeds import seed
from tests.support.traced_takeover import ACKNOWLEDGED, REGION, key_of

SEED = seed(20261127)
KINDS: tuple[Kind, ...] = ("lost", "kept", "prefix", "mixed")
NEXT = 7  # a generation above all

pytestmark = pytest.mark.skipif(not may_trace(), reason="there is no strace, or this container forbids ptrace")


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    root = tmp_path_factory.mktemp("takeover") / "root"
    root.mkdir()
    trace = root.parent / "trace"
    command = ["strace", "-f", "-ttt", "-xx", "-yy", "--seccomp-bpf", "-s", str(KEPT_BYTES), "-e", f"trace={TRACED}"]
    command += ["-e", "signal=none", "-o", str(trace), "--", sys.executable, "-m", "tests.support.traced_takeover"]
    subprocess.run([*command, str(root)], check=True, env={**os.environ, "COLUMNAR_COMPILED": "no"})
    with trace.open(encoding="ascii", errors="replace") as lines:
        found = list(events_of(lines, str(root)))
    assert differences(replay(found), root) == [], "the disk that was followed is not the real one"
    return found


def acknowledged(events: list[Event]) -> int:
    """Return the number of the last batch that was acknowledged in these events."""
    found = [event for event in events if isinstance(event, Written) and event.path == ACKNOWLEDGED]
    return int(found[-1].data) if found else 0


def left(disk: Disk, kind: Kind, number: int, folder: Path) -> None:
    files = disk.left(kind, random.Random(SEED + number))
    write_files(folder, {path: data for path, data in files.items() if path.startswith("regions/")})


def keys_in(path: str) -> list[bytes]:
    store = RocksEngine(cache_bytes=1 << 20).open_store(path, frozenset({"a"}))
    try:
        return [key for key, _ in store.scan("a", b"", b"\xff")]
    finally:
        store.close()


def next_owner(root: Path) -> list[bytes]:
    folders = RegionFolders(str(root), RocksEngine(cache_bytes=1 << 20))
    folders.use_generations(lambda _encoded: NEXT)
    folders.take_over(REGION, NEXT, NEXT)
    return keys_in(folders.path(REGION))


def one_machine(root: Path) -> list[bytes]:
    end_generations(str(root))
    return keys_in(str(root / REGION))


def fault_of(folder: Path, wanted: int, way: str) -> str:
    """Return what is wrong with what a cut left; empty if nothing is."""
    root = folder / "regions"
    root.mkdir(exist_ok=True)
    try:
        found = next_owner(root) if way == "next owner" else one_machine(root)
    except ColumnarError as error:
        return f"{type(error).__name__}: {error.text}"
    if found != [key_of(number + 1) for number in range(len(found))]:
        return "a batch is missing amid others"
    return f"{wanted - len(found)} acknowledged batches are lost" if len(found) < wanted else ""


def test_every_cut_leaves_all_that_was_acknowledged(events: list[Event]) -> None:
    points = [number for number, event in enumerate(events, 1) if getattr(event, "path", "").startswith("regions")]
    assert sum(isinstance(event, Renamed) and f"{REGION}." in event.to for event in events) >= 4, "two takeovers"
    faults = [fault for number in spread("cuts of takeovers", points, one_in=8) for fault in faults_at(events, number)]
    assert faults == [], f"COLUMNAR_SEED={SEED}"


def faults_at(events: list[Event], number: int) -> list[str]:
    disk, wanted = replay(events[:number]), acknowledged(events[:number])
    found = []
    for kind in KINDS:
        for way in ("next owner", "one machine"):
            parent = scratch()
            try:
                left(disk, kind, number, parent / "cut")
                fault = fault_of(parent / "cut", wanted, way)
                if fault:
                    found.append(f"event {number} {events[number - 1]}, {kind}, {way}: {fault}"[:400])
            finally:
                shutil.rmtree(parent)
    return found


def test_a_takeover_that_does_not_sync_its_copies_is_found(events: list[Event]) -> None:
    unsynced = [
        event
        for event in events
        if not (isinstance(event, Synced) and ".new" in event.path and "SYNCED" not in event.path)
    ]
    assert len(unsynced) < len(events)
    renames = [
        number for number, event in enumerate(unsynced, 1) if isinstance(event, Renamed) and ".new" in event.path
    ]
    assert any(faults_at(unsynced, number + 1) for number in renames)
