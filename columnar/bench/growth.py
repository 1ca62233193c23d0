"""How cost grows: with the rows of a table, with its regions, and with the history of a cell.

Each part makes tables of its own that differ in one thing, times the same calls on all of them in
turn, and drops them.  A figure that is flat here is flat for the store: nothing is warmed up in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from columnar.bench.address import Endpoint
from columnar.bench.endpoint import client_of
from columnar.bench.growth_filling import dropped_afterwards, fill, is_columnar, make_table, settle
from columnar.bench.growth_histories import by_history
from columnar.bench.growth_plan import GrowthPlan, Watcher
from columnar.bench.growth_probes import GET, LONG_SCAN, PUT, SHORT_SCAN, calls_of, rows_target, timed
from columnar.bench.growth_regions import by_regions, puts_over_regions
from columnar.bench.growth_report import Group

_PROBES: Final = (GET, SHORT_SCAN, LONG_SCAN, PUT)


def grown(endpoint: Endpoint, plan: GrowthPlan, watcher: Watcher) -> Iterator[Group]:
    """Yield the groups of the plan's parts, each when it is measured; no table stays.  EndpointFailed."""
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
    """Tables of more and more rows."""
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
