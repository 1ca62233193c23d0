"""Golden bytes of ``openings``: the leader that reads a dead server's file may be of another version."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.storage import opening_notes
from columnar.storage.opening_notes import LATELY_NS, OpeningNotes, opened_at
from tests.support.golden import golden, hold_to

BOOT = "5fa9ee2d-7b0f-4c1e-9f55-0f6c1d3a2b10"
ENDED_NS = 0x0102030405060708


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening_notes, "boot_id", lambda: BOOT)
    monkeypatch.setattr(opening_notes.time, "monotonic_ns", lambda: ENDED_NS)


def test_openings_are_written_as_ever(tmp_path: Path) -> None:
    notes = OpeningNotes.begun(str(tmp_path))
    notes.begins(7)
    notes.ends(7)
    notes.begins(258)
    notes.close()
    hold_to("openings.txt", {"openings": (tmp_path / opening_notes.NAME).read_bytes()})


@pytest.mark.parametrize(("file", "lately"), [("openings.txt", {7, 258}), ("openings-1.txt", {258})])
def test_openings_are_read_as_ever(tmp_path: Path, file: str, lately: set[int]) -> None:
    """The older file does not say whose clock it has."""
    (tmp_path / opening_notes.NAME).write_bytes(golden(file)["openings"])
    assert opened_at(str(tmp_path), ENDED_NS + LATELY_NS - 1) == lately
    assert opened_at(str(tmp_path), ENDED_NS + LATELY_NS) == {258}
