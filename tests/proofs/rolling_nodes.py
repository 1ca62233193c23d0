"""Rolling restarts of nodes under clients behind a TCP balancer, and under clients that call owners themselves.

    servers       ``columnar restart --rolling`` restarts the servers of all nodes, one behind the other
    whole nodes   each node is drained (``columnar drain --node``), stopped by SIGTERM, started, and waited for until
                  ``/ready`` is 200; the leader is the last

A client of happybase behind the balancer connects again if its connection was closed before an answer came, and repeats
the step; this is counted.  A client with ``routing`` repeats nothing.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from thriftpy2.transport import TTransportException

from columnar.client import Connection
from tests.proofs.crew import work_together
from tests.proofs.rolling import RESTART_S, STEPS, TABLE, TIMEOUT_MS, Client, Plan, restart
from tests.proofs.verdict import Tell, Verdict
from tests.support.many_nodes import ManyNodes, NodeProcess, many_nodes, until
from tests.support.standalone_store import ENVIRONMENT
from tests.support.tcp_balancer import TcpBalancer, is_ready

SERVERS: Final = 2  # of each node: connections go on at the other one
DRAIN_S: Final = 60
ATTEMPTS: Final = 3  # of a step: the balancer may know a stopping node as ready for a moment
CLOSED: Final = (TTransportException, ConnectionError, EOFError)


@dataclass
class BalancedClient(Client):
    """A client that connects again when its connection was closed."""

    reconnected: int = 0

    def advance(self) -> None:
        step = self.rng.choice(STEPS)
        for attempt in range(ATTEMPTS):
            try:
                (self._repeat if attempt else self._step)(step, self._connection)
                break
            except CLOSED:
                if attempt == ATTEMPTS - 1:
                    raise
                self.reconnected += 1
                self._connection.close()
                self._connection = self._connected()

    def _step(self, step: str, connection: Any) -> None:
        getattr(self, step)(connection.table(TABLE))

    def _repeat(self, step: str, connection: Any) -> None:
        if step == "increment":  # it may have been done
            found = connection.table(TABLE).counter_get(*self.counter)
            if found == self.counted:
                return
            self.counted -= 1  # the step counts again
        self._step(step, connection)


@dataclass
class RoutingClient(BalancedClient):
    """A client that calls the owners of rows, and repeats nothing."""

    hosts: tuple[str, ...] = ()

    def advance(self) -> None:
        Client.advance(self)

    def step(self, table: Any) -> None:
        begun = time.monotonic()
        self.requests += 1  # a scan is several
        try:
            super().step(table)
        finally:
            self.longest_s = max(self.longest_s, time.monotonic() - begun)

    def _connected(self) -> Any:
        return Connection(list(self.hosts), timeout=TIMEOUT_MS, routing=True)


def restart_nodes(cluster: ManyNodes, data: Path) -> list[str]:
    """Restart each node as a whole, the leader last; return the failures."""
    leader = cluster.leader()
    for node in sorted(cluster.nodes, key=lambda one: one is leader):
        command = [sys.executable, "-m", "columnar", "drain", "--node", node.name, "--until-restart", "--wait"]
        command += ["--timeout", str(DRAIN_S), "--data", str(data)]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=RESTART_S, check=False)
        if done.returncode:
            return [f"{node.name} is not drained: {done.stdout}{done.stderr}"]
        if status := node.stop():
            return [f"node {node.name} ended with status {status}"]
        node.begin()
        node.await_ready()
        until(lambda node=node: is_ready(node))
    return []


def prove(plan: Plan, folder: Path, tell: Tell) -> Verdict:
    verdict = Verdict("rolling restarts of nodes", needed=("restarts", "requests"))
    rng = random.Random(f"rolling {plan.seed}")
    begun = time.monotonic()
    with ExitStack() as undo:
        flags = ("--log-level", "info", "--lease", f"{plan.lease_s:g}")
        cluster = undo.enter_context(many_nodes(folder, *flags, count=plan.nodes, servers=SERVERS))
        balancer = undo.enter_context(TcpBalancer(cluster.nodes))
        connection = cluster.nodes[0].connection()
        connection.create_table(TABLE, {"f": {}}, splits=[b"%02x" % n for n in range(16, 256, 16)])
        connection.close()
        clients = [client_of(plan, n, balancer, cluster.nodes, rng.random()) for n in range(plan.clients)]
        restarted: list[int] = []

        def requests() -> int:
            return sum(one.requests for one in clients)

        def roll(stop: threading.Event) -> None:
            while len(restarted) < plan.restarts or requests() < plan.requests:
                if stop.is_set() or any(one.failed for one in clients):
                    break
                if plan.is_whole:
                    verdict.problems += restart_nodes(cluster, cluster.data)
                else:
                    verdict.problems += restart(cluster.data)
                restarted.append(len(restarted))
                if verdict.problems:
                    break
            stop.set()

        def look() -> None:
            failed = sum(len(one.failed) for one in clients)
            tell(f"{len(restarted)} rolling restarts, {requests():,} requests, {failed} failed")

        work_together([roll, *(one.work for one in clients)], RESTART_S * max(plan.restarts, 10), look)
        verdict.seconds = time.monotonic() - begun
        if verdict.problems or any(one.failed for one in clients):
            (folder / "nodes.log").write_text(cluster.logs())
    for client in clients:
        for problem in (*client.failed, *client.wrong):
            verdict.add(problem)
    verdict.done = requests()
    verdict.counts = {
        "restarts": len(restarted),
        "requests": verdict.done,
        "failed": sum(len(client.failed) for client in clients),
        "wrong answers": sum(len(client.wrong) for client in clients),
        "steps repeated on a new connection": sum(client.reconnected for client in clients),
        "longest pause, ms": round(1000 * max(client.longest_s for client in clients)),
    }
    verdict.look_for_nothing()
    return verdict


def client_of(plan: Plan, number: int, balancer: TcpBalancer, nodes: list[NodeProcess], seed: float) -> BalancedClient:
    rng = random.Random(seed)
    if plan.routing:
        hosts = tuple(f"{node.host}:{node.port}" for node in nodes)
        return RoutingClient(number, 0, rng, hosts=hosts)
    return BalancedClient(number, balancer.port, rng)
