"""python -m tests.proofs.served_queues: messages of two served queues while the store, or a server of it, is killed.

One queue is posted to a target that answers after a moment, the other is served by a function that tallies.  A pusher
pushes to both all the while.  At the end the store has peace, and the queues run empty.

    lost       a message whose push was acknowledged, and that the target was never given
    repeated   a message that was posted again though no kill came within REPEATED_S after it was posted before: then
               it was committed
    counted    the function's tally is not the number of its messages: each counts once, however often it runs

A kill may repeat the messages that were out.  The seed repeats the choices, not the moments of kills.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import click
from thriftpy2.transport import TTransportException

from columnar.client import Connection
from columnar.client.errors import IOError as Refused
from tests.support import message_functions
from tests.support.cluster_process import ClusterProcess, until
from tests.support.hook_server import HookServer, Posted, Reply

MODULE: Final = message_functions.MODULE
SIDE_BY_SIDE: Final = 4
REPEATED_S: Final = 3.0  # from a post until its commit is on disk, on a machine that starts a store beside
DRAIN_S: Final = 120.0
LOST: Final = (OSError, EOFError, Refused, TTransportException)  # what a killed store leaves of a call


@dataclass
class Account:
    acknowledged: dict[str, set[bytes]] = field(default_factory=lambda: {"hooks": set(), "tallied": set()})
    unsure: set[bytes] = field(default_factory=set)
    posted_s: dict[bytes, list[float]] = field(default_factory=dict)
    kills_s: list[float] = field(default_factory=list)

    def problems(self, tally: int) -> list[str]:
        found = [f"lost {body!r}" for body in self.acknowledged["hooks"] - self.posted_s.keys()]
        for body, times in self.posted_s.items():
            for before_s, after_s in pairwise(times):
                if not any(before_s - 0.1 <= kill_s <= before_s + REPEATED_S for kill_s in self.kills_s):
                    found.append(f"repeated {body!r} {after_s - before_s:.1f} s after its commit")
        least = len(self.acknowledged["tallied"])
        most = least + sum(body.startswith(b"tallied") for body in self.unsure)
        if not least <= tally <= most:
            found.append(f"counted {tally}, of {least} to {most}")
        return found


def push_all(connect: Callable[[], Connection], account: Account, over: threading.Event) -> None:
    number, connection = 0, None  # type: int, Connection | None
    while not over.is_set():
        queue = ("hooks", "tallied")[number % 2]
        body = b"%s-%d" % (queue.encode(), number)
        number += 1
        try:
            connection = connection or connect()
            connection.queue(queue).push(body)
            account.acknowledged[queue].add(body)
        except LOST:
            account.unsure.add(body)
            connection = None
            time.sleep(0.05)
        time.sleep(0.002)


def prove(folder: Path, servers: int, kills: int, seed: int) -> list[str]:
    """Return what is wrong after so many kills."""
    rng, account, over = random.Random(seed), Account(), threading.Event()

    def answer(posted: Posted) -> Reply:
        account.posted_s.setdefault(posted.body, []).append(time.monotonic())
        time.sleep(rng.choice((0.0, 0.01, 0.1)))
        return Reply()

    cluster = ClusterProcess(folder / "data", servers, "--trigger-modules", MODULE)
    cluster.environment["PYTHONPATH"] += f":{os.getcwd()}"
    with HookServer(answer) as hooks, cluster:
        with cluster.connection() as connection:
            connection.create_table("tallies", {"n": {}, "m": {}})
            connection.queues.serve("hooks", url=hooks.url, side_by_side=SIDE_BY_SIDE)
            connection.queues.serve("tallied", f"{MODULE}:tally", side_by_side=SIDE_BY_SIDE)
        pusher = threading.Thread(target=push_all, args=(cluster.connection, account, over), daemon=True)
        pusher.start()
        for _ in range(kills):
            time.sleep(rng.uniform(0.5, 3.0))
            account.kills_s.append(time.monotonic())
            until(lambda: cluster.servers() != [])  # successors of those that were killed may still be starting
            if rng.random() < 0.25:
                cluster.kill_workers_of(rng.choice(cluster.servers()))
            else:
                cluster.kill_server(rng.randrange(servers))
            account.kills_s.append(time.monotonic())
        assert pusher.is_alive(), "the pusher has met an error; see above"
        over.set()
        pusher.join()
        return account.problems(drained(cluster))


def drained(cluster: ClusterProcess) -> int:
    """Return the function's tally, when both queues are empty."""
    ends_s = time.monotonic() + DRAIN_S
    while True:
        try:
            with cluster.connection() as connection:
                left = Counter({queue: connection.queue(queue).stats().messages for queue in ("hooks", "tallied")})
                if not left.total():
                    cell = connection.table(b"tallies").row(b"all").get(b"n:messages", bytes(8))
                    return int.from_bytes(cell, "big")
        except LOST:
            left = Counter()
        assert time.monotonic() < ends_s, f"the queues do not run empty: {dict(left)}"
        time.sleep(0.1)


@click.command(help=__doc__)
@click.option("--servers", type=click.IntRange(2, 9), default=2, show_default=True)
@click.option("--kills", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--seed", type=int, default=lambda: random.randrange(1 << 30))
def main(servers: int, kills: int, seed: int) -> None:
    print(f"{servers} servers, {kills} kills, seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        found = prove(Path(folder), servers, kills, seed)
    print("\n".join(found) or "nothing lost, nothing given again after its commit, each counted once")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
