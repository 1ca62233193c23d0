"""Passes over a trace: the arguments that the trace commands share, the span of what passes through, the progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from wikibench.addresses.paths import Layout, page_name
from wikibench.trace.lines import MICROS, Request
from wikibench.trace.sampling import PageCounts
from wikibench.trace.sorting import SortedLine

T = TypeVar("T")
Timed = TypeVar("Timed", Request, SortedLine)
Command = Callable[..., Any]
TICK_LINES: Final = 20_000  # between two drawings of the progress
PATH_COUNTERS: Final = 1_000  # a path with over half of the requests is among so many
QUERIES_KEPT: Final = 10  # different ones, of which on a path has many
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
            if request.time_us > self.last_us:
                self.last_us = request.time_us
            self.count += 1
            yield request

    def words(self) -> str:
        seconds = (self.last_us - self.first_us) / MICROS
        for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
            if seconds >= 2 * unit:
                return f"{seconds / unit:.1f} {name}"
        return f"{seconds:.1f} seconds"


class PathsWithQueries:
    """Whether most requests are of one path, told apart by its query: of a wiki that names its pages there.

    Such a path is one page here, so a sample by pages would thin the whole wiki as one page.
    """

    def __init__(self) -> None:
        self._counts = PageCounts(PATH_COUNTERS)
        self._queries: set[str] = set()  # some of the path's: one that has always the same query is a page
        self._path = ""
        self._total = 0

    def over(self, requests: Iterable[Request]) -> Iterator[Request]:
        for request in requests:
            self._total += 1
            if "?" in request.url:  # most have none, and a call costs as much as the rest
                self._note_query(request)
            yield request

    def add(self, request: Request) -> None:
        self._total += 1
        if "?" in request.url:
            self._note_query(request)

    def _note_query(self, request: Request) -> None:
        query = request.url.partition("?")[2]
        page = page_of(request)
        self._counts.add(page)
        if page != self._path and 2 * self._counts.counts.get(page, 0) > self._total:
            self._path, self._queries = page, set()
        if page == self._path and len(self._queries) < QUERIES_KEPT:
            self._queries.add(query)

    def warning(self) -> str:
        """Return a line for the user; an empty text if there is nothing to say."""
        count = self._counts.counts.get(self._path, 0)
        if 2 * count <= self._total or len(self._queries) < QUERIES_KEPT:
            return ""
        return (
            f"{count / self._total:.0%} of the requests are of one path with many queries, {self._path or '/'}: they "
            "count as one page. If the queries name pages, read the log with --map (mediawiki, dokuwiki, wikka, or a "
            "file of your own)"
        )


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
