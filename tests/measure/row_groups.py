"""The time of calls about groups of rows, and the store's processor time, beside a batch of puts.

    python -m tests.measure.row_groups [--calls 1500] [--rounds 5]

One client makes its calls one after the other: five rows with a cell of 100 bytes as a batch of puts, as one step, in a
transaction, and read; then a group of 9,900 cells.  Compile first (``make compile``).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

from columnar.client import Connection, Put, Table
from columnar.client.row_groups import Transaction
from gauge.machine import machine, now
from tests.support.standalone_store import StoreProcess

ROWS: Final = 5
LARGE: Final = (20, 495)  # rows of a large group, and cells of each
LARGE_CALLS: Final = 20
_TICKS_S: Final = os.sysconf("SC_CLK_TCK")
Call = Callable[[int], object]


def used_s(pid: int) -> float:
    """Return the processor time that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


def calls_on(plain: Table, grouped: Table) -> dict[str, Call]:
    def rows(number: int) -> list[bytes]:
        return [b"g%d/%d" % (number, row) for row in range(ROWS)]

    def batch(number: int) -> None:
        with plain.batch() as puts:
            for row in rows(number):
                puts.put(row, {b"f:x": b"v" * 100})

    def transact(number: int) -> None:
        def put(tx: Transaction) -> None:
            tx.row(rows(number)[0])
            for row in rows(number):
                tx.put(row, {b"f:x": b"v" * 100})

        grouped.transact(rows(number)[0], put)

    return {
        "batch of 5 puts": batch,
        "mutate_group of 5 rows": lambda n: grouped.mutate_group(
            {row: ((), [Put(b"f:x", b"v" * 100)]) for row in rows(n)}
        ),
        "transact, a read and 5 puts": transact,
        "group of 5 rows, read": lambda n: grouped.group(rows(n)[0]).rows(),
    }


def report(name: str, pid: int, call: Call, count: int) -> None:
    took_s, before_s = list[float](), used_s(pid)
    for number in range(count):
        begun = time.perf_counter()
        call(number)
        took_s.append(time.perf_counter() - begun)
    ms = 1e3 * (used_s(pid) - before_s) / count
    print(f"{name:28}  {1e3 * median(took_s):7.3f} ms, of the store's processor {ms:6.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_500, help="of each kind in a round")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    print(f"{now()}, {machine()}")
    with tempfile.TemporaryDirectory(prefix="columnar-groups-") as folder:
        store = StoreProcess(Path(folder) / "data")
        store.begin()
        store.await_ready()
        try:
            with Connection("127.0.0.1", store.port) as connection:
                connection.create_table("plain", {"f": {}})
                connection.create_table("grouped", {"f": {}}, attributes={"ROW_GROUP": "until:/"})
                grouped = connection.table("grouped")
                for _ in range(given.rounds):
                    for name, call in calls_on(connection.table("plain"), grouped).items():
                        report(name, store.pid, call, given.calls)
                for row in range(LARGE[0]):
                    puts = [Put(b"f:%d" % cell, b"v" * 20) for cell in range(LARGE[1])]
                    grouped.mutate_group({b"large/%d" % row: ((), puts)})
                report("group of 9,900 cells, read", store.pid, lambda _: grouped.group(b"large/").rows(), LARGE_CALLS)
        finally:
            store.stop()


if __name__ == "__main__":
    main()
