"""How the cost of reads, of single puts and of puts from many connections grows with the number of regions."""

from __future__ import annotations

from random import Random
from typing import Final

from benchmarks.growth_filling import dropped_afterwards, fill, make_split_table, settle, splits_for
from benchmarks.growth_lines import send_all
from benchmarks.growth_probes import GET, LONG_SCAN, PUT, SHORT_SCAN, Target, calls_of, rows_target, timed
from benchmarks.growth_report import Group, GrowthPlan, Step
from columnar.bench import calls, dataset
from columnar.bench.address import Endpoint
from columnar.bench.calls import Exchange
from columnar.bench.dataset import PUT_BYTES, PUT_ROWS, SMALL_COLUMN
from columnar.bench.endpoint import Watcher, client_of
from columnar.bench.generator import Outcome, drive
from columnar.bench.report import side_of
from columnar.bench.workloads import PACKED, Repeating
from gauge.rounds import zigzag_rounds

REGION_ROWS: Final = 100_000  # of a table that is cut into regions, at most
CONNECTIONS: Final = 64
RUNS_PER_COUNT: Final = 2  # there and back; of a number of regions the median of its runs counts
WARM_UP_S: Final = 0.3
_PROBES: Final = (GET, SHORT_SCAN, LONG_SCAN, PUT)
_NO_REGIONS: Final = "the endpoint cannot make a table of several regions (HBase has no Thrift 1 call for it)"


def by_regions(endpoint: Endpoint, plan: GrowthPlan, extended: bool, watcher: Watcher) -> Group:
    """Measure the same rows cut into more and more regions.  Raises EndpointFailed."""
    rows = min(plan.rows, REGION_ROWS)
    title = f"Regions: {rows:,} rows cut into so many"
    if not extended:
        return Group("regions", title, left_out=_NO_REGIONS)
    tables = {count: b"bench_growth_regions_%d" % count for count in plan.region_counts}
    with dropped_afterwards(endpoint, list(tables.values())):
        for count, table in tables.items():
            watcher.began(f"{count:,} regions, rows", rows)
            with client_of(endpoint) as client:
                make_split_table(client, table, splits_for(rows, count))
            fill(endpoint, table, rows, watcher.advance)
        watcher.began("until files are in order", 0)
        settle(endpoint, list(tables.values()))
        targets = [_target(count, table, rows, plan.calls) for count, table in tables.items()]
        watcher.began("timed calls over regions", calls_of(targets, _PROBES, plan.calls))
        return Group("regions", title, timed(endpoint, targets, _PROBES, plan.calls, watcher.advance))


def _target(count: int, table: bytes, rows: int, calls_each: int) -> Target:
    return rows_target(_named(count), table, rows, calls_each, Random(count))


def puts_over_regions(endpoint: Endpoint, plan: GrowthPlan, extended: bool, watcher: Watcher) -> Group:
    """Measure durable puts in closed loop, with a run there and back for each number of regions.

    Raises EndpointFailed.
    """
    title = f"Durable puts of {PUT_BYTES} bytes over so many regions, {CONNECTIONS} connections"
    if not extended:
        return Group("puts", title, left_out=_NO_REGIONS)
    counts = plan.region_counts_of_puts
    tables = [b"bench_growth_puts_%d" % count for count in counts]
    with dropped_afterwards(endpoint, tables):
        with client_of(endpoint) as client:
            for count, table in zip(counts, tables, strict=True):
                make_split_table(client, table, splits_for(PUT_ROWS, count))
        rings = [_ring(table) for table in tables]
        watcher.began("regions opened by a first put", sum(map(len, rings)))
        for ring in rings:
            send_all(endpoint, ring, watcher.advance, CONNECTIONS)
        outcomes: list[list[Outcome]] = [[] for _ in tables]
        watcher.began("puts over regions", RUNS_PER_COUNT * len(tables))
        for _, place in zigzag_rounds(RUNS_PER_COUNT, len(tables)):
            outcomes[place].append(_run_puts(endpoint, rings[place], plan.duration_s))
            watcher.advance(1)
    return Group("puts", title, tuple(_step(*each) for each in zip(counts, outcomes, strict=True)))


def _ring(table: bytes) -> list[Exchange]:
    """Return puts to random rows of all regions."""
    rng, found = Random(0), []
    for _ in range(PACKED):
        key = dataset.row_key(rng.randrange(PUT_ROWS))
        cells = calls.puts([(SMALL_COLUMN, dataset.text(key, PUT_BYTES))])
        found.append(calls.exchange("mutateRow", (table, key, cells), calls.VOID_SUCCESS))
    return found


def _run_puts(endpoint: Endpoint, ring: list[Exchange], duration_s: float) -> Outcome:
    starts = range(0, len(ring), len(ring) // CONNECTIONS)
    sessions = [Repeating(ring, start) for start in starts[:CONNECTIONS]]
    return drive(endpoint, list(sessions), WARM_UP_S, duration_s)


def _step(count: int, outcomes: list[Outcome]) -> Step:
    side = side_of(outcomes)
    figures = {
        "puts/s": side.rate,
        "p50 ms": side.latency_us["p50"] / 1_000,
        "p99 ms": side.latency_us["p99"] / 1_000,
        "generator's CPU": side.generator_cpu,
    }
    return Step(_named(count), figures)


def _named(count: int) -> str:
    return "1 region" if count == 1 else f"{count:,} regions"
