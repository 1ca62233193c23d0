"""The ``wikibench`` command: synth, replay, search, compare, ab, limits; the place that puts everything together.

Exit status: 0 done and every requirement met, 1 a requirement missed, 2 wrong usage or
nothing to replay against, 3 the run is not valid (whatever was met), 4 a fault of wikibench
itself, 130 ended by Ctrl-C (the report is written all the same); see ``statuses``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from . import __version__
from .commands.ab import ab
from .commands.clients import clients
from .commands.compare import compare_command
from .commands.experiment import experiment
from .commands.limits import limits
from .commands.report import report_command
from .commands.search import search
from .commands.synth import synth
from .commands.trace import trace
from .commands.watching import dashboard_option, watched
from .commands.worker import worker
from .errors import PlanError
from .experiment import Experiment
from .findings.csv_files import write_tables
from .live import print_summary
from .options import Duration, Profile, Requirements, load_options
from .pacing import Pace, planned_seconds
from .report import require_writable, write_report
from .request_log import require_free
from .requirements import Requirement
from .statuses import CONTEXT, INTERRUPTED, MET, MISSED, NOT_VALID, Statuses, report_errors
from .summary import Json
from .whole_files import write_whole


@click.group(cls=Statuses, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="wikibench")
def main() -> None:
    """Replay a Wikipedia-style trace against any wiki, open loop, and say honestly how long visitors waited.

    \b
    The whole way, for a wiki on this machine:
      wikibench synth --target http://127.0.0.1:8080 --out day.trace --rate 100 --duration 2m --edits 5%
      wikibench replay day.trace --target http://127.0.0.1:8080 --require 'p95<200ms,errors<0.1%' --allow-edits
      wikibench search day.trace --target http://127.0.0.1:8080 --require 'p95<200ms' --allow-edits
      wikibench ab day.trace --a http://127.0.0.1:8080 --b http://127.0.0.1:8081      is the other one slower?
      wikibench limits                what this machine's generator can offer at all

    Every latency is counted from the moment the trace meant the request to start, so a wiki that stalls is
    charged for everybody who came meanwhile.
    """


@main.command(context_settings=CONTEXT)
@load_options
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Stretch the trace to this mean rate per second.")
@click.option("--speed", type=click.FloatRange(0, min_open=True), help="Replay so many times as fast as recorded.")
@click.option("--duration", type=Duration(), help="Send for so long, such as 2m.")
@click.option("--profile", type=Profile(), help="A rate that changes, in place of both: '100/s 1m, 100..400/s 2m'.")
@click.option(
    "--arrivals",
    type=click.Choice(["trace", "poisson", "even"]),
    help="Starts with a rate: the trace's own, stretched, random (usual with --profile), or with equal gaps.",
)
@click.option("--loop", is_flag=True, help="Begin the trace again when it ends before --duration.")
@click.option("--from", "window_begin", help="Begin here: 08:00 of the first day (UTC), +2h, or 2024-01-31T08:00.")
@click.option("--to", "window_end", help="End before this moment, in the same forms.")
@click.option("--max-gap", type=Duration(), help="Cut longer silences of the trace to this.")
@dashboard_option
@click.option("--csv", type=click.Path(file_okay=False, path_type=Path), help="Write intervals.csv and kinds.csv here.")
@click.option(
    "--requests",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a line for each request here, each worker into a requests-N.csv.gz of its own.",
)
@click.option("--require", "required", type=Requirements(), default="", help="Sets the exit status; see above.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Write report.html and .json here.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write the JSON alone here.")
def replay(
    trace: tuple[str, ...], target: str, required: tuple[Requirement, ...], report: Path | None, **given: Any
) -> None:
    """Replay a trace against a wiki and report how long visitors waited.

    TRACE is a folder of wikibench trace read, a file, several files, or - for standard input.

    \b
    As recorded, then twice as fast, then at 500 requests per second for two minutes:
      wikibench replay day.trace --target http://127.0.0.1:8080
      wikibench replay day.trace --target http://127.0.0.1:8080 --speed 2
      wikibench replay day.trace --target http://127.0.0.1:8080 --rate 500 --duration 2m --loop --report out

    \b
    At a rate that changes; requests come in the trace's order, again from its beginning where it ends:
      wikibench replay day.trace --target http://127.0.0.1:8080 --profile '100/s 1m, 100..400/s 2m, 100/s 1m'

    \b
    Requirements are joined by commas; all must be met, or the exit status is 1:
      p95<200ms  edit-save.p99<1s  page.max<2s  mean<50ms     response times, of all or of one kind
      errors<0.1%  errors<=3  conflicts<1%  rate>=495         shares, counts, answers per second
      lateness<5ms                                            the generator's own (p99): is it to be believed?

    A run whose generator could not send in time is not valid: exit status 3, whatever was met.
    Edits do not overwrite a text that no replay wrote, unless --allow-edits says so.
    A recorded Wikipedia trace needs --host en.wikipedia.org --rewrite /wiki/=/ --expect-404.

    \b
    A MediaWiki, its edits by users who are signed in (a line of the file is name,password):
      wikibench replay day.trace --target http://127.0.0.1:8080 --map mediawiki --users users.csv
    Ctrl-C ends the replay; the report of what was done is still written.

    \b
    Watched in a browser, and by Prometheus at /metrics (the address with its token is printed):
      wikibench replay day.trace --target http://127.0.0.1:8080 --dashboard
      wikibench replay day.trace --target http://127.0.0.1:8080 --dashboard 127.0.0.1:9000
    """
    with report_errors():
        pace = _pace_of(given)
        if report is not None:
            require_writable(report)
        if given["csv"] is not None:
            given["csv"].mkdir(parents=True, exist_ok=True)
        if given["requests"] is not None:
            require_free(given["requests"])
        run = Experiment.prepared(trace, target, given, pace.max_gap_us)
        result = watched(run, pace, required, given["dashboard"])
    summary = run.summary(result, required, pace)
    print_summary(Console(), summary)
    _print_trace_remarks(run, pace)
    _write_files(summary, given["file"], report, given["csv"])
    if result.ending == "interrupted":
        sys.exit(INTERRUPTED)
    if not summary["valid"]:
        sys.exit(NOT_VALID)
    sys.exit(MET if all(row["met"] for row in summary["requirements"]) else MISSED)


def _pace_of(given: dict[str, Any]) -> Pace:
    """Return the pace that the options ask for.  Raises PlanError."""
    profile, arrivals = given["profile"], given["arrivals"]
    if given["even"] and arrivals not in (None, "even"):
        raise PlanError(f"--even and --arrivals {arrivals}: give one of them")
    if arrivals is None:
        arrivals = "even" if given["even"] else "trace" if profile is None else "poisson"
    if profile is not None and arrivals == "trace":
        raise PlanError("--profile has its own moments: --arrivals poisson or even")
    is_random = arrivals == "poisson"
    if is_random and profile is None and (given["rate"] is None or given["duration"] is None):
        raise PlanError("--arrivals poisson needs --rate and --duration, or a --profile")
    return Pace(
        given["rate"],
        given["speed"],
        arrivals == "even",
        given["duration"],
        None if given["max_gap"] is None else round(given["max_gap"] * 1e6),
        given["loop"] or is_random,
        poisson_seed=given["seed"] if is_random else None,
        profile=profile,
    )


def _write_files(summary: Json, file: Path | None, report: Path | None, tables: Path | None) -> None:
    with report_errors():
        if file is not None:
            write_whole(file, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
        if report is not None:
            click.echo(f"report: {write_report(report, summary)}")
        if tables is not None:
            click.echo(f"tables: {', '.join(map(str, write_tables(tables, summary)))}")


def _print_trace_remarks(run: Experiment, pace: Pace) -> None:
    if run.trace.bad_lines:
        click.echo(f"{run.trace.bad_lines} unreadable lines left out, the first: {run.trace.first_bad[0]}", err=True)
    if run.trace.other_hosts:
        click.echo(f"{run.trace.other_hosts} requests of other hosts left out", err=True)
    if run.trace.late_lines:
        late = "requests were further out of order than --sort-window repairs, and started late"
        click.echo(f"{run.trace.late_lines:,} {late}", err=True)
    lasted_s = planned_seconds(pace, run.shape)
    if pace.duration_s is not None and lasted_s < pace.duration_s * 0.99:
        click.echo(f"the trace ended after {lasted_s:.1f} s of {pace.duration_s:g}; --loop begins it again", err=True)


main.add_command(ab)
main.add_command(compare_command)
main.add_command(report_command)
main.add_command(search)
main.add_command(synth)
main.add_command(clients)
main.add_command(experiment)
main.add_command(limits)
main.add_command(trace)
main.add_command(worker)

if __name__ == "__main__":
    main()
