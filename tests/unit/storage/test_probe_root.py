"""A folder is tried from two mounts: one that caches is refused, whatever it caches; nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from columnar.storage import probe_root
from columnar.storage.data_folder import PROBES, DataFolder
from columnar.storage.probe_mount import (
    FILE_BYTES,
    LEFTOVER_S,
    MountOperations,
    MountStalls,
    ProbedMount,
    contents,
)
from columnar.storage.probe_root import Finding, probe
from tests.support.caching_mount import CachingOperations

TOKEN = "0123456789abcdef"


@contextmanager
def mounts(folder: Path, seconds: float = 0.0, *cached: str, by_handle: bool = False) -> Iterator[list[ProbedMount]]:
    """A true mount and one that caches."""
    second = CachingOperations(str(folder), TOKEN, seconds, frozenset(cached), finds_by_handle=by_handle)
    with closing(MountOperations(str(folder), TOKEN)) as one, closing(second) as other:
        yield [one, other]


def faults(found: list[Finding]) -> set[str]:
    return {finding.name for finding in found if finding.outcome == "fault"}


def test_two_true_mounts_pass_and_nothing_is_left(tmp_path: Path) -> None:
    with mounts(tmp_path) as (one, other):
        found = list(probe(one, other))
    assert faults(found) == set()
    names = [finding.name for finding in found if finding.outcome == "ok"]
    assert names == [
        "file system", "same folder", "bytes", "new names", "removed names", "replaced files",
        "in place", "mappings", "renamed folders", "new paths", "hard links", "locks", "shared locks", "fsync",
        "clocks",
    ]  # fmt: skip
    assert "20 of 20 files were read whole" in next(finding.text for finding in found if finding.name == "bytes")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("cached", "expected"),
    [
        ("read", {"bytes", "replaced files", "in place"}),
        ("exists", {"new names", "removed names"}),
        ("names", {"new names", "removed names"}),
        ("links", set()),  # nothing asks twice
    ],
)
def test_a_mount_that_caches_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: str, expected: set[str]
) -> None:
    monkeypatch.setattr(probe_root, "STALE_S", 2.0)
    with mounts(tmp_path, 0.1, cached) as (one, other):
        found = list(probe(one, other, rounds=4))
    assert faults(found) == expected
    for finding in found:
        if finding.outcome == "fault":
            assert "after up to 0." in finding.text
    assert os.listdir(tmp_path) == []


def test_a_change_that_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_root, "STALE_S", 0.05)
    with mounts(tmp_path, 1_000.0, "read") as (one, other):
        found = {finding.name: finding for finding in probe(one, other, rounds=2)}
    assert found["bytes"].text.startswith("1 of 2 files were read whole as soon as they were synced, others not within")
    assert "lose acknowledged writes" in found["bytes"].text


def test_a_folder_that_is_found_by_its_handle_after_a_rename_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_root, "STALE_S", 0.05)
    with mounts(tmp_path, by_handle=True) as (one, other):
        found = list(probe(one, other, rounds=2))
    assert faults(found) == {"renamed folders"}


def test_two_folders_are_not_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_root, "STALE_S", 0.05)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with (
        closing(MountOperations(str(tmp_path / "a"), TOKEN)) as one,
        closing(MountOperations(str(tmp_path / "b"), TOKEN)) as other,
    ):
        found = list(probe(one, other))
    assert found[-1].name == "same folder"
    assert found[-1].outcome == "fault"


class Refusing(MountOperations):
    """A file system without some of its calls, or with locks of one machine."""

    def __init__(self, folder: str, refused: str) -> None:
        super().__init__(folder, TOKEN)
        self._refused = refused

    def run_operation(self, name: str, *arguments: Any) -> Any:
        if name == self._refused == "lock":
            return True
        if name == self._refused:
            raise OSError(95, "Operation not supported")
        return super().run_operation(name, *arguments)


@pytest.mark.parametrize(("refused", "expected"), [("link", {"links"}), ("lock", {"locks"}), ("rename", {"contents"})])
def test_a_call_that_is_refused_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, expected: set[str]
) -> None:
    monkeypatch.setattr(probe_root, "STALE_S", 0.05)
    with (
        closing(Refusing(str(tmp_path), refused)) as one,
        closing(Refusing(str(tmp_path), refused)) as other,
    ):
        found = list(probe(one, other, rounds=2))
    assert expected <= faults(found)
    assert found[-1].name == "clocks", "the other checks were made"


class Stalling(MountOperations):
    def __init__(self, folder: str, stalls_at: str) -> None:
        super().__init__(folder, TOKEN)
        self._stalls_at = stalls_at

    def run_operation(self, name: str, *arguments: Any) -> Any:
        if name == self._stalls_at:
            raise MountStalls(self.place, 30)
        return super().run_operation(name, *arguments)


def test_a_mount_that_stalls_ends_the_report(tmp_path: Path) -> None:
    with closing(Stalling(str(tmp_path), "link")) as one, closing(Stalling(str(tmp_path), "link")) as other:
        found = list(probe(one, other, rounds=2))
    assert found[-1] == Finding("fault", "links", f"{tmp_path} has not answered for 30 s")


def test_a_slow_opening_and_clocks_apart_are_remarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(MountOperations):
        def _clock(self) -> float:
            return super()._clock() + 2_000

    monkeypatch.setattr(probe_root, "SLOW_READ_S", 0.0)
    with closing(MountOperations(str(tmp_path), TOKEN)) as one, closing(Ahead(str(tmp_path), TOKEN)) as other:
        found = {finding.name: finding for finding in probe(one, other, rounds=2)}
    assert found["opening"].outcome == found["clocks"].outcome == "note"
    assert found["clocks"].text.startswith("the clocks are 2.0 s apart")
    assert "mds_tick_interval" in found["opening"].text


# --- one mount ---------------------------------------------------------------------------------------------


def test_what_a_mount_is_called_is_checked(tmp_path: Path) -> None:
    with closing(MountOperations(str(tmp_path), TOKEN)) as mount:
        mount.run_operation("make")
        for name in ("../x", "/etc/passwd", "a/b/c", "", "a/", "A", "a\x00b", 5):
            with pytest.raises(OSError, match=r"no name of the probe|expected string"):
                mount.run_operation("write", name, 1, 1)
        with pytest.raises(OSError, match="no operation"):
            mount.run_operation("close")
        with pytest.raises(OSError, match="more than a file of the probe has"):
            mount.run_operation("write", "a", 1, FILE_BYTES + 1)
        with pytest.raises(OSError, match="argument"):
            mount.run_operation("write", "a")
    with pytest.raises(ValueError, match="token"):
        MountOperations(str(tmp_path), "../x")


def test_contents_continue() -> None:
    assert contents(7, 100)[:60] == contents(7, 60)
    assert contents(7, 100) != contents(8, 100)
    assert len(contents(7, 0)) == 0


def test_folders_of_killed_probes_are_removed_later(tmp_path: Path) -> None:
    old, new = tmp_path / f"{PROBES}aa", tmp_path / f"{PROBES}bb"
    for left in (old, new):
        left.mkdir()
        (left / "file").write_text("x")
    os.utime(old, (1, os.stat(new).st_mtime - LEFTOVER_S - 10))
    with closing(MountOperations(str(tmp_path), TOKEN)) as mount:
        mount.run_operation("make")
        assert sorted(os.listdir(tmp_path)) == sorted([PROBES + TOKEN, new.name])


def test_a_new_store_begins_beside_a_probe(tmp_path: Path) -> None:
    (tmp_path / f"{PROBES}aa").mkdir()
    DataFolder.locked(str(tmp_path)).close()
