"""Nodes that mount the data folder at paths of their own, of which no other node's machine has a path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from columnar.client.cluster import ClusterAdmin
from tests.support.many_nodes import ManyNodes, NodeProcess, many_nodes

COUNT = 2
ROWS = [b"%02d" % number for number in range(40)]
SPLITS = [b"1", b"2", b"3"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyNodes]:
    folder = tmp_path_factory.mktemp("mounts")
    (folder / "shared").mkdir()
    mounts = [folder / f"n{number + 1}" for number in range(COUNT)]

    def prepare(node: NodeProcess) -> None:
        mount = folder / node.name
        mount.mkdir()
        node.mount_privately(folder / "shared", mount)

    with many_nodes(folder, count=COUNT, data=[mount / "data" for mount in mounts], prepare=prepare) as running:
        with closing(running.nodes[0].connection()) as connection:
            connection.create_table("t", {"f": {}}, splits=SPLITS)
            with connection.table("t").batch() as batch:
                for row in ROWS:
                    batch.put(row, {b"f:q": b"first"})
            assert len({one.server for one in ClusterAdmin(connection).locations(b"t")}) == COUNT
        yield running


def test_copies_are_read_on_the_machine_of_the_leader(cluster: ManyNodes, tmp_path: Path) -> None:
    leader = cluster.leader()
    (other,) = (node for node in cluster.nodes if node is not leader)
    for words in (["backup", str(tmp_path / "backup")], ["digest", "t"], ["check"]):
        done = on_the_machine_of(other, *words)
        assert done.returncode == 1
        assert "/staging/" in done.stderr
        assert "the machine of the one that leads ('columnar nodes')" in done.stderr
        done = on_the_machine_of(leader, *words, at=other)
        assert done.returncode == 0, done.stderr


def test_a_backup_is_served_by_nodes_of_another_name(cluster: ManyNodes, tmp_path: Path) -> None:
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    done = on_the_machine_of(cluster.leader(), "backup", str(backup))
    assert done.returncode == 0, done.stderr
    words = [sys.executable, "-m", "columnar", "restore-backup", str(backup), "--data", str(restored)]
    subprocess.run(words, check=True, capture_output=True)
    assert not {"CLUSTER", "secret"}.intersection(os.listdir(restored)), "it belongs to no service"
    node = NodeProcess("r1", restored, f"{cluster.coordination}-restored", tmp_path, "--servers", "1")
    node.begin()
    try:
        node.await_ready()
        with closing(node.connection()) as connection:
            assert [row for row, _ in connection.table(b"t").scan()] == ROWS
            connection.table(b"t").put(b"new", {b"f:q": b"second"})
        assert node.stop() == 0
    finally:
        node.kill()
    with closing(cluster.nodes[0].connection()) as connection:
        assert connection.table(b"t").row(b"new") == {}, "the saved cluster goes on by itself"


def on_the_machine_of(
    node: NodeProcess, *words: str, at: NodeProcess | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command where the node's mount is seen, and have it call the node, or another one."""
    namespace = ["nsenter", "--target", str(node.pid), "--mount", f"--wd={Path.cwd()}"]
    called = at or node
    command = [*namespace, sys.executable, "-m", "columnar", *words, "--store", f"{called.host}:{called.port}"]
    return subprocess.run(command, capture_output=True, text=True, env=node.environment)


def test_a_snapshot_has_the_regions_of_both_nodes(cluster: ManyNodes) -> None:
    for number, node in enumerate(cluster.nodes):
        with closing(node.connection()) as connection:
            connection.snapshots.take_snapshot(f"s{number}", b"t")
            connection.snapshots.clone_snapshot(f"s{number}", b"copy%d" % number)
            assert [row for row, _ in connection.table(b"copy%d" % number).scan()] == ROWS
    assert not any(any(path.iterdir()) for path in cluster.data.parent.parent.glob("n?")), "nothing is beside a mount"


@pytest.mark.parametrize("words", [["bulk-load", "loaded"], ["export", "t"]], ids=lambda words: words[0])
def test_files_pass_between_a_command_and_both_nodes(cluster: ManyNodes, words: list[Any], tmp_path: Path) -> None:
    leader = cluster.leader()
    if words[0] == "export":
        done = on_the_machine_of(leader, *words, str(tmp_path / "exported"))
        assert done.returncode == 0, done.stdout + done.stderr
        done = on_the_machine_of(leader, "import", str(tmp_path / "exported"), "imported")
        assert done.returncode == 0, done.stdout + done.stderr
        table = b"imported"
    else:
        with closing(leader.connection()) as connection:
            connection.create_table("loaded", {"f": {}}, splits=SPLITS)
        path = tmp_path / "cells.tsv"
        path.write_bytes(b"".join(b"%s\tf:q\tloaded\t1\n" % row for row in ROWS))
        done = on_the_machine_of(leader, *words, str(path), "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert '"ingested_regions": 4' in done.stdout
        table = b"loaded"
    with closing(cluster.nodes[1].connection()) as connection:
        assert [row for row, _ in connection.table(table).scan()] == ROWS
