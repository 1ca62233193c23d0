"""``wikibench clients``: a closed loop, in which each client waits for its answer, thinks, and sends its next request.

It is the method of the thesis on Wikka and HBase, for figures to put beside its own.  A closed loop has no intended
starts: while the wiki stalls its clients ask for nothing, so the stall is one slow request of each client, and no
figure here says how long a visitor would have waited.  ``replay`` and ``search`` say that.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from gauge.processes import RoleWatch
from wikibench.addresses.paths import Layout, parse_rewrite
from wikibench.errors import PlanError
from wikibench.injector import wire_of
from wikibench.latency import Recorder
from wikibench.limits import CPU_WARNING_SHARE
from wikibench.options import Duration, Header, ProcessesOfRole
from wikibench.outcome import Outcome
from wikibench.pacing import Planned
from wikibench.report import environment
from wikibench.run import loop_factory
from wikibench.statuses import CONTEXT, MET, MISSED, report_errors
from wikibench.summary import Json, role_line, roles_of, times
from wikibench.targets.map_files import load_map
from wikibench.targets.target import parse_target, require_loopback
from wikibench.targets.target_check import require_answer
from wikibench.trace.lines import Request
from wikibench.trace.source import Trace
from wikibench.visits import Load, Visitor
from wikibench.whole_files import write_whole

FORMAT: Final = "wikibench-clients-1"
MOST_CLIENTS: Final = 1024  # connections of one process: more would measure its descriptors
REQUESTS_KEPT: Final = 1_000_000  # of the trace, in memory; clients begin at places among these
AFTER_FAILURE_S: Final = 0.1  # or a wiki that refuses connections would be asked as fast as a core can


@dataclass(frozen=True, slots=True)
class Stretch:
    """Clients, and how long they ask."""

    clients: int
    seconds: float
    warm_up_s: float
    think_s: float
    within_s: float


def row_of(stretch: Stretch, recorder: Recorder, elapsed_s: float, cpu_share: float, sent: int) -> Json:
    """(pure) Return the figures of a stretch; ``sent`` has the requests of the warm-up, too."""
    failed, counted, limit_us = recorder.failed(), recorder.count(), round(stretch.within_s * 1e6)
    good = sum(
        many
        for (_, outcome), pair in recorder.pairs.items()
        if outcome in (Outcome.OK, Outcome.REDIRECT, Outcome.EXPECTED_404)
        for lowest_us, many in pair.service.counts.items()
        if lowest_us <= limit_us
    )
    return {
        "clients": stretch.clients,
        "requests": {"counted": counted, "failed": failed, "sent": sent},
        "got_per_s": round((counted - failed) / max(elapsed_s, 1e-9), 3),
        "within_percent": round(100 * good / counted, 3) if counted else None,
        "service_time": times(recorder.service()),
        "generator_cpu_share": round(cpu_share, 4),
    }


class ClosedLoop:
    """The clients of one stretch.  It runs in one event loop."""

    def __init__(
        self, load: Load, requests: Sequence[Request], stretch: Stretch, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._load = load
        self._requests = requests
        self._stretch = stretch
        self._clock = clock
        self.recorder = Recorder(stretch.seconds)
        self._began = 0.0
        self._sent = 0

    def _now_s(self) -> float:
        return self._clock() - self._began

    async def run(self) -> Json:
        """Run all clients until the end of the stretch, and return its figures."""
        wire, stretch = wire_of(self._load), self._stretch
        visitor = Visitor(self._load, wire, self._now_s, _is_cancelled)
        self._began, cpu = self._clock(), time.process_time()
        rng = random.Random(f"{self._load.seed}\n{stretch.clients}")
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(stretch.clients):
                    group.create_task(self._client(visitor, random.Random(rng.random())))
        finally:
            await wire.close()
        elapsed_s = self._now_s()
        cpu_share = (time.process_time() - cpu) / max(elapsed_s, 1e-9)
        counted_s = max(elapsed_s - stretch.warm_up_s, 0.0)
        return row_of(stretch, self.recorder, counted_s, cpu_share, self._sent)

    async def _client(self, visitor: Visitor, rng: random.Random) -> None:
        stretch, first = self._stretch, rng.randrange(len(self._requests))
        await asyncio.sleep(rng.random() * min(stretch.think_s, stretch.seconds / 2))
        for number in count(first):
            sent_s = self._now_s()
            if sent_s >= stretch.seconds:
                return
            (sample,) = await visitor.view(Planned(sent_s, self._requests[number % len(self._requests)]), sent_s)
            if sample.outcome is Outcome.INTERRUPTED:
                return
            self._sent += 1
            if sent_s >= stretch.warm_up_s:
                self.recorder.add(sample)
            thinks_s = rng.expovariate(1 / stretch.think_s) if stretch.think_s else 0.0
            if sample.outcome in (Outcome.REFUSED, Outcome.BROKEN):
                thinks_s = max(thinks_s, AFTER_FAILURE_S)
            if self._now_s() + thinks_s >= stretch.seconds:
                return
            await asyncio.sleep(thinks_s)


def _is_cancelled() -> bool:
    """Say whether the running client is to end: a view takes its cancellation for its own end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Numbers(click.ParamType[tuple[int, ...]]):
    """Numbers of clients, such as ``1,2,4,8``."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found = tuple(int(word) for word in str(value).split(",") if word.strip().isdigit())
        if len(found) != str(value).count(",") + 1 or not all(0 < one <= MOST_CLIENTS for one in found):
            self.fail(f"{value!r} is not a list of numbers up to {MOST_CLIENTS}, such as 1,2,4", param, ctx)
        return found


@click.command("clients", context_settings=CONTEXT)
@click.argument("traces", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True), metavar="TRACE...")
@click.option("--target", required=True, help="The wiki, such as http://127.0.0.1:8080")
@click.option("--number", type=Numbers(), default="1", show_default=True, help="Clients, one stretch for each number.")
@click.option("--think", type=Duration(), default=0.0, show_default=True, help="Mean pause of a client (exponential).")
@click.option("--duration", type=Duration(), default=20.0, show_default=True, help="Seconds of each stretch.")
@click.option("--warm-up", type=Duration(), default=0.0, help="The first seconds of a stretch do not count.")
@click.option("--within", type=Duration(), default=0.2, show_default=True, help="The limit whose share is counted.")
@click.option("--timeout", type=Duration(), default=20.0, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Places in the trace and pauses.")
@click.option("--allow-remote", is_flag=True, help="Load a wiki that is not on this machine, and is yours.")
@click.option("--expect-404", is_flag=True, help="A page that is not there is no failure (recorded traces).")
@click.option("--header", "headers", type=Header(), multiple=True, help="Sent with every request, 'Name: value'.")
@click.option("--map", "map_name", default="plain", show_default=True, metavar="NAME|FILE", help="As of replay.")
@click.option("--rewrite", "rewrites", multiple=True, metavar="/OLD/=/NEW/", help="As of replay.")
@click.option("--connections", type=click.Choice(["pooled", "fresh"]), default="pooled", help="Kept, or one a request.")
@click.option("--watch", type=ProcessesOfRole(), multiple=True, metavar="ROLE=PID,...", help="As of replay.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here too.")
def clients(traces: tuple[str, ...], target: str, number: tuple[int, ...], file: Path | None, **given: Any) -> None:
    """Ask with so many clients, each of which waits for its answer: a closed loop.

    \b
    The page views of the trace, each client from a place of its own; edits are left out:
      wikibench clients day.trace --target http://127.0.0.1:8080 --number 1,2,4,8 --think 100ms --duration 30m
      wikibench clients day.trace --target http://127.0.0.1:8080 --number 1,1 --json idle.json
      wikibench clients day.trace --target http://127.0.0.1:8080 --map mediawiki --watch php=1201 --watch sql=1188

    A closed loop hides stalls: while the wiki stalls, the clients send nothing, so a stall of a second is one slow
    request of each client. Times are service times, of a request that was sent; how long visitors who come at
    their own moments wait is said by replay and search. Exit status: 0, or 1 if no request succeeded.
    """
    with report_errors():
        if given["warm_up"] >= given["duration"]:
            raise PlanError("the warm-up leaves nothing of the stretch to count")
        source = Trace(traces)
        source.open_all(None, None)
        requests = list(islice((one for one in source.read() if not one.is_save), REQUESTS_KEPT))
        if not requests:
            raise PlanError(f"{source.name}: no page view to ask for")
        load = _load_of(target, given)
    rows, watch = [], RoleWatch(given["watch"])
    for many in number:
        stretch = Stretch(many, given["duration"], given["warm_up"], given["think"], given["within"])
        watch.begin()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            row = runner.run(ClosedLoop(load, requests, stretch).run())
        rows.append({**row, "roles": roles_of(watch.uses(), row["requests"]["sent"])})
        for line in lines_of(rows[-1]):
            click.echo(line, err=True)
    _print(rows, given["within"])
    if file is not None:
        about = {"think_ms": given["think"] * 1000, "within_ms": given["within"] * 1000, "seed": given["seed"]}
        found = {"format": FORMAT, "target": load.target.url(""), **about, "environment": environment(), "rows": rows}
        with report_errors():
            write_whole(file, json.dumps(found, indent=1) + "\n")
    good = sum(row["requests"]["counted"] - row["requests"]["failed"] for row in rows)
    sys.exit(MET if good else MISSED)


def _load_of(target: str, given: Json) -> Load:
    found = parse_target(target)
    headers = found.headers(given["headers"])
    if not given["allow_remote"]:
        require_loopback(found)
    layout = Layout(tuple(parse_rewrite(text) for text in given["rewrites"]), map=load_map(given["map_name"]))
    require_answer(found, layout.map, headers)
    found = replace(found, connections=given["connections"])
    timeout_s, seed = given["timeout"], given["seed"]
    return Load(found, layout, seed=seed, expect_404=given["expect_404"], headers=headers, timeout_s=timeout_s)


def lines_of(row: Json) -> Iterator[str]:
    yield f"{row['clients']} clients: {row['got_per_s']:.1f} views/s, p95 {row['service_time']['p95_ms']} ms"
    yield from map(role_line, row["roles"])
    share = row["generator_cpu_share"]
    if share > CPU_WARNING_SHARE:
        yield f"note: the generator used {share:.0%} of a core: it may be the limit, not the wiki"


def _print(rows: Sequence[Json], within_s: float) -> None:
    table = Table(title="Closed loop; service times in ms", title_justify="left")
    for name in ("clients", "views/s", f"within {within_s * 1000:g} ms", "p50", "p95", "p99", "failed", "own CPU"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        service, share = row["service_time"], row["within_percent"]
        table.add_row(
            str(row["clients"]),
            f"{row['got_per_s']:.1f}",
            "–" if share is None else f"{share:.2f}%",
            *("–" if service[key] is None else f"{service[key]:.3g}" for key in ("p50_ms", "p95_ms", "p99_ms")),
            str(row["requests"]["failed"]),
            f"{row['generator_cpu_share']:.0%}",
        )
    Console().print(table)
    Console().print(
        "A closed loop hides stalls: clients that wait ask for nothing. How long visitors wait, replay says."
    )
