"""The regions that a server opened last, read by others when it is dead."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from columnar.storage import opening_notes
from columnar.storage.opening_notes import LATELY_NS, SLOTS, OpeningNotes, opened_at

DAY_NS = 86_400 * 10**9


def test_an_opening_under_way_counts_however_long_ago_it_began(tmp_path: Path) -> None:
    notes = OpeningNotes.begun(str(tmp_path))
    for region in (7, 8):
        notes.begins(region)
        notes.ends(region)
    notes.begins(9)
    now_ns = time.monotonic_ns()
    assert opened_at(str(tmp_path), now_ns) == {7, 8, 9}
    assert opened_at(str(tmp_path), now_ns + LATELY_NS) == {9}
    notes.ends(9)
    assert opened_at(str(tmp_path), time.monotonic_ns() + LATELY_NS) == frozenset()


@pytest.mark.parametrize("ahead_ns", [-DAY_NS, 0, DAY_NS], ids=["started later", "at the same time", "started before"])
def test_of_another_machine_only_openings_under_way_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_ns: int
) -> None:
    """Each death blamed the last 64 openings if the dead machine had started before the leader's."""
    notes = OpeningNotes.begun(str(tmp_path))
    for region in range(1, SLOTS):
        notes.begins(region)
        notes.ends(region)
    notes.begins(SLOTS)
    died_ns = time.monotonic_ns()
    assert opened_at(str(tmp_path), died_ns) == set(range(1, SLOTS + 1))
    monkeypatch.setattr(opening_notes, "boot_id", lambda: "the leader's machine")
    assert opened_at(str(tmp_path), died_ns - ahead_ns) == {SLOTS}


def test_of_a_file_of_an_older_program_only_openings_under_way_count(tmp_path: Path) -> None:
    notes = OpeningNotes.begun(str(tmp_path))
    notes.begins(7)
    notes.ends(7)
    notes.begins(8)
    file = tmp_path / opening_notes.NAME
    file.write_bytes(file.read_bytes()[: SLOTS * 16])
    assert opened_at(str(tmp_path), time.monotonic_ns()) == {8}


def test_the_latest_are_kept(tmp_path: Path) -> None:
    notes = OpeningNotes.begun(str(tmp_path))
    for region in range(1, 3 * SLOTS):
        notes.begins(region)
        notes.ends(region)
    assert opened_at(str(tmp_path), time.monotonic_ns()) == set(range(2 * SLOTS, 3 * SLOTS))


def test_one_that_lasts_is_kept_beside_any_number_of_others(tmp_path: Path) -> None:
    notes = OpeningNotes.begun(str(tmp_path))
    notes.begins(5)
    notes.begins(6)
    for region in range(7, 7 + 2 * SLOTS):
        notes.begins(region)
        notes.ends(region)
    later_ns = time.monotonic_ns() + LATELY_NS
    assert opened_at(str(tmp_path), later_ns) == {5, 6}
    notes.ends(5)
    assert opened_at(str(tmp_path), later_ns + LATELY_NS) == {6}


def test_it_outlives_the_process(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        OpeningNotes.begun(str(tmp_path)).begins(5)
        os._exit(9)
    os.waitpid(child, 0)
    assert opened_at(str(tmp_path), time.monotonic_ns()) == {5}


def test_a_folder_of_an_older_program_says_nothing(tmp_path: Path) -> None:
    assert opened_at(str(tmp_path), time.monotonic_ns()) == frozenset()
    (tmp_path / opening_notes.NAME).write_bytes(b"short")
    assert opened_at(str(tmp_path), time.monotonic_ns()) == frozenset()


def test_a_disk_without_room_for_it_keeps_no_server_from_serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(opening_notes, "open_fixed", refuses)
    notes = OpeningNotes.begun(str(tmp_path))
    notes.begins(1)
    notes.ends(1)
    notes.close()
    assert opened_at(str(tmp_path), time.monotonic_ns()) == frozenset()
