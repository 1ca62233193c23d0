"""The folders of servers that are over, while an earlier leader's thread removes one of them, too."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from columnar.storage import server_folders
from columnar.storage.data_folder import SERVERS


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_removal_by_another_process_hides_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    """A start that finds no folder takes the logs of dead servers for none."""
    for name in ("s1.1", "s1.2.deleted", "s2.3", "s2.4.deleted"):
        (tmp_path / SERVERS / name / "log").mkdir(parents=True)
    removed, remove = [], shutil.rmtree

    def removed_meanwhile(path: str, *args: Any, **kwargs: Any) -> None:
        removed.append(os.path.basename(path))
        remove(os.path.join(path, "log") if is_begun else path)
        if is_begun:
            raise FileNotFoundError(path)
        remove(path, *args, **kwargs)

    monkeypatch.setattr(shutil, "rmtree", removed_meanwhile)
    assert server_folders.incarnations(str(tmp_path)) == ["s1.1", "s2.3"]
    assert removed == ["s1.2.deleted", "s2.4.deleted"]
