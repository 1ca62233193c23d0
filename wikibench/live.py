"""The display while a replay runs, and the short summary at its end."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gauge.histogram import Histogram, merged

from .generator_limit import words_of_limit
from .injector import Injector
from .latency import Figures, Interval, Pair
from .limits import OWN_LATENESS_WARNING_MS
from .outcome import Kind, Outcome
from .summary import Json, machine_lines, milliseconds
from .visits import Load

RECENT_INTERVALS = 3  # of which the live line shows the p95: the running one is still filling
SNAPSHOT_INTERVALS = 30  # a request may end 20 s after its start and still counts in the interval of its start
QUIET_S = 10.0  # between two lines if the output is no terminal


class LiveLine:
    """A line on standard error that is redrawn; if standard error is no terminal, a new line now and then."""

    def __init__(self, title: str, also: Callable[[Snapshot], None] | None = None) -> None:
        """Take ``also``, which gets each snapshot too."""
        self._console = Console(file=sys.stderr)
        self._title = title
        self._also = also
        self._live: Live | None = None
        self._last_s = 0.0

    def __enter__(self) -> LiveLine:
        if self._console.is_terminal:
            # refreshed by our ticks alone: a thread of its own would disturb the clock
            self._live = Live(Text(self._title), console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def tick(self, now: Snapshot) -> None:
        if self._also is not None:
            self._also(now)
        if self._live is not None:
            self._live.update(self._line(now), refresh=True)
        elif now.now_s - self._last_s >= QUIET_S:
            self._last_s = now.now_s
            if takes_a_line(sys.stderr):  # a pipe that is not read would block the load
                self._console.print(self._line(now))

    def _line(self, now: Snapshot) -> Text:
        rows = [now.rows[index] for index in sorted(now.rows)]
        done = rows[-2] if len(rows) > 1 else rows[-1] if rows else None
        requested, got = (done.requested, done.answered) if done else (0, 0)
        p95 = milliseconds(merged((row.response for row in rows[-RECENT_INTERVALS:]), digits=2), 95.0)
        line = Text(f"{self._title}  {now.now_s:.0f}/{now.planned_s:.0f} s  ")
        line.append(f"asked {requested / now.interval_s:.0f}/s got {got / now.interval_s:.0f}/s  ")
        line.append("p95 –  " if p95 is None else f"p95 {p95:.0f} ms  ", style="bold")
        line.append(f"open {now.open}  ")
        line.append(f"failed {now.failed}", style="bold red" if now.failed else "green")
        if now.now_s < now.warm_up_s:
            line.append("  warming up")
        return line


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A replay under way, of one process or of several."""

    now_s: float
    planned_s: float
    warm_up_s: float
    interval_s: float
    open: int
    failed: int
    rows: dict[int, Interval]  # the last intervals, by number
    pairs: Mapping[tuple[Kind, Outcome], Pair]  # of all counted requests
    own_lateness: Histogram


def snapshot_of(injector: Injector) -> Snapshot:
    return snapshot(injector.figures, injector.load, injector.now_s(), injector.open)


def snapshot(figures: Figures, load: Load, now_s: float, open_requests: int) -> Snapshot:
    recorder = figures.recorder
    first = max(0, len(recorder.intervals) - SNAPSHOT_INTERVALS)
    return Snapshot(
        now_s,
        load.planned_s,
        load.warm_up_s,
        recorder.interval_s,
        open_requests,
        recorder.failed() + figures.warm_up.failed(),
        dict(enumerate(recorder.intervals[first:], start=first)),
        recorder.pairs,
        figures.own_lateness,
    )


def takes_a_line(stream: TextIO) -> bool:
    """Return whether a write of less than a page returns at once; always True for a stream without a descriptor."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


def print_summary(console: Console, summary: Json) -> None:
    """Print the summary of a replay as a table and a few lines."""
    table = Table(title=f"Response time from the intended start, ms ({summary['ending']})", title_justify="left")
    table.add_column("kind")
    for name in ("requests", "failed", "p50", "p90", "p95", "p99", "p99.9", "max"):
        table.add_column(name, justify="right")
    for row in summary["by_kind"]:
        _row(table, row["kind"], row["count"], row["failed"], row["response_time"])
    requests, rate = summary["requests"], summary["rate"]
    _row(table, "all", requests["counted"], requests["failed"], summary["response_time"])
    _row(table, "all, service", "", "", summary["service_time"])
    console.print(table)
    generator = summary["generator"]
    console.print(
        f"asked {rate['asked_per_s']:.1f}/s, got {rate['got_per_s']:.1f}/s, of which page views "
        f"{rate['page_views_per_s']:.1f}/s; conflicts {requests['conflicts']}"
    )
    late = generator["own_lateness"]["p99_ms"]
    console.print(
        f"generator: own lateness p99 {_cell(late)} ms, {generator['cpu_share_of_one_core']:.0%} of a core, "
        f"at most {generator['most_open_requests']} requests open",
        style="yellow" if late is not None and late > OWN_LATENESS_WARNING_MS else None,
    )
    if generator.get("limit_here") is not None:
        console.print(
            f"this generator's limit here: {words_of_limit(generator['limit_here'])}", markup=False, soft_wrap=True
        )
    for line in machine_lines(summary):
        console.print(line, markup=False)
    for warning in generator["warnings"]:
        console.print(f"note: {warning}", style="yellow")
    for failure in summary["failures"][:5]:
        console.print(
            f"failed: {failure['kind']} {failure['outcome']}: {failure['why']} {failure['url']}", markup=False
        )
    for verdict in summary["requirements"]:
        console.print(verdict["text"], style="green" if verdict["met"] else "bold red", markup=False)
    for why in summary["not_valid_because"]:
        console.print(f"NOT VALID, whatever was met: {why}", style="bold red", markup=False)


def _row(table: Table, name: str, count: object, failed: object, times: Json) -> None:
    cells = [_cell(times[f"{key}_ms"]) for key in ("p50", "p90", "p95", "p99", "p99.9", "max")]
    table.add_row(name, str(count), str(failed), *cells, style="red" if failed else None)


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
