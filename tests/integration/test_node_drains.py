"""Real nodes are drained and stopped under writing clients: no call fails, a leader resigns, and commands wait."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from columnar.client import ClusterAdmin
from columnar.shell import maintenance
from tests.support.cluster_process import Rows
from tests.support.many_nodes import ROOT, WAIT_S, ManyNodes, NodeProcess, many_nodes, until
from tests.support.shell import Shell

SPLITS = [bytes([letter]) for letter in b"bcdefghijk"]
ROWS = [b"a", *SPLITS]
CLIENTS = 3
NONCE = "0c" * 16


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyNodes]:
    with many_nodes(tmp_path_factory.mktemp("drained")) as nodes:
        connection = nodes.nodes[0].connection()
        connection.create_table("t", {"f": {}}, splits=SPLITS)
        connection.close()
        yield nodes


@contextmanager
def admin_of(node: NodeProcess) -> Iterator[ClusterAdmin]:
    with node.connection() as connection:
        yield ClusterAdmin(connection)


class Writers:
    """Clients of some nodes that write each row in turn and read it back; a failed call ends its client."""

    def __init__(self, nodes: list[NodeProcess]) -> None:
        self.failures: list[BaseException] = []
        self.calls = 0
        self.longest_s = 0.0
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(nodes[n % len(nodes)], n)) for n in range(CLIENTS)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        until(lambda: self.calls > 100)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(WAIT_S)

    def _write(self, node: NodeProcess, number: int) -> None:
        try:
            with node.rows() as rows:
                count = 0
                while not self._is_over.is_set():
                    count += 1
                    self._call(rows, ROWS[count % len(ROWS)] + b"%d" % number, b"%d" % count)
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.failures.append(error)

    def _call(self, rows: Rows, row: bytes, value: bytes) -> None:
        begun_s = time.monotonic()
        rows.put(b"t", row, value)
        assert rows.get(b"t", row) == value
        self.calls += 1
        self.longest_s = max(self.longest_s, time.monotonic() - begun_s)


def ready(node: NodeProcess) -> tuple[int, str]:
    try:
        with urlopen(f"http://{node.host}:{node.web_port}/ready") as page:
            return page.status, page.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()


def state_of(cluster: ManyNodes, name: str) -> tuple[bool, int]:
    """Return whether a node's server is drained, and its regions."""
    node = next(one for one in cluster.nodes if one.lives and one.name != name)
    with admin_of(node) as admin:
        (found,) = (one for one in admin.servers().servers if one.name == f"{name}-s1")
        return found.drained, found.regions


def spread(cluster: ManyNodes) -> None:
    """Wait until every node has regions."""

    def is_spread() -> bool:
        with admin_of(cluster.nodes[0]) as admin:
            servers = [one for one in admin.servers().servers if one.name != "standalone"]
            if [one.state for one in servers] != ["up"] * len(cluster.nodes):
                return False
            empty = [one.name for one in servers if not one.regions]
            for name in empty:
                found = admin.locations(b"t")
                ((most, _),) = Counter(one.server for one in found).most_common(1)  # not from one with a single region
                admin.move(next(one for one in found if one.server == most).encoded_name.encode(), name)
            return not empty

    until(is_spread)


@pytest.mark.parametrize("which", ["other", "leader"])
def test_no_call_fails_while_a_node_is_drained_stopped_and_started(
    cluster: ManyNodes, which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spread(cluster)
    leader = cluster.leader()
    node = leader if which == "leader" else next(one for one in cluster.nodes if one is not leader)
    others = [one for one in cluster.nodes if one is not node]
    shell = Shell(f"{node.host}:{node.port}")  # as a stop of the node's machine does
    with Writers(others) as writers:
        shell.out("drain", "--node", node.name, "--until-restart", "--wait", "--timeout", "60")
        assert state_of(cluster, node.name) == (True, 0)
        assert cluster.leader() is not node, "the command returns when another node leads"
        assert shell.out("maintenance").startswith("nobody ")
        until(lambda: ready(node)[0] == 503)
        assert "not ready: this node is drained until its next start" in ready(node)[1]
        with node.rows() as rows:
            rows.put(b"t", b"z", b"1")  # its servers still answer
        assert [ready(other)[0] for other in others] == [200] * len(others)
        drained_s, writers.longest_s = writers.longest_s, 0.0
        assert node.stop() == 0
        with admin_of(others[0]) as admin:  # calls about tables wait for no next leader
            begun_s = time.monotonic()
            admin.servers()
            table_s = time.monotonic() - begun_s
        node.begin()
        node.await_ready()
        until(lambda: not state_of(cluster, node.name)[0])
        until(lambda: ready(node)[0] == 200)
        if which == "other":  # a leader that changed does not know which regions had been at home there
            until(lambda: state_of(cluster, node.name)[1] > 0)
    with capsys.disabled():
        print(
            f"\n{which}: {writers.calls} writes and reads, the longest took {drained_s:.2f} s while it was drained, "
            f"{writers.longest_s:.2f} s while it stopped and started; the leader answered after {table_s:.2f} s"
        )
    assert writers.failures == []


def test_a_second_drain_waits_and_says_for_whom(cluster: ManyNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "POLL_S", 0.02)
    node, other = (one for one in cluster.nodes if one is not cluster.leader())
    shell = Shell(f"{other.host}:{other.port}")
    with admin_of(other) as admin:
        assert admin.acquire_maintenance(NONCE, "columnar drain --node n9 by eve at n9", "n9").own
        result = shell("drain", "--node", node.name, "--wait", "--timeout", "0.1")
        waiting, refused = result.stderr.splitlines()
        who = "'columnar drain --node n9 by eve at n9' has the maintenance of this store for n9, since 0."
        assert (result.exit_code, who in waiting, who in refused) == (1, True, True)
        assert (waiting[-16:], "nothing was done" in refused) == ("; waiting for it", True)
        assert state_of(cluster, node.name)[0] is False, "nothing was done"
        shell.out("drain", "--node", node.name, "--dry-run")
        admin.release_maintenance(NONCE)
        shell.out("drain", "--node", node.name, "--wait")
        assert state_of(cluster, node.name) == (True, 0)
        assert ready(node)[0] == 200, "it has no end, and the servers serve"
        shell.out("undrain", "--node", node.name)
        until(lambda: state_of(cluster, node.name)[0] is False)


def test_the_lock_outlives_the_command_and_the_leader_that_are_killed(cluster: ManyNodes, tmp_path: Path) -> None:
    """A drain waits for a region that cannot move; then its command and the leader are killed."""
    leader = cluster.leader()
    other = next(one for one in cluster.nodes if one is not leader)
    script = tmp_path / "hold.py"
    script.write_text(
        "import sys, time\n"
        "from columnar.shell.connecting import Server\n"
        "from columnar.shell.maintenance import maintenance_lock\n"
        "from columnar.shell.shell_output import Output\n"
        "from columnar.client import Connection\n"
        "address = sys.argv[1]\n"
        "server = Server(Connection.at(address), Output(False), address)\n"
        "with maintenance_lock(server, 'drain --node n7', 'n7'):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = subprocess.Popen(
        [sys.executable, str(script), f"{other.host}:{other.port}"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert command.stdout is not None
        assert command.stdout.readline() == "held\n"
    finally:
        command.kill()
        command.wait(WAIT_S)
        assert command.stdout is not None
        command.stdout.close()
    leader.kill()
    until(lambda: cluster.leader() is not leader)
    shell = Shell(f"{other.host}:{other.port}")
    until(lambda: "'columnar drain --node n7 by " in shell("maintenance").stdout)
    with admin_of(other) as admin:
        assert not admin.acquire_maintenance(NONCE, "another").own, "a new leader counts anew"
    assert shell.out("maintenance", "--break").startswith("ended: 'columnar drain --node n7 by ")
    leader.begin()
    leader.await_ready()


def test_what_cannot_be_is_refused_by_the_command(cluster: ManyNodes) -> None:
    shell = Shell(f"{cluster.nodes[0].host}:{cluster.nodes[0].port}")
    assert "there is no node n9; there are n" in shell.error("drain", "--node", "n9", "--wait", "--dry-run")
    assert "say which: 'columnar drain SERVER', or 'columnar drain --node NODE'" in shell.error("drain", status=2)
    assert "say which" in shell.error("drain", "n1-s1", "--node", "n1", status=2)
    assert "--until-restart is for --node NODE" in shell.error("drain", "n1-s1", "--until-restart", status=2)
    spread(cluster)
    first, second, third = (one.name for one in cluster.nodes)
    shell.out("drain", "--node", first, "--wait")
    shell.out("drain", "--node", second, "--wait")
    said = shell.error("drain", "--node", third, "--dry-run")
    assert "no other node could take the regions of" in said
    for name in (first, second):
        shell.out("undrain", "--node", name)
