"""Rates and processor time of stores with one server, two, three, under the same requests of clients of one port.

Each store has its tables cut into the same number of regions, spread over its servers, and the supervisor spreads the
connections: of N servers each one forwards (N - 1) / N of its calls.  The stores take turns, as endpoints do in
``measuring``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from columnar.bench import dataset
from columnar.bench.address import Endpoint
from columnar.bench.dataset import DataSet
from columnar.bench.endpoint import client_of, fill_tables
from columnar.bench.growth_filling import make_split_table, settle, splits_for
from columnar.bench.measuring import Generators, Line, Plan, measure
from columnar.bench.own_stores import OwnStore, own_store

REGIONS: Final = 6  # of each table: they can be dealt out evenly to 1, 2, 3 and 6 servers
TABLES: Final = (dataset.SMALL_TABLE, dataset.ROWS_TABLE, dataset.WRITES_TABLE)
WORKLOADS: Final = ("get-cell", "get-row", "get-columns", "put", "mixed", "scan-small", "scan-rows")
BY_DEFAULT: Final = ("get-cell", "get-row", "put", "scan-small", "scan-rows")


def started(stack: ExitStack, counts: Sequence[int], folder: str) -> list[OwnStore]:
    """Return a store for each number of servers; they run side by side and end with ``stack``.  EndpointFailed."""
    return [stack.enter_context(own_store(count, folder)) for count in counts]


def prepare_spread(store: OwnStore, data: DataSet, advance: Callable[[int], None]) -> None:
    """Make the tables and fill those that are read.  EndpointFailed."""
    with client_of(store.endpoint) as client:
        for table in TABLES:
            rows = dataset.PUT_ROWS if table == dataset.WRITES_TABLE else data.rows
            make_split_table(client, table, splits_for(rows, REGIONS), dataset.FAMILIES[table])
        store.settle()
        fill_tables(client, data, advance)
    settle(store.endpoint, TABLES)


def measure_scale(
    stores: Sequence[OwnStore], plan: Plan, pool: Generators, began: Callable[[str, int, Endpoint], None]
) -> list[Line]:
    """Return a line for each workload of the plan, with the outcomes of each store.  EndpointFailed."""
    lines: list[Line] = []
    measure([store.endpoint for store in stores], plan, pool, began, lines, [store.pids for store in stores])
    return lines
