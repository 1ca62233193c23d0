"""``wikibench limits``: the largest rate that this generator offers on this machine, and what a page view costs it.

Views go to a server that answers at once (``null_server``), on the same machine and over real connections.  The rate
rises by half a doubling until the generator sends too late, or the null server falls behind; such a rate is tried once
more, because one stall of the machine is no limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from gauge.machine import machine
from wikibench.crew.local import replay_shared
from wikibench.generator_limit import keep_limit, limit_of, limits_file
from wikibench.limits import MOST_WORKERS
from wikibench.live import LiveLine, snapshot_of
from wikibench.null_server import PAGE_BYTES, null_server
from wikibench.options import Duration
from wikibench.pacing import Pace, plan, shape_of
from wikibench.report import environment
from wikibench.run import replay
from wikibench.statuses import CONTEXT, INTERRUPTED, MET, MISSED, report_errors
from wikibench.summary import Replay
from wikibench.targets.target import parse_target
from wikibench.trace.lines import Request
from wikibench.visits import Load

PAGES: Final = 1_000
FIRST_RATE: Final = 1_000.0
STEP: Final = 2**0.5
TRIES: Final = 2  # of a rate
HIGHEST_RATE: Final = 128_000.0
LATENESS_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class OwnTry:
    """A rate, and how the generator kept it."""

    rate: float
    got_per_s: float
    late_ms: float  # p99
    cpu_us: float  # of the generator, for each view
    cpu_share: float  # of a core
    why_not: str  # empty if the rate was kept

    @classmethod
    def of(cls, rate: float, result: Replay, lateness_s: float) -> OwnTry:
        views = max(result.recorder.count(), 1)
        late_us = result.own_lateness.percentile(99.0)
        failed = result.recorder.failed()
        why_not = ""
        if result.ending != "complete" or late_us > lateness_s * 1e6:
            why_not = "sent late"
        elif failed or result.slot_wait.count:
            why_not = "the null server fell behind"
        return cls(rate, result.rate_got, late_us / 1000, result.cpu_s / views * 1e6, result.cpu_share, why_not)


def own_tries(measure: Callable[[float], OwnTry]) -> list[OwnTry]:
    """Return the tries, up to the first rate that was missed TRIES times."""
    found: list[OwnTry] = []
    rate, misses = FIRST_RATE, 0
    while rate <= HIGHEST_RATE and misses < TRIES:
        found.append(measure(rate))
        misses = misses + 1 if found[-1].why_not else 0
        if not misses:
            rate *= STEP
    return found


@click.command("limits", context_settings=CONTEXT)
@click.option("--seconds", type=Duration(), default=3.0, show_default=True, help="Of each try.")
@click.option("--bytes", "size_bytes", type=click.IntRange(0), default=PAGE_BYTES, show_default=True, help="Of a page.")
@click.option(
    "--lateness",
    type=Duration(),
    default=LATENESS_S,
    show_default=True,
    help="The generator's own (p99) up to which a rate is kept.",
)
@click.option("--workers", type=click.IntRange(1, MOST_WORKERS), default=1, show_default=True, help="Processes.")
def limits(seconds: float, size_bytes: int, lateness: float, workers: int) -> None:
    """Say what this generator can offer on this machine, and what a page view costs it.

    \b
    A process of its own answers every request at once, so what is seen is the generator, the null server and
    the kernel between them:
      wikibench limits
      wikibench limits --seconds 10s --bytes 50000

    Load a wiki at half of the rate shown, or less, if it runs on this machine too: it needs its share of the
    cores. Reports of this machine say the limit, and how near the run was to it. The exit status is 0, or 1 if not
    even the first rate was kept.
    """
    requests = [Request(number * 1_000, f"/Page_{number}") for number in range(PAGES)]
    shape = shape_of(requests)

    def measure(rate: float) -> OwnTry:
        pace = Pace(rate=rate, even=True, duration_s=seconds, loop=True)
        load = Load(target, planned_s=seconds, hopeless_s=1.0)
        with LiveLine(f"{rate:,.0f}/s") as line:
            result = (
                replay(load, plan(lambda: requests, pace, shape), lambda injector: line.tick(snapshot_of(injector)))
                if workers == 1
                else replay_shared(load, plan(lambda: requests, pace, shape), workers, line)
            )
        if result.ending == "interrupted":
            raise KeyboardInterrupt
        return OwnTry.of(rate, result, lateness)

    with report_errors(), null_server(size_bytes) as url:
        target = parse_target(url)
        try:
            tries = own_tries(measure)
        except KeyboardInterrupt:
            click.echo("ended before the limit was found", err=True)
            sys.exit(INTERRUPTED)
    sys.exit(_print(tries, lateness, workers, size_bytes))


def _print(tries: list[OwnTry], lateness_s: float, workers: int, size_bytes: int) -> int:
    table = Table(title=f"This generator against a null server: {machine()}", title_justify="left")
    for name in ("asked/s", "got/s", "CPU us a view", "of a core", "late p99 ms", ""):
        table.add_column(name, justify="right", no_wrap=True)
    for one in tries:
        cells = (f"{one.rate:,.0f}", f"{one.got_per_s:,.0f}", f"{one.cpu_us:.0f}", f"{one.cpu_share:.0%}")
        style = "red" if one.why_not else "green"
        table.add_row(*cells, f"{one.late_ms:.1f}", one.why_not or "kept", style=style)
    console = Console()
    console.print(table)
    kept = [one for one in tries if not one.why_not]
    if not kept:
        console.print(f"no rate was kept within {lateness_s * 1000:g} ms: other work keeps the machine busy (uptime)")
        return MISSED
    best = kept[-1]
    console.print(
        f"limit of this generator here: {best.rate:,.0f} page views per second, {best.cpu_us:.0f} us of CPU each"
    )
    path = limits_file()
    if path is not None:
        with report_errors():
            found = limit_of(best.rate, best.cpu_us, workers, size_bytes, lateness_s * 1000, environment())
            keep_limit(found, path)
        console.print(f"kept for reports of this machine: {path}", markup=False, soft_wrap=True)
    return MET
