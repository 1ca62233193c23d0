"""``wikibench search``: find the largest rate that keeps a requirement; ``next_rate`` says which rate to try next.

The search first multiplies the rate by a factor until a try fails (it divides if the first try fails). Then it halves
the gap between the smallest failed rate and the largest rate below it that kept the requirement, until the gap is below
the precision.

A miss is tried once more, because one stall of the machine at a low rate would cap the search for good.

Invariants:
    I1. The answer kept the requirement in a try; it is never inferred.
    I2. A rate is tried a second time only after a miss, and never a third time; the search ends.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from .errors import PlanError
from .experiment import Experiment
from .limits import HOPELESS_LATENESS_S, SEARCH_TRIES
from .options import Duration, Requirements, Share, load_options
from .pacing import Pace
from .report import require_writable, write_report
from .requirements import Requirement
from .statuses import CONTEXT, INTERRUPTED, MET, MISSED, NOT_VALID, report_errors
from .summary import Json, Replay


@dataclass(frozen=True, slots=True)
class Try:
    rate: float
    met: bool


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """``first``, ``lowest`` and ``highest`` in requests per second; ``precision`` as a share of the answer."""

    first: float = 50.0
    step: float = 2.0
    precision: float = 0.05
    lowest: float = 1.0
    highest: float = 20_000.0


def best_rate(tries: Sequence[Try]) -> float | None:
    """Return the largest rate that kept the requirement with no failure at or below it; None if there is none."""
    ceiling = min(_missed(tries), default=float("inf"))
    return max((one.rate for one in tries if one.met and one.rate < ceiling), default=None)


def _missed(tries: Sequence[Try]) -> set[float]:
    """Return the rates that missed, and that missed again if they were tried twice."""
    return {one.rate for one in tries} - {one.rate for one in tries if one.met}


def next_rate(tries: Sequence[Try], plan: SearchPlan) -> float | None:
    """Return the rate to try next; None when the search is over."""
    if not tries:
        return min(max(plan.first, plan.lowest), plan.highest)
    last = tries[-1]
    if not last.met and sum(one.rate == last.rate for one in tries) == 1:
        return last.rate
    best = best_rate(tries)
    ceiling = min(_missed(tries), default=None)
    if ceiling is None and best is not None:
        return min(best * plan.step, plan.highest) if best < plan.highest else None
    if ceiling is not None and best is None:
        return max(ceiling / plan.step, plan.lowest) if ceiling > plan.lowest else None
    if ceiling is None or best is None or ceiling - best <= plan.precision * ceiling:
        return None
    return (best + ceiling) / 2


@click.command(context_settings=CONTEXT)
@load_options
@click.option("--require", "required", type=Requirements(), required=True, help="What a rate has to keep.")
@click.option("--duration", type=Duration(), default=20.0, show_default=True, help="Seconds of each try.")
@click.option("--from", "first", type=click.FloatRange(0, min_open=True), default=50.0, show_default=True)
@click.option("--to", "highest", type=click.FloatRange(0, min_open=True), default=20_000.0, show_default=True)
@click.option("--precision", type=Share(), default=0.05, show_default=True, help="Stop when known this well.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Write the report of the best try.")
def search(
    trace: str, target: str, required: tuple[Requirement, ...], report: Path | None, duration: float, **given: Any
) -> None:
    """Find the largest rate at which a wiki still keeps a requirement.

    \b
    The rate is doubled from --from until a try misses twice, then the gap is halved:
      wikibench search day.trace --target http://127.0.0.1:8080 --require 'p95<200ms,errors<0.1%'
      wikibench search day.trace --target http://127.0.0.1:8080 --require 'p95<200ms' --from 200 --duration 30s

    Rates are those that were offered: a trace with a shape offers another one than its mean. The exit status is 0
    where some rate kept the requirement, 1 where none did, 3 where the generator was the limit.
    """
    policy = SearchPlan(first=given["first"], precision=given["precision"], highest=given["highest"])
    tries: list[tuple[Try, Replay, Json]] = []
    interrupted = False
    with report_errors():
        if not required:
            raise PlanError("--require is empty: what is a rate to keep?")
        if report is not None:
            require_writable(report)
        run = Experiment.prepared(trace, target, given, None, hopeless_s=HOPELESS_LATENESS_S)
        while len(tries) < SEARCH_TRIES:
            rate = next_rate([one for one, _, _ in tries], policy)
            if rate is None:
                break
            pace = Pace(rate=rate, even=given["even"], duration_s=duration, loop=True)
            result = run.go(pace, f"try {len(tries) + 1}: {rate:.0f}/s")
            if result.ending == "interrupted":
                interrupted = True
                break
            summary = run.summary(result, required, pace)
            kept = result.ending == "complete" and all(row["met"] for row in summary["requirements"])
            tries.append((Try(rate, kept and summary["valid"]), result, summary))
    best = best_rate([one for one, _, _ in tries])
    _print_tries([(one, summary) for one, _, summary in tries], best)
    if report is not None and best is not None:
        _, result, summary = next(row for row in tries if row[0] == Try(best, True))
        with report_errors():
            click.echo(f"report: {write_report(report, summary, result)}")
    if interrupted:
        sys.exit(INTERRUPTED)
    above = [(one.rate, summary["valid"]) for one, _, summary in tries if best is None or one.rate > best]
    if above and not any(valid for rate, valid in above if rate == min(above)[0]):
        click.echo("not valid: the generator, not the wiki, was the limit of this search", err=True)
        sys.exit(NOT_VALID)
    sys.exit(MISSED if best is None else MET)


def _print_tries(tries: list[tuple[Try, Json]], best: float | None) -> None:
    table = Table(title="Tries; times in ms, late is the generator's own p99", title_justify="left")
    for name in ("asked/s", "got/s", "pages/s", "p50", "p95", "p99", "failed", "late", ""):
        table.add_column(name, justify="right", no_wrap=True)
    for one, summary in tries:
        times, rate, generator = summary["response_time"], summary["rate"], summary["generator"]
        table.add_row(
            f"{rate['asked_per_s']:.1f}",
            f"{rate['got_per_s']:.1f}",
            f"{rate['page_views_per_s']:.1f}",
            *("–" if times[key] is None else f"{times[key]:.0f}" for key in ("p50_ms", "p95_ms", "p99_ms")),
            str(summary["requests"]["failed"]),
            f"{generator['own_lateness']['p99_ms'] or 0:.1f}",
            _verdict(one, summary),
            style="green" if one.met else "red",
        )
    console = Console()
    console.print(table)
    for _, summary in tries:
        for row in summary["requirements"]:
            if not row["met"]:
                console.print(f"at {summary['rate']['asked_per_s']:.1f}/s: {row['text']}", markup=False)
        for why in summary["not_valid_because"]:
            console.print(f"at {summary['rate']['asked_per_s']:.1f}/s, not valid: {why}", markup=False)
    if best is None:
        console.print("no rate kept the requirement")
        return
    kept = next(summary["rate"] for one, summary in tries if one == Try(best, True))
    console.print(f"largest rate that kept it: {kept['asked_per_s']:.1f} per second")
    console.print(f"answered there: {kept['got_per_s']:.1f} per second, page views {kept['page_views_per_s']:.1f}")


def _verdict(one: Try, summary: Json) -> str:
    if one.met:
        return "kept"
    if not summary["valid"]:
        return "not valid"
    return "missed" if summary["ending"] == "complete" else str(summary["ending"])
