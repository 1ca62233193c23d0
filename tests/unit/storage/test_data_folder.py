"""A data folder that cannot be used is not left locked: what was opened on the way is closed at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from columnar import clock
from columnar.clock import ClockFile
from columnar.config import StandaloneConfig
from columnar.errors import HostError
from columnar.standalone import Standalone
from columnar.storage.data_folder import REGIONS, DataFolder


def open_files() -> set[str]:
    """The files that this process has open, by their descriptors' links."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the listing's own
            continue
    return found


def lock_of(folder: Path) -> str:
    return str(folder / "LOCK")


def test_a_refused_folder_is_unlocked(tmp_path: Path) -> None:
    DataFolder.locked(str(tmp_path)).close()
    (tmp_path / "FORMAT").write_text("columnar-data 9\n")
    with pytest.raises(HostError, match="upgrade") as refused:
        DataFolder.locked(str(tmp_path))
    assert lock_of(tmp_path) not in open_files(), "the error keeps the frame, and the frame would keep the lock"
    assert refused.value.text
    (tmp_path / "FORMAT").write_text("columnar-data 5\n")
    (tmp_path / REGIONS).rmdir()
    with pytest.raises(HostError, match="is missing"):
        DataFolder.locked(str(tmp_path))
    (tmp_path / REGIONS).mkdir()
    again = DataFolder.locked(str(tmp_path))
    assert lock_of(tmp_path) in open_files()
    again.close()


def test_a_folder_whose_files_cannot_be_read_is_unlocked(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").mkdir()
    with pytest.raises(HostError, match="cannot use the data folder") as refused:
        DataFolder.locked(str(tmp_path))
    assert lock_of(tmp_path) not in open_files()
    assert refused.value.text


def test_a_store_whose_certificate_cannot_be_read_leaves_the_folder_unlocked(tmp_path: Path) -> None:
    config = StandaloneConfig(str(tmp_path), port=0, web_port=-1, tls_cert=str(tmp_path / "none"), tls_key="none")
    with pytest.raises(HostError, match="--tls-cert") as refused:
        Standalone.locked(config)
    assert lock_of(tmp_path) not in open_files()
    assert refused.value.text
    DataFolder.locked(str(tmp_path)).close()


def test_a_clock_that_cannot_be_read_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(clock.os, "pread", refuse)
    with pytest.raises(HostError, match=r"cannot use .*clock") as refused:
        ClockFile.opened(str(tmp_path))
    assert str(tmp_path / clock.NAME) not in open_files()
    assert refused.value.text
