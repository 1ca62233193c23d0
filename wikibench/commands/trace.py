"""``wikibench trace``: traces from access logs, smaller traces, and what is in one."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import click

from wikibench.commands.passes import OUT, PathsWithQueries, ReadProgress, Span, noted
from wikibench.commands.synth import synth
from wikibench.commands.trace_figures import check, info
from wikibench.commands.trace_parts import cut, onto, sample, scrub
from wikibench.errors import PlanError, TraceFileError
from wikibench.statuses import CONTEXT, report_errors
from wikibench.targets.map_files import load_map
from wikibench.trace.files import STDIN, opened_lines, writable, write_lines
from wikibench.trace.lines import Request
from wikibench.trace.log_entries import FormatError, LogFormat
from wikibench.trace.log_formats import AUTO_LINES, NAMES, format_of, guessed
from wikibench.trace.logs import KEEPABLE, Selection, Tally, requests_of
from wikibench.trace.sorting import lines_in_time_order
from wikibench.trace.source import Trace, is_trace
from wikibench.trace.visitors import VisitorNumbers


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


TRACE: Final = "trace"


@click.group(context_settings=CONTEXT)
def trace() -> None:
    """Make traces from access logs, cut, sample, scrub and map them, and see what is in one.

    \b
    From a log of another site's server to a load on this machine's wiki:
      wikibench trace read access.log* --view '^/wiki/' --out day/
      wikibench trace info day/
      wikibench trace sample day/ --pages 10% --out small/
      wikibench trace check day/ small/
      wikibench replay small/ --target http://127.0.0.1:8080 --from 08:00 --to 10:00 --rewrite /wiki/=/ --expect-404

    A trace is a folder of sorted parts with a manifest (its name ends in /), a file, several files, or - for standard
    input.
    """


@trace.command(context_settings=CONTEXT)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@OUT
@click.option("--format", "format_name", default="auto", show_default=True, help="Of the lines; see above.")
@click.option(
    "--map",
    "map_name",
    help="Of the wiki that the log is of: mediawiki, dokuwiki, wikka, columnar, or a file. Pages get one name each. "
    "columnar:root=NAME names the page at /.",
)
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
@click.option(
    "--visitors",
    is_flag=True,
    help="Note which requests are of one visitor: a number made of the address with a key that is thrown away.",
)
@click.option(
    "--dropped",
    metavar="FILE",
    help="Write each line that is left out here, after its number and the reason. It holds addresses of visitors.",
)
@click.option("--plain", is_flag=True, help="Lines without attributes (status, method), as WikiBench's own tools read.")
def read(logs: tuple[str, ...], out: str, format_name: str, within_second: str, seed: int, **given: Any) -> None:
    """Make a trace from access logs, plain or gzip, in any order; - is standard input.

    \b
    auto looks at the first 100 lines and says what it chose. Formats have a name, or are what the server's
    configuration has:
      combined common vhost           Apache and nginx as they come      alb haproxy w3c
      caddy traefik envoy             JSON of these proxies, and Envoy's own lines
      trace                           traces themselves: they are sorted into one
      'nginx:$remote_addr [$time_local] "$request" $status $request_time'
      'apache:%h %{usec}t "%r" %>s'   or a whole log_format or LogFormat line
      json:time=ts,method=request.method,target=request.uri,duration=took:ms,end

    GET and HEAD are views; what else is in the log is dropped and counted by reason (--dropped writes it down line by
    line). No address, user, referer or agent is read into a trace. Times at which a request ended are taken back by the
    duration beside them.
    """
    with report_errors(), ReadProgress() as note:
        _require_free(logs, out, given["dropped"])
        if format_name == TRACE or (format_name == "auto" and is_trace(logs[0])):
            if given["dropped"]:
                raise PlanError("--dropped: these are traces, of which no line is left out")
            _read_traces(logs, out, note)
            return
        try:
            log_format, described = _format(format_name, logs[0])
        except FormatError as error:
            raise PlanError(f"--format: {error}") from error
        click.echo(f"format: {described}", err=True)
        if given["visitors"] and given["plain"]:
            raise PlanError("--visitors notes attributes, which --plain leaves out: give one of them")
        if given["visitors"] and not log_format.number_visitors(VisitorNumbers().number_of):
            raise PlanError(f"--visitors: lines of the format {log_format.name} have no address that is known by name")
        site = None if given["map_name"] is None else load_map(given["map_name"])
        if site is not None and (given["views"] or given["saves"]):
            raise PlanError("--map says what is a view and a save: leave --view and --save out")
        selection = Selection(given["views"], given["saves"], given["keep"], given["plain"], site)
        with _dropped_lines(given["dropped"]) as note_dropped:
            tally, paths, span = Tally(note=note_dropped), PathsWithQueries(), Span()
            lines = noted(_lines_of(logs), note, lambda: f"{tally.kept:,} requests")
            rng = random.Random(seed) if within_second == "spread" else None
            requests = _checked(logs, log_format, selection, tally, lines, rng)
            about = f"{log_format.name}, {within_second}, seed {seed}"
            about += ", visitors numbered with a key that was thrown away" if given["visitors"] else ""
            _write_in_order(logs, out, requests if site is not None else paths.over(requests), tally, span, about)
    spread = f", {tally.whole_seconds:,} times in whole seconds, {within_second}" if tally.whole_seconds else ""
    click.echo(f"{out}: {tally.kept:,} requests over {span.words()} from {tally.lines:,} lines{spread}", err=True)
    if tally.dropped:
        click.echo(f"dropped: {_reasons(tally)}", err=True)
    if tally.first_bad and given["dropped"] is None:
        number, text = tally.first_bad[0]
        click.echo(f"the first unreadable line is {number}: {text[:120]!r}; --dropped FILE has all", err=True)
    if paths.warning():
        click.echo(paths.warning(), err=True)


def _require_free(logs: tuple[str, ...], out: str, dropped: str | None) -> None:
    """Raise PlanError if the file of dropped lines is to be a log, or the trace itself."""
    taken = {Path(path).resolve() for path in (*logs, out) if path != STDIN}
    if dropped is not None and (dropped == STDIN == out or Path(dropped).resolve() in taken):
        raise PlanError(f"--dropped {dropped} would be written over: give a file of its own")


@contextmanager
def _dropped_lines(path: str | None) -> Iterator[Callable[[int, str, str], None] | None]:
    """Yield what writes a dropped line into the file; None without a file.  The file is there even if no trace is."""
    if path is None:
        yield None
        return
    with writable(path) as file:
        yield lambda number, reason, line: print(number, reason, line, sep="\t", file=file)


def _write_in_order(
    logs: tuple[str, ...], out: str, requests: Iterable[Request], tally: Tally, span: Span, about: str
) -> None:
    """Sort the requests and write the trace.  Raises PlanError if there are none."""
    with tempfile.TemporaryDirectory(prefix="wikibench-") as folder:
        ordered = lines_in_time_order(requests, Path(folder))
        first = next(ordered, None)
        if first is None:
            raise PlanError(f"no page view in {logs[0]}: {_reasons(tally)}")
        step = f"read: {tally.lines:,} lines of {len(logs)} logs, format {about}"
        write_lines(out, span.over(chain([first], ordered)), dropped=tally.dropped, history=(step,))


def _read_traces(paths: tuple[str, ...], out: str, note: Callable[[str], None]) -> None:
    """Sort traces into one, such as files of WikiBench's own format into a folder."""
    click.echo("format: a trace, which is sorted", err=True)
    found, span = Trace(paths), Span()
    with tempfile.TemporaryDirectory(prefix="wikibench-") as folder:
        ordered = lines_in_time_order(noted(found.raw(), note, lambda: f"{span.count:,} requests"), Path(folder))
        step = f"read: {len(paths)} traces"
        count = write_lines(out, span.over(ordered), dropped=found.dropped(), history=found.history(step))
    click.echo(f"{out}: {count:,} requests over {span.words()}", err=True)


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
    described = f"{found[0].name}, which reads {found[1]} of the first {len(looked)} lines"
    if found[0].name.startswith("json:") and not found[0].name.endswith(",end"):
        described += "; its time is taken as that of the start: if it is the end, give this --format with ,end"
    return found[0], described


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


for _command in (cut, sample, scrub, onto, info, check, synth):
    trace.add_command(_command)
