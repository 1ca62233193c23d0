"""``python -m benchmarks growth``: how cost grows with the rows of a table, its regions, and the history of a cell.

Each part makes tables of its own that differ in one thing, times the same calls on all tables in turn, and drops the
tables.  A figure that is flat here is flat for the store, because nothing is warmed up in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from random import Random
from typing import Final

import click

from benchmarks.growth_filling import dropped_afterwards, fill, is_columnar, make_table, settle
from benchmarks.growth_histories import by_history
from benchmarks.growth_probes import GET, LONG_SCAN, PUT, SHORT_SCAN, calls_of, rows_target, timed
from benchmarks.growth_regions import by_regions, puts_over_regions
from benchmarks.growth_report import PARTS, Group, GrowthPlan, as_json, remarks_of, table_of_group
from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.commands import Address, console_of_output, give_up, json_option, progress_bar, with_tls, write_json
from columnar.bench.endpoint import Watcher, client_of
from columnar.client.tls import ClientTls
from columnar.client.tls_options import tls_options
from gauge.machine import machine, now

_PROBES: Final = (GET, SHORT_SCAN, LONG_SCAN, PUT)


def grown(endpoint: Endpoint, plan: GrowthPlan, watcher: Watcher) -> Iterator[Group]:
    """Yield the groups of the plan's parts, each as soon as it is measured; drop all tables.  Raises EndpointFailed."""
    extended = is_columnar(endpoint)
    parts: dict[str, Callable[[Endpoint, GrowthPlan, bool, Watcher], list[Group]]] = {
        "rows": lambda *given: [_by_rows(*given)],
        "regions": lambda *given: [by_regions(*given)],
        "puts": lambda *given: [puts_over_regions(*given)],
        "histories": by_history,
    }
    for name, measured in parts.items():
        if name in plan.parts:
            yield from measured(endpoint, plan, extended, watcher)


def _by_rows(endpoint: Endpoint, plan: GrowthPlan, extended: bool, watcher: Watcher) -> Group:
    """Measure tables of more and more rows."""
    tables = {size: b"bench_growth_rows_%d" % size for size in plan.sizes}
    with dropped_afterwards(endpoint, list(tables.values())):
        for size, table in tables.items():
            watcher.began(f"{size:,} rows", size)
            with client_of(endpoint) as client:
                make_table(client, table)
            fill(endpoint, table, size, watcher.advance)
        if extended:
            watcher.began("until files are in order", 0)
            settle(endpoint, list(tables.values()))
        targets = [
            rows_target(f"{size:,} rows", table, size, plan.calls, Random(size)) for size, table in tables.items()
        ]
        watcher.began("timed calls over rows", calls_of(targets, _PROBES, plan.calls))
        return Group("rows", "Rows of a table", timed(endpoint, targets, _PROBES, plan.calls, watcher.advance))


@click.command()
@click.argument("endpoint", type=Address())
@click.option("--only", "parts", multiple=True, type=click.Choice(PARTS), help="This part alone; may be repeated.")
@click.option("--rows", default=1_000_000, show_default=True, type=click.IntRange(1_000), help="The largest table.")
@click.option("--regions", default=100, show_default=True, type=click.IntRange(1), help="Of a table, at most.")
@click.option("--overwrites", default=10_000, show_default=True, type=click.IntRange(10), help="Of one cell, at most.")
@click.option("--seconds", default=5.0, show_default=True, type=click.FloatRange(0.05), help="Of one turn of puts.")
@click.option("--calls", default=400, show_default=True, type=click.IntRange(1), help="A figure is their median.")
@json_option
@tls_options
def growth(
    endpoint: Endpoint,
    parts: tuple[str, ...],
    rows: int,
    regions: int,
    overwrites: int,
    seconds: float,
    calls: int,
    json_path: str | None,
    tls: ClientTls | None,
) -> None:
    """How cost grows with rows, regions, and the overwrites and deletes of a cell.

    Steps that differ in one thing are timed in turn; below each column stands its worst figure over its
    best: 1 is flat.  Regions and puts over them need an endpoint that can make tables of several regions.

    \b
      python -m benchmarks growth 127.0.0.1:9090
      python -m benchmarks growth 127.0.0.1:9090 --only rows --rows 10000000
      python -m benchmarks growth 127.0.0.1:9090 --only puts --only histories --json growth.json
    """
    plan, groups = GrowthPlan(rows, regions, overwrites, seconds, calls, parts or PARTS), []
    console = console_of_output()
    console.print(f"{now()}, {machine()}", highlight=False)
    try:
        (endpoint,) = with_tls([endpoint], tls)
        with progress_bar() as bar:
            for group in grown(endpoint, plan, bar):
                groups.append(group)
                if group.steps:
                    console.print(group.title, table_of_group(group), sep="\n", highlight=False)
    except EndpointFailed as failure:
        give_up(failure)
    for remark in remarks_of(groups):
        console.print(remark, highlight=False)
    write_json(json_path, {"taken_at": now(), "machine": machine(), "plan": asdict(plan), "groups": as_json(groups)})
