"""``wikibench search``: the largest rate that keeps a requirement, with the interval that holds it.

``gauge.rate_search`` says which rate to try next, and when it is known well enough.  A try that is not valid is made
once more, because it says nothing of the wiki; after INVALID_TRIES the generator was the limit, and the search ends.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from gauge.rate_search import Found, SearchPlan, Step, Try, answer, next_step
from wikibench.errors import PlanError
from wikibench.experiment import Experiment
from wikibench.limits import HOPELESS_LATENESS_S
from wikibench.options import Duration, Requirements, Share, load_options
from wikibench.pacing import Pace
from wikibench.report import require_writable, write_report
from wikibench.requirements import Requirement
from wikibench.statuses import CONTEXT, INTERRUPTED, MET, MISSED, NOT_VALID, report_errors
from wikibench.steady_part import judge_try
from wikibench.summary import Json, Replay

INVALID_TRIES: Final = 3  # of one step
SHORT_S: Final = 8.0
LONGER: Final = 2.0  # a try that was not steady is made once more, so many times as long
BEYOND_REQUIREMENTS: Final = ("its backlog grew", "it was not steady")
FORMAT: Final = "wikibench-search-1"


@dataclass(slots=True)
class Searching:
    """A search under way: its tries, valid or not, with their reports."""

    run: Experiment
    plan: SearchPlan
    required: tuple[Requirement, ...]
    even: bool
    from_start: bool  # of the trace, with its own times
    tries: list[Try] = field(default_factory=list)  # the valid ones
    made: list[tuple[Try, Replay, Json]] = field(default_factory=list)
    is_interrupted: bool = False
    is_generators: bool = False  # the generator was the limit

    def go(self) -> None:
        invalid = 0
        while (step := next_step(self.tries, self.plan)) is not None:
            made = self._made(step)
            if made is None:
                self.is_interrupted = True
                return
            self.made.append(made)
            one, _, summary = made
            if summary["valid"]:
                self.tries.append(one)
                invalid = 0
                continue
            invalid += 1
            if invalid == INVALID_TRIES:
                self.is_generators = True
                return

    def _made(self, step: Step, longer: float = 1.0) -> tuple[Try, Replay, Json] | None:
        """Make the try, and if it was not steady once more, twice as long; None if the user ended it."""
        number = len(self.made) + 1
        pace = self._pace(replace(step, seconds=step.seconds * longer))
        result = self.run.go(pace, f"try {number}: {step.rate:.0f}/s")
        if result.ending == "interrupted":
            return None
        judged = judge_try(result, self.required)
        summary = self.run.summary(result, self.required, pace, judged.verdicts)
        summary |= {"steady_from_s": judged.steady_from_s, "missed_because": judged.why_missed}
        one = Try(step.rate, judged.is_kept and summary["valid"], step.is_short)
        said = _verdict(one, summary)
        if judged.why_missed in BEYOND_REQUIREMENTS:
            said += f": {judged.why_missed}"
        click.echo(f"try {number}: {step.rate:.0f}/s for {pace.duration_s:g} s {said}", err=True)
        if judged.why_missed == "it was not steady" and summary["valid"] and longer == 1.0:
            return self._made(step, LONGER)
        return one, result, summary

    def _pace(self, step: Step) -> Pace:
        if self.from_start:
            return Pace(rate=step.rate, even=self.even, duration_s=step.seconds, loop=True)
        rng = random.Random(f"{self.run.load.seed}\n{len(self.made)}")
        skip, seed = rng.randrange(self.run.shape.requests), rng.randrange(1 << 32)
        poisson = None if self.even else seed
        return Pace(step.rate, even=self.even, duration_s=step.seconds, loop=True, skip=skip, poisson_seed=poisson)

    def best(self) -> tuple[Try, Replay, Json] | None:
        """Return the kept try that lies nearest to the answer."""
        found = answer(self.tries, self.plan)
        kept = [row for row in self.made if row[0].is_kept]
        return min(kept, key=lambda row: abs(row[0].rate - found.rate), default=None)


@click.command(context_settings=CONTEXT)
@load_options
@click.option("--require", "required", type=Requirements(), required=True, help="What a rate has to keep.")
@click.option("--duration", type=Duration(), default=20.0, show_default=True, help="Seconds of each try.")
@click.option("--from", "first", type=click.FloatRange(0, min_open=True), default=50.0, show_default=True)
@click.option("--to", "highest", type=click.FloatRange(0, min_open=True), default=20_000.0, show_default=True)
@click.option("--precision", type=Share(), default=0.1, show_default=True, help="Stop when the interval is so narrow.")
@click.option("--budget", type=Duration(), help="Stop before the tries together last longer, such as 10m.")
@click.option(
    "--arrivals",
    type=click.Choice(["poisson", "trace"]),
    default="poisson",
    show_default=True,
    help="A try's requests: from a random place of the trace at random moments, or from its start with its own gaps.",
)
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Write a report of the best try.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write answer and tries here.")
def search(
    trace: tuple[str, ...],
    target: str,
    required: tuple[Requirement, ...],
    report: Path | None,
    duration: float,
    **given: Any,
) -> None:
    """Find the largest rate at which a wiki still keeps a requirement, and say how well it is known.

    \b
    The rate is doubled in short tries from --from until one misses twice; then tries of --duration close in on
    the rate that half of them keep, until the interval that holds it (90 %) is within --precision of it:
      wikibench search day.trace --target http://127.0.0.1:8080 --require 'p95<200ms,errors<0.1%'
      wikibench search day.trace --target http://127.0.0.1:8080 --require 'p95<200ms' --from 200 --budget 10m

    A single try proves little: a machine's speed differs by some per cent from minute to minute. Some 20 tries of
    20 s are usual, seven minutes; --budget ends earlier, with the interval as wide as it then is.

    The exit status is 0 if some rate kept the requirement, 1 if none did, 3 if the generator was the limit.
    """
    policy = SearchPlan(
        first=given["first"],
        highest=given["highest"],
        precision=given["precision"],
        short_s=min(SHORT_S, duration),
        long_s=duration,
        budget_s=given["budget"],
    )
    with report_errors():
        if not required:
            raise PlanError("--require is empty: what is a rate to keep?")
        if given["budget"] is not None and given["budget"] < policy.short_s:
            raise PlanError(f"--budget is shorter than one try of {policy.short_s:g} s")
        if report is not None:
            require_writable(report)
        run = Experiment.prepared(trace, target, given, None, hopeless_s=HOPELESS_LATENESS_S)
        searching = Searching(run, policy, required, given["even"], given["arrivals"] == "trace")
        searching.go()
    best = searching.best()
    found = answer(searching.tries, policy)
    _print_tries([(one, summary) for one, _, summary in searching.made], found, best)
    if given["file"] is not None:
        with report_errors():
            given["file"].write_text(json.dumps(answer_of(found, searching), indent=1) + "\n", encoding="utf-8")
    if report is not None and best is not None:
        with report_errors():
            click.echo(f"report: {write_report(report, best[2])}")
    if searching.is_interrupted:
        sys.exit(INTERRUPTED)
    if searching.is_generators:
        click.echo("not valid: the generator, not the wiki, was the limit of this search", err=True)
        sys.exit(NOT_VALID)
    sys.exit(MISSED if best is None else MET)


def answer_of(found: Found, searching: Searching) -> Json:
    """(pure) Return answer and tries for programs; rates per second."""
    tries = [
        {
            "rate_per_s": one.rate,
            "kept": one.is_kept,
            "valid": summary["valid"],
            "got_per_s": summary["rate"]["got_per_s"],
            "failed": summary["requests"]["failed"],
            "p50_ms": summary["response_time"]["p50_ms"],
            "p95_ms": summary["response_time"]["p95_ms"],
            "own_lateness_p99_ms": summary["generator"]["own_lateness"]["p99_ms"],
        }
        for one, _, summary in searching.made
    ]
    return {
        "format": FORMAT,
        "rate_per_s": round(found.rate, 2),
        "low_per_s": round(found.low, 2),
        "high_per_s": round(found.high, 2),
        "nine_of_ten_per_s": round(found.safe_rate, 2),
        "why": found.why,
        "valid": not searching.is_generators,
        "interrupted": searching.is_interrupted,
        "tries": tries,
    }


def lines_of(found: Found) -> list[str]:
    """(pure) Return the answer in words."""
    if found.why == "no rate kept" or not found.rate:
        return ["no rate kept the requirement"]
    if found.why == "every rate kept":
        return [f"every rate kept the requirement, up to {found.rate:.1f} per second: raise --to to find the limit"]
    if not found.width:
        return [f"kept at {found.rate:.1f} per second; the search ended before a rate was missed"]
    lines = [
        f"largest rate that half of the tries keep: {found.rate:.1f} per second, "
        f"with 90 % between {found.low:.1f} and {found.high:.1f}",
        f"nine of ten tries keep {found.safe_rate:.1f} per second",
    ]
    if found.why != "precise":
        what = {"tries": "after the most tries that a search makes", "budget": "before it was known as wanted"}
        lines.append(f"the search ended {what.get(found.why, found.why)}: the interval is {found.width:.0%} wide")
    return lines


def _print_tries(tries: list[tuple[Try, Json]], found: Found, best: tuple[Try, Replay, Json] | None) -> None:
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
            style="green" if one.is_kept else "red",
        )
    console = Console()
    console.print(table)
    for _, summary in tries:
        for row in summary["requirements"]:
            if not row["met"]:
                console.print(f"at {summary['rate']['asked_per_s']:.1f}/s: {row['text']}", markup=False)
        if summary["missed_because"] in BEYOND_REQUIREMENTS:
            console.print(f"at {summary['rate']['asked_per_s']:.1f}/s: {summary['missed_because']}", markup=False)
        for why in summary["not_valid_because"]:
            console.print(f"at {summary['rate']['asked_per_s']:.1f}/s, not valid: {why}", markup=False)
    for line in lines_of(found):
        console.print(line, markup=False, soft_wrap=True)
    if best is not None:
        rate = best[2]["rate"]
        console.print(
            f"answered at {rate['asked_per_s']:.1f}/s: {rate['got_per_s']:.1f} per second, "
            f"page views {rate['page_views_per_s']:.1f}"
        )


def _verdict(one: Try, summary: Json) -> str:
    if one.is_kept:
        return "kept"
    if not summary["valid"]:
        return "not valid"
    return "missed" if summary["ending"] == "complete" else str(summary["ending"])
