"""Half-done snapshots of an earlier leader, one of whose threads is still at work when the next leader starts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from columnar.master.snapshots import Snapshots
from columnar.storage import file_copies


def _snapshots(data: Path) -> Snapshots:
    return Snapshots(str(data), Mock(), Mock(), Mock(), Mock(), Mock(), Mock())


def _half_done(data: Path, name: str) -> Path:
    folder = data / "snapshots" / name
    (folder / "r1").mkdir(parents=True)
    (folder / "r1" / "1.sst").write_bytes(b"rows")
    (folder / "snapshot.json").write_bytes(b"{}")
    return folder


def test_a_snapshot_that_is_being_removed_gets_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The earlier leader renames what it has taken, while the next one has removed a part of it."""
    work, remove = _half_done(tmp_path, "s1.0badc0de.taking"), shutil.rmtree
    refused: list[str] = []

    def rename_amid(path: str, *args: Any, **kwargs: Any) -> None:
        os.remove(os.path.join(path, "r1", "1.sst"))
        try:
            os.rename(work, tmp_path / "snapshots" / "s1")
        except FileNotFoundError:
            refused.append(path)
        remove(path, *args, **kwargs)

    monkeypatch.setattr(shutil, "rmtree", rename_amid)
    _snapshots(tmp_path).sweep()
    assert (len(refused), os.listdir(tmp_path / "snapshots")) == (1, [])


def test_what_another_process_removes_too_does_not_end_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _half_done(tmp_path, "s1.deleting")
    remove = file_copies.remove_tree

    def removed_meanwhile(path: str, *, missing_ok: bool = False) -> None:
        remove(path)
        remove(path, missing_ok=missing_ok)

    monkeypatch.setattr("columnar.master.snapshots.remove_tree", removed_meanwhile)
    _snapshots(tmp_path).sweep()
    assert os.listdir(tmp_path / "snapshots") == []
