"""python -m tests.proofs.hostile_reads: no read, whatever its filter, row or bounds, ends a server or delays others.

Hostile clients read a table with wide rows, long values and many versions: patterns that backtrack, trees of filters,
odd bounds, batches, limits, columns without end.  Other clients get rows of their own.  The proof fails if a server
ended, if an ordinary get failed or waited for LONGEST_S, or if a hostile call met an internal error.
"""

from __future__ import annotations

import random
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
from rich.console import Console
from thriftpy2.thrift import TApplicationException, TException

from columnar.wire.idl import hbase
from tests.proofs.crew import work_together
from tests.proofs.verdict import Tell, Verdict
from tests.support.cluster_process import ClusterProcess, Rows

TABLE: Final = b"hostile"
ROWS: Final = 12  # of the prober
LONGEST_S: Final = 10.0  # that an ordinary get may wait, on a busy machine
VALUES: Final = (b"a" * 40 + b"!", b"ab" * 30, b"row-12345", b"aaaa ", b"")
LONG: Final = b"aaaa " * 2_000  # of few cells: the clients here share an interpreter, which decodes all answers
ATOMS: Final = ("a", "b", "[ab]", ".", r"\w", "(a|aa)", "(?:a?)", "(a|b|ab)", r"\b", "(?=a)", "x")
REPEATS: Final = ("*", "+", "?", "{2,9}", "*?", "{0,400}", "")
PLAIN: Final = (
    "FirstKeyOnlyFilter()",
    "KeyOnlyFilter()",
    "PageFilter(3)",
    "ColumnPaginationFilter(5, 4000)",
    "ColumnCountGetFilter(7)",
    "ColumnPrefixFilter('00')",
    "PrefixFilter('w')",
    "InclusiveStopFilter('w1')",
    "SingleColumnValueFilter('f', '000007', =, 'binary:row-12345', true, false)",
    "DependentColumnFilter('f', '000003')",
    "TimestampsFilter(1, 2, 3)",
    "ValueFilter(!=, 'substring:b')",
)


@dataclass(frozen=True, slots=True)
class Plan:
    servers: int = 3
    seconds: float = 20.0
    hostile: int = 2
    width: int = 20_000  # cells of a wide row
    seed: int = 1


def pattern(rng: random.Random, deep: int = 3) -> str:
    if deep == 0 or rng.random() < 0.2:
        return rng.choice(ATOMS)
    parts = "".join(pattern(rng, deep - 1) for _ in range(rng.randint(1, 3)))
    return f"({parts}){rng.choice(REPEATS)}"


def filter_string(rng: random.Random, deep: int = 2) -> str:
    kind = rng.random()
    if deep and kind < 0.3:
        parts = [filter_string(rng, deep - 1) for _ in range(rng.randint(2, 12))]
        return "(" + f" {rng.choice(['AND', 'OR'])} ".join(parts) + ")"
    if deep and kind < 0.4:
        return f"{rng.choice(['SKIP', 'WHILE'])} {filter_string(rng, deep - 1)}"
    if kind < 0.7:
        anchors = rng.choice([("^", "$"), ("", ""), ("", "!")])
        name = rng.choice(["ValueFilter", "RowFilter", "QualifierFilter"])
        text = f"{anchors[0]}{pattern(rng)}{anchors[1]}"
        return f"{name}({rng.choice(['=', '!='])}, '{rng.choice(['regexstring', 'regexstringnocase'])}:{text}')"
    return rng.choice(PLAIN)


@dataclass
class Hostile:
    """A client that reads at random until it is told to stop."""

    port: int
    rng: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def work(self, stop: threading.Event) -> None:
        goes_on = True
        while goes_on:
            with Rows(self.port) as connection:
                goes_on = self.read(connection.client, stop)

    def read(self, client: Any, stop: threading.Event) -> bool:
        """Read until the end; return True if the client gave up a read of its own and needs a new connection."""
        while not stop.is_set():
            what = self.rng.choice([self.scan, self.scan, self.row, self.rows, self.versions])
            try:
                what(client)
                self.counts["hostile reads answered"] += 1
            except TApplicationException as fault:
                self.problems.append(f"{what.__name__}: {fault}")
                return False
            except (hbase.IOError, hbase.IllegalArgument):
                self.counts["hostile reads refused"] += 1
            except TimeoutError:  # a tree of filters over all cells may take minutes; others are served meanwhile
                self.counts["hostile reads given up by the client"] += 1
                return True
            except (TException, OSError) as broken:
                self.problems.append(f"{what.__name__}: the connection broke: {broken!r}")
                return False
        return False

    def key(self) -> bytes:
        return self.rng.choice([b"w0", b"w1", b"w2", b"", b"\x00", b"\xff" * 9, b"p3", b"w"])

    def scan(self, client: Any) -> None:
        rng = self.rng
        text = filter_string(rng).encode() if rng.random() < 0.8 else None
        scan = hbase.TScan(
            startRow=self.key(),
            stopRow=self.key(),
            columns=rng.choice([None, [b"f"], [b"f:000007"], [b"f:%06d" % n for n in range(5_000)]]),
            filterString=text,
            batchSize=rng.choice([None, None, 1, 3_000]),
            sortColumns=rng.random() < 0.3,
            reversed=rng.random() < 0.3,
            timestamp=rng.choice([None, None, 5, 1 << 62]),
        )
        scanner = client.scannerOpenWithScan(TABLE, scan, {})
        for _ in range(rng.randint(1, 3)):
            client.scannerGetList(scanner, rng.choice([1, 5, 1_000_000]))
        client.scannerClose(scanner)

    def row(self, client: Any) -> None:
        columns = self.rng.choice([None, [b"f"], [b"f:000001"], [b"f:%06d" % n for n in range(9_000)]])
        client.getRowWithColumns(TABLE, self.key(), columns, {})

    def rows(self, client: Any) -> None:
        client.getRows(TABLE, [self.key() for _ in range(self.rng.choice([1, 20]))], {})

    def versions(self, client: Any) -> None:
        column = self.rng.choice([b"f", b"v:many", b"f:000001"])
        client.getVer(TABLE, self.key(), column, self.rng.choice([1, 9, 1 << 30]), {})


@dataclass
class Prober:
    """A client that makes ordinary gets of rows of all regions."""

    port: int
    gets: int = 0
    longest_s: float = 0.0
    problems: list[str] = field(default_factory=list)

    def work(self, stop: threading.Event) -> None:
        with Rows(self.port) as connection:
            self.get(connection.client, stop)

    def get(self, client: Any, stop: threading.Event) -> None:
        while not stop.is_set():
            begun = time.monotonic()
            row = b"%c%d" % (b"apz"[self.gets % 3], self.gets % ROWS)
            try:
                found = client.get(TABLE, row, b"f:q", {})
            except (TException, OSError) as failure:
                self.problems.append(f"a get of {row!r} failed: {failure!r}")
                return
            if [cell.value for cell in found] != [row]:
                self.problems.append(f"a get of {row!r} gave {found}")
            self.gets += 1
            self.longest_s = max(self.longest_s, time.monotonic() - begun)
            stop.wait(0.01)


def fill(client: Any, width: int) -> None:
    families = [hbase.ColumnDescriptor(name=b"f:"), hbase.ColumnDescriptor(name=b"v:", maxVersions=1 << 20)]
    client.createTable(TABLE, families)
    for head in b"apz":
        for n in range(ROWS):
            row = b"%c%d" % (head, n)
            client.mutateRow(TABLE, row, [hbase.Mutation(column=b"f:q", value=row)], {})
    for number in range(3):
        for start in range(0, width, 5_000):
            cells = [
                hbase.Mutation(column=b"f:%06d" % n, value=LONG if n % 200 == 0 else VALUES[n % len(VALUES)])
                for n in range(start, min(start + 5_000, width))
            ]
            client.mutateRow(TABLE, b"w%d" % number, cells, {})
    for at in range(1, 400):
        client.mutateRowTs(TABLE, b"w0", [hbase.Mutation(column=b"v:many", value=b"%d" % at)], at, {})


def prove(plan: Plan, folder: Path, tell: Tell) -> Verdict:
    verdict = Verdict("hostile reads")
    rng = random.Random(f"hostile {plan.seed}")
    with ClusterProcess(folder / "data", plan.servers) as store:
        with Rows(store.port) as connection:
            fill(connection.client, plan.width)
            for row in (b"m", b"s"):
                connection.client.columnarSplit(TABLE, row)
        probers = [Prober(store.port) for _ in range(plan.servers)]
        hostile = [Hostile(store.port, random.Random(rng.random())) for _ in range(plan.hostile)]
        before = sorted(store.servers())

        def look() -> None:
            tell(f"{sum(one.gets for one in probers):,} gets, {sum(sum(one.counts.values()) for one in hostile)} reads")

        work_together([one.work for one in (*probers, *hostile)], plan.seconds, look)
        if sorted(store.servers()) != before:
            verdict.add(f"servers ended: {before} were there, now {sorted(store.servers())}; the log is {store.log}")
    for one in (*probers, *hostile):
        for problem in one.problems:
            verdict.add(problem)
    longest_s = max(one.longest_s for one in probers)
    if longest_s > LONGEST_S:
        verdict.add(f"an ordinary get waited {longest_s:.1f} s")
    verdict.counts = {"gets": sum(one.gets for one in probers), "longest get, ms": round(1_000 * longest_s)}
    for one in hostile:
        for name, count in one.counts.items():
            verdict.counts[name] = verdict.counts.get(name, 0) + count
    verdict.done = verdict.counts["gets"]
    return verdict


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--servers", default=3, show_default=True, type=click.IntRange(1))
@click.option("--minutes", default=60.0, show_default=True)
@click.option("--hostile", default=2, show_default=True, type=click.IntRange(1), help="Clients that read at random.")
@click.option("--width", default=200_000, show_default=True, help="Cells of a wide row.")
@click.option("--seed", default=1, show_default=True)
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=None, help="Kept.")
def main(servers: int, minutes: float, hostile: int, width: int, seed: int, folder: Path | None) -> None:
    """Show that no read ends a server.  Exit status 0: none does."""
    console = Console(width=140)
    made = tempfile.TemporaryDirectory(prefix="columnar-hostile-") if folder is None else nullcontext(str(folder))
    with made as here, console.status("starting") as status:
        Path(here).mkdir(parents=True, exist_ok=True)
        verdict = prove(Plan(servers, 60 * minutes, hostile, width, seed), Path(here), status.update)
    for name, count in verdict.counts.items():
        console.print(f"{name}: {count:,}")
    for problem in verdict.problems:
        console.print(f"WRONG  {problem}", markup=False, soft_wrap=True, highlight=False)
    console.print(f"hostile reads: {'holds' if verdict.is_good else 'DOES NOT HOLD'}", style="bold")
    sys.exit(not verdict.is_good)


if __name__ == "__main__":
    main()
