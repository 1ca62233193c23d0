"""python -m tests.differential: a random session against a real HBase and against ours, every answer compared."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.differential.calls import Call
from tests.differential.comparison import Found, compare
from tests.differential.endpoint import Endpoint
from tests.differential.generator import Generator
from tests.differential.recording import record
from tests.differential.shrinking import Shrinker
from tests.support.many_nodes import PATIENT, many_nodes
from tests.support.standalone_store import StoreProcess

console = Console(width=160)


@contextlib.contextmanager
def endpoints(
    reference: str | None, ours: str | None, prefix: bytes, nodes: int = 0
) -> Iterator[tuple[Endpoint, Endpoint]]:
    """Yield both servers, and start one that is None: as one process, or ours as ``nodes``."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="columnar-differential-")))
        if reference is None:
            reference = f"127.0.0.1:{stack.enter_context(StoreProcess(folder / 'reference')).port}"
        if ours is None and nodes:
            cluster = stack.enter_context(many_nodes(folder, *PATIENT, count=nodes))
            ours = f"127.0.0.1:{cluster.nodes[-1].port}"  # most often not the leader's
        elif ours is None:
            ours = f"127.0.0.1:{stack.enter_context(StoreProcess(folder / 'data')).port}"
        both = Endpoint.at(reference, prefix), Endpoint.at(ours, prefix)
        for endpoint in both:
            stack.callback(endpoint.close)
            stack.callback(endpoint.drop_tables, prefix)
            endpoint.drop_tables(prefix)
        yield both


def run(calls: list[Call], both: tuple[Endpoint, Endpoint], *, strict: bool, most: int) -> Found:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("calls compared", total=len(calls))
        return compare(calls, *both, strict=strict, most=most, after_each=lambda: progress.advance(task))


def tell(found: Found, both: tuple[Endpoint, Endpoint]) -> None:
    table = Table("kind of call", "compared", "of these refused by both", title="What was asked", title_justify="left")
    for kind, count in sorted(found.calls.items()):
        table.add_row(kind, str(count), str(found.refused[kind]))
    table.add_row("all", str(found.calls.total()), str(found.refused.total()), style="bold")
    console.print(table)
    for name, count in sorted(found.documented.items()):
        console.print(f"documented difference {name} (COMPATIBILITY.md): {count}", markup=False)
    for side, endpoint in zip(("reference", "ours"), both, strict=True):
        rate = found.calls.total() / max(endpoint.spent_s, 1e-9)
        console.print(f"{side}: {endpoint.spent_s:.1f} s within calls, {rate:.0f} calls/s")
        for took, call in endpoint.slow:
            console.print(f"{side} took {took:.1f} s: {call[:200]}", markup=False)
    for one in found.differences:
        console.print(f"DIFFERENT  {one}", markup=False, soft_wrap=True)
    console.print(f"{len(found.differences)} undocumented differences", style="bold")


def keep(path: Path, calls: list[Call], server: Endpoint, head: dict[str, str]) -> None:
    server.drop_tables(head["prefix"].encode())
    size = record(path, {"from": "Apache HBase 2.6.1, Thrift 1 gateway", **head}, calls, server)
    server.close()
    console.print(f"{len(calls)} calls and their answers in {path}: {size} bytes", markup=False)


def shrunk(calls: list[Call], found: Found, both: tuple[Endpoint, Endpoint], prefix: bytes, *, strict: bool) -> None:
    first = found.differences[0]
    console.print(f"\nlooking for the fewest calls after which call {first.number} still differs")
    shrinker = Shrinker(*both, prefix + b"x", strict=strict)
    fewest = shrinker.shrink(calls[: first.number + 1], lambda text: console.print(f"  {text}"))
    if fewest is None:
        console.print("it does not differ again on a fresh table: it depends on other tables, on time or on a flush")
        return
    for call in fewest:
        console.print(f"  {call}", markup=False, soft_wrap=True)


@click.command()
@click.option("--calls", "count", default=20_000, show_default=True, help="How many calls.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same session.")
@click.option(
    "--a",
    "reference",
    envvar="COLUMNAR_TEST_HBASE",
    default=None,
    metavar="HOST:PORT",
    help="The reference: a Thrift 1 gateway of HBase, /framed and /compact may follow. [COLUMNAR_TEST_HBASE] "
    "With --strict it may be left out: one process of ours is started.",
)
@click.option("--b", "ours", default=None, metavar="HOST:PORT", help="Ours; without it one is started.")
@click.option("--nodes", default=0, metavar="N", help="Ours is started as N nodes over an etcd, not as one process.")
@click.option("--strict", is_flag=True, help="Both are ours: no difference is documented.")
@click.option("--most", default=10, show_default=True, help="Stop at so many differences.")
@click.option("--shrink/--no-shrink", default=True, help="Look for the fewest calls of the first difference.")
@click.option(
    "--record",
    "recorded",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Only ask the reference, and keep its answers in this file.",
)
@click.option("--prefix", default=None, help="Of the tables' names; all that begin so are dropped. [df<seed>_]")
def main(
    count: int, seed: int, reference: str | None, ours: str | None, nodes: int, strict: bool, most: int, shrink: bool,
    recorded: Path | None, prefix: str | None,
) -> None:  # fmt: skip
    """Compare the answers of two servers to one random session, call by call."""
    if reference is None and (recorded is not None or not strict):
        raise click.UsageError("name the reference by --a, or compare two of ours by --strict")
    if ours is not None and nodes:
        raise click.UsageError("--b names a server that runs, --nodes starts one: give one of them")
    start = (prefix or f"df{seed}_").encode()
    console.print(
        f"seed {seed}, {count} calls, reference {reference or 'of ours'}, process {os.getpid()}", highlight=False
    )
    calls = list(Generator(seed, start).calls(count))
    if recorded is not None and reference is not None:
        keep(recorded, calls, Endpoint.at(reference, start), {"seed": str(seed), "prefix": start.decode()})
        return
    with endpoints(reference, ours, start, nodes) as both:
        found = run(calls, both, strict=strict, most=most)
        tell(found, both)
        if found.differences and shrink:
            shrunk(calls, found, both, start, strict=strict)
    sys.exit(bool(found.differences))


if __name__ == "__main__":
    main()
