"""A replay or a search that is watched: the page of its figures at an address, while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import click

from wikibench.experiment import Experiment
from wikibench.findings.dashboard import Dashboard
from wikibench.latency import Recorder
from wikibench.live import LiveLine
from wikibench.pacing import Pace, planned_seconds
from wikibench.requirements import Requirement
from wikibench.summary import Replay

dashboard_option: Final = click.option(
    "--dashboard",
    is_flag=False,
    flag_value="127.0.0.1:8089",
    metavar="[HOST:PORT]",
    help="Serve the page of its figures here while it runs (127.0.0.1:8089), with a stop button and /metrics.",
)


def watched(run: Experiment, pace: Pace, required: tuple[Requirement, ...], address: str | None) -> Replay:
    """Replay, with a page of the running replay at ``address`` if there is one.  Raises PlanError for the address."""
    if address is None:
        return run.go(pace, "replay")
    with dashboard_at(address, "replay", run, required, planned_seconds(pace, run.shape)) as dashboard:
        result = run.go(pace, "replay", LiveLine("replay", dashboard.tick))
        dashboard.note_ending(result.ending)
    return result


@contextmanager
def dashboard_at(
    address: str, what: str, run: Experiment, required: Sequence[Requirement], planned_s: float
) -> Iterator[Dashboard]:
    """Serve the page of ``what``, a replay or a search, until the end of the context.  Raises PlanError."""
    limits = [{"requirement": one.text, "unit": one.unit, "limit": one.limit} for one in required]
    about = {"what": what, "target": run.target.url(""), "requirements": limits}
    with Dashboard.listening(address, about | {"interval_s": Recorder(planned_s).interval_s}) as dashboard:
        click.echo(f"dashboard: {dashboard.url}", err=True)
        yield dashboard
