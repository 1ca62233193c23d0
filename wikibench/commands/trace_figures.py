"""``wikibench trace info, check``: what is in a trace, and how alike two are."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from wikibench.addresses.paths import name_path
from wikibench.commands.passes import TRACES, PathsWithQueries, ReadProgress, Span, noted, page_of
from wikibench.errors import PlanError
from wikibench.options import Share
from wikibench.statuses import CONTEXT, MISSED, report_errors
from wikibench.trace.files import STDIN
from wikibench.trace.likeness import MEASURES, Profile, differences
from wikibench.trace.lines import MICROS
from wikibench.trace.sampling import PageCounts
from wikibench.trace.source import Trace
from wikibench.whole_files import write_whole

TOP_PAGES: Final = 10
HOURS_LISTED: Final = 48
HOUR_US: Final = 3_600 * MICROS
_KINDS: Final = {"view": "views", "save": "edits", "missing": "views of missing pages"}


@click.command(context_settings=CONTEXT)
@TRACES
@click.option("--counts", type=click.Path(), metavar="FILE", help="Write the requests of each page: count and name.")
def info(sources: tuple[str, ...], counts: str | None) -> None:
    """Say what is in a trace: requests, kinds, rate by hour, pages, disorder; of a folder also where it comes from.

    \b
      wikibench trace info day/ --counts popularity.txt

    The counts are in order, the most wanted page first; at most 1,000,000 pages are counted.
    """
    kinds: Counter[str] = Counter()
    hours: Counter[int] = Counter()
    pages, span, whole, disorder, latest = PageCounts(), Span(), 0, 0, 0
    paths = PathsWithQueries()
    heads = 0
    with report_errors(), ReadProgress() as note:
        found = Trace(sources, sort_window=1)  # as the lines come: to see their disorder
        if STDIN not in sources:  # which is read once
            found.open_all()
        requests = found.read() if found.folder is not None else found.raw()
        for request in span.over(paths.over(noted(requests, note, lambda: f"{len(pages.counts):,} pages"))):
            kinds[request.kind] += 1
            heads += request.is_head
            hours[request.time_us // HOUR_US] += 1
            pages.add(page_of(request))
            whole += request.time_us % MICROS == 0
            disorder += request.time_us < latest
            latest = max(latest, request.time_us)
        if not span.count:
            raise PlanError(f"{found.name}: no request in it")
    seconds = (span.last_us - span.first_us) / MICROS
    mean = span.count / seconds if seconds > 0 else float(span.count)
    whole_hours = [count for hour, count in hours.items() if span.first_us <= hour * HOUR_US <= span.last_us - HOUR_US]
    busiest = max(whole_hours) / 3_600.0 if whole_hours else mean
    wanted = sorted(pages.counts.items(), key=lambda item: (-item[1], item[0]))
    if counts is not None:
        with report_errors():
            write_whole(Path(counts), "".join(f"{count} {name_path(page)}\n" for page, count in wanted))
    top = wanted[:TOP_PAGES]
    said = ", ".join(f"{count:,} {_KINDS[kind]}" for kind, count in kinds.most_common())
    said += f"; {heads:,} by HEAD" if heads else ""
    rows = [
        ("requests", f"{span.count:,} ({said})"),
        ("span", f"{span.words()}, {len(hours):,} hours of the clock with requests"),
        ("rate", f"{mean:.4g} per second in the mean, {busiest:.4g} in the busiest hour"),
        *_rows_of_hours(hours),
        ("times", f"{whole / span.count:.0%} in whole seconds, {disorder:,} earlier than the line before"),
        ("pages", f"{len(pages.counts):,}; the first {len(top)} have {sum(n for _, n in top) / span.count:.1%}"),
        *((f"{count:,}", page or "/") for page, count in top),
    ]
    if found.folder is not None:
        manifest = found.folder.manifest
        rows.append(("parts", f"{len(manifest.parts):,}, {sum(part.size_bytes for part in manifest.parts):,} bytes"))
        rows.extend((f"{count:,}", f"dropped: {reason}") for reason, count in manifest.dropped.items())
        rows.extend(("history", sentence) for sentence in manifest.history)
    _print_rows(found.name, rows)
    if paths.warning():
        click.echo(paths.warning(), err=True)


def _rows_of_hours(hours: Counter[int]) -> Iterator[tuple[str, str]]:
    """Yield a row for each hour of the clock in which there are requests, HOURS_LISTED at most."""
    for hour in sorted(hours)[:HOURS_LISTED]:
        at = datetime.fromtimestamp(hour * 3_600, UTC)
        yield f"{at:%Y-%m-%d %H:00}", f"{hours[hour]:,}, {hours[hour] / 3_600:.4g} per second of the hour"
    if len(hours) > HOURS_LISTED:
        yield "…", f"{len(hours) - HOURS_LISTED:,} hours more"


def _print_rows(title: str, rows: list[tuple[str, str]]) -> None:
    table = Table(title=title, title_justify="left", show_header=False)
    for name, text in rows:
        table.add_row(name, text.encode("utf-8", "replace").decode("utf-8"))
    Console().print(table, markup=False)


@click.command(context_settings=CONTEXT)
@click.argument("whole", type=click.Path(exists=True, allow_dash=True), metavar="TRACE")
@click.argument("part", type=click.Path(exists=True, allow_dash=True), metavar="SAMPLE")
@click.option(
    "--tolerance", type=Share(), default=0.05, show_default=True, help="The largest difference that is alike."
)
@click.option("--only", default=",".join(MEASURES), help="Judge these: hours,popularity,hot pages,kinds,gaps.")
def check(whole: str, part: str, tolerance: float, only: str) -> None:
    """Say how alike two traces are, such as a trace and its sample; the exit status is 1 if they differ by more.

    \b
      wikibench trace check day/ small/
      wikibench trace check day/ thin/ --only hours,kinds --tolerance 3%
      wikibench trace sample day/ --pages 5% --out - | wikibench trace check day/ -

    hours: requests by hour, as a part of the mean hour. popularity: the curve of the requests over the pages; pages
    that a sample by pages has thinned are left out. hot pages: those with over 2 %, by their share; one that the sample
    lacks differs by 100 %. kinds: views, edits, missing pages. gaps: times between requests of one page, which a sample
    by requests stretches.
    """
    judged = frozenset(filter(None, (name.strip() for name in only.split(","))))
    with report_errors(), ReadProgress() as note:
        if whole == part == STDIN:
            raise PlanError("one of the two may be standard input, not both")
        if not judged <= frozenset(MEASURES):
            raise PlanError(f"--only {only!r} is not a list of {', '.join(MEASURES)}")
        profiles = []
        for path in (whole, part):
            found, profile = Trace((path,)).open_all(), Profile()
            for request in noted(found.read(), note, lambda: path):  # noqa: B023  called within the loop
                profile.add_request(request, page_of(request))
            if not profile.count:
                raise PlanError(f"{path}: no request in it")
            profiles.append(profile)
        table = differences(*profiles)
    rows = [
        (name, f"{value:.2%}{'' if name not in judged else ' ok' if value <= tolerance else ' differs'}")
        for name, value in table.items()
    ]
    counts = [profile.count for profile in profiles]
    rows.insert(0, ("requests", f"{counts[1]:,} of {counts[0]:,}, {counts[1] / counts[0]:.2%}"))
    _print_rows(f"{whole} and {part}", rows)
    if any(table[name] > tolerance for name in judged):
        sys.exit(MISSED)
