"""``python -m benchmarks flows``: the ETH experiment, which spreads changes by a trigger and by other means."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import click

from benchmarks import flows_queue
from benchmarks.flows_figures import BESIDE, FlowRuns, figures_of, saturation_of
from benchmarks.flows_plan import PROFILES, QUICK
from benchmarks.flows_report import as_json, remarks_of, table_of, table_of_verdicts
from benchmarks.flows_runs import WORKLOADS, Experiment, FlowsPlan, application
from benchmarks.flows_variants import VARIANTS, Site
from columnar.bench.address import EndpointFailed
from columnar.bench.commands import (
    CANNOT_MEASURE,
    Bar,
    console_of_output,
    give_up,
    json_option,
    progress_bar,
    rounds_option,
    write_json,
)
from columnar.runtime import compiled
from gauge.machine import machine, now

QUICK_SECONDS: Final = 0.3
QUICK_ATTEMPTS: Final = 3


def _some_of(known: tuple[str, ...]) -> Any:
    def chosen(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(word.strip() for word in value.split(",")))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise click.BadParameter(f"there is no {unknown[0]}; there are {', '.join(known)}")
        return names

    return chosen


def _shares(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[float, ...]:
    try:
        found = tuple(float(word) for word in value.split(","))
    except ValueError:
        found = ()
    if not found or min(found) <= 0:
        raise click.BadParameter("write shares as 0.5,0.8")
    return found


@click.command()
@click.option(
    "--variant", "variants", default=",".join(VARIANTS), show_default=True, callback=_some_of(VARIANTS),
    help="Some of these.",
)  # fmt: skip
@click.option(
    "--workload", "workloads", default="W1,W2", show_default=True, callback=_some_of(WORKLOADS),
    help="W1 saturating, W2 open loop at shares of the saturation, W3 burst, W4 faults; beside W2 at its first share:"
    " W5 a celebrity, W6 poison, W7 splits and merges.",
)  # fmt: skip
@click.option(
    "--profile", default="ci", show_default=True, type=click.Choice([*PROFILES]), help="How many follow whom."
)
@click.option(
    "--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1),
    help="Of one turn; of the burst in W3, which lasts six times as long.",
)  # fmt: skip
@rounds_option
@click.option("-c", "--connections", default=32, show_default=True, type=click.IntRange(1), help="Of the application.")
@click.option("--shares", default="0.5,0.8", show_default=True, callback=_shares, help="Of the saturation, for W2.")
@click.option("--saturation", type=click.FloatRange(1.0), metavar="N", help="Tweets per second; else W1 measures it.")
@click.option("--kills", default=0, metavar="N", type=click.IntRange(0), help="W4: everything killed at once N times.")
@click.option(
    "--attempts", default=8, show_default=True, type=click.IntRange(1),
    help="W6: after which a tweet that raises is given up, with pauses of 0.1, 0.2, 0.4 ... s between them.",
)  # fmt: skip
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of authors, arrivals and kills.")
@click.option(
    "--folder", default=tempfile.gettempdir(), show_default=True,
    type=click.Path(exists=True, file_okay=False, writable=True), help="Where the stores' data lies meanwhile.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Few users and a fraction of a second for each turn: whether it works.")
@json_option
def flows(profile: str, folder: str, quick: bool, json_path: str | None, **chosen: Any) -> None:
    """Measure a trigger beside the other ways to spread a change to many rows.

    Each tweet goes into its author's own timeline and from there to those of all followers.  In sync the application
    writes one follower after the other, in sync-batched all in one batch, in external a worker behind a queue does it
    (Redis, synced with each command), in integrated a trigger.  Each variant has a store of its own, which the
    command starts and ends.  An oracle looks for each acknowledged tweet in each follower's timeline at the end.

    W5: one author with 100,000 followers more (20,000 in profile ci, 2,000 in quick) tweets every 10 s.  W6: one tweet
    of 1,000 (in short runs more, so that there are 4) makes whoever spreads it raise until it is given up.  W7: the
    timeline, which the trigger follows and writes, is split and merged, a change a second, 2 at least in a run.

    \b
      python -m benchmarks flows
      python -m benchmarks flows --variant sync,integrated --workload W1,W2,W3,W4 --profile heavy --seconds 60
      python -m benchmarks flows --variant integrated --workload W4 --kills 50 --saturation 1000
      python -m benchmarks flows --variant external,integrated --workload W5,W6,W7 --saturation 1000
    """
    plan = FlowsPlan(profile=PROFILES[profile], **chosen)
    if quick:
        plan = replace(plan, profile=QUICK, seconds=QUICK_SECONDS, rounds=1, connections=8, shares=plan.shares[-1:])
        plan = replace(plan, attempts=min(plan.attempts, QUICK_ATTEMPTS))
    if "W5" not in plan.workloads:
        plan = replace(plan, profile=replace(plan.profile, fans=0))
    console = console_of_output()
    console.print(f"{now()}, {machine()}, {compiled.state}; {_load_average()}", highlight=False)
    found: list[FlowRuns] = []
    try:
        with ExitStack() as stack, progress_bar() as bar:
            sites = _started(stack, plan, folder, bar)
            app = stack.enter_context(application())
            experiment = Experiment(plan, sites, app, bar.began)
            saturation = _run(experiment, plan, found)
            bar.began("oracle", 0)
            verdicts = {variant: experiment.verdict(variant) for variant in sites}
    except EndpointFailed as failure:
        give_up(failure)
    session = _session_reads(found, plan.variants)
    for workload in plan.workloads:
        runs, plain = ([one for one in found if one.workload == name] for name in (workload, "W2"))
        console.print(table_of(workload, runs, plain))
    console.print(table_of_verdicts(verdicts, session))
    for remark in remarks_of(found, verdicts):
        console.print(remark, highlight=False)
    figures: dict[str, Any] = {
        "taken_at": now(),
        "machine": machine(),
        "hot_modules": compiled.state,
        "plan": asdict(plan),
    }
    figures |= {"saturation": saturation, "loads": as_json(found), "session_reads": session}
    write_json(json_path, figures | {"oracle": {variant: asdict(verdict) for variant, verdict in verdicts.items()}})
    misses = sum(missed for _, missed in session.values())
    if misses or not all(verdict.is_good for verdict in verdicts.values()):
        raise SystemExit(CANNOT_MEASURE)


def _started(stack: ExitStack, plan: FlowsPlan, folder: str, bar: Bar) -> dict[str, Site]:
    """Start and return a site for each variant.  Raises EndpointFailed."""
    if "external" in plan.variants:
        flows_queue.program()
    sites = {}
    for variant in plan.variants:
        bar.began(f"{variant}: start, and who follows whom", 0)
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="columnar-flows-", dir=folder))
        sites[variant] = Site(variant, plan.profile, Path(data), plan.attempts)
        stack.callback(sites[variant].stop)
        sites[variant].start()
        sites[variant].fill()
    return sites


def _run(experiment: Experiment, plan: FlowsPlan, found: list[FlowRuns]) -> float | None:
    """Run all workloads into ``found``; return the saturation on which the rates of W2 to W7 are based.

    Raises EndpointFailed.
    """
    saturation = plan.saturation
    if "W1" in plan.workloads or saturation is None:
        saturating = experiment.saturating()
        found += saturating if "W1" in plan.workloads else []
        saturation = saturation or saturation_of(saturating)
    beside = [workload for workload in BESIDE if workload in plan.workloads]
    if shares := plan.shares if "W2" in plan.workloads else plan.shares[: len(beside)][:1]:
        found += experiment.at_shares(saturation, shares)
    if "W3" in plan.workloads:
        found += experiment.bursting(saturation)
    if "W4" in plan.workloads:
        found += experiment.faults(saturation)
    for workload in beside:
        found += experiment.beside_load(workload, saturation)
    return saturation


def _session_reads(found: list[FlowRuns], variants: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """Return for each variant the reads of own timelines after acknowledgements, and the reads without the tweet."""
    counts = dict.fromkeys(variants, (0, 0))
    for one in found:
        for figures in map(figures_of, one.runs):
            reads, misses = counts[one.variant]
            counts[one.variant] = (reads + figures.session_reads, misses + figures.session_misses)
    return counts


def _load_average() -> str:
    return f"load of the machine before the run: {os.getloadavg()[0]:.1f}"
