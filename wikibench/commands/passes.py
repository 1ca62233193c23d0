"""Passes over a trace: the arguments that the trace commands share, the span of what passes through, the progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from wikibench.addresses.paths import Layout, page_name
from wikibench.trace.lines import MICROS, Request
from wikibench.trace.sorting import SortedLine

T = TypeVar("T")
Timed = TypeVar("Timed", Request, SortedLine)
Command = Callable[..., Any]
TICK_LINES: Final = 20_000  # between two drawings of the progress
_LAYOUT: Final = Layout()

TRACES: Final = click.argument(
    "sources", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True), metavar="TRACE..."
)
OUT: Final = click.option(
    "--out",
    required=True,
    help="The trace to write: a folder (ends in /), a file (gzip if it ends in .gz), or - for standard output.",
)


def page_of(request: Request) -> str:
    """Return the name of the page of a request: its edits are of the same page as its views."""
    return page_name(_LAYOUT.page(request.url))


class Span:
    """The first and last time of requests that pass through."""

    def __init__(self) -> None:
        self.first_us = self.last_us = 0
        self.count = 0

    def over(self, requests: Iterable[Timed]) -> Iterator[Timed]:
        for request in requests:
            if not self.count:
                self.first_us = request.time_us
            self.last_us = max(self.last_us, request.time_us)
            self.count += 1
            yield request

    def words(self) -> str:
        seconds = (self.last_us - self.first_us) / MICROS
        for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
            if seconds >= 2 * unit:
                return f"{seconds / unit:.1f} {name}"
        return f"{seconds:.1f} seconds"


class ReadProgress:
    """A line that is redrawn on standard error, if that is a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("reading", total=None)

    def __enter__(self) -> Callable[[str], None]:
        self._bar.start()
        return lambda text: self._bar.update(self._task, description=text)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def noted(items: Iterable[T], note: Callable[[str], None], more: Callable[[], str]) -> Iterator[T]:
    for number, item in enumerate(items, start=1):
        if number % TICK_LINES == 0:
            note(f"{number:,} lines, {more()}")
        yield item
