"""``wikibench ab``: two systems measured in turn, so that what slows the machine slows both."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from gauge.confidence import CONFIDENCE, CONFIRMED
from gauge.rate_search import SearchPlan, Try, bracket_of
from gauge.rounds import zigzag_rounds
from wikibench.comparison import Comparison, Limit, Run, compare, run_of
from wikibench.errors import PlanError
from wikibench.experiment import Experiment
from wikibench.limits import HOPELESS_LATENESS_S
from wikibench.options import Duration, ProcessesOfRole, Requirements, pair_load_options
from wikibench.pacing import Pace
from wikibench.requirements import Requirement
from wikibench.statuses import CONTEXT, INTERRUPTED, NOT_VALID, report_errors
from wikibench.summary import Json
from wikibench.whole_files import write_whole

from .compare import SEED, limit_option, margin_option, print_comparison, status_of, write_json

NAMES: Final = ("a", "b")
PAIRS_OF_ROUND: Final = 2  # A B, then B A
LIGHT: Final = 0.2  # of the largest rate: there the p50 varies least
INVALID_TRIES: Final = 3  # of one place in a round
WARM_UP_S: Final = 5.0
BRACKET_S: Final = 5.0  # of a try for the largest rate
MOST_ROUNDS: Final = 100
COMPARISON: Final = "comparison.json"


class Interrupted(Exception):
    """Ctrl-C has ended a try."""


class GeneratorTooLate(Exception):
    """The generator was the limit of a try, INVALID_TRIES times."""


@dataclass(slots=True)
class Alternation:
    """Two systems under way; ``runs`` has the reports of each."""

    systems: Sequence[Experiment]
    out: Path | None
    even: bool
    margin: float
    runs: tuple[list[Run], list[Run]] = field(default_factory=lambda: ([], []))
    confidence: float = CONFIDENCE
    limits: Sequence[Limit] = ()

    def measure(self, place: int, rate: float, seconds: float, title: str, seed: str) -> Json:
        """Make one try; the same ``seed`` gives either system the same requests at the same moments."""
        system = self.systems[place]
        rng = random.Random(seed)
        skip, starts = rng.randrange(system.shape.requests), rng.randrange(1 << 32)
        poisson = None if self.even else starts
        pace = Pace(rate, even=self.even, duration_s=seconds, loop=True, skip=skip, poisson_seed=poisson)
        result = system.go(pace, title)
        if result.ending == "interrupted":
            raise Interrupted
        return system.summary(result, (), pace)

    def make_rounds(self, rounds: int, rate: float, seconds: float) -> None:
        """Make the rounds, and as many again if they show a difference or miss a limit.

        So equal systems are seldom called different, and only a difference costs twice the time.  Raises Interrupted
        and GeneratorTooLate.
        """
        for place in range(len(NAMES)):
            self.measure(place, rate, min(seconds, WARM_UP_S), f"{NAMES[place].upper()} warms up", "warm-up")
        self._make_rounds(0, rounds, rate, seconds)
        if self.comparison().needs_confirming(self.limits):
            click.echo(f"a difference shows: {rounds} rounds more say whether it stays", err=True)
            self.confidence = CONFIRMED
            self._make_rounds(rounds, 2 * rounds, rate, seconds)

    def comparison(self) -> Comparison:
        """Return what the whole pairs say, of which there is at least one."""
        pairs = min(map(len, self.runs))
        a, b = (runs[:pairs] for runs in self.runs)
        return compare(a, b, random.Random(SEED), self.margin, self.confidence)

    def _make_rounds(self, first: int, rounds: int, rate: float, seconds: float) -> None:
        for pair, place in zigzag_rounds(rounds * PAIRS_OF_ROUND, len(NAMES)):
            if pair < first * PAIRS_OF_ROUND:
                continue
            title = f"round {pair // PAIRS_OF_ROUND + 1} of {rounds}, {NAMES[place].upper()}"
            for _ in range(INVALID_TRIES):
                summary = self.measure(place, rate, seconds, title, f"{SEED}\n{pair}")
                click.echo(f"{title}: {_said(summary)}", err=True)
                if summary["valid"]:
                    break
            else:
                raise GeneratorTooLate
            self._keep(place, pair, summary)

    def _keep(self, place: int, pair: int, summary: Json) -> None:
        name = f"{NAMES[place]}-{pair + 1:03d}.json"
        self.runs[place].append(run_of(summary, name))
        if self.out is not None:
            text = json.dumps(summary, indent=1, ensure_ascii=False)
            write_whole(self.out / name, text + "\n")

    def light_rate(self, required: Sequence[Requirement]) -> float:
        """Return LIGHT of the largest rate that A keeps in short tries.

        Raises PlanError if it keeps none, Interrupted and GeneratorTooLate.
        """
        tries: list[Try] = []
        plan = SearchPlan()
        system = self.systems[0]
        invalid = 0
        while isinstance(rate := bracket_of(tries, plan), float):
            place = random.Random(f"{SEED}\n{len(tries)}")  # the trace's beginning is no better than any other place
            skip = place.randrange(system.shape.requests)
            pace = Pace(rate, even=True, duration_s=BRACKET_S, loop=True, skip=skip)
            result = system.go(pace, f"largest rate of A: {rate:.0f}/s")
            if result.ending == "interrupted":
                raise Interrupted
            summary = system.summary(result, tuple(required), pace)
            if not summary["valid"]:  # it says nothing of the wiki
                click.echo(f"largest rate of A: {rate:.0f}/s {_said(summary)}", err=True)
                invalid += 1
                if invalid == INVALID_TRIES:
                    raise GeneratorTooLate
                continue
            invalid = 0
            is_kept = result.ending == "complete" and all(row["met"] for row in summary["requirements"])
            tries.append(Try(rate, is_kept, is_short=True))
            click.echo(f"largest rate of A: {rate:.0f}/s {'kept' if is_kept else 'missed'}", err=True)
        largest = max((one.rate for one in tries if one.is_kept), default=0.0)
        if not largest:
            raise PlanError("A keeps --require at no rate: give --rate, or a --require that it keeps")
        return largest * LIGHT


def _said(summary: Json) -> str:
    if not summary["valid"]:
        return f"not valid: {summary['not_valid_because'][0]}"
    times, roles = summary["response_time"], summary.get("roles", ())
    cpu = "".join(f", {row['role']} {row['cpu_us_a_request']:.0f} us a request" for row in roles)
    return f"p50 {times['p50_ms']:.3g} ms, p95 {times['p95_ms']:.3g} ms{cpu}, {summary['requests']['failed']} failed"


@click.command("ab", context_settings=CONTEXT)
@pair_load_options
@click.option("--a", "a", required=True, metavar="URL", help="The wiki that is compared with.")
@click.option("--b", "b", required=True, metavar="URL", help="The wiki that is judged.")
@click.option(
    "--watch-a",
    type=ProcessesOfRole(),
    multiple=True,
    metavar="ROLE=PID,...",
    help="Processes of A whose CPU counts, by role.",
)
@click.option("--watch-b", type=ProcessesOfRole(), multiple=True, metavar="ROLE=PID,...", help="The same of B.")
@click.option("--rounds", type=click.IntRange(2, MOST_ROUNDS), default=5, show_default=True, help="Each A B B A.")
@click.option("--duration", type=Duration(), default=30.0, show_default=True, help="Seconds of each try.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Requests per second of all tries.")
@click.option(
    "--require",
    "required",
    type=Requirements(),
    default="p95<200ms,errors<1%",
    show_default=True,
    help="Without --rate: the tries are at a fifth of the largest rate at which A keeps this.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write all reports and the comparison here."
)
@limit_option
@margin_option
def ab(
    trace: tuple[str, ...],
    required: tuple[Requirement, ...],
    out: Path | None,
    limits: tuple[Limit, ...],
    margin: float,
    rounds: int,
    **given: Any,
) -> None:
    """Measure two wikis in turn, A B B A, and say whether B is better, worse or the same.

    \b
    Two versions on two ports, ten minutes; then with the CPU of each, and as a step of a build:
      wikibench ab day.trace --a http://127.0.0.1:8080 --b http://127.0.0.1:8081
      wikibench ab day.trace --a http://127.0.0.1:8080 --b http://127.0.0.1:8081 --rate 100 --out ab \\
                   --watch-a wiki=1201 --watch-a store=1188 --watch-b wiki=1310 --watch-b store=1301 \\
                   --fail-if 'cpu>+5%,p50>+5%'

    A round is a try of A, two of B and one of A; each two neighbours are a pair with the same requests at the same
    moments. A machine that is slow for minutes is slow for both. Five rounds find a B that is 5 % slower, in
    nine of ten cases, on a machine whose speed varies by 3 %. If they show a difference, or miss a limit of --fail-if,
    as many again follow, and it counts if the interval of all, now of 99 %, shows it too: of 1,000 wikis that are
    equal each figure calls some 5 better or worse. CPU a request and the p50 at a light load vary least, and decide:
    without --rate all tries are at a fifth of the largest rate that A keeps.

    The exit status is that of `wikibench compare`: 1 if B is worse, or with --fail-if, if a limit is missed; 3 if a
    limit cannot be told or the generator was the limit; 130 after Ctrl-C, with what was measured until then; else 0.
    """
    with report_errors():
        if "-" in trace:
            raise PlanError("standard input can be read once, and two wikis are loaded: give the trace as a file")
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        systems = [
            Experiment.prepared(
                trace, given[name], {**given, "watch": given[f"watch_{name}"]}, None, hopeless_s=HOPELESS_LATENESS_S
            )
            for name in NAMES
        ]
        tries = Alternation(systems, out, given["even"], margin, limits=limits)
        ending = _measure(tries, rounds, given["rate"], given["duration"], required)
    status = _report(tries, out)
    sys.exit(status if ending is None else ending)


def _measure(
    tries: Alternation, rounds: int, rate: float | None, seconds: float, required: Sequence[Requirement]
) -> int | None:
    """Make all tries; return the exit status of an early end, or else None."""
    try:
        rate = tries.light_rate(required) if rate is None else rate
        click.echo(f"{rounds} rounds of A B B A, {seconds:g} s a try, {rate:.1f} requests per second", err=True)
        tries.make_rounds(rounds, rate, seconds)
    except (Interrupted, KeyboardInterrupt):
        return INTERRUPTED
    except GeneratorTooLate:
        click.echo("not valid: the generator, not the wikis, was the limit: a lower --rate, or --lateness", err=True)
        return NOT_VALID
    return None


def _report(tries: Alternation, out: Path | None) -> int:
    """Print and write what the whole pairs say; return the exit status."""
    if not min(map(len, tries.runs)):
        click.echo("no pair of tries was measured", err=True)
        return NOT_VALID
    found = tries.comparison()
    if out is not None:
        with report_errors():
            write_json(out / COMPARISON, found, tries.limits)
    print_comparison(Console(), found, tries.limits)
    if out is not None:
        click.echo(f"reports: {out / COMPARISON}")
    return status_of(found, tries.limits)
