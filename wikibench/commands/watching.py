"""A replay that is watched: the page of its figures at an address, while it runs."""

from __future__ import annotations

import click

from wikibench.experiment import Experiment
from wikibench.findings.dashboard import Dashboard
from wikibench.latency import Recorder
from wikibench.live import LiveLine
from wikibench.pacing import Pace, planned_seconds
from wikibench.requirements import Requirement
from wikibench.summary import Replay


def watched(run: Experiment, pace: Pace, required: tuple[Requirement, ...], address: str | None) -> Replay:
    """Replay, with a page of the running replay at ``address`` if there is one.  Raises PlanError for the address."""
    if address is None:
        return run.go(pace, "replay")
    planned_s = planned_seconds(pace, run.shape)
    limits = [{"requirement": one.text, "unit": one.unit, "limit": one.limit} for one in required]
    about = {"target": run.target.url(""), "requirements": limits, "interval_s": Recorder(planned_s).interval_s}
    dashboard = Dashboard.listening(address, about)
    click.echo(f"dashboard: {dashboard.url}", err=True)
    ending = "with an error"
    try:
        result = run.go(pace, "replay", LiveLine("replay", dashboard.tick))
        ending = result.ending
    finally:
        dashboard.finish(ending)
    return result
