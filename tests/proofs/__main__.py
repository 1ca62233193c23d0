"""python -m tests.proofs: proofs that no write is lost, torn or out of order while the store is killed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.proofs.battle import PROOFS, fight
from tests.proofs.verdict import Plan, Verdict

console = Console(width=140)


def played(name: str, plan: Plan, folder: Path) -> Verdict:
    columns = (TextColumn("{task.fields[proof]}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=plan.seconds, proof=name)
        begun = time.monotonic()

        def tell(text: str) -> None:
            progress.update(task, completed=min(plan.seconds, time.monotonic() - begun), description=text)

        return fight(name, plan, folder, tell)


def report(verdict: Verdict) -> None:
    table = Table(title=verdict.proof, title_justify="left", show_header=False)
    for name, count in verdict.counts.items():
        table.add_row(name, f"{count:,}", end_section=name == list(verdict.counts)[-1])
    table.add_row("per second", f"{verdict.done / max(verdict.seconds, 1e-9):,.0f}", end_section=True)
    for name, count in sorted(verdict.against.items()):
        table.add_row(name, f"{count:,}")
    console.print(table)
    for problem in verdict.problems:
        console.print(f"WRONG  {problem}", markup=False, soft_wrap=True, highlight=False)
    if verdict.more_problems:
        console.print(f"... and {verdict.more_problems:,} more")
    console.print(f"{verdict.proof}: {'holds' if verdict.is_good else 'DOES NOT HOLD'}\n", style="bold")


def where_to_look(name: str, plan: Plan, folder: Path) -> None:
    console.print(
        f"Kept for looking: the data in {folder}/data, what the store said in {folder}/data.log.\n"
        f"  columnar check --data {folder}/data          what is damaged, if anything is\n"
        f"  columnar standalone --data {folder}/data     then look at the rows named above\n"
        f"  python -m tests.proofs {name} --seed {plan.seed}    the same choices, at other moments\n"
        "docs/proofs.md says what each kind of finding means.",
        markup=False,
        soft_wrap=True,
        highlight=False,
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("proof", type=click.Choice([*PROOFS, "all"]), default="all")
@click.option("--minutes", default=1.0, show_default=True, type=click.FloatRange(min=0.01), help="Of each proof.")
@click.option(
    "--kill-every",
    default=5.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Seconds between kills, on average; 0: nobody is killed.",
)
@click.option("--servers", default=1, show_default=True, type=click.IntRange(1, 16), help="1: one process.")
@click.option("--nodes", default=0, show_default=True, type=click.IntRange(0, 16), help="Of many machines; 0: one.")
@click.option("--routing", is_flag=True, help="Clients call the owners of rows themselves.")
@click.option("--seed", default=1, show_default=True, help="Of all choices but the machine's own.")
@click.option("--writers", default=4, show_default=True, type=click.IntRange(1, 64), help="Threads that write.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Where the stores are made; kept. Without it a temporary folder, kept only where a proof fails.",
)
def main(
    proof: str,
    minutes: float,
    kill_every: float,
    servers: int,
    nodes: int,
    routing: bool,
    seed: int,
    writers: int,
    folder: Path | None,
) -> None:
    """Prove that a store under load, which is killed all the time, loses and mixes nothing.

    \b
    linked-list   every acknowledged row is stored: rows refer to each other in circles,
                  and a lost row leaves a dangling reference (HBase's big linked list)
    acid          no reader sees a part of a row, or values of two writers in one row
                  (HBase's ACID guarantees)
    linearizable  puts, deletes, checks, counters, appends and reads of one row
                  take effect one after the other, each between its call and its answer
    groups        steps and transactions over several rows of a group take effect one after
                  the other, each wholly or not at all
    all           each of them, one after the other

    Each starts a `columnar standalone` of its own, kills it with -9 every few seconds, and meanwhile
    has its regions flushed, compacted, split and merged. With --servers N it is a store of several
    servers: a shot hits one of them, its trigger worker, or the supervisor; some servers are stopped
    for a while; and regions are moved, too. With --nodes N it is a cluster of N nodes with a server each
    over an etcd: a shot hits a server, a worker, a node, or all nodes; some nodes are frozen for a while.
    The exit status is 0 if all promises hold.

    \b
      python -m tests.proofs acid --minutes 2
      python -m tests.proofs all --minutes 30 --kill-every 5 --seed 7
      python -m tests.proofs all --minutes 30 --servers 3
      python -m tests.proofs all --minutes 30 --nodes 3
    """
    plan = Plan(60 * minutes, writers, seed, kill_every, servers=servers, nodes=nodes, routing=routing)
    where = f"{nodes} nodes" if nodes else f"{servers} servers"
    console.print(
        f"seed {seed}, {writers} writers, {minutes:g} minutes, a kill every {kill_every:g} s, {where}",
        highlight=False,
    )
    names = list(PROOFS) if proof == "all" else [proof]
    base = folder or Path(tempfile.mkdtemp(prefix="columnar-proofs-"))
    failed = False
    for name in names:
        here = base / name
        here.mkdir(parents=True)
        verdict = played(name, plan, here)
        report(verdict)
        if not verdict.is_good:
            failed = True
            where_to_look(name, plan, here)
        elif folder is None:
            shutil.rmtree(here)
    if folder is None and not failed:
        base.rmdir()
    sys.exit(failed)


if __name__ == "__main__":
    main()
