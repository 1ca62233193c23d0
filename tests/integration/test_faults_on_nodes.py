"""What was repaired for several servers on one machine holds on nodes: lost logs, full disks, deadly openings."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from columnar.client import ClusterAdmin
from columnar.client.errors import IOError as StoreError
from tests.support.cluster_process import is_nobody
from tests.support.failing_disk import DEADLY, FULL, FailingDisk, error_of, library, until_it_works
from tests.support.many_nodes import WAIT_S, ManyNodes, NodeProcess, many_nodes
from tests.support.readme_blocks import await_that
from tests.support.shell import Shell

needs_compiler = pytest.mark.skipif(library() is None, reason="no C compiler: the disk cannot be made to fail")

SPLITS = [b"%x" % number for number in range(1, 8)]
ROWS = [b"0", *SPLITS]
WRITERS = 8
BUSY_S = 13  # longer than the time after which a server that gives no sign of life is killed


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ManyNodes]:
    with many_nodes(tmp_path, count=2) as nodes:
        yield nodes


def fill(node: NodeProcess) -> None:
    with closing(node.connection()) as connection:
        connection.create_table("t", {"f": {}}, splits=SPLITS)
        write(node, b"1")


def write(node: NodeProcess, value: bytes) -> None:
    with node.rows() as rows:
        for row in ROWS:
            rows.put(b"t", row, value)


def read(node: NodeProcess) -> dict[bytes, bytes | str | None]:
    """Return the value of each row, or the text of the refusal."""
    found: dict[bytes, bytes | str | None] = {}
    with closing(node.connection()) as connection:
        for row in ROWS:
            try:
                found[row] = connection.table("t").row(row).get(b"f:q")
            except StoreError as refusal:
                found[row] = str(refusal)
    return found


def shell_of(node: NodeProcess) -> Shell:
    return Shell(f"127.0.0.1:{node.port}")


def failed(shell: Shell, *at: str) -> list[str]:
    return [one["region"] for one in shell.json("transitions", *at) if one["kind"] == "failed"]


def follower(cluster: ManyNodes) -> NodeProcess:
    leader = cluster.leader()
    return next(node for node in cluster.nodes if node is not leader)


def own_rows(node: NodeProcess) -> list[bytes]:
    """Return the rows whose regions the node's server owns."""
    with closing(node.connection()) as connection:
        found = ClusterAdmin(connection).locations(b"t")
    return [row for row, one in zip(ROWS, found, strict=True) if one.server == f"{node.name}-s1"]


def write_until_logged(node: NodeProcess, dead: NodeProcess, data: Path) -> Path:
    """Write the same value from many clients, until the server of ``dead`` uses its own log; return its folder."""

    def logged() -> list[Path]:
        return [one.parents[1] for one in (data / "servers").glob(f"{dead.name}-s1.*/log/*.segment")]

    with ThreadPoolExecutor(WRITERS) as pool:
        while not logged():
            list(pool.map(lambda _: write(node, b"1"), range(WRITERS)))
    return logged()[0]


def test_a_dead_nodes_log_that_is_missing_closes_its_regions_until_it_is_back(
    cluster: ManyNodes, tmp_path: Path
) -> None:
    """A missing log must not count as empty: it has acknowledged batches that the regions' own logs may lack."""
    dead, leader = follower(cluster), cluster.leader()
    fill(leader)
    lost = own_rows(dead)
    assert 0 < len(lost) < len(ROWS)
    log = write_until_logged(leader, dead, cluster.data)
    dead.kill()
    shutil.move(log, tmp_path / "aside")  # before its lease is over and anybody reads it
    shell = shell_of(leader)

    def is_closed() -> bool:
        states = {one["state"] for one in shell.json("regions", "t")}
        return len(failed(shell)) >= len(lost) and states == {"OPEN", "FAILED_OPEN"}

    await_that(is_closed, WAIT_S, lambda: str(shell.json("transitions")))
    found = read(leader)
    assert {row: value for row, value in found.items() if row not in lost} == {
        row: b"1" for row in ROWS if row not in lost
    }
    assert all(str(log) in str(found[row]) for row in lost), "the refusal names the log"
    shutil.move(tmp_path / "aside", log)
    for region in failed(shell):
        shell.out("assign", region)
    assert read(leader) == dict.fromkeys(ROWS, b"1")


@needs_compiler
def test_an_opening_that_ends_servers_ends_no_node_and_closes_one_region(cluster: ManyNodes, tmp_path: Path) -> None:
    fill(cluster.nodes[0])
    deadly = shell_of(cluster.nodes[0]).json("where", "t", "3")["region"]["encoded_name"]
    cluster.stop()
    folder = cluster.data / "regions" / f"{deadly}.1"  # a start of all nodes takes every folder over
    disk = FailingDisk(folder, tmp_path / "control")
    disk.fail(DEADLY)
    cluster.start(disk.environment)
    pids = [node.pid for node in cluster.nodes]
    shell, at = shell_of(cluster.nodes[0]), ("--data", str(cluster.data))

    def is_closed() -> bool:
        shell("get", "t", "3")  # the region opens at a request, and ends the servers of this connection
        return failed(shell, *at) == [deadly]

    await_that(is_closed, WAIT_S, lambda: str(shell.json("transitions", *at)))
    assert [node.pid for node in cluster.nodes if node.lives] == pids
    found = read(cluster.nodes[1])
    assert "is not served" in str(found.pop(b"3"))
    assert found == {row: b"1" for row in ROWS if row != b"3"}
    disk.mend()
    shell.out("assign", deadly)
    assert read(cluster.nodes[0]) == dict.fromkeys(ROWS, b"1")


@needs_compiler
def test_a_full_folder_refuses_writes_fences_no_node_and_ends_by_itself(cluster: ManyNodes, tmp_path: Path) -> None:
    cluster.stop()
    disk = FailingDisk(cluster.data, tmp_path / "control")
    cluster.start(disk.environment)
    fill(cluster.nodes[0])
    pids = [node.pid for node in cluster.nodes]
    disk.fail(FULL)
    with closing(cluster.nodes[1].connection()) as connection:
        table = connection.table("t")
        for row in ROWS:
            assert "the disk is full" in error_of(lambda row=row: table.put(row, {b"f:q": b"2"}))  # type: ignore[misc]
            assert table.row(row) == {b"f:q": b"1"}
        assert "the disk" in error_of(lambda: connection.create_table("later", {"f": {}}))
        disk.mend()
        for row in ROWS:
            until_it_works(lambda row=row: table.put(row, {b"f:q": b"3"}))  # type: ignore[misc]
        until_it_works(lambda: connection.create_table("again", {"f": {}}))
    assert read(cluster.nodes[0]) == dict.fromkeys(ROWS, b"3")
    assert [node.pid for node in cluster.nodes if node.lives] == pids


def test_a_step_that_holds_a_servers_interpreter_costs_no_lease_and_no_server(
    cluster: ManyNodes, tmp_path: Path
) -> None:
    """The lease is the node's, whose process renews it; and a server that uses a processor counts as alive."""
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy" / "sitecustomize.py").write_text(
        "import signal, time\n"
        "def _hold(*_):\n"
        f"    end = time.monotonic() + {BUSY_S}\n"
        "    while time.monotonic() < end: pass\n"
        "signal.signal(signal.SIGUSR2, _hold)\n"
    )
    cluster.stop()
    path = f"{tmp_path / 'busy'}{os.pathsep}{cluster.nodes[0].environment['PYTHONPATH']}"
    cluster.start({"PYTHONPATH": path})
    fill(cluster.nodes[0])
    busy = follower(cluster)
    (server,) = [pid for pid in busy.servers() if not is_nobody(pid)]
    rows = own_rows(busy)
    assert rows
    os.kill(server, signal.SIGUSR2)

    def servers() -> dict[str, Any]:
        return {one["name"]: one for one in shell_of(cluster.leader()).json("servers")["servers"]}

    def is_answered() -> bool:
        found = read(cluster.leader())[rows[0]]  # waits for the server, or is refused after some seconds
        assert found == b"1" or "nothing was done, try again" in str(found)
        return found == b"1"

    await_that(is_answered, WAIT_S, busy.log.read_text)
    assert [pid for pid in busy.servers() if not is_nobody(pid)] == [server]
    assert all(node.lives for node in cluster.nodes)
    write(busy, b"2")
    assert read(cluster.leader()) == dict.fromkeys(ROWS, b"2")
    assert servers()[f"{busy.name}-s1"]["state"] == "up"
