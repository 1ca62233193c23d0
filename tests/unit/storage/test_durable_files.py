"""Small files that are whole after a crash, and the fsyncs that make them so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from columnar.storage import durable_files
from columnar.storage.durable_files import rename_durably, sync_folder_if_any, write_durably


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fsyncs and renames in their order, fsyncs by the name of what they sync."""
    seen: list[str] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def noted_fsync(handle: int) -> None:
        seen.append("fsync " + os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def noted_replace(source: str, target: str) -> None:
        seen.append("replace")
        replace(source, target)

    def noted_rename(source: str, target: str) -> None:
        seen.append("rename")
        rename(source, target)

    monkeypatch.setattr(durable_files.os, "fsync", noted_fsync)
    monkeypatch.setattr(durable_files.os, "replace", noted_replace)
    monkeypatch.setattr(durable_files.os, "rename", noted_rename)
    return seen


def test_content_is_on_disk_before_its_name_and_the_name_before_the_return(tmp_path: Path, calls: list[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    write_durably(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert calls == ["fsync file.new", "replace", f"fsync {tmp_path.name}"]
    assert os.listdir(tmp_path) == ["file"]


def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_durably(str(path), b"new")
    assert path.read_bytes() == b"old"


def test_a_rename_is_on_disk(tmp_path: Path, calls: list[str]) -> None:
    (tmp_path / "a").write_bytes(b"")
    rename_durably(str(tmp_path / "a"), str(tmp_path / "b"))
    assert calls == ["rename", f"fsync {tmp_path.name}"]
    assert os.listdir(tmp_path) == ["b"]


def test_a_folder_that_is_not_there_needs_no_sync(tmp_path: Path) -> None:
    sync_folder_if_any(str(tmp_path / "none"))
