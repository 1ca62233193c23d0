"""``wikibench search``: the largest rate that keeps a requirement, with the interval that holds it.

``gauge.rate_search`` says which rate to try next, and when it is known well enough.  A try that is not valid is made
once more, because it says nothing of the wiki; after INVALID_TRIES the generator was the limit, and the search ends.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click

from gauge.rate_search import SearchPlan, Step, Try, answer, next_step
from wikibench.commands.search_answer import (
    BEYOND_REQUIREMENTS,
    answer_of,
    lines_of,
    lines_so_far,
    live_of,
    print_answer,
    print_tries,
    verdict_of,
    write_search_page,
)
from wikibench.commands.watching import dashboard_at, dashboard_option
from wikibench.errors import PlanError
from wikibench.experiment import Experiment
from wikibench.findings.dashboard import Dashboard
from wikibench.limits import HOPELESS_LATENESS_S
from wikibench.live import LiveLine
from wikibench.options import Duration, Requirements, Share, load_options
from wikibench.pacing import Pace
from wikibench.report import require_writable, write_report
from wikibench.requirements import Requirement
from wikibench.statuses import CONTEXT, INTERRUPTED, MET, MISSED, NOT_VALID, report_errors
from wikibench.steady_part import judge_try
from wikibench.summary import Json, Replay
from wikibench.whole_files import write_whole

INVALID_TRIES: Final = 3  # of one step
SHORT_S: Final = 8.0
LONGER: Final = 2.0  # a try that was not steady is made once more, so many times as long
CURVE: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 1.1)  # of the answer
GENERATORS: Final = "not valid: the generator, not the wiki, was the limit of this search"


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
    curve: list[Json] = field(default_factory=list)  # reports of the tries around the answer
    is_interrupted: bool = False
    is_generators: bool = False  # the generator was the limit
    dashboard: Dashboard | None = None
    sent: int = 0  # visits of all tries, of those that count for nothing, too

    def find(self, dashboard: Dashboard | None, *, with_curve: bool) -> None:
        """Make all tries, on the page of ``dashboard`` if there is one; Ctrl-C ends them."""
        self.dashboard = dashboard
        try:
            self.go()
            if with_curve:
                self.measure_curve()
        except KeyboardInterrupt:  # between two tries
            self.is_interrupted = True
        if dashboard is not None:
            dashboard.note_ending(self.ending)
            dashboard.end_try(self._live(lines_of(answer(self.tries, self.plan))))

    @property
    def ending(self) -> str:
        if self.is_interrupted:
            return "interrupted"
        return "the generator was the limit" if self.is_generators else "complete"

    def judged(self) -> list[tuple[Try, str, Json]]:
        """Return the tries with their verdicts and reports."""
        return [(one, verdict_of(one, summary), summary) for one, _, summary in self.made]

    def _live(self, words: Sequence[str], title: str = "") -> Json:
        return live_of(title, words, answer(self.tries, self.plan), self.judged())

    def _replayed(self, pace: Pace, title: str) -> Replay:
        """Replay once, before the eyes of those who follow the dashboard."""
        if self.dashboard is None:
            result = self.run.go(pace, title)
        elif self.dashboard.is_stopping:
            raise KeyboardInterrupt
        else:
            self.dashboard.begin_try(self._live(lines_so_far(answer(self.tries, self.plan)), title))
            result = self.run.go(pace, title, LiveLine(title, self.dashboard.tick))
        self.sent += result.sent
        return result

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

    def measure_curve(self) -> None:
        """Make a try at each of CURVE of the answer, if there is one."""
        rate = answer(self.tries, self.plan).rate
        if self.is_interrupted or self.is_generators or not rate:
            return
        for share in CURVE:
            pace = self._pace(Step(rate * share, self.plan.long_s, is_short=False))
            result = self._replayed(pace, f"curve: {rate * share:.0f}/s")
            if result.ending == "interrupted":
                self.is_interrupted = True
                return
            summary = self.run.summary(result, self.required, pace)
            p95 = summary["response_time"]["p95_ms"]
            click.echo(f"curve: {rate * share:.0f}/s, p95 {'–' if p95 is None else f'{p95:.0f} ms'}", err=True)
            self.curve.append({**summary, "share_of_answer": share})

    def _made(self, step: Step, longer: float = 1.0) -> tuple[Try, Replay, Json] | None:
        """Make the try, and if it was not steady once more, twice as long; None if the user ended it."""
        number = len(self.made) + 1
        pace = self._pace(replace(step, seconds=step.seconds * longer))
        result = self._replayed(pace, f"try {number}: {step.rate:.0f}/s")
        if result.ending == "interrupted":
            return None
        judged = judge_try(result, self.required)
        summary = self.run.summary(result, self.required, pace, judged.verdicts)
        summary |= {"steady_from_s": judged.steady_from_s, "missed_because": judged.why_missed}
        one = Try(step.rate, judged.is_kept and summary["valid"], step.is_short)
        said = verdict_of(one, summary)
        if judged.why_missed in BEYOND_REQUIREMENTS:
            said += f": {judged.why_missed}"
        click.echo(f"try {number}: {step.rate:.0f}/s for {pace.duration_s:g} s {said}", err=True)
        if judged.why_missed == "it was not steady" and summary["valid"] and longer == 1.0:
            return self._made(step, LONGER)
        return one, result, summary

    def _pace(self, step: Step) -> Pace:
        if self.from_start:
            return Pace(rate=step.rate, even=self.even, duration_s=step.seconds, loop=True)
        rng = random.Random(f"{self.run.load.seed}\n{len(self.made) + len(self.curve)}")
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
@dashboard_option
@click.option("--curve", is_flag=True, help="Then measure response times at 10, 25, 50, 75, 90 and 110 % of the rate.")
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a report of the best try here, and search.html, with a plot of all tries.",
)
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
    20 s are usual, seven minutes; --budget ends earlier, with the interval as wide as it then is. --curve makes
    six more of them, beyond the budget.

    \b
    Watched in a browser: the try under way, the tries so far, and the answer as far as it is known:
      wikibench search day.trace --target http://127.0.0.1:8080 --require 'p95<200ms' --dashboard

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
        if given["dashboard"] is None:
            searching.find(None, with_curve=given["curve"])
        else:
            with dashboard_at(given["dashboard"], "search", run, required, duration) as dashboard:
                searching.find(dashboard, with_curve=given["curve"])
    _say_answer(searching, given["file"], report)
    if searching.is_interrupted:
        sys.exit(INTERRUPTED)
    if searching.is_generators:
        click.echo(GENERATORS, err=True)
        sys.exit(NOT_VALID)
    sys.exit(MISSED if searching.best() is None else MET)


def _say_answer(searching: Searching, file: Path | None, report: Path | None) -> None:
    """Print the answer, and write what the user wants of it."""
    best, found = searching.best(), answer(searching.tries, searching.plan)
    tries = searching.judged()
    print_tries(tries, searching.curve)
    print_answer(found, None if best is None else best[2])
    with report_errors():
        if file is not None:
            ends: Json = {"valid": not searching.is_generators, "interrupted": searching.is_interrupted}
            ends["sent"] = searching.sent
            write_whole(file, json.dumps(answer_of(found, tries, searching.curve) | ends, indent=1) + "\n")
        if report is not None:
            if best is not None:
                click.echo(f"report: {write_report(report, best[2])}")
            words = [GENERATORS] if searching.is_generators else []
            click.echo(f"search: {write_search_page(report, words + lines_of(found), found, tries, searching.curve)}")
