"""A file is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wikibench.whole_files import write_whole


def test_what_stood_there_stays_until_the_new_file_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    write_whole(path, "old\n")
    seen = []

    def fails(_descriptor: int) -> None:
        seen.append(path.read_text())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match=r"No space left.*report\.json"):
        write_whole(path, "new\n")
    assert seen == ["old\n"]
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("report.json", "old\n")]
    monkeypatch.undo()
    write_whole(path, "new\n")
    assert path.read_text() == "new\n"


def test_a_link_and_a_device_stay(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    write_whole(link, "text\n")
    assert (tmp_path / "file").read_text() == "text\n"
    assert link.is_symlink()
    write_whole(Path("/dev/null"), "text\n")
    assert not Path("/dev/null").is_file()


def test_an_error_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing" / "a.json", tmp_path / "file" / "a.json"):
        with pytest.raises(OSError, match=r"a\.json"):
            write_whole(path, "")
