"""Runs of a proof over kills of its store: the command of the long form, the short form of the tests, and their end."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from tests.proofs.asking import StoreClient
from tests.proofs.killed_cluster import KilledCluster
from tests.proofs.killed_store import KilledStore, StoreBroken
from tests.proofs.verdict import Plan, Tell, Verdict, end_report

LONGEST_S: Final = 6 * 3_600.0
SEED: Final = int(os.environ.get("COLUMNAR_SEED", "20261128"))
SHORT_RUNS: Final = (  # the second one is for the deep form of the tests
    (KilledStore, Plan(0, 2, SEED, 0.6, upheaval_pause_s=0.1, most_kills=3)),
    (KilledCluster, Plan(0, 2, SEED, 2.0, upheaval_pause_s=0.1, most_kills=8, servers=3)),
)

Prove = Callable[[KilledStore, Plan, Tell, Callable[[], bool]], Verdict]


@contextmanager
def judged(store: KilledStore, verdict: Verdict, clients: Sequence[StoreClient]) -> Iterator[None]:
    """End a run: close its clients, and add to the verdict what the store says."""
    try:
        yield
    except StoreBroken:
        verdict.add(f"the store broke: {store.broken}")
    finally:
        for client in clients:
            client.close()
    verdict.look_for_nothing()
    verdict.against += Counter(store.shots)


def kill_command(
    name: str, prove: Prove, text: str, *, of_clients: str = "", clients: int = 3, least_clients: int = 1
) -> click.Command:
    """Return the command of a proof; ``of_clients`` says what its clients do."""

    @click.command(
        help=text.rstrip(), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
    )
    @click.option("--kills", default=50, show_default=True, type=click.IntRange(1))
    @click.option(
        "--every", default=1.0, show_default=True, type=click.FloatRange(min=0.1), help="Seconds between kills."
    )
    @click.option("--servers", default=1, show_default=True, type=click.IntRange(1, 16), help="1: one process.")
    @click.option(
        "--clients", default=clients, show_default=True, type=click.IntRange(least_clients, 32), help=of_clients
    )
    @click.option("--seed", default=1, show_default=True)
    def main(kills: int, every: float, servers: int, clients: int, seed: int) -> None:
        console = Console(soft_wrap=True, highlight=False, markup=False)
        folder = Path(tempfile.mkdtemp(prefix=f"columnar-{name}-"))
        plan = Plan(0, clients, seed, every, servers=servers, most_kills=kills)
        with (
            console.status("starting") as status,
            (KilledCluster if servers > 1 else KilledStore)(folder / "data", plan) as store,
        ):
            verdict = _run(prove, store, plan, status.update)
        console.print(f"seed {seed}, {servers} servers, {verdict.seconds:.0f} s: " + _listed(verdict.counts))
        console.print("against: " + _listed(verdict.against))
        end_report(console, verdict.problems, folder)

    return main


def check_short_run(prove: Prove, kind: type[KilledStore], plan: Plan, folder: Path) -> None:
    """Fail unless a run of a few kills holds, and killed something."""
    print(f"COLUMNAR_SEED={SEED}")
    with kind(folder / "data", plan) as store:
        verdict = _run(prove, store, plan, lambda _: None)
    print(verdict.counts, verdict.against)
    assert verdict.problems == []
    assert any(how.startswith(("kill", "SIGTERM")) for how in verdict.against)


def _run(prove: Prove, store: KilledStore, plan: Plan, tell: Tell) -> Verdict:
    return prove(store, plan, tell, lambda: sum(store.shots.values()) >= plan.most_kills)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
