"""The check of a folder at a node's start; a file system that nobody has measured needs a proof between two mounts."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from pathlib import Path
from shlex import quote

import pytest

from columnar.errors import DamagedData, HostError
from columnar.storage import probe_mount, probe_root, quick_probe
from columnar.storage.data_folder import DataFolder
from columnar.storage.file_systems import Mount, Verdict
from columnar.storage.probe_mount import MountOperations, MountStalls
from columnar.storage.probe_record import PROBED, from_bytes, to_bytes
from columnar.storage.probe_root import Finding, conclude, probe
from columnar.storage.quick_probe import UnprovedFolder, UnsuitableFolder, probe_quickly

TOKEN = "0123456789abcdef"


class WithoutLocks(MountOperations):
    """A file system whose locks keep nobody out."""

    def _lock(self, name: str, is_shared: bool) -> bool:
        return True


def test_a_quick_probe_passes_and_leaves_nothing(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    remarks = probe_quickly(str(data))
    assert "belongs to one machine" in remarks[0]
    assert os.listdir(data) == []
    assert os.stat(data).st_mode & 0o777 == 0o700


def test_a_quick_probe_beside_a_store(tmp_path: Path) -> None:
    folder = DataFolder.locked(str(tmp_path))
    names = sorted(os.listdir(tmp_path))
    probe_quickly(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == names
    folder.close()


def test_a_quick_probe_refuses_what_is_known_to_be_unsafe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_mount, "verdict_on", lambda _: Verdict("it caches", "mount -o nothing=0"))
    with pytest.raises(UnsuitableFolder) as refused:
        probe_quickly(str(tmp_path))
    assert "it caches" in refused.value.text
    assert "mount -o nothing=0" in refused.value.text
    assert "--folder-unprobed" in refused.value.text
    assert os.listdir(tmp_path) == []


def test_a_quick_probe_refuses_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_root, "STALE_S", 0.05)
    monkeypatch.setattr(quick_probe, "MountOperations", WithoutLocks)
    with pytest.raises(UnsuitableFolder, match="locks"):
        probe_quickly(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_quick_probe_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, has_waited = threading.Event(), threading.Event()

    class Waiting(MountOperations):
        def _make(self) -> None:
            answers.wait()
            has_waited.set()

    monkeypatch.setattr(quick_probe, "MountOperations", Waiting)
    monkeypatch.setattr(quick_probe, "QUICK_S", 0.05)
    with pytest.raises(MountStalls, match=r"has not answered for 0\.05 s"):
        probe_quickly(str(tmp_path))
    answers.set()
    assert has_waited.wait(20)


def test_a_quick_probe_names_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match=r"cannot use the data folder .*/file"):
        probe_quickly(str(tmp_path / "file"))


# --- file systems that nobody has measured -----------------------------------------------------------------


class OtherMount(MountOperations):
    """The folder as another machine mounts it."""

    def _identity(self) -> str:
        return "another machine 40"


def mounted_as(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Have all paths be on a file system of this type."""
    monkeypatch.setattr(probe_mount, "mount_of", lambda _: Mount(kind, "source", "/", "/", frozenset()))


def probed(folder: Path, second: type[MountOperations] = OtherMount, rounds: int = 2) -> list[Finding]:
    """Probe the folder as the command does, and return what it concludes."""
    with closing(MountOperations(str(folder), TOKEN)) as one, closing(second(str(folder), TOKEN)) as other:
        found = list(probe(one, other, rounds=rounds))
        return list(conclude(one, other, has_passed=all(one.outcome != "fault" for one in found)))


@pytest.mark.parametrize("kind", ["fuse", "fuse.example", "9p", ""])
def test_a_file_system_that_nobody_has_measured_is_refused_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounted_as(monkeypatch, kind)
    data = tmp_path / "the data"
    with pytest.raises(UnprovedFolder) as refused:
        probe_quickly(str(data))
    assert kind in refused.value.text
    assert f"Run 'columnar probe-root {quote(str(data))} --listen' on this machine" in refused.value.text
    assert "--folder-unprobed" in refused.value.text
    assert os.listdir(data) == []


def test_nfs_with_the_right_options_needs_a_proof_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = frozenset({"vers=4.1", "lookupcache=pos", "local_lock=none"})
    monkeypatch.setattr(probe_mount, "mount_of", lambda _: Mount("nfs4", "filer:/a", "/", "/", options))
    with pytest.raises(UnprovedFolder):
        probe_quickly(str(tmp_path))
    assert [finding.name for finding in probed(tmp_path)] == ["record"]
    probe_quickly(str(tmp_path))


@pytest.mark.parametrize("kind", ["ext4", "ceph"])
def test_a_measured_file_system_needs_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mounted_as(monkeypatch, kind)
    probe_quickly(str(tmp_path))
    assert probed(tmp_path) == []
    assert os.listdir(tmp_path) == []


def test_a_node_starts_once_two_mounts_have_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted_as(monkeypatch, "fuse.example")
    (found,) = probed(tmp_path)
    assert (found.outcome, found.name) == ("ok", "record")
    assert "fuse.example has passed" in found.text
    assert any("nobody has measured fuse.example" in remark for remark in probe_quickly(str(tmp_path)))
    DataFolder.locked(str(tmp_path)).close()
    assert os.stat(tmp_path).st_mode & 0o777 == 0o700, "a folder with this file alone counts as new"
    mounted_as(monkeypatch, "fuse.other")
    with pytest.raises(UnprovedFolder, match=r"fuse\.other"):
        probe_quickly(str(tmp_path))


def test_one_mount_is_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted_as(monkeypatch, "fuse.example")
    assert [(one.outcome, one.name) for one in probed(tmp_path, MountOperations)] == [
        ("note", "one mount"), ("note", "record"),
    ]  # fmt: skip
    with pytest.raises(UnprovedFolder):
        probe_quickly(str(tmp_path))


def test_a_fault_ends_an_earlier_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_root, "STALE_S", 0.05)
    mounted_as(monkeypatch, "fuse.example")

    class Failing(WithoutLocks, OtherMount):
        pass

    probed(tmp_path)
    assert [one.name for one in probed(tmp_path, Failing)] == ["record"]
    assert os.listdir(tmp_path) == []
    with pytest.raises(UnprovedFolder):
        probe_quickly(str(tmp_path))
    assert probed(tmp_path, Failing) == []


def test_known_faults_come_before_the_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_root, "STALE_S", 0.05)
    monkeypatch.setattr(quick_probe, "MountOperations", WithoutLocks)
    mounted_as(monkeypatch, "fuse.example")
    with pytest.raises(UnsuitableFolder, match="locks"):
        probe_quickly(str(tmp_path))


def test_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert to_bytes({"nfs4", "fuse.example"}) == b'{"passed": ["fuse.example", "nfs4"]}\n'
    assert from_bytes(b'{"passed": ["fuse.example", "nfs4"]}\n') == {"fuse.example", "nfs4"}
    for damaged in (b"", b"[]", b'{"passed": 1}', b'{"passed": [1]}', b"\xff"):
        with pytest.raises(ValueError, match=r".*"):
            from_bytes(damaged)
    mounted_as(monkeypatch, "fuse.example")
    (tmp_path / PROBED).write_bytes(b"{")
    with pytest.raises(DamagedData, match=f"{PROBED} is damaged"):
        probe_quickly(str(tmp_path))
    probed(tmp_path)
    probe_quickly(str(tmp_path))
    mounted_as(monkeypatch, "fuse.other")
    probed(tmp_path)
    assert from_bytes((tmp_path / PROBED).read_bytes()) == {"fuse.example", "fuse.other"}
    mounted_as(monkeypatch, "nfs")  # without the options that it needs
    probed(tmp_path)
    assert os.listdir(tmp_path) == []
