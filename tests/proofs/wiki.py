"""python -m tests.proofs.wiki DUMP...: the wiki on several region servers, which die and whose regions move.

    1  the dumps are imported while servers are killed with -9
    2  a page is made, restricted, renamed with the links to it, deleted and brought back by ``wikka`` commands
    3  ``wikka check`` finds no difference
    4  a trace is replayed in a browser's way, with edits, while regions move all the time, and a server is killed
       in the middle of it: no request fails, since the wiki repeats its writes
    5  ``wikka check`` finds no difference

``--nodes N`` runs N nodes of a cluster with a server each over an etcd.  Every second kill in the imports is then that
of a whole node, which is started again.

The exit status is 0 if all of this holds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from columnar.client.cluster import ClusterAdmin
from columnar.client.errors import IOError, hbase_class
from tests.proofs.verdict import end_report
from tests.support.cluster_process import ClusterProcess, until
from tests.support.many_nodes import NodesCluster, cluster_of
from tests.support.ports import free_port
from tests.support.standalone_store import ENVIRONMENT
from wikka_port import schema
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege

MODULE = "wikka_port.triggers"
READY_S = 60.0
IMPORT_S = 1_800.0  # a slower one is stuck
MOVES_EVERY_S = 1.0

console = Console(width=120, highlight=False)


@dataclass
class Found:
    kills: int = 0
    moves: int = 0
    moves_refused: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    failed: int = 0
    longest_ms: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Trial:
    def __init__(self, folder: Path, cluster: ClusterProcess | NodesCluster, seed: int) -> None:
        self.found = Found()
        self.cluster = cluster
        self._folder = folder
        self._rng = Random(seed)

    @property
    def store(self) -> str:
        ports = self.cluster.ports() if isinstance(self.cluster, NodesCluster) else [self.cluster.port]
        return ",".join(f"127.0.0.1:{port}" for port in ports)

    def wikka(self, *words: str) -> str:
        """Run a ``wikka`` command and return its output; a wrong exit status is noted."""
        command = [sys.executable, "-m", "wikka_port", *words]
        environment = {**ENVIRONMENT, "WIKKA_STORE": self.store}
        ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=IMPORT_S)
        if ended.returncode:
            self.found.wrong.append(
                f"wikka {words[0]} ended with {ended.returncode}: {(ended.stderr + ended.stdout)[-600:]}"
            )
        return ended.stdout

    def kill(self) -> None:
        """Kill a server; return when it was reaped and a new one is starting."""
        until(lambda: bool(self.cluster.servers()))  # of kills in a row all may be dead for a moment
        self.cluster.kill_server(self._rng.randrange(len(self.cluster.servers())))
        self.found.kills += 1

    def kill_in_import(self) -> None:
        """Kill a server or, of nodes, in turn a whole node, which serves again on return."""
        if isinstance(self.cluster, NodesCluster) and self.found.kills % 2 == 0:
            node = self._rng.choice(self.cluster.cluster.nodes)
            node.kill()
            self.found.kills += 1
            node.begin()
            node.await_ready()
        else:
            self.kill()

    def move(self) -> None:
        """Move a region of the wiki's tables to the server that the master chooses."""
        connection = self.cluster.connection()
        try:
            admin = ClusterAdmin(connection)
            table = self._rng.choice([table.name for table in schema.TABLES])
            admin.move(self._rng.choice(admin.locations(table)).name)
            self.found.moves += 1
        except IOError as refused:  # while a server is dead there may be no other, or the region is on its way already
            name = hbase_class(refused)
            self.found.moves_refused[name] = self.found.moves_refused.get(name, 0) + 1
        finally:
            connection.close()

    def import_all(self, dumps: tuple[Path, ...], kills: int, every_s: float) -> None:
        left = kills
        for dump in dumps:
            mine = left if dump == dumps[-1] else -(-kills // len(dumps))
            with repeated(self.kill_in_import, every_s, mine):
                said = self.wikka("import", str(dump))
            left -= mine
            console.print(f"{dump.name}: {said.strip().splitlines()[-1] if said.strip() else 'nothing was said'}")
        if self.found.kills < kills:
            self.found.wrong.append(f"only {self.found.kills} of {kills} kills: give a smaller --kill-every")

    def amend(self) -> None:
        """Make, restrict, rename, delete and bring back a page; note where the outcome is another than wanted."""
        address = self.store.partition(",")[0].partition(":")
        wiki = Wiki(address[0], int(address[2]), indexes="triggers")
        try:
            wiki.save("Proof", "first", author="Ann", base=0)
            wiki.save("Proof", "second", author="Ben", base=1)
            wiki.save("Reader of proofs", "see [[Proof]]", author="Ann", base=0)
            self.wikka("acl", "set", "Proof", "--write", "+")
            self.wikka("rename", "Proof", "Proofs")
            self.wikka("delete", "Proofs", "--yes")
            if wiki.page("Proofs") is not None:
                self.found.wrong.append("a deleted page is read")
            self.wikka("undelete", "Proofs")
            page, reader = wiki.page("Proofs"), wiki.page("Reader of proofs")
            outcome = (page and (page.number, page.body, page.rights.lists), reader and reader.body)
        finally:
            wiki.store.close()
        if outcome != ((2, "second", {Privilege.WRITE: "+"}), "see [[Proofs|]]"):
            self.found.wrong.append(f"the page and its reader became {outcome}")

    def check(self) -> None:
        said = self.wikka("check", "--json")
        if said:
            counts = json.loads(said)
            differ = len(counts["differences"])
            console.print(
                f"wikka check: {counts['pages']:,} pages, {counts['revisions']:,} revisions, {differ} differences"
            )

    def replay(self, rate: float, seconds: int, kill: bool) -> None:
        port = free_port()
        target, trace, report = f"http://127.0.0.1:{port}", self._folder / "day.trace", self._folder / "report"
        with wiki_at(self.store, port):
            wanted = ["--rate", str(rate), "--duration", f"{seconds}s", "--edits", "5%"]
            self._bench("synth", "--target", target, "--out", str(trace), *wanted)
            with repeated(self.move, MOVES_EVERY_S, seconds), repeated(self.kill, seconds / 2, 1 if kill else 0):
                # the machine is shared with those who are killed: the generator's own lateness is not the question
                self._bench(
                    "replay",
                    str(trace),
                    "--target",
                    target,
                    "--allow-edits",
                    "--lateness",
                    "20s",
                    "--report",
                    str(report),
                )
        if (report / "report.json").exists():
            self._count(json.loads((report / "report.json").read_text()))

    def _bench(self, *words: str) -> None:
        ended = subprocess.run(
            [sys.executable, "-m", "wikibench.cli", *words], capture_output=True, text=True, env=ENVIRONMENT
        )
        if ended.returncode:
            self.found.wrong.append(
                f"wikibench {words[0]} ended with {ended.returncode}: {(ended.stderr + ended.stdout)[-600:]}"
            )

    def _count(self, report: dict[str, Any]) -> None:
        self.found.requests = report["requests"]["counted"]
        self.found.failed = report["requests"]["failed"]
        self.found.longest_ms = report["response_time"]["max_ms"]
        if self.found.failed:
            self.found.wrong.append(f"{self.found.failed} requests failed: {report['failures'][:5]}")


@contextmanager
def repeated(what: Callable[[], None], every_s: float, times: int) -> Iterator[None]:
    """Repeat ``what`` beside the work of the ``with`` block until the block ends."""
    is_over = threading.Event()

    def go_on() -> None:
        for _ in range(times):
            if is_over.wait(every_s):
                return
            what()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(go_on)
        try:
            yield
        finally:
            is_over.set()
        running.result()


@contextmanager
def wiki_at(store: str, port: int) -> Iterator[None]:
    """Run a wiki, which is ready when the ``with`` block begins; its log goes to standard error."""
    command = [
        sys.executable,
        "-m",
        "wikka_port",
        "serve",
        "--store",
        store,
        "--port",
        str(port),
        "--edits-per-minute",
        "0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.startswith("wikka ready"):
            raise click.ClickException(f"the wiki did not start: {line!r}")
        yield
    finally:
        process.terminate()
        process.wait(READY_S)
        process.stdout.close()


def prove(
    dumps: tuple[Path, ...],
    folder: Path,
    *,
    servers: int,
    nodes: int = 0,
    kills: int,
    every_s: float,
    rate: float,
    seconds: int,
    seed: int,
) -> Found:
    kind, count = ("nodes", nodes) if nodes else ("servers", servers)
    trial = Trial(folder, cluster_of(kind, folder / "data", count, "--trigger-modules", MODULE), seed)
    with trial.cluster:
        trial.import_all(dumps, kills, every_s)
        trial.amend()
        trial.check()
        if seconds:
            trial.replay(rate, seconds, kill=kills > 0)
            trial.check()
    return trial.found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("dumps", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--servers", default=3, show_default=True, type=click.IntRange(1, 16))
@click.option("--nodes", default=0, type=click.IntRange(0, 16), help="Of a cluster, in place of servers of one node.")
@click.option("--kills", default=3, show_default=True, help="During the imports; one more during the replay.")
@click.option("--kill-every", default=5.0, show_default=True, help="Seconds.")
@click.option("--rate", default=20.0, show_default=True, help="Requests per second of the replay.")
@click.option("--seconds", default=120, show_default=True, help="Of the replay; 0: none.")
@click.option("--seed", default=1, show_default=True, help="Of all choices but the machine's own.")
def main(dumps: tuple[Path, ...], **given: Any) -> None:
    """Import DUMPS and replay a trace on several region servers that are killed and whose regions move."""
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="columnar-wiki-"))
    given["every_s"] = given.pop("kill_every")
    found = prove(dumps, folder, **given)
    store = f"{given['nodes']} nodes" if given["nodes"] else f"{given['servers']} servers"
    table = Table(title=f"The wiki on {store}, seed {given['seed']}", title_justify="left", show_header=False)
    rows = {
        "kills": found.kills,
        "regions moved": found.moves,
        "moves refused": sum(found.moves_refused.values()),
    }
    rows |= {"requests": found.requests, "requests failed": found.failed, "longest, ms": round(found.longest_ms)}
    for name, count in {**rows, "seconds": round(time.monotonic() - begun)}.items():
        table.add_row(name, f"{count:,}")
    console.print(table)
    for name, count in found.moves_refused.items():
        console.print(f"a move was refused {count} times with {name}")
    end_report(console, found.wrong, folder)


if __name__ == "__main__":
    main()
