"""Strangers at a cluster of nodes: peers without its secret, another cluster at its service, one machine, and a node.

Each kind is tried while the cluster, or the store of one process, serves.  All are refused, and say why.  A deep run
tries 25 of each kind: 100, and as many peers of another cluster and starts of several servers.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from columnar.client import ClusterAdmin
from columnar.cluster import peer_frames
from columnar.cluster.hello import RANDOM_BYTES, Greeting, Hello
from columnar.model.owner import Incarnation
from tests.support.cluster_process import children
from tests.support.deep import seeds
from tests.support.many_nodes import ROOT, WAIT_S, ManyNodes, many_nodes, until
from tests.support.standalone_store import StoreProcess

EACH = seeds("strangers of each kind", deep=25, short=3)
AT_ONCE = 2  # processes that start
LINK_S = 10.0
STRANGER = Incarnation("stranger-s1", 4711)
LISTENS = "0A"  # in /proc/net/tcp


@dataclass(frozen=True)
class Scene:
    cluster: ManyNodes
    alone: StoreProcess  # a store of one process
    alone_data: Path

    @property
    def cluster_id(self) -> str:
        return (self.cluster.data / "cluster-id").read_text().strip()

    @property
    def secret(self) -> bytes:
        return bytes.fromhex((self.cluster.data / "secret").read_text())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("strangers")
    with many_nodes(folder, count=1) as cluster, StoreProcess(folder / "alone") as alone:
        yield Scene(cluster, alone, folder / "alone")


def start(*words: str) -> str:
    """Start a process that must end by itself with an error; returns what it said."""
    command = [sys.executable, "-m", "columnar", *words, "--port", "0", "--web-port", "-1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, env=environment, check=False)
    assert ended.returncode != 0
    assert "ready" not in ended.stdout
    return ended.stderr


def node(data: Path, coordination: str, number: int) -> str:
    return start("node", "--data", str(data), "--name", f"stranger{number}", "--coordination", coordination)


async def is_answered(port: int, cluster: str, secret: bytes) -> bool:
    """Greet a server without looking at its own proof, and send a request; returns whether a frame answers it."""
    greeting = Greeting(Hello(cluster, STRANGER), lambda _hello: None, secret, connects=True)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    kinds = []
    try:
        async with asyncio.timeout(LINK_S):
            writer.write(greeting.begin(os.urandom(RANDOM_BYTES)))
            while not kinds or kinds[-1] in (peer_frames.HELLO, peer_frames.PROOF):
                length = await reader.readexactly(4)
                body = await reader.readexactly(int.from_bytes(length))
                kinds.append(body[8])
                if len(kinds) == 1:
                    request = peer_frames.request_frame(1, "close_table", {"table": "none"})
                    writer.write(greeting.take_bytes(length + body) + request)
    except (ConnectionError, asyncio.IncompleteReadError):
        return False
    finally:
        writer.close()
    return True


def peer_port(cluster: ManyNodes) -> int:
    """Return the port at which other servers reach the server of the only node."""
    (node,) = cluster.nodes
    connection = node.connection()
    (told,) = ClusterAdmin(connection).servers().servers
    connection.close()
    sockets = set()
    for descriptor in Path(f"/proc/{told.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            sockets.add(os.readlink(descriptor))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ports = {
        int(one[1].partition(":")[2], 16) for one in lines if one[3] == LISTENS and f"socket:[{one[9]}]" in sockets
    }
    (port,) = ports - {node.port, node.web_port, int(told.address.rpartition(":")[2])}
    return port


@pytest.fixture(scope="module")
def port(scene: Scene) -> int:
    """Of the server for its peers, who know the secret and the cluster."""
    found = peer_port(scene.cluster)
    assert asyncio.run(is_answered(found, scene.cluster_id, scene.secret))
    return found


def test_peers_with_a_wrong_secret_are_refused(scene: Scene, port: int) -> None:
    rng = random.Random(7)
    answered = [asyncio.run(is_answered(port, scene.cluster_id, rng.randbytes(32))) for _ in range(EACH)]
    assert answered == [False] * EACH
    until(lambda: f"{STRANGER} does not know the secret of the cluster" in scene.cluster.logs())


def test_peers_of_another_cluster_are_refused(scene: Scene, port: int) -> None:
    answered = [asyncio.run(is_answered(port, f"another{n}", scene.secret)) for n in range(EACH)]
    assert answered == [False] * EACH


def test_nodes_of_another_cluster_are_refused(scene: Scene, tmp_path: Path) -> None:
    """The service has the records of this cluster, and a node of another folder must not use them."""
    coordination = scene.cluster.coordination
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda n: node(tmp_path / f"data{n}", coordination, n), range(EACH)))
    assert sum(f"has the records of the cluster {scene.cluster_id}" in one for one in said) == EACH, said
    assert not any((tmp_path / f"data{n}" / "CLUSTER").exists() for n in range(EACH))


@pytest.mark.parametrize("servers", [1, 2])
def test_one_machine_is_refused_on_the_folder_of_nodes(scene: Scene, servers: int) -> None:
    data = str(scene.cluster.data)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda _: start("standalone", "--data", data, "--servers", str(servers)), range(EACH)))
    assert sum(f"the data folder {data} is in use by" in one for one in said) == EACH, said


def test_nodes_are_refused_on_the_folder_of_a_store_that_serves(scene: Scene) -> None:
    data, coordination = scene.alone_data, f"{scene.cluster.coordination}-alone"
    before = (data / "FORMAT").read_text()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda n: node(data, coordination, n), range(EACH)))
    assert sum(f"the data folder {data} is in use by" in one for one in said) == EACH, said
    assert (data / "FORMAT").read_text() == before, "the store goes on as it was"
    assert not (data / "CLUSTER").exists()
    connection = scene.alone.connection()
    connection.create_table("t", {"f": {}})
    connection.table("t").put(b"r", {b"f:q": b"v"})
    assert connection.table("t").row(b"r") == {b"f:q": b"v"}
    connection.close()


def test_the_cluster_serves_after_all_of_them(scene: Scene) -> None:
    (one,) = scene.cluster.nodes
    assert one.lives
    assert len(children(one.pid)) >= 1
    connection = one.connection()
    connection.create_table("t", {"f": {}})
    connection.table("t").put(b"r", {b"f:q": b"v"})
    assert connection.table("t").row(b"r") == {b"f:q": b"v"}
    connection.close()
    with scene.cluster.client() as store:
        names = [json.loads(one.value)["node"] for key, one in store.list_keys("nodes").items()]  # type: ignore[attr-defined]
    assert set(names) == {"n1"}, "no stranger has a record"
