"""``columnar bench forwarding`` and ``bench scale``: what several servers cost and bring, in stores of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from typing import Any

import click
from rich.progress import Progress

from columnar.bench import forwarding as ways
from columnar.bench import options
from columnar.bench import scale as sizes
from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.bench_output import console_of_output, give_up, machine, now, progress_bar, write_json
from columnar.bench.dataset import DataSet
from columnar.bench.measuring import Generators, Plan, count_runs, generators
from columnar.bench.own_stores import own_store
from columnar.bench.protocols import BINARY
from columnar.bench.report import Footprint, Report, remarks_of, sides_of, table_of
from columnar.bench.scale_report import as_json, remarks_of_scale, scaled, table_of_scale

_TABLES_READ = 2


def _cluster_options(known: tuple[str, ...], by_default: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return the options that both commands have; ``known``: their workloads."""

    def checked(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
        names = options.checked_workloads(ctx, param, value)
        unfit = [name for name in names if name not in known]
        if unfit:
            raise click.BadParameter(f"{unfit[0]} is not for this; there are {', '.join(known)}")
        return names

    def given(command: Any) -> Any:
        for option in (
            options.json_option,
            click.option(
                "--folder",
                default=tempfile.gettempdir(),
                show_default=True,
                type=click.Path(exists=True, file_okay=False, writable=True),
                help="Where the stores' data lies meanwhile.",
            ),
            options.generators_option,
            options.rows_option,
            options.seconds_option,
            options.rounds_option,
            click.option("-c", "--connections", default=64, show_default=True, type=click.IntRange(1)),
            click.option(
                "-w",
                "--workloads",
                default=",".join(by_default),
                show_default=True,
                callback=checked,
                help=f"Some of: {', '.join(known)}.",
            ),
        ):
            command = option(command)
        return command

    return given


@click.command()
@_cluster_options(tuple(ways.TABLES), ways.BY_DEFAULT)
def forwarding(
    workloads: tuple[str, ...],
    connections: int,
    rounds: int,
    seconds: float,
    rows: int,
    generators: int,
    folder: str,
    json_path: str | None,
) -> None:
    """Measure the cost of calls that another server answers.

    Starts a store of two servers and asks for the same rows by the port of the server that owns them and by that of
    the other, in turn.  The processor time for each call is that of both servers together; the last column is the
    forwarded call's over the direct one's, round by round, and the median.

    \b
      columnar bench forwarding
      columnar bench forwarding -w get-cell,put -c 1 --rounds 5 --json figures.json
    """
    plan = Plan(workloads, (connections,), rounds, seconds, generators, DataSet(rows))
    try:
        with own_store(ways.SERVERS, folder) as store, progress_bar() as progress, _pool(plan) as pool:
            filled = progress.add_task("fill the tables", total=_TABLES_READ * rows)
            run_progress = _RunProgress(progress, count_runs(plan, len(ways.NAMES)))
            found = ways.measure_forwarding(
                store, plan, pool, lambda count: progress.advance(filled, count), run_progress.began
            )
    except EndpointFailed as failure:
        give_up(failure)
    lines = [sides_of(line) for line in found]
    settings = asdict(plan) | {"protocol": BINARY.name}
    report = Report(now(), machine(), ways.NAMES, settings, lines, (Footprint(),) * len(ways.NAMES))
    console = console_of_output()
    console.print(table_of(report), *remarks_of(report), sep="\n", highlight=False)
    write_json(json_path, report.as_json())


@click.command()
@click.option(
    "--servers", default="1,2,3", show_default=True, callback=options.numbers, help="Stores of so many servers."
)
@_cluster_options(sizes.WORKLOADS, sizes.BY_DEFAULT)
def scale(
    servers: tuple[int, ...],
    workloads: tuple[str, ...],
    connections: int,
    rounds: int,
    seconds: float,
    rows: int,
    generators: int,
    folder: str,
    json_path: str | None,
) -> None:
    """Measure what more servers bring to clients that know one port only.

    Starts a store for each number of servers, with the same rows in the same regions, and asks them in turn.  Each
    of N servers forwards (N - 1) / N of its calls.  Beside each rate stand how many times that of the first
    store it is, and the processor time of the busiest server for each unit of the work of the whole.

    \b
      columnar bench scale
      columnar bench scale --servers 1,2 -w get-cell --rounds 5 --json figures.json
    """
    plan = Plan(workloads, (connections,), rounds, seconds, generators, DataSet(rows))
    try:
        with ExitStack() as stack, progress_bar() as progress, _pool(plan) as pool:
            filled = progress.add_task("fill the tables", total=_TABLES_READ * rows * len(servers))
            stores = sizes.started(stack, servers, folder)
            for store in stores:
                sizes.prepare_spread(store, plan.data, lambda count: progress.advance(filled, count))
            run_progress = _RunProgress(progress, count_runs(plan, len(stores)))
            found = sizes.measure_scale(stores, plan, pool, run_progress.began)
    except EndpointFailed as failure:
        give_up(failure)
    lines = [(workload, scaled(sides)) for workload, _, sides in map(sides_of, found)]
    title = f"{now()}, {machine()}, {connections} connections"
    remarks = remarks_of_scale(lines, generators, os.cpu_count() or 1, max(servers))
    console_of_output().print(table_of_scale(title, servers, lines), *remarks, sep="\n", highlight=False)
    figures = {"taken_at": now(), "machine": machine(), "plan": asdict(plan), "lines": as_json(servers, lines)}
    write_json(json_path, figures)


def _pool(plan: Plan) -> AbstractContextManager[Generators]:
    return generators(plan.generators)


class _RunProgress:
    """Show the runs of load on a progress bar."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("measure", total=total)
        self._count = 0

    def began(self, workload: str, connections: int, endpoint: Endpoint) -> None:
        self._progress.update(self._task, completed=self._count, description=f"{workload} at {connections}, {endpoint}")
        self._count += 1
