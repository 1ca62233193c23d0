"""``python -m tests.proofs.nodes``: nodes of a cluster are killed under load, and every row answers again in time.

Three nodes with servers of their own, over a real etcd or ZooKeeper and one folder.  Clients of each node put and get
rows of all regions all the time; each acknowledged value must be found afterwards.

    server          one server's process is killed
    node            one node that does not lead is killed, with all its servers, as a machine that loses power
    leader          the node that leads is killed, with all its servers
    both            the leader and another node are killed at once (needs three nodes)

For each kill the time until the first and the last row of the dead servers' regions answers; those of other regions
must answer all the time.

    --anchor etcd|zookeeper  --kills 100  --regions 64  --kinds server,node,leader  --seed N
    --folder ext4|ceph|gluster    a file system that is started here, with a mount for each node; a node that is killed
                                  loses its mount too, in silence
    --fence evict|none            with ceph: evict the client of a node that ended; or wait for the end of its session.
                                  The second must be said within SAID_S of the end of the lease
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from thriftpy2.thrift import TException

from columnar.client import ClusterAdmin
from columnar.client.errors import StoreIOError
from tests.support.cluster_process import Rows, is_nobody, reaped
from tests.support.looping_threads import LoopingThreads
from tests.support.many_machines import missing, shared_folder
from tests.support.many_machines.daemons import SharedFolder
from tests.support.many_nodes import ManyNodes, NodeProcess, many_nodes, until

TABLE: Final = b"t"
NODES: Final = 3
WAIT_S: Final = 180.0  # also for the end of a session of CephFS
SAID_S: Final = 2.0
PAUSE_S: Final = 0.01  # of each thread between two rows: the generator shares the processors
SLOW_S: Final = 8.0  # a kill whose rows answer later leaves the nodes' logs for a person
LATE_S: Final = 1.0  # a call of a row whose server lives that takes longer has been disturbed
KINDS: Final = ("server", "node", "leader", "both")


@dataclass
class Trial:
    kind: str
    first_s: float = 0.0
    last_s: float = 0.0
    said_s: float | None = None  # after the end of the lease, until the leader said that the file system delays it
    disturbed: int = 0  # calls for rows of other servers that failed or were late


@dataclass
class Probe:
    """Puts and gets one row all the time, by one node; notes when it was acknowledged."""

    row: bytes
    node: NodeProcess
    lock: threading.Lock = field(default_factory=threading.Lock)
    acknowledged: int = 0  # the last value
    answered_s: float = 0.0  # when
    longest_s: float = 0.0  # of calls since ``forget``
    failed: int = 0
    lost: list[str] = field(default_factory=list)


class Load(LoopingThreads):
    """A thread for each part of the rows, with a connection to a node that lives."""

    def __init__(self, cluster: ManyNodes, rows: list[bytes], threads: int) -> None:
        self._cluster = cluster
        self.probes = [Probe(row, cluster.nodes[n % len(cluster.nodes)]) for n, row in enumerate(rows)]
        super().__init__(partial(self._run, self.probes[n::threads]) for n in range(threads))

    def _run(self, probes: list[Probe], over: threading.Event) -> None:
        connection: Rows | None = None
        node: NodeProcess | None = None
        while not over.is_set():
            for probe in probes:
                if connection is None or node is None or not node.lives:
                    if connection is not None:
                        connection.close()
                    connection = None
                    node = next((one for one in self._cluster.nodes if one.lives), None)
                    if node is None:
                        time.sleep(0.01)
                        continue
                    with suppress(OSError, TException):  # it is just being killed
                        connection = node.rows()
                    if connection is None:
                        continue
                over.wait(PAUSE_S)
                if not self._step(probe, connection):
                    connection.close()
                    connection = None
        if connection is not None:
            connection.close()

    def _step(self, probe: Probe, connection: Rows) -> bool:
        """Read the row, and write its next value.  Returns False if the connection is of no use any more."""
        begun = time.monotonic()
        try:
            found = connection.get(TABLE, probe.row)
            value = int(found or b"0")
            if value < probe.acknowledged:
                probe.lost.append(f"{probe.row!r} has {value}, and {probe.acknowledged} was acknowledged")
            connection.put(TABLE, probe.row, b"%d" % (value + 1))
        except Exception as error:  # noqa: BLE001 - a client's errors of many kinds; the row is tried again
            probe.failed += 1
            return "CallTimeout" in str(error) or "NotServingRegion" in str(error)
        now = time.monotonic()
        with probe.lock:
            probe.acknowledged = value + 1
            probe.answered_s = now
            probe.longest_s = max(probe.longest_s, now - begun)
        return True


def rows_of(regions: int) -> tuple[list[bytes], list[bytes]]:
    """Return the split points, and one row of each region."""
    splits = [b"%04d" % (n + 1) for n in range(regions - 1)]
    return splits, [b"%04d" % n + b"x" for n in range(regions)]


def owners_of(cluster: ManyNodes) -> dict[bytes, str]:
    """Return the server of each region, by the region's start."""
    node = next(one for one in cluster.nodes if one.lives)
    connection = node.connection()
    try:
        return {one.start_key: one.server for one in ClusterAdmin(connection).locations(TABLE)}
    finally:
        connection.close()


def trial(cluster: ManyNodes, shared: SharedFolder, load: Load, kind: str, rng: random.Random) -> Trial:
    """Kill, wait for every row, and start again what was killed."""
    leader = cluster.leader()
    others = [node for node in cluster.nodes if node is not leader]
    victims = {"server": [rng.choice(cluster.nodes)], "node": [rng.choice(others)], "leader": [leader]}.get(
        kind, [leader, rng.choice(others)]
    )
    names = {node.name for node in victims}
    dead = {start for start, server in owners_of(cluster).items() if server.partition("-")[0] in names}
    hit = [probe for probe in load.probes if probe.row[:4] in {start or b"0000" for start in dead}]
    rest = [probe for probe in load.probes if probe not in hit]
    for probe in load.probes:
        with probe.lock:
            probe.longest_s, probe.failed = 0.0, 0
    begun = time.monotonic()
    if kind == "server":
        pid = next(one for one in victims[0].servers() if not is_nobody(one))
        os.kill(pid, signal.SIGKILL)
        reaped(pid)
    else:
        for node in victims:
            node.kill()
            shared.power_off(cluster.nodes.index(node))
    killed = time.monotonic()
    wait(cluster, lambda: [probe.row for probe in hit if probe.answered_s <= killed])
    answered = [probe.answered_s - begun for probe in hit] or [0.0]
    found = Trial(kind, min(answered), max(answered))
    if kind != "server":
        found.said_s = said_after(cluster.logs())
        found.disturbed = sum(probe.longest_s > LATE_S or probe.failed > 0 for probe in rest)
        for node in victims:
            shared.power_on(cluster.nodes.index(node))
            node.begin()
        for node in victims:
            node.await_ready()
    wait(cluster, lambda: without_regions(cluster))  # regions go back to the servers that had them
    return found


def said_after(logs: str) -> float | None:
    """Return the seconds from the last end of a lease to the line that says what delays the takeover; None without."""
    ends = [line[:23] for line in logs.splitlines() if "has ended: its lease is over" in line]
    said = [line[:23] for line in logs.splitlines() if re.search(r"file system (has held|may hold)", line)]
    if not ends or not said or max(said) < max(ends):
        return None
    later = min(line for line in said if line >= max(ends))
    return (_moment(later) - _moment(max(ends))).total_seconds()


def _moment(line: str) -> datetime:
    return datetime.strptime(line, "%Y-%m-%d %H:%M:%S,%f")


def without_regions(cluster: ManyNodes) -> list[str]:
    """Return the nodes that have no regions."""
    have = {server.partition("-")[0] for server in owners_of(cluster).values()}
    return [node.name for node in cluster.nodes if node.name not in have]


def wait(cluster: ManyNodes, lacking: Callable[[], Sequence[object]]) -> None:
    """Wait until nothing is lacking.  Raises AssertionError with what is, and the transitions of regions."""
    deadline = time.monotonic() + WAIT_S
    while missing := lacking():
        if time.monotonic() > deadline:
            raise AssertionError(f"it lacks {missing}; transitions: {transitions(cluster)}")
        time.sleep(0.01)


def transitions(cluster: ManyNodes) -> list[object]:
    connection = next(one for one in cluster.nodes if one.lives).connection()
    try:
        return list(ClusterAdmin(connection).transitions())
    finally:
        connection.close()


def spread(values: list[float]) -> str:
    return f"{min(values):.2f} / {statistics.median(values):.2f} / {max(values):.2f}"


@contextmanager
def loaded(cluster: ManyNodes, regions: int, threads: int) -> Iterator[Load]:
    splits, rows = rows_of(regions)
    connection = cluster.nodes[0].connection()
    connection.create_table(TABLE.decode(), {"f": {}}, splits=splits)
    connection.close()
    with Load(cluster, rows, threads) as load:
        until(lambda: all(probe.acknowledged for probe in load.probes), WAIT_S)
        yield load


def prove(anchor: str, folder_kind: str, fence: str, kinds: list[str], kills: int, regions: int, seed: int) -> int:
    rng = random.Random(seed)
    lost: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="nodes-") as folder,
        shared_folder(folder_kind, NODES) as shared,
        many_nodes(
            Path(folder), *fence_flags(shared, fence), kind=anchor, data=[mount / "data" for mount in shared.mounts]
        ) as cluster,
        loaded(cluster, regions, threads=8) as load,
    ):
        kept = Path(tempfile.gettempdir()) / "columnar-nodes.log"
        trials = []
        for number in range(kills):
            kind = kinds[number % len(kinds)]
            try:
                trials.append(trial(cluster, shared, load, kind, rng))
            except (AssertionError, StoreIOError) as error:
                kept.write_text(cluster.logs())
                print(f"kill {number + 1} ({kind}): {error}; the nodes' logs are in {kept}")
                return 1
            one = trials[-1]
            if one.last_s > SLOW_S:
                kept.write_text(cluster.logs())
            said = "" if one.said_s is None else f", said after {one.said_s:.2f} s"
            print(f"{number + 1}: {kind}, first {one.first_s:.2f} s, last {one.last_s:.2f} s{said}", flush=True)
        lost = [text for probe in load.probes for text in probe.lost]
    for kind in kinds:
        of_kind = [one for one in trials if one.kind == kind]
        if of_kind:
            first, last = [one.first_s for one in of_kind], [one.last_s for one in of_kind]
            disturbed = sum(one.disturbed for one in of_kind)
            text = f"first row {spread(first)} s, every row {spread(last)} s, disturbed rows of others {disturbed}"
            print(f"{anchor}, {folder_kind}, {kind}, n {len(of_kind)}: {text}")
    print(f"acknowledged values lost: {len(lost)} {lost[:3]}")
    late = [one.said_s for one in trials if one.said_s is not None and one.said_s > SAID_S]
    if late:
        print(f"{len(late)} delays were said late, the last after {max(late):.2f} s")
    return 1 if lost or late else 0


def fence_flags(shared: SharedFolder, fence: str) -> list[str]:
    return ["--fence-command", f"cephfs --conf {shared.conf}"] if fence == "evict" and shared.conf else []


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.proofs.nodes")
    asked.add_argument("--anchor", default="etcd", choices=("etcd", "zookeeper"))
    asked.add_argument("--kills", type=int, default=100)
    asked.add_argument("--regions", type=int, default=64)
    asked.add_argument("--kinds", default=",".join(KINDS))
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--folder", default="ext4", choices=("ext4", "ceph", "gluster"))
    asked.add_argument("--fence", default="evict", choices=("evict", "none"))
    options = asked.parse_args()
    if lacking := missing(options.folder):
        print(f"{options.folder} DID NOT RUN: {', '.join(lacking)} is missing")
        return 1
    kinds = options.kinds.split(",")
    return prove(options.anchor, options.folder, options.fence, kinds, options.kills, options.regions, options.seed)


if __name__ == "__main__":
    sys.exit(main())
