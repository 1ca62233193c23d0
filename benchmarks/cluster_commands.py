"""``python -m benchmarks forwarding`` and ``scale``: what several servers cost and bring, in stores of their own.

``forwarding`` reads rows of tables of one region each from a store of two servers: in turn by the port of the region's
owner and by the port of the other server, which forwards.  The processor time is that of both servers together, so a
forwarded call counts the work of its gateway and of its owner.

``scale`` starts stores of one, two and three servers, and sends the same requests to the shared port of each.  Each
store has its tables cut into the same number of regions, spread over its servers, and the supervisor spreads the
connections: each of N servers forwards (N - 1) / N of its calls.

The two routes, and the stores, take turns as endpoints do in ``columnar.bench.measuring``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import click

from benchmarks.growth_filling import make_split_table, settle, splits_for
from benchmarks.own_stores import OwnStore, own_store
from benchmarks.scale_report import as_json, remarks_of_scale, scaled, table_of_scale
from columnar.bench import dataset
from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.commands import (
    console_of_output,
    generators_option,
    give_up,
    json_option,
    numbers,
    progress_bar,
    rounds_option,
    rows_option,
    seconds_option,
    with_options,
    workloads_option,
    write_json,
)
from columnar.bench.endpoint import Watcher, client_of, fill_tables, prepare
from columnar.bench.measuring import Generators, Line, Plan, generators, measure
from columnar.bench.protocols import BINARY
from columnar.bench.report import Footprint, Report, remarks_of, sides_of, table_of
from columnar.bench.workloads import STANDARD
from gauge.machine import machine, now

SERVERS: Final = 2  # of the store of ``forwarding``
NAMES: Final = ("forwarded", "direct")  # the order of the endpoints: a ratio is the first over the second
TABLE_OF: Final = {  # of the workloads that ask for single rows
    "get-cell": dataset.SMALL_TABLE,
    "get-row": dataset.ROWS_TABLE,
    "get-columns": dataset.ROWS_TABLE,
    "put": dataset.WRITES_TABLE,
    "increment": dataset.WRITES_TABLE,
}
REGIONS: Final = 6  # of each table of ``scale``: they can be dealt out evenly to 1, 2, 3 and 6 servers
SPREAD_TABLES: Final = tuple(table for table in dataset.TABLES if table.name != dataset.LOAD_TABLE)
SCALED: Final = ("get-cell", "get-row", "get-columns", "put", "mixed", "scan-small", "scan-rows")


def _cluster_options(known: Sequence[str], default: str) -> Callable[[Any], Any]:
    """Return the options that both commands have; ``known`` names the workloads that they accept."""
    return with_options(
        workloads_option({name: STANDARD[name] for name in known}, default),
        click.option("-c", "--connections", default=64, show_default=True, type=click.IntRange(1)),
        rounds_option,
        seconds_option,
        rows_option,
        generators_option,
        click.option(
            "--folder",
            default=tempfile.gettempdir(),
            show_default=True,
            type=click.Path(exists=True, file_okay=False, writable=True),
            help="Where the stores' data lies meanwhile.",
        ),
        json_option,
    )


def _plan(connections: int, seconds: float, **given: Any) -> Plan:
    return Plan(connections=(connections,), duration_s=seconds, **given)


@click.command()
@_cluster_options(tuple(TABLE_OF), "get-cell,get-row,put")
def forwarding(folder: str, json_path: str | None, **given: Any) -> None:
    """Measure the cost of calls that another server answers.

    Starts a store of two servers and asks for the same rows by the port of the server that owns them and by that of
    the other, in turn.  The processor time for each call is that of both servers together; the last column is the
    forwarded call's over the direct one's, round by round, and the median.

    \b
      python -m benchmarks forwarding
      python -m benchmarks forwarding -w get-cell,put -c 1 --rounds 5 --json figures.json
    """
    plan = _plan(**given)
    try:
        with own_store(SERVERS, folder) as store, progress_bar() as bar, generators(plan.generators) as pool:
            prepare(store.endpoint, dataset.TABLES, plan.rows, bar)
            store.settle()
            began = bar.of_runs(len(plan.workloads) * plan.rounds * len(NAMES))
            lines = list(map(sides_of, _forwarded(store, plan, pool, began)))
    except EndpointFailed as failure:
        give_up(failure)
    settings = plan.as_json() | {"protocol": BINARY.name}
    report = Report(now(), machine(), NAMES, settings, lines, (Footprint(),) * len(NAMES))
    console_of_output().print(table_of(report), *remarks_of(report), sep="\n", highlight=False)
    write_json(json_path, report.as_json())


def _forwarded(store: OwnStore, plan: Plan, pool: Generators, began: Callable[[str], None]) -> Iterator[Line]:
    for workload in plan.workloads:
        endpoints = _endpoints_by_route(store, TABLE_OF[workload.name])
        yield from measure(endpoints, replace(plan, workloads=(workload,)), pool, began, [store.pids] * len(endpoints))


def _endpoints_by_route(store: OwnStore, table: bytes) -> list[Endpoint]:
    """Return the port of a server that does not own the table, then the port of its owner.  Raises EndpointFailed."""
    regions = store.locations(table)
    if len(regions) != 1:
        raise EndpointFailed(f"{table.decode()} has {len(regions)} regions, and a way to one is measured")
    (owner,) = {one.name: one.endpoint for one in store.servers if one.name == regions[0].server}.values()
    others = [one.endpoint for one in store.servers if one.name != regions[0].server]
    return [others[0], owner]


@click.command()
@click.option("--servers", default="1,2,3", show_default=True, callback=numbers, help="Stores of so many servers.")
@_cluster_options(SCALED, "get-cell,get-row,put,scan-small,scan-rows")
def scale(servers: tuple[int, ...], folder: str, json_path: str | None, **given: Any) -> None:
    """Measure what more servers bring to clients that know one port only.

    Starts a store for each number of servers, with the same rows in the same regions, and asks them in turn.  Each
    of N servers forwards (N - 1) / N of its calls.  Beside each rate stand how many times that of the first
    store it is, and the processor time of the busiest server for each unit of the work of the whole.

    \b
      python -m benchmarks scale
      python -m benchmarks scale --servers 1,2 -w get-cell --rounds 5 --json figures.json
    """
    plan = _plan(**given)
    try:
        with ExitStack() as stack, progress_bar() as bar, generators(plan.generators) as pool:
            stores = [stack.enter_context(own_store(count, folder)) for count in servers]
            for store in stores:
                _prepare_spread(store, plan.rows, bar)
            began = bar.of_runs(len(plan.workloads) * plan.rounds * len(stores))
            endpoints, pids = [store.endpoint for store in stores], [store.pids for store in stores]
            found = [sides_of(line) for line in measure(endpoints, plan, pool, began, pids)]
    except EndpointFailed as failure:
        give_up(failure)
    lines = [(workload, scaled(sides)) for workload, _, sides in found]
    title = f"{now()}, {machine()}, {plan.connections[0]} connections"
    remarks = remarks_of_scale(lines, plan.generators, os.cpu_count() or 1, max(servers))
    console_of_output().print(table_of_scale(title, servers, lines), *remarks, sep="\n", highlight=False)
    figures = {"taken_at": now(), "machine": machine(), "plan": plan.as_json(), "lines": as_json(servers, lines)}
    write_json(json_path, figures)


def _prepare_spread(store: OwnStore, rows: int, watcher: Watcher) -> None:
    """Make the tables, each cut into REGIONS, and fill the tables that are read.  Raises EndpointFailed."""
    with client_of(store.endpoint) as client:
        for table in SPREAD_TABLES:
            keys = rows if table.cells is not None else dataset.PUT_ROWS
            make_split_table(client, table.name, splits_for(keys, REGIONS), table.family)
        store.settle()
        fill_tables(client, SPREAD_TABLES, rows, watcher)
    settle(store.endpoint, [table.name for table in SPREAD_TABLES])
