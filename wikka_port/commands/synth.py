"""``wikka synth``: the thesis's synthetic wiki."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from typing import Any

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from columnar.client import ClientTls
from wikka_port.commands.store_options import open_wiki, store_options
from wikka_port.synthetic import make_wiki


@click.command()
@store_options
@click.option("--pages", required=True, type=click.IntRange(1), help="How many; the first is Aa, number 523 FfCcDd.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same wiki.")
@click.option("--bytes", "size_bytes", default=8_192, show_default=True, type=click.IntRange(0, 1_000_000))
@click.option("--links", default=10, show_default=True, type=click.IntRange(0, 1_000), help="In each page.")
def synth(store: str, indexes: Any, tls: ClientTls | None, pages: int, seed: int, size_bytes: int, links: int) -> None:
    """Make pages of one size with links to each other at random places."""
    with open_wiki(store, indexes, tls) as wiki:
        wiki.prepare()
        begun = time.monotonic()
        bar = Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=Console(stderr=True))
        with bar if sys.stderr.isatty() else nullcontext():
            task = bar.add_task("pages", total=pages)
            stored = make_wiki(
                wiki,
                pages=pages,
                seed=seed,
                size_bytes=size_bytes,
                links=links,
                progress=lambda done: bar.update(task, completed=done),
            )
    kept = f", {len(stored.kept):,} kept as they were edited here" if stored.kept else ""
    seconds = time.monotonic() - begun
    click.echo(f"{stored.revisions:,} pages made, {stored.already:,} were there{kept}; {seconds:.1f} s")
