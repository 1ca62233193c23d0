"""The files of a folder that belongs to nodes: which service and which processes may have it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from columnar.errors import DamagedData, FolderInUse, HostError
from columnar.storage.cluster_file import (
    ClusterFile,
    check_cluster,
    from_bytes,
    names_same_service,
    read_cluster,
    read_secret,
    to_bytes,
    without_password,
    write_cluster,
)
from columnar.storage.data_folder import NODES_SINCE, DataFolder

ETCD = "etcd://h1:2379,h2:2379/wiki"
GOLDEN = b'{"cluster_id": "c-1", "coordination": "etcd://h1:2379/x"}\n'


def test_the_bytes_of_the_file() -> None:
    file = ClusterFile("c-1", "etcd://h1:2379/x")
    assert to_bytes(file) == GOLDEN
    assert from_bytes(GOLDEN) == file
    for damaged in (b"", b"[]", b"{}", b'{"cluster_id": 1, "coordination": ""}', GOLDEN[:20]):
        with pytest.raises(ValueError, match=r"\w"):
            from_bytes(damaged)
    whole = b'{"cluster_id": "c-1", "coordination": "etcd://h1:2379/x", "service_id": "9b1d"}\n'
    assert to_bytes(ClusterFile("c-1", "etcd://h1:2379/x", "9b1d")) == whole
    assert from_bytes(whole) == ClusterFile("c-1", "etcd://h1:2379/x", "9b1d")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("etcd://h:1/x", "etcd://h:1/x"),
        ("etcd://me:sec@ret@h:1/x", "etcd://me@h:1/x"),
        ("zookeeper://me@h:1/x", "zookeeper://me@h:1/x"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_password_is_not_kept(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (ETCD, True),
        ("etcd://h2:2379,h3:2379/wiki", True),
        ("etcds://user:pw@h1:2379/wiki/", True),
        ("etcd://h3:2379/wiki", False),
        ("etcd://h1:2379,h2:2379/other", False),
        ("zookeeper://h1:2379,h2:2379/wiki", False),
        ("etcd://h1:2380/wiki", False),
    ],
)
def test_services_are_told_apart(other: str, is_same: bool) -> None:
    assert names_same_service(ETCD, other) is is_same
    assert names_same_service(other, ETCD) is is_same


def test_the_first_node_writes_the_file_and_others_must_agree(tmp_path: Path) -> None:
    data = str(tmp_path)
    assert check_cluster(data, "c", ETCD) is None
    write_cluster(data, "c", "etcd://me:pw@h1:2379,h2:2379/wiki")
    assert read_cluster(data) == ClusterFile("c", "etcd://me@h1:2379,h2:2379/wiki")
    write_cluster(data, "c", "etcd://h2:2379/wiki")
    with pytest.raises(
        HostError, match=r"belongs to the cluster that etcd://me@h1:2379,h2:2379/wiki coordinates"
    ) as other:
        write_cluster(data, "c", "etcd://you:secret@h9:2379/wiki")
    assert "secret" not in other.value.text
    assert "start the node with --coordination etcd://me@h1" in other.value.text
    with pytest.raises(HostError, match="is that of the cluster c, and the folder is d: one of them was copied"):
        check_cluster(data, "d", ETCD)
    (tmp_path / "CLUSTER").write_bytes(GOLDEN[:-9])
    with pytest.raises(DamagedData, match="is damaged"):
        read_cluster(data)


def test_nodes_that_reach_two_services_by_one_address_cannot_both_have_the_folder(tmp_path: Path) -> None:
    data, url = str(tmp_path), "etcd://localhost:2379/wiki"
    write_cluster(data, "c", url, "one")
    write_cluster(data, "c", url, "one")
    with pytest.raises(HostError, match="localhost is a different machine for each of them"):
        write_cluster(data, "c", url, "two")
    (tmp_path / "CLUSTER").write_bytes(to_bytes(ClusterFile("c", url)))
    write_cluster(data, "c", url, "two")  # an earlier version wrote the file


def test_a_folder_of_nodes_is_refused_to_one_machine_until_a_person_removes_the_file(tmp_path: Path) -> None:
    node = DataFolder.locked(str(tmp_path), is_shared=True)
    node.raise_format(NODES_SINCE)
    write_cluster(str(tmp_path), node.cluster_id, ETCD)
    with pytest.raises(FolderInUse, match="in use by nodes of a cluster"):
        DataFolder.locked(str(tmp_path))
    node.close()
    with pytest.raises(HostError, match=r"belongs to the nodes .* stop every node, then remove the file .*/CLUSTER"):
        DataFolder.locked(str(tmp_path))
    DataFolder.locked(str(tmp_path), is_of_nodes=True).close()  # a check
    (tmp_path / "CLUSTER").unlink()
    folder = DataFolder.locked(str(tmp_path))
    assert folder.format == NODES_SINCE
    folder.lower_format(8)
    folder.close()
    assert (tmp_path / "FORMAT").read_text() == "columnar-data 8\n"


def test_nodes_share_the_lock_and_a_process_alone_excludes_them(tmp_path: Path) -> None:
    first = DataFolder.locked(str(tmp_path), is_shared=True)
    second = DataFolder.locked(str(tmp_path), is_shared=True)
    assert first.cluster_id == second.cluster_id
    assert (tmp_path / "LOCK").read_text() == "nodes of a cluster\n", "no process number: it may be another machine's"
    first.close()
    with pytest.raises(FolderInUse):
        DataFolder.locked(str(tmp_path))
    second.close()
    alone = DataFolder.locked(str(tmp_path))
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()};"):
        DataFolder.locked(str(tmp_path), is_shared=True)
    alone.close()
    DataFolder.locked(str(tmp_path), is_shared=True).close()
    assert (tmp_path / "LOCK").read_text() == "nodes of a cluster\n"


START = """
import sys
from columnar.storage.cluster_file import read_secret, write_cluster
from columnar.storage.data_folder import NODES_SINCE, DataFolder
sys.stdin.read()
folder = DataFolder.locked(sys.argv[1], is_shared=True)
folder.raise_format(NODES_SINCE)
write_cluster(sys.argv[1], folder.cluster_id, "etcd://h:1/x")
print(folder.cluster_id, read_secret(sys.argv[1]), open(sys.argv[1] + "/FORMAT").read())
"""


def test_nodes_that_start_at_the_same_moment_make_one_folder(tmp_path: Path) -> None:
    for attempt in range(4):
        data = str(tmp_path / f"data{attempt}")
        command = [sys.executable, "-c", START, data]
        nodes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(6)]
        for node in nodes:
            assert node.stdin is not None
            node.stdin.close()
        said = set()
        for node in nodes:
            assert node.stdout is not None
            said.add(node.stdout.read())
            node.stdout.close()
            assert node.wait() == 0
        assert len(said) == 1, said
        assert sorted(os.listdir(data)) == ["CLUSTER", "FORMAT", "LOCK", "cluster-id", "regions", "secret"]


def test_only_its_user_may_read_the_secret(tmp_path: Path) -> None:
    secret = read_secret(str(tmp_path))
    assert len(bytes.fromhex(secret)) == 32
    assert read_secret(str(tmp_path)) == secret
    path = tmp_path / "secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o604)
    with pytest.raises(HostError, match=r"everybody can read .*chmod 600"):
        read_secret(str(tmp_path))
    path.write_text(secret[:-1])
    path.chmod(0o600)
    with pytest.raises(DamagedData, match="is damaged"):
        read_secret(str(tmp_path))
