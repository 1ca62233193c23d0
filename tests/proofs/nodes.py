"""``python -m tests.proofs.nodes``: nodes of a cluster are killed under load, and every row answers again in time.

Three nodes with servers of their own, over a real etcd or ZooKeeper and one folder.  A client for each region
(``node_clients``) puts and gets a row all the time; each acknowledged value must be found afterwards.

    server          one server's process is killed
    node            one node that does not lead is killed, with all its servers, as a machine that loses power
    leader          the node that leads is killed, with all its servers
    both            the leader and another node are killed at once (needs three nodes)

For each kill the time until the first and the last row of the dead servers' regions answers.  Rows of other regions
must answer all the time: the run fails if a call of a row whose server lives, and whose client's node lives, fails or
takes over LATE_S.

    --anchor etcd|zookeeper  --kills 100  --regions 64  --kinds server,node,leader  --seed N
    --folder ext4|ceph|gluster    a file system that is started here, with a mount for each node; a node that is killed
                                  loses its mount too, in silence
    --fence evict|none            with ceph: evict the client of a node that ended; or wait for the end of its session.
                                  The second must be said within SAID_S of the end of the lease; a kill of a node
                                  whose rows waited for over NAMED_S, and of which nothing was said, counts as late too
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
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from columnar.client import ClusterAdmin
from columnar.client.errors import StoreIOError
from tests.proofs.node_clients import TABLE, WAIT_S, Load, loaded
from tests.support.cluster_process import is_nobody, reaped
from tests.support.many_machines import missing, shared_folder
from tests.support.many_machines.daemons import SharedFolder
from tests.support.many_nodes import ManyNodes, many_nodes

NODES: Final = 3
SAID_S: Final = 2.0
NAMED_S: Final = 5.0  # rows of a node that wait longer, without a fence, wait for something that the leader must name
CALM_S: Final = 3.0  # longer than the pause between two rounds of the balancer
SLOW_S: Final = 8.0  # a kill whose rows answer later leaves the nodes' logs for a person
KINDS: Final = ("server", "node", "leader", "both")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")


@dataclass
class Trial:
    kind: str
    first_s: float = 0.0
    last_s: float = 0.0
    said_s: float | None = None  # after the end of the lease, until the leader said that the file system delays it
    spared: int = 0  # rows of servers that lived, whose clients' nodes lived
    disturbed: int = 0  # of these, rows of which a call failed or was late
    faults: list[str] = field(default_factory=list)  # of these: the row, its server and what happened


def owners_of(cluster: ManyNodes) -> dict[bytes, str]:
    """Return the server of each region, by the region's start."""
    node = next(one for one in cluster.nodes if one.lives)
    connection = node.connection()
    try:
        return {one.start_key: one.server for one in ClusterAdmin(connection).locations(TABLE)}
    finally:
        connection.close()


def trial(cluster: ManyNodes, shared: SharedFolder, load: Load, kind: str, rng: random.Random) -> Trial:
    """Kill, wait for every row, and start again what was killed.

    A region that moves to or from a victim at the moment of the kill rightly waits with it, though another server is
    named as its owner; so a kill waits until no region has moved for CALM_S.
    """
    wait_for_calm(cluster)
    leader = cluster.leader()
    others = [node for node in cluster.nodes if node is not leader]
    victims = {"server": [rng.choice(cluster.nodes)], "node": [rng.choice(others)], "leader": [leader]}.get(
        kind, [leader, rng.choice(others)]
    )
    names = {node.name for node in victims}
    owners = owners_of(cluster)
    dead = {start for start, server in owners.items() if server.partition("-")[0] in names}
    hit = [probe for probe in load.probes if probe.row[:4] in {start or b"0000" for start in dead}]
    spared = [probe for probe in load.probes if probe not in hit and probe.asked not in names]
    for probe in load.probes:
        probe.forget()
    begun, begun_at = time.monotonic(), datetime.now()
    if kind == "server":
        pid = next(one for one in victims[0].servers() if not is_nobody(one))
        os.kill(pid, signal.SIGKILL)
        reaped(pid)
    else:
        for node in victims:
            node.kill()
            shared.power_off(cluster.nodes.index(node))
    killed_s = time.monotonic()
    for probe in load.probes:
        probe.killed_s = killed_s
    wait(cluster, lambda: [probe.row for probe in load.probes if not probe.again_s])  # none waits unnoticed
    answered = [probe.again_s - begun for probe in hit] or [0.0]
    faults = [
        f"{probe.row!r} of {owners.get(probe.row[:4], owners[b''])}: {'; '.join(probe.faults)}"
        for probe in spared
        if probe.is_disturbed
    ]
    found = Trial(kind, min(answered), max(answered), None, len(spared), len(faults), faults)
    if kind != "server":
        found.said_s = said_after(cluster.logs(), begun_at)
        for node in victims:
            shared.power_on(cluster.nodes.index(node))
            node.begin()
        for node in victims:
            node.await_ready()
    wait(cluster, lambda: without_regions(cluster))  # regions go back to the servers that had them
    return found


def wait_for_calm(cluster: ManyNodes) -> None:
    """Return when the owners of all regions have been the same for CALM_S and none is on its way.

    Raises AssertionError with the transitions after WAIT_S.
    """
    deadline = time.monotonic() + WAIT_S
    owners, since = owners_of(cluster), time.monotonic()
    while time.monotonic() - since < CALM_S:
        moving, found = transitions(cluster), owners_of(cluster)
        if moving or found != owners:
            owners, since = found, time.monotonic()
        assert time.monotonic() < deadline, f"regions still move: {moving}"
        time.sleep(0.05)


def said_after(logs: str, begun: datetime) -> float | None:
    """Return the seconds from the last end of a lease to the line that says what delays the takeover; None without.

    Lines from before ``begun`` are those of earlier trials.
    """
    lines = [(_moment(line), line) for line in logs.splitlines() if _TIME.match(line)]
    ends = [at for at, line in lines if at >= begun and "has ended: its lease is over" in line]
    said = [
        at for at, line in lines if ends and at >= max(ends) and re.search(r"file system (has held|may hold)", line)
    ]
    return (min(said) - max(ends)).total_seconds() if said else None


def _moment(line: str) -> datetime:
    return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f")


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


def problems_of(trials: Iterable[Trial], fence: str) -> list[str]:
    """Return what no trial may show: an operator who is told late or never, and rows disturbed without a reason."""
    found = []
    for number, one in enumerate(trials, 1):
        kill = f"kill {number} ({one.kind})"
        if one.said_s is not None and one.said_s > SAID_S:
            found.append(f"{kill}: the delay was said late, {one.said_s:.2f} s after the end of the lease")
        if fence == "none" and one.kind != "server" and one.last_s > NAMED_S and one.said_s is None:
            found.append(f"{kill}: rows waited for {one.last_s:.2f} s, and nobody said for what")
        if one.disturbed:
            found.append(f"{kill}: {one.disturbed} of {one.spared} rows that should not notice the kill were disturbed")
            found += [f"    {fault}" for fault in one.faults]
    return found


def prove(anchor: str, folder_kind: str, fence: str, kinds: list[str], kills: int, regions: int, seed: int) -> int:
    rng = random.Random(seed)
    lost: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="nodes-") as folder,
        shared_folder(folder_kind, NODES) as shared,
        many_nodes(
            Path(folder), *fence_flags(shared, fence), kind=anchor, data=[mount / "data" for mount in shared.mounts]
        ) as cluster,
        loaded(cluster, regions) as load,
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
            others = f"{sum(one.disturbed for one in of_kind)} of {sum(one.spared for one in of_kind)} others disturbed"
            text = f"first row {spread(first)} s, every row {spread(last)} s, {others}"
            print(f"{anchor}, {folder_kind}, {kind}, n {len(of_kind)}: {text}")
    print(f"acknowledged values lost: {len(lost)} {lost[:3]}")
    problems = problems_of(trials, fence)
    for problem in problems:
        print(problem)
    return 1 if lost or problems else 0


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
