"""A bar or a count on stderr while something long runs; nothing if stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, total_bytes: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function; call it after each finished piece, with the size of the piece in bytes."""
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total_bytes)
        yield lambda done: bar.advance(task, done)


@contextmanager
def counting(what: str, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the total number of ``unit`` done so far."""
    if not sys.stderr.isatty():
        yield lambda _total: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn(f"{{task.completed:,}} {unit}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what.replace("[", "\\["), total=None)
        yield lambda total: progress.update(task, completed=total)
