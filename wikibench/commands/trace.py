"""``wikibench trace``: traces from access logs, smaller traces, and what is in one."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from wikibench.errors import PlanError, TraceFileError
from wikibench.options import Share
from wikibench.statuses import CONTEXT, report_errors
from wikibench.targets.paths import Layout, page_name
from wikibench.trace.files import STDIN, TraceFile, opened_lines, write_trace
from wikibench.trace.lines import MICROS, Request
from wikibench.trace.log_entries import FormatError, LogFormat
from wikibench.trace.log_formats import AUTO_LINES, NAMES, format_of, guessed
from wikibench.trace.logs import KEEPABLE, Selection, Tally, requests_of
from wikibench.trace.sampling import HOT, PageCounts, PageSample, choose_pages
from wikibench.trace.sorting import in_time_order

T = TypeVar("T")
TICK_LINES: Final = 20_000  # between two drawings of the progress
TOP_PAGES: Final = 10
WINDOW: Final = 1_000  # lines of disorder that sample and info repair
_LAYOUT: Final = Layout()


class Pattern(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "regex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        if isinstance(value, re.Pattern):
            return value
        try:
            return re.compile(str(value))
        except re.error as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)


class Keep(click.ParamType[frozenset[str]]):
    """A list of what is kept although it is usually dropped."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        if isinstance(value, frozenset):
            return value
        found = frozenset(filter(None, str(value).split(",")))
        if not found <= frozenset(KEEPABLE):
            self.fail(f"{value!r} is not a list of {', '.join(KEEPABLE)}, as --keep static,redirects", param, ctx)
        return found


@click.group(context_settings=CONTEXT)
def trace() -> None:
    """Make traces from access logs, take samples of them, and see what is in one.

    \b
    From a log of another site's server to a load on this machine's wiki:
      wikibench trace read access.log* --view '^/wiki/' --out day.trace.gz
      wikibench trace info day.trace.gz
      wikibench trace sample day.trace.gz --pages 10% --out small.trace.gz
      wikibench replay small.trace.gz --target http://127.0.0.1:8080 --rewrite /wiki/=/ --expect-404
    """


@trace.command(context_settings=CONTEXT)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--out", required=True, help="The trace to write; gzip where it ends in .gz, - for standard output.")
@click.option("--format", "format_name", default="auto", show_default=True, help="Of the lines; see above.")
@click.option("--view", "views", type=Pattern(), help="Views are only GETs whose path and query match this.")
@click.option("--save", "saves", type=Pattern(), help="POSTs whose path and query match this are edits.")
@click.option("--keep", type=Keep(), default="", help="Keep also: static, redirects, refused (joined by commas).")
@click.option(
    "--within-second",
    type=click.Choice(["spread", "as-logged"]),
    default="spread",
    show_default=True,
    help="Requests that a log gives whole seconds: at random moments of their second, or all at once.",
)
@click.option("--seed", default=1, show_default=True, help="Of these moments; the same seed gives the same trace.")
def read(logs: tuple[str, ...], out: str, format_name: str, within_second: str, seed: int, **given: Any) -> None:
    """Make a trace from access logs, plain or gzip, in any order; - is standard input.

    \b
    auto looks at the first 100 lines and says what it chose. Formats have a name, or are what the server's
    configuration has:
      combined common vhost           Apache and nginx as they come      alb haproxy w3c
      caddy traefik envoy             JSON of these proxies
      'nginx:$remote_addr [$time_local] "$request" $status $request_time'
      'apache:%h %{usec}t "%r" %>s'   or a whole log_format or LogFormat line
      json:time=ts,method=request.method,target=request.uri,duration=took:ms,end

    GET and HEAD are views; what else is in the log is dropped and counted by reason. No address, user, referer or
    agent is read into a trace. Times at which a request ended are taken back by the duration beside them.
    """
    with report_errors(), _ReadProgress() as note:
        try:
            log_format, described = _format(format_name, logs[0])
        except FormatError as error:
            raise PlanError(f"--format: {error}") from error
        click.echo(f"format: {described}", err=True)
        tally, selection = Tally(), Selection(given["views"], given["saves"], given["keep"])
        rng = random.Random(seed) if within_second == "spread" else None
        lines = _noted(_lines_of(logs), note, lambda: f"{tally.kept:,} requests")
        with tempfile.TemporaryDirectory(prefix="wikibench-") as folder:
            requests = in_time_order(_checked(logs, log_format, selection, tally, lines, rng), Path(folder))
            first = next(requests, None)
            if first is None:
                raise PlanError(f"no page view in {logs[0]}: {_reasons(tally)}")
            span = _Span()
            count = write_trace(out, span.over(chain([first], requests)))
    spread = f", {tally.whole_seconds:,} times in whole seconds, {within_second}" if tally.whole_seconds else ""
    click.echo(f"{out}: {count:,} requests over {span.words()} from {tally.lines:,} lines{spread}", err=True)
    if tally.dropped:
        click.echo(f"dropped: {_reasons(tally)}", err=True)
    if tally.first_bad:
        number, text = tally.first_bad[0]
        click.echo(f"the first unreadable line is {number}: {text[:120]!r}", err=True)


def _format(name: str, first_log: str) -> tuple[LogFormat, str]:
    if name != "auto":
        made = format_of(name)
        return made, made.name
    if first_log == STDIN:
        raise FormatError("standard input cannot be looked at twice: say which format it has")
    with opened_lines(first_log) as lines:
        looked = list(islice(lines, AUTO_LINES))
    if not any(line.strip() for line in looked):
        raise PlanError(f"{first_log} is empty: there is no line to see its format from")
    found = guessed(looked)
    if found is None:
        shown = next((line.rstrip("\n") for line in looked if line.strip()), "")
        raise FormatError(
            f"none of {', '.join(NAMES)} reads the first lines of {first_log}; take the log_format or LogFormat line "
            f"of the server's configuration. Its first line: {shown[:120]!r}"
        )
    return found[0], f"{found[0].name}, which reads {found[1]} of the first {len(looked)} lines"


def _lines_of(logs: Iterable[str]) -> Iterator[str]:
    for path in logs:
        with opened_lines(path) as lines:
            yield from lines


def _checked(
    logs: tuple[str, ...],
    log_format: LogFormat,
    selection: Selection,
    tally: Tally,
    lines: Iterable[str],
    rng: random.Random | None,
) -> Iterator[Request]:
    """Yield the requests; raise TraceFileError after the last one if most lines were not of the format."""
    yield from requests_of(lines, log_format, selection, tally, rng)
    if tally.unreadable * 2 > tally.lines:
        number, text = tally.first_bad[0]
        why = f"{tally.unreadable:,} of {tally.lines:,} lines are not of the format {log_format.name}"
        raise TraceFileError(", ".join(logs), f"{why}; the first is line {number}: {text[:120]!r}")


def _reasons(tally: Tally) -> str:
    return "; ".join(f"{count:,} {reason}" for reason, count in tally.dropped.most_common()) or "no line at all"


class _Span:
    """The first and last time of requests that pass through."""

    def __init__(self) -> None:
        self.first_us = self.last_us = 0
        self.count = 0

    def over(self, requests: Iterable[Request]) -> Iterator[Request]:
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


@trace.command(context_settings=CONTEXT)
@click.argument("source", metavar="TRACE")
@click.option("--out", required=True, help="The trace to write; gzip where it ends in .gz, - for standard output.")
@click.option("--pages", type=Share(), help="Keep all requests of this share of the pages: a smaller wiki.")
@click.option("--requests", "requests_share", type=Share(), help="Keep this share of the requests: a lower rate.")
@click.option(
    "--hot",
    type=Share(),
    default=HOT,
    show_default=True,
    help="Thin pages that would be over this share of the sample.",
)
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same sample.")
def sample(source: str, out: str, pages: float | None, requests_share: float | None, hot: float, seed: int) -> None:
    """Take a sample of a trace that is like it.

    \b
      wikibench trace sample day.trace.gz --pages 10% --out small.trace.gz       a tenth of the wiki
      wikibench trace sample day.trace.gz --requests 10% --out thin.trace.gz     a tenth of the rate

    Pages are chosen so that their requests come to the share, too, and the curve of popularity keeps its shape.
    Pages that alone would be over --hot of the sample keep their share of the traffic instead of all of it.
    """
    with report_errors(), _ReadProgress() as note:
        share = pages if pages is not None else requests_share
        if share is None or (pages is not None and requests_share is not None):
            raise PlanError("give either --pages or --requests, as --pages 10%")
        if not share > 0:
            raise PlanError("a share of 0 keeps nothing")
        found = TraceFile.opened(source, window=WINDOW)
        rng = random.Random(seed)
        counts, chosen = PageCounts(), None
        if pages is not None:
            for request in _noted(found.read(), note, lambda: f"{len(counts.counts):,} pages"):
                counts.add(_page_of(request))
            chosen = choose_pages(counts.counts, share, seed, hot)
        before, after = _Span(), _Span()
        kept = _sampled(before.over(_noted(found.read(), note, lambda: f"{after.count:,} kept")), share, chosen, rng)
        write_trace(out, after.over(kept))
    if not before.count:
        raise click.UsageError(f"{source}: no request to sample")
    click.echo(f"{out}: {after.count:,} of {before.count:,} requests, {after.count / before.count:.2%}", err=True)
    if chosen is not None:
        click.echo(
            f"pages: {len(chosen.kept):,} of {len(counts.counts):,} whole, and {len(chosen.thinned)} thinned because "
            f"each would be over {hot:.2%} of the sample",
            err=True,
        )


def _sampled(
    requests: Iterable[Request], share: float, chosen: PageSample | None, rng: random.Random
) -> Iterator[Request]:
    for request in requests:
        chance = rng.random()
        if chance < share if chosen is None else chosen.keeps(_page_of(request), chance):
            yield request


def _page_of(request: Request) -> str:
    """Return the name of the page of a request: its edits are of the same page as its views."""
    return page_name(_LAYOUT.page(request.url))


@trace.command(context_settings=CONTEXT)
@click.argument("source", metavar="TRACE")
def info(source: str) -> None:
    """Say what is in a trace: requests, kinds, rate by hour, pages, disorder."""
    kinds: Counter[str] = Counter()
    hours: Counter[int] = Counter()
    counts, span, whole, disorder, latest = PageCounts(), _Span(), 0, 0, 0
    with report_errors(), _ReadProgress() as note:
        found = TraceFile.opened(source, window=1)
        for request in span.over(_noted(found.read(), note, lambda: f"{len(counts.counts):,} pages")):
            kinds["edits" if request.is_save else "views of missing pages" if request.is_missing else "views"] += 1
            hours[request.time_us // (3_600 * MICROS)] += 1
            counts.add(_page_of(request))
            whole += request.time_us % MICROS == 0
            disorder += request.time_us < latest
            latest = max(latest, request.time_us)
    if not span.count:
        raise click.UsageError(f"{source}: no request in it")
    seconds = (span.last_us - span.first_us) / MICROS
    mean = span.count / seconds if seconds > 0 else float(span.count)
    busiest = max(hours.values()) / min(max(seconds, 1.0), 3_600.0)
    table = Table(title=source, title_justify="left", show_header=False)
    top = sorted(counts.counts.items(), key=lambda item: (-item[1], item[0]))[:TOP_PAGES]
    for name, text in (
        ("requests", f"{span.count:,} ({', '.join(f'{count:,} {kind}' for kind, count in kinds.most_common())})"),
        ("span", f"{span.words()}, {len(hours):,} hours of the clock with requests"),
        ("rate", f"{mean:.4g} per second in the mean, {busiest:.4g} in the busiest hour"),
        ("times", f"{whole / span.count:.0%} in whole seconds, {disorder:,} earlier than the line before"),
        ("pages", f"{len(counts.counts):,}; the first {len(top)} have {sum(n for _, n in top) / span.count:.1%}"),
        *((f"{count:,}", page or "/") for page, count in top),
    ):
        table.add_row(name, text.encode("utf-8", "replace").decode("utf-8"))
    Console().print(table, markup=False)


class _ReadProgress:
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


def _noted(items: Iterable[T], note: Callable[[str], None], more: Callable[[], str]) -> Iterator[T]:
    for number, item in enumerate(items, start=1):
        if number % TICK_LINES == 0:
            note(f"{number:,} lines, {more()}")
        yield item
