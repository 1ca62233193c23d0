"""A node whose mount of the folder was evicted while it lived: it ends, and says what to do; others serve its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.roles.node import FENCED
from tests.support.deep import IS_DEEP
from tests.support.many_machines import missing, shared_folder
from tests.support.many_nodes import WAIT_S, NodeProcess, many_nodes, until

# A node that takes its mount for evicted when there is a file of this name.
PATCHED = """
import os, sys
from columnar.cli import main
from columnar.roles import node, store_process
from columnar.storage.file_systems import MountEvicted

def client_of(path):
    if os.path.exists({mark!r}):
        raise MountEvicted(path)
    return "client7"

def execve(_program, command, _environment):
    sys.exit(store_process.main(command[-1]))

node.client_of = client_of
os.execve = execve  # this process stays as it is
main(prog_name="columnar")
"""
SAID = "this node was fenced: this machine was shut out of {data}: its client of CephFS was evicted"
REPAIR = "Mount the folder again (umount -l, then mount), and start the node"


def write(node: NodeProcess, row: bytes, value: bytes) -> None:
    connection = node.connection()
    if b"t" not in connection.tables():
        connection.create_table("t", {"f": {}})
    connection.table("t").put(row, {b"f:q": value})
    connection.close()


def read(node: NodeProcess, row: bytes) -> dict[bytes, bytes]:
    connection = node.connection()
    try:
        return dict(connection.table("t").row(row))
    finally:
        connection.close()


def test_a_node_whose_mount_was_evicted_ends_and_does_not_start_before_it_is_repaired(tmp_path: Path) -> None:
    mark = tmp_path / "evicted"

    def prepare(node: NodeProcess) -> None:
        if node.name == "n2":
            at = node._command.index("-m")
            node._command[at : at + 2] = ["-c", PATCHED.format(mark=str(mark))]

    with many_nodes(tmp_path, "--folder-unprobed", count=2, prepare=prepare) as cluster:
        first, second = cluster.nodes
        write(first, b"a", b"1")
        until(lambda: second.lives)
        mark.touch()
        assert second.has_ended(WAIT_S)
        assert second.status == FENCED
        log = second.log.read_text()
        assert SAID.format(data=cluster.data) in log
        assert REPAIR in log
        second.close_output()
        write(first, b"b", b"2")
        assert [read(first, row) for row in (b"a", b"b")] == [{b"f:q": b"1"}, {b"f:q": b"2"}]
        second.begin()
        assert second.has_ended(WAIT_S)
        assert second.status == 2, "it is refused at the start"
        second.close_output()
        mark.unlink()
        second.begin()
        second.await_ready()


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_DEEP, reason="it brings up a CephFS: make test-deep runs it")
def test_a_node_on_cephfs_ends_when_its_client_is_evicted(tmp_path: Path) -> None:
    if lacking := missing("ceph"):
        pytest.skip(f"CephFS DID NOT RUN: {', '.join(lacking)} is missing")
    with shared_folder("ceph", 2) as shared:
        data = [mount / "data" for mount in shared.mounts]
        with many_nodes(tmp_path, "--folder-unprobed", count=2, data=data) as cluster:
            first, second = cluster.nodes
            write(second, b"a", b"1")
            shared.evict(1)
            assert second.has_ended(WAIT_S)
            assert second.status == FENCED
            assert SAID.format(data=data[1]) in second.log.read_text()
            second.close_output()
            write(first, b"b", b"2")
            assert [read(first, row) for row in (b"a", b"b")] == [{b"f:q": b"1"}, {b"f:q": b"2"}]
            second.begin()
            assert second.has_ended(WAIT_S)
            assert second.status == 2
            assert f"columnar: this machine was shut out of {data[1]}" in second.log.read_text()
            second.close_output()
