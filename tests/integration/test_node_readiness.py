"""The readiness of real nodes: a change of leaders costs no node its clients, and a cluster without a leader does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from columnar.client import ClusterAdmin
from columnar.roles.readiness import LEADERLESS_S
from tests.support.many_nodes import WAIT_S, ManyNodes, NodeProcess, many_nodes, until

LOOK_S = 0.05


def ready(node: NodeProcess) -> tuple[int, str]:
    try:
        with urlopen(f"http://{node.host}:{node.web_port}/readyz", timeout=WAIT_S) as page:
            return page.status, page.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()


@contextmanager
def watched(*nodes: NodeProcess) -> Iterator[list[str]]:
    """Ask the nodes all the time; yields what they answered that was not ready."""
    found: list[str] = []
    is_over = threading.Event()

    def look(node: NodeProcess) -> None:
        while not is_over.wait(LOOK_S):
            try:
                status, text = ready(node)
            except URLError as error:
                status, text = 0, str(error)
            if status != 200:
                found.append(f"{node.name}: {status} {text}")

    threads = [threading.Thread(target=look, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        is_over.set()
        for thread in threads:
            thread.join(WAIT_S)


def put(node: NodeProcess, row: bytes) -> None:
    with node.rows() as rows:
        rows.put(b"t", row, b"1")
        assert rows.get(b"t", row) == b"1"


def give(node: NodeProcess, server: str) -> None:
    """Have the server own the table's only region."""
    with node.connection() as connection:
        admin = ClusterAdmin(connection)

        def owner() -> str:
            (location,) = admin.locations(b"t")
            if location.server != server:
                admin.move(location.encoded_name.encode(), server)
            return location.server

        until(lambda: owner() == server)


def table(cluster: ManyNodes) -> None:
    connection = cluster.nodes[0].connection()
    connection.create_table("t", {"f": {}})
    connection.close()


def test_no_node_is_unready_while_another_one_becomes_the_leader(tmp_path: Path) -> None:
    with many_nodes(tmp_path, servers=2) as cluster:
        table(cluster)
        leader = cluster.leader()
        others = [node for node in cluster.nodes if node is not leader]
        with watched(*others) as found:
            leader.kill()
            until(lambda: cluster.leader() is not leader)
            put(others[0], b"a")
            time.sleep(LEADERLESS_S + 2.0)  # if a node or a server had not found the next leader, it would show now
        assert found == []


@pytest.fixture
def led_by_one(tmp_path: Path) -> Iterator[ManyNodes]:
    """Nodes of which the first one alone may lead."""

    def never_leads(node: NodeProcess) -> None:
        if node.name != "n1":
            node.add_flags("--never-leads")

    with many_nodes(tmp_path, servers=2, prepare=never_leads) as cluster:
        table(cluster)
        yield cluster


def test_a_node_without_a_leader_is_unready_after_the_time_of_an_election_and_serves_on(led_by_one: ManyNodes) -> None:
    leader, node, other = led_by_one.nodes
    give(node, "n2-s1")
    assert [ready(one) for one in led_by_one.nodes] == [(200, "ready\n")] * 3
    killed_s = time.monotonic()
    leader.kill()
    said: list[tuple[int, str]] = []

    def says_so() -> bool:
        said.append(ready(node))  # a busy machine may have another obstacle for a moment
        return "there is no link with the leader at 127.0.0.1:" in said[-1][1]

    until(says_so)
    assert time.monotonic() - killed_s >= LEADERLESS_S - 1.0
    status, text = said[-1]
    assert status == 503
    assert text.startswith("not ready: "), text
    assert text.count("\n") == 1, "one sentence"
    put(node, b"a")
    leader.begin()
    leader.await_ready()
    for one in (node, other):
        until(lambda one=one: ready(one)[0] == 200)  # type: ignore[misc]
    put(other, b"b")
