"""Several nodes on one machine, over a real etcd and one folder: who serves, who leads, what becomes of the dead."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from thriftpy2.thrift import TException

from columnar.client import ClusterAdmin
from columnar.client.errors import StoreIOError
from columnar.roles.member_links import OUTLIVES_S
from tests.support.cluster_process import Rows, gone, is_nobody, reaped
from tests.support.many_nodes import ROOT, WAIT_S, ManyNodes, NodeProcess, many_nodes, until
from tests.support.shell import command
from tests.support.tcp_resets import can_reset, reset_connections

ROWS = (b"a", b"e", b"i", b"n")
FENCED = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyNodes]:
    """Three nodes with one server each, which tests leave as they found them: all live.

    A server that died three times within five minutes gets no regions for a while, so few tests end the same one.
    """
    with many_nodes(tmp_path_factory.mktemp("nodes"), "--zone", "rack-1") as nodes:
        fill(nodes.nodes[0], b"t")
        yield nodes


def fill(node: NodeProcess, table: bytes) -> None:
    connection = node.connection()
    connection.create_table(table.decode(), {"f": {}}, splits=[b"d", b"h", b"m"])
    connection.close()
    with node.rows() as rows:
        for row in ROWS:
            rows.put(table, row, b"0")


def values(node: NodeProcess, table: bytes) -> list[bytes | None]:
    with node.rows() as rows:
        return [rows.get(table, row) for row in ROWS]


def write(node: NodeProcess, table: bytes, value: bytes) -> None:
    """Write a value to all rows; each write waits for an owner."""
    for row in ROWS:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                with node.rows() as rows:
                    rows.put(table, row, value)
                break
            except (OSError, EOFError, TException, StoreIOError):
                assert time.monotonic() < deadline
                time.sleep(0.05)


def program(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a store that is refused."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "columnar", *words], capture_output=True, text=True, timeout=WAIT_S, env=environment
    )


def servers(cluster: ManyNodes) -> dict[str, str]:
    said = command("servers", "--data", str(cluster.data), "--json")
    assert said.returncode == 0, said.stderr
    return {one["name"]: one["state"] for one in json.loads(said.stdout)["servers"]}


def test_the_leader_knows_the_zone_of_each_server(cluster: ManyNodes) -> None:
    said = command("servers", "--data", str(cluster.data), "--json")
    assert json.loads(said.stdout)["zones"] == dict.fromkeys(("n1-s1", "n2-s1", "n3-s1"), "rack-1")


def nodes_of(*at: str) -> dict[str, dict[str, Any]]:
    said = command("nodes", *at, "--json")
    assert said.returncode == 0, said.stderr
    return {one["name"].partition(".")[0]: one for one in json.loads(said.stdout)["nodes"]}


def test_the_nodes_are_listed_with_their_servers_and_who_leads(cluster: ManyNodes) -> None:
    until(lambda: all_up(cluster))
    found, leader = nodes_of("--data", str(cluster.data)), cluster.leader().name
    assert {name: one["state"] for name, one in found.items()} == {
        node.name: "leads" if node.name == leader else "follows" for node in cluster.nodes
    }
    assert [(one["servers"], one["servers_up"]) for _, one in sorted(found.items())] == [
        ([f"{node.name}-s1"], 1) for node in cluster.nodes
    ]
    assert sum(one["regions"] for one in found.values()) >= len(ROWS)
    assert {one["zone"] for one in found.values()} == {"rack-1"}
    said = command("nodes", "--store", f"127.0.0.1:{cluster.nodes[1].port}")
    assert said.stdout.partition(".")[0] == leader


def all_up(cluster: ManyNodes) -> bool:
    return servers(cluster) == {"n1-s1": "up", "n2-s1": "up", "n3-s1": "up"}


def owners(node: NodeProcess, table: bytes) -> set[str]:
    connection = node.connection()
    try:
        return {one.server for one in ClusterAdmin(connection).locations(table)}
    finally:
        connection.close()


def call_until_answered(rows: Rows, hung: NodeProcess) -> float:
    """Read every row once over a connection that waits for a node which hangs; returns the seconds."""
    begin = time.monotonic()
    assert [rows.get(b"t", row) for row in ROWS] == [b"12"] * len(ROWS)
    assert hung.lives, "it hangs still"
    return time.monotonic() - begin


def place(cluster: ManyNodes, node: NodeProcess) -> None:
    """Have the node own a region of the table ``t``."""
    name = f"{node.name}-s1"
    connection = node.connection()
    region = ClusterAdmin(connection).locations(b"t")[0].encoded_name
    connection.close()

    def is_placed() -> bool:
        said = command("move", region, name, "--data", str(cluster.data))
        return said.returncode == 0 and name in owners(node, b"t")

    until(is_placed)


def revive(cluster: ManyNodes, *dead: NodeProcess) -> None:
    for node in dead:
        node.begin()
    for node in dead:
        node.await_ready()
    until(lambda: all_up(cluster))


def test_any_node_answers_for_every_row_and_for_the_leader(cluster: ManyNodes) -> None:
    for number, node in enumerate(cluster.nodes):
        write(node, b"t", b"%d" % number)
        assert {tuple(values(other, b"t")) for other in cluster.nodes} == {(b"%d" % number,) * len(ROWS)}
        connection = node.connection()
        name = f"of{number}"
        connection.create_table(name, {"f": {}})
        connection.delete_table(name, disable=True)
        connection.close()
    until(lambda: all_up(cluster))


def test_each_node_has_pages_and_only_the_leader_those_of_the_whole(cluster: ManyNodes) -> None:
    leader, epochs = cluster.leader(), set[str]()
    for node in cluster.nodes:
        address = f"http://127.0.0.1:{node.web_port}"
        assert urlopen(f"{address}/ready", timeout=WAIT_S).read() == b"ready\n"
        assert urlopen(f"{address}/health", timeout=WAIT_S).read().startswith(b"ok\n")
        page = urlopen(f"{address}/", timeout=WAIT_S).read().decode()
        assert ("Servers of this node" in page) == (node is not leader)
        assert (f"http://127.0.0.1:{leader.web_port}/" in page) == (node is not leader)
        assert ("n2-s1" in page) == (node is leader or node.name == "n2")
        metrics = urlopen(f"{address}/metrics", timeout=WAIT_S).read().decode()
        found = dict(re.findall(r"^(columnar_(?:node|leader|lease|clock)_\w+) (\S+)$", metrics, flags=re.M))
        left_s, offset_s = float(found.pop("columnar_lease_left_seconds")), found.pop("columnar_clock_offset_seconds")
        assert 0.0 < left_s <= 1.5
        assert 0.0 <= float(offset_s) < 1.0, "they have one clock"
        epochs.add(found.pop("columnar_leader_epoch"))
        leads = "1.0" if node is leader else "0.0"
        assert found == {"columnar_node_ready": "1.0", "columnar_node_leads": leads, "columnar_lease_holds": "1.0"}
    assert len(epochs) == 1
    assert float(epochs.pop()) >= 1.0


def test_a_server_is_restarted_by_a_command_at_any_node(cluster: ManyNodes) -> None:
    follower = next(node for node in cluster.nodes if node is not cluster.leader())
    before = [pid for pid in follower.servers() if not is_nobody(pid)]
    said = command("restart", f"{follower.name}-s1", "--data", str(cluster.data))
    assert said.returncode == 0, said.stderr
    assert [pid for pid in follower.servers() if not is_nobody(pid)] != before
    until(lambda: all_up(cluster))
    assert None not in values(follower, b"t")


def test_restarts_go_node_by_node_and_end_with_the_leaders(cluster: ManyNodes) -> None:
    leader = cluster.leader()
    others = sorted(node.name for node in cluster.nodes if node is not leader)
    said = command("restart", "--rolling", "--dry-run", "--data", str(cluster.data), "--json")
    texts = [json.loads(line)["text"] for line in said.stdout.splitlines()]
    assert [text.split(" would leave ")[1].partition(",")[0] for text in texts] == [
        f"{name}-s1" for name in (*others, leader.name)
    ]
    before = {node.name: [pid for pid in node.servers() if not is_nobody(pid)] for node in cluster.nodes}
    said = command("restart", "--node", others[0], "--data", str(cluster.data))
    assert said.returncode == 0, said.stderr
    after = {node.name: [pid for pid in node.servers() if not is_nobody(pid)] for node in cluster.nodes}
    assert [name for name in before if before[name] != after[name]] == [others[0]]
    refused = command("restart", "--node", "n9", "--data", str(cluster.data))
    assert refused.returncode == 1
    assert "there is no node n9; there are n" in refused.stderr


def test_a_restart_goes_on_if_its_leader_dies_before_the_server_starts(cluster: ManyNodes) -> None:
    until(lambda: all_up(cluster))
    asked = cluster.nodes[0]  # the first private socket of the machine
    if cluster.leader() is asked:
        asked.kill()
        until(lambda: cluster.leader() is not asked)
        revive(cluster, asked)
    leader = cluster.leader()
    other = next(node for node in cluster.nodes if node not in (leader, asked))
    write(other, b"t", b"18")
    old = next(pid for pid in other.servers() if not is_nobody(pid))
    process = subprocess.Popen(
        [sys.executable, "-m", "columnar", "restart", f"{other.name}-s1", "--data", str(cluster.data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    until(lambda: old not in other.servers())
    leader.kill()
    said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, said
    assert [pid for pid in other.servers() if not is_nobody(pid)] != [old]
    assert values(other, b"t") == [b"18"] * len(ROWS)
    revive(cluster, leader)


def test_a_server_that_is_stopped_is_known_to_the_next_leader(cluster: ManyNodes) -> None:
    until(lambda: all_up(cluster))
    leader = cluster.leader()
    other, living = (node for node in cluster.nodes if node is not leader)
    said = command("stop", f"{other.name}-s1", "--data", str(cluster.data))
    assert said.returncode == 0, said.stderr
    leader.kill()
    until(lambda: cluster.leader() is not leader)
    at = f"127.0.0.1:{living.port}"
    until(lambda: nodes_of("--store", at)[other.name]["servers"] == [f"{other.name}-s1"])
    assert servers(cluster)[f"{other.name}-s1"] == "down"
    write(living, b"t", b"19")
    said = command("restart", f"{other.name}-s1", "--data", str(cluster.data))
    assert said.returncode == 0, said.stderr
    revive(cluster, leader)


def test_a_node_that_hung_past_its_lease_ends_when_it_wakes(cluster: ManyNodes) -> None:
    hung = next(node for node in cluster.nodes if node is not cluster.leader())
    place(cluster, hung)
    write(hung, b"t", b"12")
    with hung.rows() as stale:
        assert stale.get(b"t", b"a") == b"12"
        other = next(node for node in cluster.nodes if node is not hung)
        assert values(other, b"t") == [b"12"] * len(ROWS)  # so that its links are open
        family = hung.freeze()
        with other.rows() as waiting:  # its calls go to the hung node first, and end with its lease
            assert call_until_answered(waiting, hung) < WAIT_S / 2
        write(other, b"t", b"13")
        hung.thaw(family)
        try:
            found = stale.get(b"t", b"a")
        except (OSError, EOFError, TException):
            found = None  # it has ended
        assert found in (None, b"13"), "a stale answer"
    assert hung.has_ended(WAIT_S)
    assert gone(family, WAIT_S)
    assert "this node was fenced" in hung.log.read_text()
    assert values(other, b"t") == [b"13"] * len(ROWS)
    hung.kill()
    revive(cluster, hung)


def test_a_short_pause_of_a_node_takes_nothing_from_it(cluster: ManyNodes) -> None:
    paused = next(node for node in cluster.nodes if node is not cluster.leader())
    before = paused.pid
    family = paused.freeze()
    time.sleep(0.5)
    paused.thaw(family)
    write(paused, b"t", b"14")
    assert paused.lives
    assert paused.pid == before
    until(lambda: all_up(cluster))


def test_nobody_is_fenced_while_the_coordination_service_is_away(cluster: ManyNodes) -> None:
    pids = [node.pid for node in cluster.nodes]
    cluster.service.kill()
    time.sleep(4.0)
    follower = next(node for node in cluster.nodes)
    with pytest.raises(HTTPError) as refused:
        urlopen(f"http://127.0.0.1:{follower.web_port}/ready", timeout=WAIT_S)
    assert b"lease of this node does not hold" in refused.value.read()
    cluster.service.start()
    write(follower, b"t", b"15")
    assert [node.pid for node in cluster.nodes if node.lives] == pids
    assert {tuple(values(node, b"t")) for node in cluster.nodes} == {(b"15",) * len(ROWS)}
    until(lambda: all_up(cluster))


def test_strangers_are_refused(cluster: ManyNodes, tmp_path: Path) -> None:
    alone = program("standalone", "--data", str(cluster.data), "--port", "0", "--web-port", "-1")
    assert alone.returncode == 2
    assert "process" in alone.stderr or "nodes" in alone.stderr
    elsewhere = program(
        "node", "--data", str(cluster.data), "--coordination", "etcd://127.0.0.1:1/other", "--name", "n9", "--port", "0"
    )
    assert elsewhere.returncode == 2
    assert "belongs to the cluster that" in elsewhere.stderr
    flags = ("--coordination", cluster.coordination, "--port", "0", "--web-port", "-1", "--peer-port", "0")
    double = program("node", "--data", str(cluster.data), *flags, "--name", "n1")
    assert double.returncode == 2
    assert "a node named n1 runs already; choose another name with --name" in double.stderr
    assert all_up(cluster)


def test_a_dead_server_is_replaced_and_its_rows_answer(cluster: ManyNodes) -> None:
    follower = next(node for node in cluster.nodes if node is not cluster.leader())
    write(follower, b"t", b"7")
    pid = next(one for one in follower.servers() if not is_nobody(one))
    os.kill(pid, signal.SIGKILL)
    reaped(pid)
    assert values(cluster.leader(), b"t") == [b"7"] * len(ROWS)
    until(lambda: all_up(cluster))


def test_a_dead_node_loses_nothing_and_comes_back(cluster: ManyNodes) -> None:
    follower = next(node for node in cluster.nodes if node is not cluster.leader())
    place(cluster, follower)
    write(follower, b"t", b"8")
    follower.kill()
    other = next(node for node in cluster.nodes if node.lives)
    assert values(other, b"t") == [b"8"] * len(ROWS)
    ended = nodes_of("--store", f"127.0.0.1:{other.port}")[follower.name]
    assert (ended["state"], ended["servers_up"], ended["regions"]) == ("ended", 0, 0)
    write(other, b"t", b"9")
    revive(cluster, follower)
    assert values(follower, b"t") == [b"9"] * len(ROWS)


def test_another_node_leads_when_the_leader_dies(cluster: ManyNodes) -> None:
    leader = cluster.leader()
    others = [node for node in cluster.nodes if node is not leader]
    write(leader, b"t", b"10")
    leader.kill()
    assert values(others[0], b"t") == [b"10"] * len(ROWS)
    connection = others[1].connection()  # waits for the next leader
    connection.create_table("after", {"f": {}})
    connection.delete_table("after", disable=True)
    connection.close()
    assert cluster.leader() in others
    revive(cluster, leader)


def test_leader_and_another_node_die_at_once(cluster: ManyNodes) -> None:
    leader = cluster.leader()
    other, last = (node for node in cluster.nodes if node is not leader)
    write(leader, b"t", b"11")
    leader.kill()
    other.kill()
    write(last, b"t", b"12")
    assert values(last, b"t") == [b"12"] * len(ROWS)
    revive(cluster, leader, other)


def test_a_node_that_stops_in_order_gives_its_regions_away_at_once(cluster: ManyNodes) -> None:
    stopped = next(node for node in cluster.nodes if node is not cluster.leader())
    write(stopped, b"t", b"16")
    leader, other = cluster.leader(), next(node for node in cluster.nodes if node is not stopped)
    before = leader.log.read_text()
    assert stopped.stop() == 0
    assert values(other, b"t") == [b"16"] * len(ROWS)
    until(lambda: "has withdrawn" in leader.log.read_text().removeprefix(before))
    assert "lease is over" not in leader.log.read_text().removeprefix(before)
    revive(cluster, stopped)


@pytest.mark.skipif(not can_reset(), reason="needs ss -K: root, iproute2 and a kernel that ends sockets on request")
def test_a_reset_of_all_links_to_the_leader_ends_no_server(cluster: ManyNodes) -> None:
    """A network that forgets its connections must not cost the cluster its servers."""
    leader = cluster.leader()
    before = _serving(cluster)
    seen = _relinked(cluster)
    for turn in range(3):
        assert reset_connections([leader.peer_port]) >= 4, "two other nodes with a server each"
        until(lambda: _relinked(cluster) >= seen + 2 * (turn + 1))  # noqa: B023 - called in this turn only
        write(cluster.nodes[0], b"t", b"reset")
    assert values(cluster.nodes[2], b"t") == [b"reset"] * len(ROWS)
    time.sleep(OUTLIVES_S + 0.5)  # a leader that fences a server for its lost link has done so by then
    assert _serving(cluster) == before
    assert cluster.leader() is leader


def _serving(cluster: ManyNodes) -> dict[str, list[int]]:
    """Return the processes of each node's servers, without the spare, which may start meanwhile."""
    return {node.name: sorted(pid for pid in node.servers() if not is_nobody(pid)) for node in cluster.nodes}


def _relinked(cluster: ManyNodes) -> int:
    """Return how often servers have linked again, by the leaders' logs."""
    return sum(len(re.findall(r"-s\d+\.\d+ is linked again", node.log.read_text())) for node in cluster.nodes)


def test_the_last_node_stops_and_one_process_takes_the_folder_back(cluster: ManyNodes) -> None:
    """The last test of the module: it ends the cluster."""
    write(cluster.nodes[0], b"t", b"17")
    for node in cluster.nodes:
        assert node.stop() == 0
    refused = program("standalone", "--data", str(cluster.data), "--port", "0", "--web-port", "-1")
    assert refused.returncode == 2
    assert "CLUSTER" in refused.stderr
    revive(cluster, *cluster.nodes)
    assert values(cluster.nodes[1], b"t") == [b"17"] * len(ROWS)
    for node in cluster.nodes:
        assert node.stop() == 0
    (cluster.data / "CLUSTER").unlink()
    from tests.support.standalone_store import StoreProcess

    with StoreProcess(cluster.data) as store:
        found = store.dump(b"t")[b"t"]
        assert [(row, cells[b"f:q"][0]) for row, cells in found] == [(row, b"17") for row in ROWS]
