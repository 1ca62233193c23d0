"""Staging folders: locked by whoever works with them, removed when that one is dead."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from columnar.errors import CallerError, RetryLater
from columnar.limits import STAGED_FOLDERS
from columnar.master.staging import LOCK, Staging
from columnar.storage import file_copies


def grown_old(folder: str) -> None:
    os.utime(folder, (1, 1))


def test_a_folder_lives_as_long_as_its_command(tmp_path: Path) -> None:
    staging = Staging(str(tmp_path / "staging"))
    token = staging.make()
    grown_old(staging.path(token))
    staging.sweep()
    assert os.path.isdir(staging.known(token)), "the server fills it"
    folder = staging.hand_out(token)
    staging.sweep()
    assert os.path.isdir(folder), "its command has not locked it yet"
    with open(os.path.join(folder, LOCK), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        grown_old(folder)
        staging.sweep()
        assert os.path.isdir(folder)
    staging.sweep()
    assert not os.path.exists(folder)
    with pytest.raises(CallerError, match="begin again"):
        staging.known(token)


@pytest.mark.parametrize("remove", [lambda staging, _: staging.sweep(0.0), Staging.remove_staged])
def test_a_folder_that_is_removed_is_gone_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remove: Callable[[Staging, str], None]
) -> None:
    """A backup must not copy, nor a table get, what the removal has left of the folder so far."""
    staging = Staging(str(tmp_path / "staging"))
    token = staging.make()
    folder = staging.hand_out(token)
    found: list[bool] = []
    monkeypatch.setattr(file_copies, "remove_tree", lambda _path, **_how: found.append(os.path.exists(folder)))
    monkeypatch.setattr("columnar.master.staging.remove_tree", file_copies.remove_tree)
    remove(staging, token)
    assert found == [False]


def test_only_tokens_name_folders(tmp_path: Path) -> None:
    staging = Staging(str(tmp_path))
    for name in ("", "..", "x" * 32, "a" * 31, "/etc"):
        with pytest.raises(CallerError, match="no folder in staging"):
            staging.path(name)


def test_their_number_has_a_bound(tmp_path: Path) -> None:
    staging = Staging(str(tmp_path / "staging"))
    tokens = [staging.make() for _ in range(STAGED_FOLDERS)]
    with pytest.raises(RetryLater, match="try again later"):
        staging.make()
    staging.remove_staged(tokens[0])
    for token in [*tokens[1:], staging.make()]:
        staging.remove_staged(token)
