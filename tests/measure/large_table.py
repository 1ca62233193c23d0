"""What calls cost as their table grows: microseconds of the store's processor time, by the number of rows.

    python -m tests.measure.large_table [--rows 50000,500000,2000000] [--versions 1] [--calls 1000]

A store is started on a new folder, and one table filled by happybase with rows of one small cell.  At each number of
rows the same calls are made for rows that are drawn at random, one connection after the other call; the median of three
rounds is shown.  What grows with the rows, but for reads of what the block cache does not hold, is a fault.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

import click
import happybase
from rich.table import Table

from columnar.bench.processes import cpu_s_of
from columnar.bench.showing import console_of_output, machine, now, progress_bar
from tests.support.standalone_store import ENVIRONMENT

ROOT: Final = Path(__file__).parents[2]
ROUNDS: Final = 3
LOADED: Final = 1_000  # rows of one batch
TABLE: Final = "large"
COLUMN: Final = b"f:a"
TIMEOUT_MS: Final = 60_000

Draw = Callable[[], bytes]  # a row
Call = Callable[[happybase.Table, Draw, Draw], object]  # with rows that are there, and that are not


def row_of(number: int) -> bytes:
    return hashlib.md5(b"%d" % number, usedforsecurity=False).hexdigest().encode()


CALLS: Final[dict[str, Call]] = {
    "get": lambda table, there, _: table.row(there()),
    "get of an absent row": lambda table, _, absent: table.row(absent()),
    "get of 50 rows": lambda table, there, _: table.rows([there() for _ in range(50)]),
    "scan of 10 rows": lambda table, there, _: list(table.scan(row_start=there(), limit=10)),
    "scan back of 10 rows": lambda table, there, _: list(table.scan(row_start=there(), limit=10, reverse=True)),
    "put": lambda table, there, _: table.put(there(), {COLUMN: b"y" * 20}),
    "increment": lambda table, there, _: table.counter_inc(there(), b"f:count"),
    "delete of a column": lambda table, there, _: table.delete(there(), [b"f:other"]),
}


def fill(table: happybase.Table, first: int, last: int, advance: Callable[[int], None]) -> None:
    for begin in range(first, last, LOADED):
        end = min(begin + LOADED, last)
        with table.batch() as batch:
            for number in range(begin, end):
                batch.put(row_of(number), {COLUMN: b"x" * 20})
        advance(end - begin)


def costs(pid: int, table: happybase.Table, rows: int, calls: int) -> dict[str, float]:
    """Microseconds of the store for each kind of call."""
    rng = random.Random(rows)
    found = {}
    for name, call in CALLS.items():
        rounds = []
        for _ in range(ROUNDS):
            (before_s,) = cpu_s_of([pid])
            for _ in range(calls):
                call(table, lambda: row_of(rng.randrange(rows)), lambda: row_of(-1 - rng.randrange(rows)))
            rounds.append((cpu_s_of([pid])[0] - before_s) / calls * 1e6)
        found[name] = median(rounds)
    return found


def show(found: dict[int, dict[str, float]]) -> None:
    console = console_of_output()
    console.print(f"Microseconds of the store for a call, by rows of its table; {machine()}, {now()}")
    shown = Table()
    shown.add_column("call")
    for rows in found:
        shown.add_column(f"{rows:,}", justify="right")
    for name in CALLS:
        shown.add_row(name, *[f"{of_rows[name]:.0f}" for of_rows in found.values()])
    console.print(shown)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default="50000,500000,2000000", show_default=True, help="Sizes of the table, rising.")
@click.option("--versions", default=1, show_default=True, type=click.IntRange(1), help="That the family keeps.")
@click.option("--calls", default=1_000, show_default=True, type=click.IntRange(1), help="Of each kind and round.")
def main(rows: str, versions: int, calls: int) -> None:
    """Show what calls cost as their table grows."""
    sizes = sorted({int(one) for one in rows.split(",")})
    with tempfile.TemporaryDirectory(prefix="columnar-large-") as folder:
        command = [sys.executable, "-m", "columnar", "standalone", "--data", f"{folder}/data", "--port", "0"]
        with subprocess.Popen(
            [*command, "--web-port", "-1", "--log-level", "warning"],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        ) as store:
            assert store.stdout is not None, "it was started with a pipe"
            try:
                ready = store.stdout.readline()
                port = int(ready.partition("store=127.0.0.1:")[2].split()[0])
                show(measured(store.pid, port, sizes, versions, calls))
            finally:
                store.terminate()


def measured(pid: int, port: int, sizes: list[int], versions: int, calls: int) -> dict[int, dict[str, float]]:
    connection = happybase.Connection("127.0.0.1", port, timeout=TIMEOUT_MS)
    connection.create_table(TABLE, {"f": {"max_versions": versions}})
    table, found, filled = connection.table(TABLE), dict[int, dict[str, float]](), 0
    with progress_bar() as progress:
        task = progress.add_task("filling", total=sizes[-1])
        for size in sizes:
            fill(table, filled, size, lambda count: progress.advance(task, count))
            filled = size
            found[size] = costs(pid, table, size, calls)
    connection.close()
    return found


if __name__ == "__main__":
    main()
