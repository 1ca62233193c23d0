"""Nodes with ``--servers 0`` only may lead: beside nodes that never lead, one of them does, and no client sees them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from columnar.client import ClusterAdmin
from columnar.client.errors import AlreadyExists, IOError
from tests.support.coordination_services import running
from tests.support.many_nodes import ROOT, WAIT_S, ManyNodes, NodeProcess, until
from tests.support.shell import Shell

ROWS = [b"a", b"e", b"i"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyNodes]:
    """Two nodes that only may lead, started first, and two that only serve; the last one listens on all addresses."""
    folder = tmp_path_factory.mktemp("roles")
    with running("etcd", folder, 1, is_quick=True) as service:
        nodes = ManyNodes(folder, service, "etcd", 0, 0, data=[folder / "data"])
        nodes.nodes.clear()  # each has flags of its own
        for name, flags in (
            ("c1", ("--servers", "0")),
            ("c2", ("--servers", "0")),
            ("s1", ("--servers", "1", "--never-leads")),
            ("s2", ("--servers", "1", "--never-leads", "--host", "0.0.0.0")),
        ):
            nodes.nodes.append(NodeProcess(name, folder / "data", nodes.coordination, folder, *flags))
        try:
            for node in nodes.nodes:
                node.begin()
                node.await_ready()  # a candidate is ready while no server lives
            with nodes.nodes[2].connection() as connection:
                connection.create_table("t", {"f": {}}, splits=[b"d", b"h"])
            write(nodes.nodes[2], b"0")
            yield nodes
        finally:
            nodes.kill()


def write(node: NodeProcess, value: bytes) -> None:
    with node.rows() as rows:
        for row in ROWS:
            rows.put(b"t", row, value)


def values(node: NodeProcess) -> list[bytes | None]:
    with node.rows() as rows:
        return [rows.get(b"t", row) for row in ROWS]


def page(node: NodeProcess, path: str) -> str:
    with urlopen(f"http://127.0.0.1:{node.web_port}{path}", timeout=WAIT_S) as answer:
        return str(answer.read().decode())


def test_a_candidate_leads_has_pages_and_no_port_for_clients(cluster: ManyNodes) -> None:
    c1, c2, s1, s2 = cluster.nodes
    leader = cluster.leader()
    (other,) = {c1, c2} - {leader}
    assert values(s1) == values(s2) == [b"0"] * 3
    for node in (c1, c2):
        assert node.servers() == [], "not even a spare"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", node.port), WAIT_S).close()
        assert page(node, "/ready") == "ready\n"
        assert page(node, "/live") == "ok\n"
    assert "s1-s1" in page(leader, "/servers"), "the pages of the whole"
    assert "s1-s1" in page(other, "/servers"), "any node leads a visitor there"
    assert f"node {other.name}." in page(other, "/")
    assert "This node has no servers and does not lead." in page(other, "/")
    assert 'server="s1-s1"' in page(leader, "/metrics")
    assert "columnar_lease_left_seconds" in page(other, "/metrics")


def test_a_node_that_listens_on_all_addresses_is_named_by_its_own(cluster: ManyNodes) -> None:
    """0.0.0.0 is a different machine for each client that gets it as an owner's address."""
    with cluster.nodes[2].connection() as connection:
        admin = ClusterAdmin(connection)
        admin.move(admin.locations(b"t")[0].encoded_name.encode(), "s2-s1")
        found = admin.locations(b"t")
    assert "s2-s1" in {one.server for one in found}
    assert {one.host for one in found} == {"127.0.0.1"}
    with cluster.nodes[3].rows() as rows:
        assert {one.serverName for one in rows.client.getTableRegions(b"t")} == {b"127.0.0.1"}
    assert "0.0.0.0:" not in Shell(f"{cluster.nodes[3].host}:{cluster.nodes[3].port}").out("servers")


def test_the_command_on_a_candidates_machine_lists_all_nodes(cluster: ManyNodes) -> None:
    words = [sys.executable, "-m", "columnar", "nodes", "--json", "--data", str(cluster.data)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, check=True, cwd=ROOT)
    found = {one["name"].partition(".")[0]: one for one in json.loads(done.stdout)["nodes"]}
    assert {name: (len(one["servers"]), one["regions"] > 0) for name, one in found.items()} == {
        "c1": (0, False), "c2": (0, False), "s1": (1, True), "s2": (1, True),
    }  # fmt: skip


def test_a_drained_candidate_lets_the_other_lead_and_stops(cluster: ManyNodes) -> None:
    serving = cluster.nodes[3]
    shell = Shell(f"{serving.host}:{serving.port}")
    for _ in range(3):
        leader = cluster.leader()
        # A new leader knows it a moment later.
        until(lambda name=leader.name: "only may lead" in shell("drain", "--node", name, "--dry-run").stdout)
        shell.out("drain", "--node", leader.name, "--until-restart", "--wait")
        assert cluster.leader() is not leader, "the command returns when another node leads"
    assert leader.stop() == 0
    write(serving, b"1")
    leader.begin()
    leader.await_ready()
    assert values(cluster.nodes[2]) == [b"1"] * 3


def administer(call: Callable[[], object], is_done: Callable[[], bool]) -> None:
    """Call the leader; a node that still has its link to the dead one says that the outcome is unknown."""
    while not is_done():
        try:
            call()
        except AlreadyExists:
            continue
        except IOError as error:
            if not any(one in str(error) for one in ("the master ended before it answered", "TableNotFoundException")):
                raise


def test_a_candidate_that_dies_is_replaced_by_the_other(cluster: ManyNodes) -> None:
    leader = cluster.leader()
    os.kill(leader.pid, signal.SIGKILL)
    until(lambda: not leader.lives)
    write(cluster.nodes[2], b"2")
    assert cluster.leader() is not leader
    with cluster.nodes[3].connection() as connection:
        administer(lambda: connection.create_table("later", {"f": {}}), lambda: b"later" in connection.tables())
        administer(lambda: connection.delete_table("later", disable=True), lambda: b"later" not in connection.tables())
    leader.kill()
    leader.begin()
    leader.await_ready()
    assert values(cluster.nodes[3]) == [b"2"] * 3


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--never-leads"], "a node with --servers 0 and --never-leads would do nothing: leave one of them out"),
        (["--thrift2-port", "0"], "a node with --servers 0 serves no clients: leave --thrift2-port out"),
        (["--sqs-port", "0"], "a node with --servers 0 serves no clients: leave --sqs-port out"),
    ],
)
def test_a_node_that_would_do_nothing_is_refused(tmp_path: Path, flags: list[str], says: str) -> None:
    words = ["node", "--data", str(tmp_path / "data"), "--coordination", "etcd://127.0.0.1:1/a", "--servers", "0"]
    command = [sys.executable, "-m", "columnar", *words, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "data").exists()
