"""Nodes over real etcd and ZooKeeper: processes that are killed, stopped and stopped cleanly, and a service that fails.

Each node is two processes: one renews the lease and is a candidate, one acknowledges by the page of the lease.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from columnar.coordination import cas_zookeeper
from columnar.coordination.cas import CasRefused, CasUnavailable
from columnar.coordination.lease import LEASE_MS, LeaseTimes
from columnar.coordination.lease_page import LeasePage, boot_ns
from columnar.coordination.node_coordination import connect
from columnar.coordination.node_record import NodeRecord
from tests.support.coordination_services import Service, ServiceProcess, running
from tests.support.heard_coordination import HeardCoordination
from tests.support.lease_holder import LeaseHolder
from tests.support.ports import free_port

FENCE_S = LeaseTimes.of_lease(LEASE_MS).fence_ms / 1_000
NODES = ("n1", "n2", "n3")


class Cluster:
    """The nodes of a test, by name."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
        self.url = url_of(service)
        self._folder = folder
        self.nodes: dict[str, LeaseHolder] = {}

    def start(self, name: str) -> LeaseHolder:
        self.nodes[name] = node = LeaseHolder.start(self.url, name, self._folder)
        return node

    def start_all(self) -> None:
        for name in NODES:
            self.start(name)
        for node in self.nodes.values():
            node.until("started")
        self.leader().command("unlisted")
        self.leader().until("done")
        for node in self.nodes.values():
            await_that(lambda node=node: _sees_all(node))

    def leader(self) -> LeaseHolder:
        """Wait until a living node was elected and not deposed since; returns it."""
        found: list[LeaseHolder] = []

        def is_found() -> bool:
            found[:] = [one for one in self.nodes.values() if one.lives and _leads(one)]
            return bool(found)

        await_that(is_found)
        assert len(found) == 1
        return found[0]

    def others(self, *but: LeaseHolder) -> list[LeaseHolder]:
        return [one for one in self.nodes.values() if one not in but]

    def fenced(self) -> list[str]:
        """Return the nodes that have lost a lease, or of which a leader says so."""
        lost = [one.name for one in self.nodes.values() if one.heard("lease_lost")]
        return lost + [str(event[1]) for one in self.nodes.values() for event in one.heard("node_ended")]


def _leads(node: LeaseHolder) -> bool:
    return len(node.heard("elected")) > len(node.heard("deposed"))


def _sees_all(node: LeaseHolder) -> bool:
    seen = node.heard("nodes_changed")
    return bool(seen) and len(seen[-1][1]) == len(NODES)


def _knows_end(node: LeaseHolder, key: str) -> bool:
    return any(event[1:3] == [key, True] for event in node.heard("node_ended"))


def await_that(condition: Callable[[], object], limit_s: float = 60.0) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(0.01)  # processes say nothing else


def url_of(service: Service) -> str:
    hosts = ",".join(address.rpartition("/")[2] for address in service.addresses)
    kind = "etcd" if "://" in service.addresses[0] else "zookeeper"
    return f"{kind}://{hosts}/cluster"


@pytest.fixture(params=["etcd", "zookeeper"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with running(request.param, tmp_path, 3, is_quick=True) as service:
        made = Cluster(service, tmp_path)
        try:
            yield made
        finally:
            for node in made.nodes.values():
                node.end()


def test_a_node_that_dies_is_fenced_and_one_that_leads_is_replaced(cluster: Cluster) -> None:
    cluster.start_all()
    leader = cluster.leader()
    follower, witness = cluster.others(leader)
    follower.signal(signal.SIGKILL)
    killed_ns = boot_ns()
    ended = leader.until("node_ended")
    assert ended[1:3] == [follower.key, True]
    assert (boot_ns() - killed_ns) / 1e9 > FENCE_S / 2
    epoch = leader.until("elected")[1]
    leader.signal(signal.SIGKILL)
    assert witness.until("elected")[1] > epoch
    await_that(lambda: _knows_end(witness, leader.key))
    cluster.nodes = {witness.name: witness}
    again = cluster.start(leader.name)
    again.until("started")
    assert again.key != leader.key, "a key is not used again"
    witness.command("withdraw")
    witness.until("withdrawn")
    assert again.until("elected")[1] > witness.until("elected")[1]
    for node in (leader, follower):
        node.end()


def test_a_node_that_was_stopped_acknowledges_nothing_after_its_fence(cluster: Cluster) -> None:
    cluster.start_all()
    leader = cluster.leader()
    for stopped in (cluster.others(leader)[0], leader):
        watching = cluster.others(stopped)
        stopped.signal(signal.SIGSTOP)
        await_that(lambda key=stopped.key, by=watching: any(_knows_end(one, key) for one in by))
        fenced_ns = boot_ns()
        stopped.signal(signal.SIGCONT)
        stopped.until("lease_lost")
        assert stopped.wait() == 0
        assert stopped.answered_ns < fenced_ns, "it acknowledged after the fence"
        assert not _leads(stopped)
        del cluster.nodes[stopped.name]
        stopped.end()
    [left] = cluster.nodes.values()
    assert _leads(left)


def test_a_short_stop_costs_nothing_but_its_time(cluster: Cluster) -> None:
    cluster.start_all()
    leader = cluster.leader()
    for node in cluster.nodes.values():
        node.signal(signal.SIGSTOP)
        time.sleep(0.8)
        node.signal(signal.SIGCONT)
        worked_ns = boot_ns()
        await_that(lambda node=node, at=worked_ns: node.answered_ns > at)
    time.sleep(FENCE_S)
    assert cluster.fenced() == []
    assert cluster.leader() is leader


def test_nodes_that_withdraw_end_without_a_fence(cluster: Cluster) -> None:
    cluster.start_all()
    leader = cluster.leader()
    follower, other = cluster.others(leader)
    began_s = time.monotonic()
    follower.command("withdraw")
    follower.until("withdrawn")
    assert leader.until("node_ended")[1:3] == [follower.key, False]
    leader.command("withdraw")
    leader.until("withdrawn")
    assert other.until("node_ended")[1:3] == [leader.key, False]
    assert other.until("elected")[1] > leader.until("elected")[1]
    other.command("withdraw")
    other.until("withdrawn")
    assert all(node.wait() == 0 for node in cluster.nodes.values())
    assert time.monotonic() - began_s < 20 * FENCE_S
    client = cluster.service.connect("cluster", 5.0)
    assert client.list_keys("nodes") == {}
    client.close()


def test_a_leader_fences_on_request_and_lifts_its_epoch(cluster: Cluster) -> None:
    cluster.start_all()
    leader = cluster.leader()
    follower, other = cluster.others(leader)
    follower.command("lift 9")
    assert "does not lead" in follower.until("done")[2]
    leader.command("lift 70")
    assert leader.until("done", 2)[2] == 70
    leader.command(f"fence {follower.key}")
    follower.until("lease_lost")
    assert leader.until("node_ended")[1:3] == [follower.key, True]
    leader.command("withdraw")
    assert other.until("elected")[1] > 70


def test_a_service_that_is_killed_and_comes_back_fences_nobody(cluster: Cluster) -> None:
    cluster.start_all()
    leader = cluster.leader()
    cluster.service.kill()
    for node in cluster.nodes.values():
        node.until("service_silent")
    time.sleep(5.0 - LEASE_MS / 2_000)
    away_ns = boot_ns()
    assert all(away_ns - node.answered_ns > 1e9 for node in cluster.nodes.values()), "leases end, and answers wait"
    for server in cluster.service.servers:
        server.start()
    for node in cluster.nodes.values():
        node.until("service_answers")
        await_that(lambda node=node: node.answered_ns > away_ns)
    time.sleep(2 * FENCE_S)
    assert cluster.fenced() == []
    assert cluster.leader() is leader, "the same leader goes on"
    assert len(leader.heard("elected")) == 1


def test_a_frozen_server_of_the_service_fences_nobody(cluster: Cluster) -> None:
    """One of the three is the service's own leader."""
    cluster.start_all()
    leader = cluster.leader()
    for server in cluster.service.servers:
        server.freeze()
        time.sleep(4.0)
        server.thaw()
        time.sleep(1.0)
    time.sleep(2 * FENCE_S)
    assert cluster.fenced() == []
    assert all(node.lives for node in cluster.nodes.values())
    assert len(leader.heard("elected")) == 1
    now_ns = boot_ns()
    for node in cluster.nodes.values():
        await_that(lambda node=node, at=now_ns: node.answered_ns > at)


# --- starts that cannot succeed --------------------------------------------------------------------


def start_error(url: str) -> BaseException:
    """Return why a node cannot start with the service at ``url``; a start that takes over 6 s fails."""

    async def start() -> None:
        page = LeasePage.create()
        coordination = connect(url)
        try:
            await coordination.start(
                NodeRecord("", "n1", 1, ""), page, HeardCoordination(), may_lead=True, epoch_floor=0
            )
        finally:
            await coordination.withdraw()
            page.close()

    began_s = time.monotonic()
    with pytest.raises((CasUnavailable, CasRefused)) as raised:
        asyncio.run(start())
    assert time.monotonic() - began_s < 9.0
    return raised.value


@pytest.mark.parametrize("kind", ["etcd", "zookeeper"])
def test_a_start_names_an_address_at_which_nothing_listens(kind: str) -> None:
    port = free_port()
    error = start_error(f"{kind}://me:secret@127.0.0.1:{port}/cluster")
    assert f"{kind}://127.0.0.1:{port}/cluster" in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize("kind", ["etcd", "zookeeper"])
def test_a_start_names_an_address_at_which_something_else_listens(kind: str, tmp_path: Path) -> None:
    port = free_port()
    other = ServiceProcess(["python3", "-m", "http.server", "--bind", "127.0.0.1", str(port)], tmp_path / "log")
    other.start()
    try:
        error = start_error(f"{kind}://127.0.0.1:{port}/cluster")
    finally:
        other.kill()
    assert f"{kind}://127.0.0.1:{port}/cluster" in str(error)


def test_a_start_with_a_wrong_password_says_so(tmp_path: Path) -> None:
    with running("etcd", tmp_path) as service:
        for path, body in (
            ("user/add", {"name": "root", "password": "right"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("enable", {}),
        ):
            urllib.request.urlopen(f"{service.addresses[0]}/v3/auth/{path}", json.dumps(body).encode(), 5.0).close()
        host = service.addresses[0].rpartition("/")[2]
        error = start_error(f"etcd://root:wrong@{host}/cluster")
        assert isinstance(error, CasRefused)
        assert f"etcd://{host}/cluster" in str(error)
        assert "authentication failed" in str(error)


def test_a_long_session_of_zookeeper_is_in_the_log_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cas_zookeeper, "_logged_s", set())
    with running("zookeeper", tmp_path) as service:
        hosts = service.addresses
        for session_s in (1.0, 0.3, 0.3):
            client = cas_zookeeper.CasZookeeper.connect(hosts, "p", timeout_s=5.0, session_s=session_s)
            assert client.read_key("nodes/n1") is None
            client.close()
    [line] = [record.getMessage() for record in caplog.records if "grants sessions" in record.getMessage()]
    assert "1 s" in line
    assert "tickTime=150" in line
