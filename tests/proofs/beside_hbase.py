"""python -m tests.proofs.beside_hbase: the pauses of rows when a server dies, or a region moves or splits.

Both systems run under the same load, one after the other: ``--servers`` region servers of ours, and those of a running
HBase (``--hbase DIR`` is its folder with ``conf``, ``lib`` and a file ``serverN.pid`` for each server).  Each region
has a row that is written and read all the time by a client of its own over Thrift.  A row's pause is the time between
two successful calls.  For a kill the longest pause of all rows counts, for a move or a split that of the region's own
row.

``--nodes N`` runs N nodes of a cluster with a server each over an etcd in place of ``--servers``, and also kills whole
nodes; a node that clients do not call, since each of them knows one address.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final, Protocol

import click
import happybase
from rich.console import Console
from rich.table import Table
from thriftpy2.thrift import TException

from columnar.client import Connection
from columnar.client.admin import RegionAdmin
from columnar.client.cluster import ClusterAdmin
from columnar.client.errors import IllegalArgument, IOError
from tests.support.cluster_process import ClusterProcess
from tests.support.many_nodes import NodeProcess, NodesCluster, cluster_of

TABLE: Final = "pauses"
OPERATOR: Final = Path(__file__).with_name("HbaseOperator.java")
PACE_S: Final = 0.01  # between two calls of a client
FILLED_ROWS: Final = 100  # in each region, so that there is something to bring back
AGAIN_S: Final = 300.0  # a row that gives no answer for longer is lost
QUIET_S: Final = 2.0  # before each event
_BROKEN: Final = (OSError, EOFError, TException, IOError, IllegalArgument)

console = Console(width=120, highlight=False)


class Operator(Protocol):
    """A cluster as its operator sees it."""

    address: tuple[str, int]
    kills: dict[str, Callable[[Random], None]]  # by the name of the event

    def create(self, splits: list[str]) -> None: ...
    def move(self, row: str) -> None: ...
    def split(self, row: str, point: str) -> None: ...
    def settle(self) -> None: ...


class Ours:
    def __init__(self, cluster: ClusterProcess | NodesCluster) -> None:
        self.address = ("127.0.0.1", cluster.port)
        self._cluster = cluster
        self._dead: list[NodeProcess] = []
        self.kills = {"kill -9": self._kill_server}
        if isinstance(cluster, NodesCluster):
            self.kills["node dies"] = self._kill_node

    @contextmanager
    def _asked(self) -> Iterator[Connection]:
        connection = self._cluster.connection()
        try:
            yield connection
        finally:
            connection.close()

    def create(self, splits: list[str]) -> None:
        with self._asked() as connection:
            connection.create_table(TABLE, {"f": {}}, splits=[split.encode() for split in splits])

    def move(self, row: str) -> None:
        with self._asked() as connection:
            admin = ClusterAdmin(connection)
            admin.move(admin.locate(TABLE.encode(), row.encode()).region.name)

    def split(self, row: str, point: str) -> None:
        with self._asked() as connection:
            region = ClusterAdmin(connection).locate(TABLE.encode(), row.encode()).region
            RegionAdmin(connection).split(region.name, point.encode())

    def _kill_server(self, rng: Random) -> None:
        os.kill(rng.choice(self._cluster.servers()), signal.SIGKILL)

    def _kill_node(self, rng: Random) -> None:
        """Kill a node that clients do not call, with its server, as a machine that loses power."""
        assert isinstance(self._cluster, NodesCluster)
        node = rng.choice(self._cluster.cluster.nodes[1:])
        node.signal(signal.SIGKILL)
        self._dead.append(node)

    def settle(self) -> None:
        """Start killed nodes; wait until all servers are up and no region is in transition."""
        for node in self._dead:
            node.kill()
            node.begin()
            node.await_ready()
        self._dead.clear()
        until = time.monotonic() + AGAIN_S
        with self._asked() as connection:
            while True:
                status = ClusterAdmin(connection).servers()
                if not status.transitions and all(server.state == "up" for server in status.servers):
                    return
                if time.monotonic() > until:
                    raise click.ClickException("the servers did not come back")
                threading.Event().wait(0.1)


class Hbase:
    def __init__(self, folder: Path, address: tuple[str, int]) -> None:
        self.address = address
        self.kills = {"kill -9": self._kill_server}
        self._pids = [int(path.read_text()) for path in sorted(folder.glob("server*.pid"))]
        command = ["java", "-cp", f"{folder}/conf:{folder}/lib/*", str(OPERATOR)]
        self._java = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._answer()

    def _ask(self, *words: str) -> None:
        assert self._java.stdin is not None
        print(*words, file=self._java.stdin, flush=True)
        self._answer()

    def _answer(self) -> None:
        assert self._java.stdout is not None
        line = self._java.stdout.readline().strip()
        if line != "ok":
            raise click.ClickException(f"HBase: {line or 'the operator ended'}")

    def create(self, splits: list[str]) -> None:
        self._ask("create", TABLE, ",".join(splits))

    def move(self, row: str) -> None:
        self._ask("move", TABLE, row)

    def split(self, row: str, point: str) -> None:
        self._ask("split", TABLE, row, point)

    def _kill_server(self, rng: Random) -> None:
        os.kill(self._pids.pop(), signal.SIGKILL)

    def settle(self) -> None:
        """Wait until the cluster is at rest; a killed server stays down."""

    def close(self) -> None:
        self._java.kill()
        self._java.wait()


class Prober(threading.Thread):
    """A client that writes one row and reads it back, all the time."""

    def __init__(self, row: str, address: tuple[str, int]) -> None:
        super().__init__(name=row)
        self.row = row
        self.done: list[float] = []  # when calls had succeeded
        self.failed = 0
        self.wrong: list[str] = []
        self.is_over = threading.Event()
        self._address = address

    def run(self) -> None:
        connection: Any = None
        number = 0
        while not self.is_over.wait(PACE_S):
            try:
                if connection is None:
                    connection = happybase.Connection(*self._address, timeout=120_000)
                number += 1
                table = connection.table(TABLE)
                table.put(self.row, {"f:q": str(number)})
                found = table.row(self.row).get(b"f:q")
                if found != str(number).encode():
                    self.wrong.append(f"{self.row}: {number} was written, {found!r} is read")
                self.done.append(time.monotonic())
            except _BROKEN:
                self.failed += 1
                with suppress(*_BROKEN):
                    if connection is not None:
                        connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def pause(self, begun: float) -> float:
        """Return the longest time without a successful call that was under way at ``begun`` or later."""
        done = self.done[max(0, bisect_left(self.done, begun) - 1) :]
        return max((after - before for before, after in pairwise(done)), default=0.0)

    def await_done(self, since: float) -> None:
        until = time.monotonic() + AGAIN_S
        while not self.done or self.done[-1] < since:
            if time.monotonic() > until:
                raise click.ClickException(f"{self.row} gives no answer for {AGAIN_S:.0f} s")
            threading.Event().wait(PACE_S)


class Trial:
    def __init__(self, operator: Operator, regions: int, seed: int) -> None:
        self._operator = operator
        self._rng = Random(seed)
        self.rows = [f"{number:04}" for number in range(regions)]
        self.pauses: dict[str, list[float]] = {"quiet": [], "move": [], "split": [], "kill -9": [], "node dies": []}
        self.wrong: list[str] = []
        self.failed = 0

    def run(self, moves: int, splits: int, kills: int) -> None:
        self._operator.create(self.rows[1:])
        self._fill()
        self._probers = [Prober(row, self._operator.address) for row in self.rows]
        for prober in self._probers:
            prober.start()
        try:
            self._event("quiet", self._probers, lambda: threading.Event().wait(QUIET_S))
            for number in range(moves):
                self._of_one("move", self._operator.move, number)
            for prober in self._rng.sample(self._probers, splits):
                self._event("split", [prober], lambda row=prober.row: self._operator.split(row, f"{row}-5"))
            for name, kill in self._operator.kills.items():
                for _ in range(kills):
                    self._event(name, self._probers, lambda kill=kill: kill(self._rng))
        finally:
            for prober in self._probers:
                prober.is_over.set()
            for prober in self._probers:
                prober.join()
                self.wrong += prober.wrong
                self.failed += prober.failed

    def _of_one(self, name: str, what: Any, number: int) -> None:
        prober = self._probers[number % len(self._probers)]
        self._event(name, [prober], lambda: what(prober.row))

    def _event(self, name: str, probers: list[Prober], what: Any) -> None:
        for prober in self._probers:
            prober.await_done(time.monotonic())
        threading.Event().wait(QUIET_S if probers is self._probers else QUIET_S / 10)
        begun = time.monotonic()
        what()
        for _ in range(2):  # a call that was under way at the event may be done, and the next one waits
            since = time.monotonic()
            for prober in probers:
                prober.await_done(since)
        if name in self._operator.kills:
            self._operator.settle()
        self.pauses[name].append(max(prober.pause(begun) for prober in probers))

    def _fill(self) -> None:
        connection = happybase.Connection(*self._operator.address, timeout=120_000)
        with connection.table(TABLE).batch(batch_size=1_000) as batch:
            for row in self.rows:
                for number in range(FILLED_ROWS):
                    batch.put(f"{row}-{number}", {"f:q": "x" * 1_000})
        connection.close()


def told(name: str, trial: Trial) -> dict[str, Any]:
    pauses = {
        event: {"times": len(found), "median_ms": round(1e3 * median(found)), "longest_ms": round(1e3 * max(found))}
        for event, found in trial.pauses.items()
        if found
    }
    return {"name": name, "pauses": pauses, "calls_failed": trial.failed, "wrong": trial.wrong[:5]}


def report(results: list[dict[str, Any]]) -> None:
    table = Table(title="Longest time without an answer, ms: median, longest (times)", title_justify="left")
    table.add_column("event")
    for result in results:
        table.add_column(result["name"], justify="right")
    for event in results[0]["pauses"]:
        cells = []
        for result in results:
            found = result["pauses"].get(event)
            cells.append(f"{found['median_ms']:,}, {found['longest_ms']:,} ({found['times']})" if found else "")
        table.add_row(event, *cells)
    table.add_row("calls that failed", *(f"{result['calls_failed']:,}" for result in results))
    console.print(table)
    for result in results:
        for problem in result["wrong"]:
            console.print(f"WRONG  {result['name']}: {problem}", markup=False)


def of_ours(kind: str, count: int, regions: int, seed: int, events: tuple[int, int, int]) -> dict[str, Any]:
    """Measure ``count`` of the ``kind``: servers of one node, or nodes."""
    with (
        tempfile.TemporaryDirectory(prefix="columnar-beside-") as folder,
        cluster_of(kind, Path(folder) / "data", count) as cluster,
    ):
        trial = Trial(Ours(cluster), regions, seed)
        trial.run(*events)
    return told(f"Columnar, {count} {kind}", trial)


def of_hbase(folder: Path, store: str, regions: int, seed: int, events: tuple[int, int, int]) -> dict[str, Any]:
    host, _, port = store.rpartition(":")
    hbase = Hbase(folder, (host, int(port)))
    try:
        trial = Trial(hbase, regions, seed)
        trial.run(*events)
    finally:
        hbase.close()
    return told("HBase", trial)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--hbase", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of a running HBase."
)
@click.option("--gateway", default="127.0.0.1:9190", show_default=True, help="HBase's Thrift, buffered.")
@click.option("--servers", default=3, show_default=True, type=click.IntRange(2, 16), help="Of ours.")
@click.option("--nodes", default=0, type=click.IntRange(0, 16), help="Of ours, in place of servers of one node.")
@click.option("--regions", default=32, show_default=True, type=click.IntRange(4, 500), help="Each has a client.")
@click.option("--moves", default=30, show_default=True)
@click.option("--splits", default=10, show_default=True)
@click.option("--kills", default=3, show_default=True, help="Of our servers; HBase's do not come back: one of them.")
@click.option("--seed", default=1, show_default=True, help="Of what is split and killed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    hbase: Path | None,
    gateway: str,
    servers: int,
    nodes: int,
    regions: int,
    moves: int,
    splits: int,
    kills: int,
    seed: int,
    as_json: bool,
) -> None:
    """Measure how long rows give no answer when a region moves or splits, or a server is killed: ours, and HBase's."""
    kind, count = ("nodes", nodes) if nodes else ("servers", servers)
    results = [of_ours(kind, count, regions, seed, (moves, splits, kills))]
    if hbase is not None:
        results.append(of_hbase(hbase, gateway, regions, seed, (moves, splits, min(kills, 1))))
    if as_json:
        click.echo(json.dumps(results, indent=1))
    else:
        report(results)
    sys.exit(any(result["wrong"] for result in results))


if __name__ == "__main__":
    main()
