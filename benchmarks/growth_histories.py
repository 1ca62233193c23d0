"""How cost grows with the history of a cell or its row: overwrites, deletes, deleted neighbours.

Each step reads as many cells with the same history as are cheap to make, so that the timed puts change the histories
little.  Timestamps are given, in the past and all different: each overwrite is a version of its own.

    table               rows
    bench_growth_kept_n  o-<overwrites>-<number>    overwritten so often
                         p-00000000                 put and deleted again and again, then put
                         w-00000000                 other cells, all deleted, beside one that stays
                         x-00000000, x-00000001     nothing but deleted cells, and the row after it
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.growth_filling import dropped_afterwards, make_table, sweep
from benchmarks.growth_lines import send_all
from benchmarks.growth_probes import GET, GET_VERSIONS, PUT, SHORT_SCAN, Target, calls_of, timed
from benchmarks.growth_report import Group, GrowthPlan
from columnar.bench import calls, dataset
from columnar.bench.address import Endpoint
from columnar.bench.calls import Exchange
from columnar.bench.dataset import SMALL_BYTES, SMALL_COLUMN
from columnar.bench.endpoint import Watcher, client_of
from columnar.wire import idl

KEPT: Final = (1, 3)  # versions, of the tables
CELLS_MADE: Final = 4_000  # by all overwrites of a step with a shorter history
IN_FLIGHT: Final = 16  # durable puts share an fsync
MADE_BEFORE_MS: Final = 3_600_000  # age of the beginning of histories
_PROBES: Final = (GET, GET_VERSIONS, SHORT_SCAN, PUT)
_CYCLED: Final = b"p-00000000"
_EMPTIED: Final = b"w-00000000"
_GONE: Final = b"x-00000000"
_AFTER_GONE: Final = b"x-00000001"
_END: Final = b"\xff"


def by_history(endpoint: Endpoint, plan: GrowthPlan, extended: bool, watcher: Watcher) -> list[Group]:
    """Return a group for each number of versions that is kept, and one after the background sweep.

    Raises EndpointFailed.
    """
    tables = {kept: b"bench_growth_kept_%d" % kept for kept in KEPT}
    found = []
    with dropped_afterwards(endpoint, list(tables.values())):
        for kept, table in tables.items():
            _make(endpoint, table, kept, plan, watcher)
            title = f"History of a cell, {kept} version{'s' * (kept > 1)} kept"
            found.append(_timed(endpoint, title, table, plan, watcher))
        title += ", after the background sweep"
        if not extended:
            return [*found, Group("histories", title, left_out="the endpoint does not say when a sweep has ended")]
        watcher.began("background sweep", 0)
        sweep(endpoint, table)
        return [*found, _timed(endpoint, title, table, plan, watcher)]


def _make(endpoint: Endpoint, table: bytes, kept: int, plan: GrowthPlan, watcher: Watcher) -> None:
    with client_of(endpoint) as client:
        make_table(client, table, kept)
    begins_ms = int(time.time() * 1_000) - MADE_BEFORE_MS
    for made in (history(table, plan, begins_ms), deletes(table, plan.overwrites, begins_ms)):
        packed = list(made)
        watcher.began(f"histories, {kept} kept", len(packed))
        send_all(endpoint, packed, watcher.advance, IN_FLIGHT)


def _timed(endpoint: Endpoint, title: str, table: bytes, plan: GrowthPlan, watcher: Watcher) -> Group:
    targets = _targets(table, plan)
    watcher.began(title, calls_of(targets, _PROBES, plan.calls))
    return Group("histories", title, timed(endpoint, targets, _PROBES, plan.calls, watcher.advance))


def _targets(table: bytes, plan: GrowthPlan) -> list[Target]:
    most = plan.overwrites
    return [
        *(
            Target("written once" if count == 1 else f"{count:,} overwrites", table, _rows_with(count, plan.calls))
            for count in plan.histories
        ),
        Target(f"{most:,} puts and deletes", table, (_CYCLED,)),
        Target(f"{most:,} other cells of the row deleted", table, (_EMPTIED,)),
        Target(f"{most:,} cells of the row before deleted", table, (_AFTER_GONE,), ((_GONE, _AFTER_GONE + _END),)),
    ]


def _rows_with(overwrites: int, most: int) -> tuple[bytes, ...]:
    """Return the rows of one step: many rows with a short history, or one row with a long history."""
    count = max(1, min(most, CELLS_MADE // overwrites))
    return tuple(b"o-%08d-%08d" % (overwrites, number) for number in range(count))


def history(table: bytes, plan: GrowthPlan, begins_ms: int) -> Iterator[Exchange]:
    """Yield the calls that write the table; ``deletes`` follows when all of them are answered."""
    most = plan.overwrites
    for count in plan.histories:
        rows = _rows_with(count, plan.calls)
        for number in range(count):
            put = [_put(SMALL_COLUMN, number)]
            for row in rows:
                yield _at(table, row, put, begins_ms + number)
    for number in range(most):
        yield _at(table, _CYCLED, [_put(SMALL_COLUMN, number)], begins_ms + 2 * number)
        yield _at(table, _CYCLED, [_delete(SMALL_COLUMN)], begins_ms + 2 * number + 1)
    others = [b"s:other-%08d" % number for number in range(most)]
    for row in (_EMPTIED, _GONE):
        yield _at(table, row, [_put(column, 0) for column in others], begins_ms)
    for row in (_CYCLED, _EMPTIED, _AFTER_GONE):
        yield _at(table, row, [_put(SMALL_COLUMN, most)], begins_ms + 2 * most)


def deletes(table: bytes, cells: int, begins_ms: int) -> Iterator[Exchange]:
    """Yield the calls that delete cells beside a cell that stays, and in the row before another row."""
    others = [_delete(b"s:other-%08d" % number) for number in range(cells)]
    for row in (_EMPTIED, _GONE):
        yield _at(table, row, others, begins_ms + 1)


def _put(column: bytes, number: int) -> Any:
    return calls.mutation(column, dataset.text(b"%d" % number, SMALL_BYTES))


def _delete(column: bytes) -> Any:
    return idl.hbase.Mutation(isDelete=True, column=column)


def _at(table: bytes, row: bytes, mutations: list[Any], at_ms: int) -> Exchange:
    return calls.exchange("mutateRowTs", (table, row, mutations, at_ms), calls.VOID_SUCCESS)
