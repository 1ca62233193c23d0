"""What a running cluster of nodes bears with many open regions: ``python -m tests.measure.many_regions``.

Three nodes with a server each, over an etcd and a folder of this machine.  Each region has a row and is open.

    create      until each region has its row
    idle        processor time of each node and server without calls, and their memory
    gets        milliseconds of a get of a random row
    move        milliseconds of the call that moves a region
    server      one server's process is killed: until the last of SAMPLE of its rows answers
    leader      the node that leads is killed: until another leads, until the last of SAMPLE of its rows answers
    loop        the longest time in which ``/live`` of a living node had no answer, in each of these phases

    --regions 10000  --nodes 3  --tables 10  --lease 1.5
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from columnar.client import ClusterAdmin
from columnar.wire.idl import hbase
from gauge.processes import cpu_s_of
from tests.support.cluster_process import Rows, is_nobody, reaped
from tests.support.looping_threads import LoopingThreads
from tests.support.many_nodes import ManyNodes, NodeProcess, in_new_interpreters, many_nodes

BATCH: Final = 100
SAMPLE: Final = 300
IDLE_S: Final = 10.0
GETS: Final = 2_000
MOVES: Final = 50
WAIT_S: Final = 600.0
LIVE_EVERY_S: Final = 0.02
MIB: Final = 1 << 20


class Watch(LoopingThreads):
    """A thread for each node that calls ``/live`` all the time, and notes the longest wait."""

    def __init__(self, nodes: list[NodeProcess]) -> None:
        super().__init__(partial(self._run, node) for node in nodes)
        self.longest_s = 0.0
        self.is_paused = False

    def take_longest_ms(self) -> float:
        longest_s, self.longest_s = self.longest_s, 0.0
        return 1_000 * longest_s

    def _run(self, node: NodeProcess, over: threading.Event) -> None:
        url = f"http://{node.host}:{node.web_port}/live"
        while not over.wait(LIVE_EVERY_S):
            if self.is_paused:
                continue
            begun = time.monotonic()
            with suppress(OSError):
                urllib.request.urlopen(url, timeout=WAIT_S).close()
            if node.lives:
                self.longest_s = max(self.longest_s, time.monotonic() - begun)


def name_of(table: int) -> str:
    return f"t{table:03}"


def create(cluster: ManyNodes, tables: int, regions: int) -> list[tuple[bytes, bytes]]:
    """Create the tables, put a row into each region, and return tables and rows."""
    each = regions // tables
    rows = [b"%06d" % number for number in range(each)]
    connection = cluster.nodes[0].connection()
    for table in range(tables):
        connection.create_table(name_of(table), {"f": {}}, splits=rows[1:])
        with cluster.nodes[0].rows() as client:
            for at in range(0, each, BATCH):
                batch = [
                    hbase.BatchMutation(row=row, mutations=[hbase.Mutation(column=b"f:q", value=row)])
                    for row in rows[at : at + BATCH]
                ]
                client.client.mutateRows(name_of(table).encode(), batch, {})
    connection.close()
    return [(name_of(table).encode(), row) for table in range(tables) for row in rows]


def await_rows(cluster: ManyNodes, wanted: list[tuple[bytes, bytes]]) -> float:
    """Return the seconds until each of the rows has answered."""
    begun = time.monotonic()
    client: Rows | None = None
    for table, row in wanted:
        while True:
            assert time.monotonic() - begun < WAIT_S, f"{table!r} {row!r} does not answer"
            try:
                client = client or next(node for node in cluster.nodes if node.lives).rows()
                assert client.get(table, row) == row
                break
            except AssertionError:
                raise
            except Exception:  # noqa: BLE001 - of a store that is being recovered; the row is tried again
                if client is not None:
                    client.close()
                client = None
    if client is not None:
        client.close()
    return time.monotonic() - begun


def rows_at(cluster: ManyNodes, node: NodeProcess, tables: int, rng: random.Random) -> list[tuple[bytes, bytes]]:
    """Return some rows of regions that the node's server has."""
    connection = next(one for one in cluster.nodes if one.lives and one is not node).connection()
    found = [
        (name_of(table).encode(), place.start_key or b"000000")
        for table in range(tables)
        for place in ClusterAdmin(connection).locations(name_of(table))
        if place.server.startswith(f"{node.name}-")
    ]
    connection.close()
    return rng.sample(found, min(SAMPLE, len(found)))


def measure_gets(cluster: ManyNodes, wanted: list[tuple[bytes, bytes]], rng: random.Random) -> None:
    took = []
    with cluster.nodes[0].rows() as client:
        for table, row in rng.choices(wanted, k=GETS):
            begun = time.monotonic()
            assert client.get(table, row) == row
            took.append(1_000 * (time.monotonic() - begun))
    took.sort()
    print(f"gets: {took[len(took) // 2]:.2f} ms (p50), {took[len(took) * 99 // 100]:.2f} ms (p99), {took[-1]:.1f} ms")


def measure_moves(cluster: ManyNodes, tables: int, rng: random.Random) -> None:
    connection = cluster.nodes[0].connection()
    admin, took = ClusterAdmin(connection), []
    for place in rng.sample(list(admin.locations(name_of(rng.randrange(tables)))), MOVES):
        begun = time.monotonic()
        admin.move(place.name)
        took.append(1_000 * (time.monotonic() - begun))
    connection.close()
    took.sort()
    print(f"moves: {took[len(took) // 2]:.0f} ms (p50), {took[-1]:.0f} ms (longest of {MOVES})")


def measure_idle(cluster: ManyNodes) -> None:
    names = {pid: f"server of {node.name}" for node in cluster.nodes for pid in node.servers() if not is_nobody(pid)}
    names |= {node.pid: f"node {node.name}" for node in cluster.nodes}  # with their spares
    before = cpu_s_of(names)
    time.sleep(IDLE_S)
    for (pid, name), earlier, later in zip(names.items(), before, cpu_s_of(names), strict=True):
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        share = 100 * (later - earlier) / IDLE_S
        print(f"idle: {name:16} {share:5.1f} % of a processor, {resident / MIB:6.0f} MiB")


@contextmanager
def phase(watch: Watch, name: str) -> Iterator[None]:
    watch.take_longest_ms()
    begun = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - begun:.1f} s; a loop was held for {watch.take_longest_ms():.0f} ms", flush=True)


def kill_server(cluster: ManyNodes, tables: int, rng: random.Random, watch: Watch) -> None:
    node = next(one for one in cluster.nodes if one is not cluster.leader())
    wanted = rows_at(cluster, node, tables, rng)
    with phase(watch, f"server killed, {len(wanted)} of its rows"):
        pid = next(pid for pid in node.servers() if not is_nobody(pid))
        os.kill(pid, signal.SIGKILL)
        reaped(pid)
        await_rows(cluster, wanted)


def kill_leader(cluster: ManyNodes, tables: int, rng: random.Random, watch: Watch) -> None:
    node = cluster.leader()
    wanted = rows_at(cluster, node, tables, rng)
    begun = time.monotonic()
    with phase(watch, f"leader killed, {len(wanted)} of its rows"):
        node.kill()
        cluster.leader()
        print(f"leader: another one leads after {time.monotonic() - begun:.1f} s", flush=True)
        await_rows(cluster, wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regions", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--lease", type=float, default=1.5)
    wanted = parser.parse_args()
    rng = random.Random(1)
    print(f"{wanted.nodes} nodes, {wanted.regions:,} regions in {wanted.tables} tables, a lease of {wanted.lease:g} s")
    with (
        tempfile.TemporaryDirectory(prefix="regions-", dir="/dev/shm") as folder,
        many_nodes(
            Path(folder), "--lease", f"{wanted.lease:g}", count=wanted.nodes, prepare=in_new_interpreters
        ) as cluster,
        Watch(cluster.nodes) as watch,
    ):
        with phase(watch, "create"):
            rows = create(cluster, wanted.tables, wanted.regions)
        watch.is_paused = True
        measure_idle(cluster)
        watch.is_paused = False
        measure_gets(cluster, rows, rng)
        with phase(watch, "moves"):
            measure_moves(cluster, wanted.tables, rng)
        kill_server(cluster, wanted.tables, rng, watch)
        with phase(watch, "every row"):
            await_rows(cluster, rows)
        kill_leader(cluster, wanted.tables, rng, watch)
        with phase(watch, "every row"):
            await_rows(cluster, rows)


if __name__ == "__main__":
    main()
