"""python -m tests.proofs.rolling: no request fails while all servers are restarted, one after the other.

Clients of happybase put, get, increment and scan in rows of their own, so each knows every answer beforehand; no client
reconnects.  Meanwhile ``columnar restart --rolling`` runs again and again.  The proof fails if a request failed, an
answer was wrong, a restart failed, or a connection or an open scanner was lost by the supervisor's own account.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import happybase
from rich.console import Console
from rich.table import Table

from tests.proofs.crew import work_together
from tests.proofs.verdict import Tell, Verdict
from tests.support.cluster_process import ClusterProcess
from tests.support.standalone_store import ENVIRONMENT

TABLE: Final = "rolled"
ROWS: Final = 40  # of each client
BATCH: Final = 7  # rows of a step of a scan, which so takes several requests
TIMEOUT_MS: Final = 60_000
RESTART_S: Final = 600.0
HANDED: Final = re.compile(
    r"hands over: (\d+) connections go on at others, (\d+) are closed; lost: (\d+), and (\d+) open"
)


@dataclass(frozen=True, slots=True)
class Plan:
    servers: int = 2
    restarts: int = 5  # of all servers, one behind the other
    clients: int = 8
    seconds: float = 0.0  # at least
    seed: int = 1
    nodes: int = 0  # of a cluster on many machines (``rolling_nodes``); 0: one machine
    is_whole: bool = False  # nodes are restarted as a whole
    routing: bool = False  # clients call the owners of rows themselves
    requests: int = 0  # at least, with nodes
    lease_s: float = 1.5  # of nodes


@dataclass
class Client:
    """A client in a thread of its own, with rows that nobody else writes."""

    number: int
    port: int
    rng: random.Random
    requests: int = 0
    longest_s: float = 0.0
    failed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    rows: dict[bytes, bytes] = field(default_factory=dict)  # as they must be
    counted: int = 0

    def work(self, stop: threading.Event) -> None:
        self._connection = self._connected()
        try:
            while not stop.is_set() and not self.failed:
                self.advance()
        except Exception as failure:  # noqa: BLE001 - whatever it is, a request has failed
            self.failed.append(f"client {self.number}, request {self.requests}: {type(failure).__name__}: {failure}")
        finally:
            self._connection.close()

    def advance(self) -> None:
        """Make a step; the first exception is a failed request."""
        self.step(self._connection.table(TABLE))

    def _connected(self) -> Any:
        connection = happybase.Connection("127.0.0.1", self.port, timeout=TIMEOUT_MS)
        self._note_requests(connection.client)
        return connection

    def _note_requests(self, client: Any) -> None:
        ask = client._req

        def noted(method: str, *arguments: Any, **named: Any) -> Any:
            begun = time.monotonic()
            self.requests += 1
            try:
                return ask(method, *arguments, **named)
            finally:
                self.longest_s = max(self.longest_s, time.monotonic() - begun)

        client._req = noted

    def _row(self) -> bytes:
        """Return a random row of the client, whose rows lie in all regions."""
        row = self.rng.randrange(ROWS)
        return b"%02x-client%02d-%03d" % (row * 256 // ROWS, self.number, row)

    def put(self, table: happybase.Table) -> None:
        row, value = self._row(), self.rng.randbytes(self.rng.choice((1, 100, 3_000)))
        table.put(row, {b"f:q": value})
        self.rows[row] = value

    def get(self, table: happybase.Table) -> None:
        row = self._row()
        found = table.row(row, columns=[b"f:q"]).get(b"f:q")
        if found != self.rows.get(row):
            self.wrong.append(f"client {self.number}: row {row!r} is not the one that was put last")

    def step(self, table: happybase.Table) -> None:
        getattr(self, self.rng.choice(STEPS))(table)

    @property
    def counter(self) -> tuple[bytes, bytes]:
        return b"%02x-counter" % (self.number * 32 % 256), b"f:n%d" % self.number

    def increment(self, table: happybase.Table) -> None:
        self.counted += 1
        found = table.counter_inc(*self.counter)
        if found != self.counted:
            self.wrong.append(f"client {self.number}: its counter has {found} after {self.counted} increments")

    def scan(self, table: happybase.Table) -> None:
        own = f"RowFilter(=, 'substring:client{self.number:02}')"
        found = {row: cells[b"f:q"] for row, cells in table.scan(columns=[b"f:q"], filter=own, batch_size=BATCH)}
        if found != self.rows:
            self.wrong.append(
                f"client {self.number}: a scan has {len(found)} rows, {len(self.rows)} were put, or others"
            )


STEPS: Final = ("put", "put", "put", "get", "get", "get", "get", "increment", "scan")


def restart(data: Path) -> list[str]:
    """Restart all servers, one after the other; return the failures."""
    command = [sys.executable, "-m", "columnar", "restart", "--rolling", "--json", "--data", str(data)]
    try:
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=RESTART_S, check=False)
    except subprocess.TimeoutExpired:
        return [f"a rolling restart was not over after {RESTART_S:.0f} s"]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not all(answer["done"] for answer in answers):
        return [f"a rolling restart failed: {done.stdout}{done.stderr}"]
    return []


def by_the_log(log: str) -> Counter[str]:
    """Return the supervisor's own counts of connections from its log."""
    names = ("handed over", "closed", "connections lost", "scanners lost")
    account: Counter[str] = Counter(dict.fromkeys(names, 0))
    for numbers in HANDED.findall(log):
        account.update(dict(zip(names, map(int, numbers), strict=True)))
    account["connections lost"] += sum(map(int, re.findall(r"(\d+) connections have ended with server", log)))
    return account


def prove(plan: Plan, folder: Path, tell: Tell) -> Verdict:
    verdict = Verdict("rolling restarts", needed=("restarts", "requests", "handed over"))
    rng = random.Random(f"rolling {plan.seed}")
    begun = time.monotonic()
    with ClusterProcess(folder / "data", plan.servers, "--log-level", "info") as store:
        connection = store.connection()
        connection.create_table(TABLE, {"f": {}}, splits=[b"%02x" % n for n in range(16, 256, 16)])
        connection.close()
        clients = [Client(n, store.port, random.Random(rng.random())) for n in range(plan.clients)]
        restarted: list[int] = []

        def roll(stop: threading.Event) -> None:
            for number in range(plan.restarts):
                if stop.is_set():
                    return
                verdict.problems += restart(folder / "data")
                restarted.append(number)
            stop.wait(begun + plan.seconds - time.monotonic())
            stop.set()

        def look() -> None:
            requests, failed = sum(one.requests for one in clients), sum(len(one.failed) for one in clients)
            tell(f"{len(restarted)} rolling restarts, {requests:,} requests, {failed} failed")

        work_together([roll, *(one.work for one in clients)], RESTART_S * plan.restarts + plan.seconds, look)
        log = store.log.read_text()
        verdict.seconds = time.monotonic() - begun
    for client in clients:
        for problem in (*client.failed, *client.wrong):
            verdict.add(problem)
    verdict.done = sum(client.requests for client in clients)
    account = by_the_log(log)
    verdict.counts = {
        "restarts": len(restarted),
        "servers restarted": len(restarted) * plan.servers,
        "requests": verdict.done,
        "failed": sum(len(client.failed) for client in clients),
        "wrong answers": sum(len(client.wrong) for client in clients),
        "longest pause, ms": round(1000 * max(client.longest_s for client in clients)),
        **account,
    }
    for name in ("closed", "connections lost", "scanners lost"):
        if account[name]:
            verdict.add(f"{name}: {account[name]}, says the supervisor; its log is {store.log}")
    verdict.look_for_nothing()
    return verdict


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--servers", default=2, show_default=True, type=click.IntRange(2))
@click.option("--restarts", default=5, show_default=True, type=click.IntRange(1), help="Of all servers in turn.")
@click.option("--clients", default=8, show_default=True, type=click.IntRange(1, 99))
@click.option("--seconds", default=0.0, show_default=True, help="The clients work so long at least.")
@click.option("--seed", default=1, show_default=True, help="Of what the clients ask.")
@click.option("--nodes", default=0, show_default=True, type=click.IntRange(0, 16), help="Of many machines; 0: one.")
@click.option("--whole-nodes", is_flag=True, help="Nodes are drained, stopped and started, not only their servers.")
@click.option("--routing", is_flag=True, help="Clients of nodes call the owners of rows themselves.")
@click.option("--lease", "lease_s", default=1.5, show_default=True, help="Of the nodes, in seconds.")
@click.option("--requests", default=0, show_default=True, help="With nodes: restart until so many are done.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Where the store and its log are made; kept. Without it a temporary folder.",
)
def main(
    servers: int,
    restarts: int,
    clients: int,
    seconds: float,
    seed: int,
    nodes: int,
    whole_nodes: bool,
    routing: bool,
    requests: int,
    lease_s: float,
    folder: Path | None,
) -> None:
    """Show that rolling restarts fail no request.  Exit status 0: they do not."""
    from tests.proofs import rolling_nodes  # which has this module's clients

    console = Console(width=140)
    plan = Plan(servers, restarts, clients, seconds, seed, nodes, whole_nodes, routing, requests, lease_s)
    made = tempfile.TemporaryDirectory(prefix="columnar-rolling-") if folder is None else nullcontext(str(folder))
    with made as here, console.status("starting") as status:
        Path(here).mkdir(parents=True, exist_ok=True)
        verdict = (rolling_nodes.prove if nodes else prove)(plan, Path(here), status.update)
    what = f"{nodes} nodes" if nodes else f"{servers} servers"
    table = Table(title=f"rolling restarts of {what}, {clients} clients", show_header=False)
    for name, count in verdict.counts.items():
        table.add_row(name, f"{count:,}")
    table.add_row("requests per second", f"{verdict.done / max(verdict.seconds, 1e-9):,.0f}")
    console.print(table)
    for problem in verdict.problems:
        console.print(f"WRONG  {problem}", markup=False, soft_wrap=True, highlight=False)
    console.print(f"rolling restarts: {'holds' if verdict.is_good else 'DOES NOT HOLD'}", style="bold")
    sys.exit(not verdict.is_good)


if __name__ == "__main__":
    main()
