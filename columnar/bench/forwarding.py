"""The cost of a call that comes to a server that does not own its row, beside that of one that comes to the owner.

The rows of tables of one region each are read from a store of two servers: by the port of the region's owner, and by
that of the other server, which forwards.  The two take turns, as two endpoints do in ``measuring``.  Processor time is
of both servers together, so a forwarded call counts with what its gateway and its owner spend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from columnar.bench import dataset
from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.endpoint import prepare
from columnar.bench.measuring import Generators, Line, Plan, measure
from columnar.bench.own_stores import OwnStore

SERVERS: Final = 2
NAMES: Final = ("forwarded", "direct")  # the order of the endpoints: a ratio is the first over the second
TABLES: Final = {  # of the workloads that ask for single rows
    "get-cell": dataset.SMALL_TABLE,
    "get-row": dataset.ROWS_TABLE,
    "get-columns": dataset.ROWS_TABLE,
    "put": dataset.WRITES_TABLE,
    "increment": dataset.WRITES_TABLE,
}
BY_DEFAULT: Final = ("get-cell", "get-row", "put")


def measure_forwarding(
    store: OwnStore,
    plan: Plan,
    pool: Generators,
    advance: Callable[[int], None],
    began: Callable[[str, int, Endpoint], None],
) -> list[Line]:
    """Measure a line for each workload of the plan, outcomes of ``NAMES``; ``advance`` gets the rows of each batch.

    EndpointFailed.
    """
    prepare(store.endpoint, plan.data, advance)
    store.settle()
    lines: list[Line] = []
    for workload in plan.workloads:
        endpoints = endpoints_by_route(store, TABLES[workload])
        measure(endpoints, replace(plan, workloads=(workload,)), pool, began, lines, [store.pids] * len(endpoints))
    return lines


def endpoints_by_route(store: OwnStore, table: bytes) -> list[Endpoint]:
    """Return the ports of a server that does not own the table, and of the one that does.  EndpointFailed."""
    regions = store.locations(table)
    if len(regions) != 1:
        raise EndpointFailed(f"{table.decode()} has {len(regions)} regions, and a way to one is measured")
    (owner,) = {one.name: one.endpoint for one in store.servers if one.name == regions[0].server}.values()
    others = [one.endpoint for one in store.servers if one.name != regions[0].server]
    return [others[0], owner]
