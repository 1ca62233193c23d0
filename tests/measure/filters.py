"""The cost of a filter that names its rows, beside a scan of these rows alone.

    python -m tests.measure.filters [--rows 1000000] [--rounds 15] [--folder DIR]

A store in a process of its own; rows of one cell of 20 bytes.  At the end of the table, through happybase:

    row_prefix         the last 100 rows, by start and stop
    PrefixFilter       the same rows; alone, with another filter, reversed, and of two prefixes (OR)
    get's scan         one row, by start and stop
    RowFilter(=)       the same row

Prints the median of ROUNDS. The exit status is 1 if ``PrefixFilter`` takes over three times as long as ``row_prefix``,
or ``RowFilter`` over twice as long as a get's scan.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

from columnar.client import Connection
from gauge.machine import machine, now
from tests.support.store_process import StoreProcess

TABLE: Final = b"wide"
LAST: Final = 100  # rows of the prefix
BATCH: Final = 2_000
PREFIX_MOST, ROW_MOST = 3.0, 2.0


def filled(connection: Connection, rows: int) -> None:
    connection.create_table(TABLE, {"f": {}})
    with connection.table(TABLE).batch(batch_size=BATCH) as batch:
        for number in range(rows):
            batch.put(row_of(number), {b"f:q": b"v" * 20})


def row_of(number: int) -> bytes:
    return b"row%09d" % number


def timed(work: Callable[[], list[Any]], expected: int) -> float:
    begun = time.perf_counter()
    found = work()
    took = time.perf_counter() - begun
    assert len(found) == expected, f"{len(found)} rows, not {expected}"
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", default=None)
    given = parser.parse_args()
    assert given.rows % LAST == 0, "the last prefix has 100 rows"
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        store = StoreProcess(Path(folder) / "data")
        store.start()
        try:
            with Connection("127.0.0.1", store.port, timeout=600_000) as connection:
                return measured(connection, given.rows, given.rounds)
        finally:
            store.stop()


def measured(connection: Connection, rows: int, rounds: int) -> int:
    begun = time.monotonic()
    filled(connection, rows)
    print(f"{machine()}, {now()}: {rows:,} rows in {time.monotonic() - begun:.0f} s", flush=True)
    last = row_of(rows - 1)
    prefix, one = last[:-2].decode(), f"RowFilter(=, 'binary:{last.decode()}')"
    other = row_of(0)[:-2].decode()
    by_prefix = f"PrefixFilter('{prefix}')"
    table = connection.table(TABLE)

    def scan(**options: Any) -> Callable[[], list[Any]]:
        return lambda: list(table.scan(**options))

    lines: list[tuple[str, Callable[[], list[Any]], int, str, float]] = [
        ("row_prefix", scan(row_prefix=prefix.encode()), LAST, "", 0),
        ("PrefixFilter", scan(filter=by_prefix), LAST, "row_prefix", PREFIX_MOST),
        ("PrefixFilter, reversed", scan(filter=by_prefix, reverse=True), LAST, "row_prefix", PREFIX_MOST),
        ("ValueFilter AND it", scan(filter=f"ValueFilter(!=, 'binary:x') AND {by_prefix}"), LAST, "row_prefix", 0),
        ("two of them, OR", scan(filter=f"{by_prefix} OR PrefixFilter('{other}')"), 2 * LAST, "row_prefix", 0),
        ("get's scan", scan(row_start=last, row_stop=last), 1, "", 0),
        ("RowFilter(=)", scan(filter=one), 1, "get's scan", ROW_MOST),
        ("RowFilter(=), reversed", scan(filter=one, reverse=True), 1, "get's scan", ROW_MOST),
    ]
    each: dict[str, list[float]] = {name: [] for name, *_ in lines}
    for _ in range(rounds):  # in turn: other work of the machine lengthens all of them
        for name, work, expected, _, _ in lines:
            each[name].append(timed(work, expected))
    took, is_met = {name: median(times) for name, times in each.items()}, True
    for name, _, _, beside, most in lines:
        ratio = took[name] / took[beside] if beside else 1.0
        verdict = f", at most {most:g}" if most else ""
        print(f"{name:<24} {took[name] * 1_000:9.2f} ms" + (f"  {ratio:5.2f} x {beside}{verdict}" if beside else ""))
        is_met = is_met and (not most or ratio <= most)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
