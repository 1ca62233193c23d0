"""The regions that a server opened last, read by others when it is dead."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from columnar.storage import opening_notes
from columnar.storage.opening_notes import LATELY_NS, SLOTS, OpeningNotes, opened_at


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


def test_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The master that reads them may be of another version."""
    monkeypatch.setattr(opening_notes.time, "monotonic_ns", lambda: 0x0102030405060708)
    notes = OpeningNotes.begun(str(tmp_path))
    notes.begins(7)
    notes.ends(7)
    notes.begins(258)
    slots = bytes(16) + bytes.fromhex("0000000000000007 0102030405060708 0000000000000102 0000000000000000")
    assert (tmp_path / "openings").read_bytes() == slots.ljust(1024, b"\x00")


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
