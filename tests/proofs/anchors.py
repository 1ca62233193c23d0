"""``python -m tests.proofs.anchors``: the coordination service fails, or the network of one node, under load.

Three nodes over a real etcd or ZooKeeper of three servers, each node on a machine of its own (network namespaces):

    calm            nothing happens for 3 s: how long rows wait on this machine without trouble
    follower        a server of the service that does not lead is killed, and started again
    leader          the server that leads is killed, and started again
    frozen          the server that leads stands still for 8 s, as a machine that hangs: nothing is reset
    away            all servers are killed, and started after 10 s
    cut             one node is cut off for 0.5 to 60 s: what it sends is lost, what it should receive, or both

Clients outside put and get one row of each region all the time, by nodes that are not cut off.  A client on each node's
machine does the same by that node, and reads the rows of the others.  After each round:

    nothing lost    each row has at least its last acknowledged value
    no stale read   no read returns less than what was acknowledged before it began, also at the node that is cut off
    no fence        every node lives that was not cut off

    --anchor etcd|zookeeper  --rounds 20  --kinds calm,follower,leader,frozen,away,cut  --seed N  --cut-s 0.5,2,20,60
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from columnar.client import ClusterAdmin
from columnar.wire.idl import hbase
from tests.support.cluster_process import Rows
from tests.support.coordination_services import Service, ServiceProcess, running
from tests.support.many_nodes import NodeProcess, coordination_url, until
from tests.support.node_network import WAYS, Machine, NodeNetwork, missing, node_network

TABLE: Final = b"t"
KINDS: Final = ("calm", "follower", "leader", "frozen", "away", "cut")
NODES: Final = 3
REGIONS: Final = 9
WAIT_S: Final = 90.0
PAUSE_S: Final = 0.01  # between two calls of a client
CALM_S: Final = 1.0  # before and after each disturbance
LASTS_S: Final = {"calm": 3.0, "follower": 8.0, "leader": 8.0, "frozen": 8.0, "away": 10.0}
LONG_S: Final = 10.0  # after a longer cut the rows of the node are answered by others while it is cut off
CUTS_S: Final = (0.5, 1.0, 2.0, 5.0, 20.0, 60.0)


class MachineNode(NodeProcess):
    """A node on a machine of the network."""

    def __init__(self, number: int, machine: Machine, data: Path, coordination: str, logs: Path) -> None:
        flags = ("--servers", "1", "--folder-unprobed", "--host", machine.address, "--web-port", "-1")
        super().__init__(f"n{number}", data, coordination, logs, *flags)
        self.host = machine.address
        self.machine = machine
        self._command = ["ip", "netns", "exec", machine.namespace, *self._command]


@dataclass
class Row:
    """A row with one writer.  Fields are the writer's, but for ``gap_s``, which a round sets to 0."""

    key: bytes
    acknowledged: int = 0
    answered_s: float = field(default_factory=time.monotonic)
    gap_s: float = 0.0  # longest time between two acknowledged values
    failed: int = 0


class Client:
    """A thread that writes its row, and reads the rows of others, by the nodes that ``nodes`` returns."""

    def __init__(self, load: Load, row: Row, only: MachineNode | None) -> None:
        self._load = load
        self.row = row
        self._only = only  # on its machine; None: the client is outside
        self.node: MachineNode | None = None
        self._connection: Rows | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def leave(self) -> None:
        """End the call that waits for a node which is cut off."""
        connection = self._connection
        if connection is not None:
            connection.abort()

    def _run(self) -> None:
        if self._only is not None:
            self._only.machine.enter()
        while not self._load.stop.wait(PAUSE_S):
            try:
                self._step()
            except Exception:  # noqa: BLE001 - a client's errors of many kinds; the row is tried again
                self.row.failed += 1
                self._close()
        self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _step(self) -> None:
        if self._connection is None or (self._only is None and self.node in self._load.cut_off):
            self._close()
            self.node = self._only if self._only is not None else self._load.reachable(self.row)
            if self.node is None or not self.node.lives:
                return
            self._connection = self.node.rows()
        value = self._read(self._connection, self.row)
        if value < self.row.acknowledged:
            return  # writing on would hide at the end that acknowledged values are lost
        if not _replaced(self._connection, self.row.key, value):
            return  # a put of an earlier connection, whose answer was lost, has come late
        now_s, row = time.monotonic(), self.row
        row.acknowledged = value + 1
        row.gap_s, row.answered_s = max(row.gap_s, now_s - row.answered_s), now_s
        if self._only is not None:
            for other in self._load.rows:
                self._read(self._connection, other)

    def _read(self, connection: Rows, row: Row) -> int:
        """Return the row's value; note if it is older than one that was acknowledged before."""
        before = row.acknowledged
        value = int(connection.get(TABLE, row.key) or b"0")
        if value < before:
            node = self.node.name if self.node is not None else ""
            who = "its writer" if row is self.row else f"the client of {self.row.key!r}"
            again = int(connection.get(TABLE, row.key) or b"0")
            self._load.problems.append(
                f"{time.strftime('%H:%M:%S')} {row.key!r} is {value} for {who} at {node}, and {before} was "
                f"acknowledged before; {again} when it was read again"
            )
        return value


def _replaced(connection: Rows, key: bytes, value: int) -> bool:
    """Put the next value if the row still has ``value``.

    A plain put whose answer was lost could take effect later, over values that were acknowledged since.
    """
    old = b"%d" % value if value else None
    put = hbase.Mutation(column=b"f:q", value=b"%d" % (value + 1))
    replaced: bool = connection.client.checkAndPut(TABLE, key, b"f:q", old, put, {})
    return replaced


class Load:
    """The clients, and what they found."""

    def __init__(self, nodes: Sequence[MachineNode]) -> None:
        self.nodes = nodes
        self.stop = threading.Event()
        self.cut_off: list[MachineNode] = []
        self.problems: list[str] = []
        self.rows = [Row(b"%02d" % n + b"x") for n in range(REGIONS)]
        self.inner = [Row(b"%02d" % n + b"y") for n in range(len(nodes))]
        self._clients = [Client(self, row, None) for row in self.rows]
        self._clients += [Client(self, row, node) for row, node in zip(self.inner, nodes, strict=True)]

    def reachable(self, row: Row) -> MachineNode | None:
        living = [node for node in self.nodes if node not in self.cut_off and node.lives]
        return living[self.rows.index(row) % len(living)] if living else None

    def start(self) -> None:
        for client in self._clients:
            client.thread.start()

    def cut(self, node: MachineNode, way: str) -> None:
        self.cut_off = [node]
        node.machine.cut(way)
        for client in self._clients[: len(self.rows)]:
            if client.node is node:
                client.leave()

    def end(self) -> None:
        self.stop.set()
        for client in self._clients:
            client.leave()
            client.thread.join(WAIT_S)


@dataclass
class Round:
    kind: str
    waited_s: float  # the longest pause of a row whose server was not cut off
    cut_waited_s: float = 0.0  # of a row of the node that was cut off
    fenced: str = ""


class Anchor:
    """The service, and who of it leads."""

    def __init__(self, kind: str, service: Service) -> None:
        self.kind = kind
        self.service = service

    def leader(self) -> ServiceProcess:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            for server, address in zip(self.service.servers, self.service.addresses, strict=True):
                with suppress(OSError, ValueError, KeyError):
                    if (self._etcd_leads if self.kind == "etcd" else self._zookeeper_leads)(address):
                        return server
            time.sleep(0.05)  # the service elects, and tells nobody
        raise AssertionError("no server of the service leads")

    @staticmethod
    def _etcd_leads(url: str) -> bool:
        with urllib.request.urlopen(f"{url}/v3/maintenance/status", b"{}", 2.0) as answer:
            found = json.loads(answer.read())
        return bool(found["leader"] == found["header"]["member_id"])

    @staticmethod
    def _zookeeper_leads(address: str) -> bool:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), 2.0) as asked:
            asked.sendall(b"srvr")
            found = b""
            while part := asked.recv(4_096):
                found += part
        return b"Mode: leader" in found


class Trial:
    def __init__(self, anchor: Anchor, nodes: list[MachineNode], load: Load, rng: random.Random) -> None:
        self._anchor = anchor
        self._nodes = nodes
        self._load = load
        self._rng = rng

    def play(self, kind: str, seconds: float) -> Round:
        """Disturb for so long, wait until every row answers again, and judge."""
        cut = self._rng.choice(self._nodes) if kind == "cut" else None
        lives = [node for node in self._nodes if node is not cut]
        pids = [node.pid for node in lives]
        apart = self._rows_of(cut) if cut is not None else []
        self._load.stop.wait(CALM_S)
        for row in self._load.rows:
            row.gap_s = 0.0
        if cut is not None:
            way = self._rng.choice(WAYS)
            self._load.cut(cut, way)
            name = f"cut {way} {seconds:g} s"
            self._load.stop.wait(seconds)
        else:
            name = kind
            self._disturb(kind, seconds)
        if cut is not None and seconds < LONG_S:
            cut.machine.heal()  # before anybody may take the node's regions
        self._await_answers()
        found = Round(name, max(row.gap_s for row in self._load.rows if row not in apart))
        found.cut_waited_s = max((row.gap_s for row in apart), default=0.0)
        if cut is not None:
            cut.machine.heal()
            found.fenced = self._settle(cut)
            self._load.cut_off = []
        self._load.stop.wait(CALM_S)
        for node, pid in zip(lives, pids, strict=True):
            if not node.lives or node.pid != pid:
                self._load.problems.append(f"{name}: node {node.name} was fenced, and was not cut off")
        self._revive()
        return found

    def _disturb(self, kind: str, seconds: float) -> None:
        if kind == "calm":
            self._load.stop.wait(seconds)
            return
        service, leader = self._anchor.service, self._anchor.leader()
        follower = self._rng.choice([server for server in service.servers if server is not leader])
        if kind == "frozen":
            leader.freeze()
            self._load.stop.wait(seconds)
            leader.thaw()
        elif kind == "away":
            service.kill()
            self._load.stop.wait(seconds)
            for server in service.servers:
                server.start()
        else:
            victim = leader if kind == "leader" else follower
            victim.kill()
            self._load.stop.wait(seconds)
            victim.start()
        service.wait()

    def _rows_of(self, node: MachineNode) -> list[Row]:
        connection = node.connection()
        try:
            where = ClusterAdmin(connection).locations(TABLE)
            starts = {one.start_key for one in where if one.server.partition("-")[0] == node.name}
        finally:
            connection.close()
        return [row for row in self._load.rows if (b"" if row.key[:2] == b"00" else row.key[:2]) in starts]

    def _await_answers(self) -> None:
        """Wait until each row outside was acknowledged anew."""
        now_s = time.monotonic()
        until(lambda: all(row.answered_s > now_s for row in self._load.rows), WAIT_S)

    def _settle(self, cut: MachineNode) -> str:
        """Wait until the node that is reached again has ended, or its client is answered; returns whether it ended."""
        row, now_s = self._load.inner[self._nodes.index(cut)], time.monotonic()
        until(lambda: not cut.lives or row.answered_s > now_s, WAIT_S)
        return "" if cut.lives else cut.name

    def _revive(self) -> None:
        for node in self._nodes:
            if not node.lives:
                node.kill()
                node.begin()
                node.await_ready()
        now_s = time.monotonic()
        until(lambda: all(row.answered_s > now_s for row in (*self._load.rows, *self._load.inner)), WAIT_S)


@contextmanager
def cluster(kind: str, folder: Path, network: NodeNetwork) -> Iterator[tuple[Anchor, list[MachineNode]]]:
    with ExitStack() as undo:
        service = undo.enter_context(running(kind, folder, 3, is_quick=True, host=network.host))
        url = coordination_url(kind, service)
        machines = enumerate(network.machines, 1)
        nodes = [MachineNode(number, machine, folder / "data", url, folder) for number, machine in machines]
        for node in nodes:
            undo.callback(node.kill)
            node.begin()
        for node in nodes:
            node.await_ready()
        yield Anchor(kind, service), nodes


def prove(anchor: str, rounds: Sequence[tuple[str, float]], seed: int, folder: Path) -> tuple[list[Round], list[str]]:
    """Play rounds, each a kind and its seconds; returns them, and all that was wrong."""
    found: list[Round] = []
    with node_network(NODES) as network, cluster(anchor, folder, network) as (service, nodes):
        connection = nodes[0].connection()
        connection.create_table(TABLE.decode(), {"f": {}}, splits=[b"%02d" % n for n in range(1, REGIONS)])
        connection.close()
        load = Load(nodes)
        load.start()
        trial = Trial(service, nodes, load, random.Random(seed))
        try:
            until(lambda: all(row.acknowledged for row in (*load.rows, *load.inner)), WAIT_S)
            for number, (kind, seconds) in enumerate(rounds, 1):
                found.append(trial.play(kind, seconds))
                print(f"{number}: {shown(found[-1])}", flush=True)
        except AssertionError as error:
            load.problems.append(f"round {len(found) + 1}: {error}")
        finally:
            load.end()
        if load.problems:
            kept = Path(tempfile.gettempdir()) / "columnar-anchors.log"
            kept.write_text("\n".join(f"--- {node.name}\n{node.log.read_text()}" for node in nodes))
            load.problems.append(f"the nodes' logs are in {kept}")
        return found, load.problems


def shown(one: Round) -> str:
    fenced = f"; {one.fenced} was fenced" if one.fenced else ""
    own = f", rows of the node that was cut off {one.cut_waited_s:.2f} s" if one.kind.startswith("cut") else ""
    return f"{one.kind}: rows waited {one.waited_s:.2f} s{own}{fenced}"


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.proofs.anchors")
    asked.add_argument("--anchor", default="etcd", choices=("etcd", "zookeeper"))
    asked.add_argument("--rounds", type=int, default=20)
    asked.add_argument("--kinds", default=",".join(KINDS))
    asked.add_argument("--cut-s", default=",".join(f"{one:g}" for one in CUTS_S))
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    lacks = missing()
    if lacks is not None:
        print(f"the proof needs {lacks}")
        return 2
    rng, kinds = random.Random(options.seed), options.kinds.split(",")
    cuts = [float(one) for one in options.cut_s.split(",")]
    played = [kinds[n % len(kinds)] for n in range(options.rounds)]
    rounds = [(kind, LASTS_S.get(kind, cuts[n // len(kinds) % len(cuts)])) for n, kind in enumerate(played)]
    rng.shuffle(rounds)
    with tempfile.TemporaryDirectory(prefix="anchors-") as folder:
        found, problems = prove(options.anchor, rounds, options.seed, Path(folder))
    for kind in kinds:
        waits = [one.waited_s for one in found if one.kind.startswith(kind)]
        if waits:
            text = f"{min(waits):.2f} / {statistics.median(waits):.2f} / {max(waits):.2f} s"
            print(f"{options.anchor}, {kind}, n {len(waits)}: longest pause of a row {text}")
    print(*problems, sep="\n")
    print(f"problems: {len(problems)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
