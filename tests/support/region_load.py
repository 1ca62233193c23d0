"""Clients that write, count, read and scan while regions are split and merged; every acknowledged write must be found.

Each request is timed, and no request may fail.  Rows are four hexadecimal digits, so that any of them can be a split
point.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from columnar.client import Connection, Delete, Increment, Put
from columnar.client.admin import RegionAdmin
from columnar.client.errors import IllegalArgument, IOError, hbase_class

SOURCE = b"source"
BASE_ROWS = 256  # of the source table, written before and never deleted: every scan finds them
VALUES = 40


def row_of(number: int) -> bytes:
    return b"%04x" % (number & 0xFFFF)


def even_points(regions: int) -> list[bytes]:
    return [row_of(0x10000 * n // regions) for n in range(1, regions)]


@dataclass
class Timed:
    """The longest time of each kind of request."""

    longest_s: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __call__(self, kind: str, request: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        answer = request()
        took = time.perf_counter() - begun
        self.longest_s[kind] = max(self.longest_s.get(kind, 0.0), took)
        self.counts[kind] += 1
        return answer


class Client:
    """A client: one thread with one connection and rows of its own."""

    def __init__(self, connect: Callable[[], Connection], number: int, tables: list[bytes], seed: float) -> None:
        self._connect = connect
        self._number = number
        self._tables = [table for table in tables if table != SOURCE]  # each change of the source is noted
        self._rng = random.Random(seed)
        self.timed = Timed()
        self.sequences: dict[bytes, list[str]] = {}  # source row -> tokens of its changes, in order
        self.values: dict[bytes, bytes | None] = {}  # source row -> f:v
        self.counted: Counter[tuple[bytes, bytes]] = Counter()  # table, row -> acknowledged increments
        self.failure: BaseException | None = None

    def run(self, stop: threading.Event, work: Callable[[Client, Connection], None]) -> None:
        connection = self._connect()
        try:
            while not stop.is_set():
                work(self, connection)
        except BaseException as failure:  # noqa: BLE001 - the test's own thread raises it
            self.failure = failure
            stop.set()
        finally:
            connection.close()

    def _own_row(self) -> bytes:
        """Return a random row of this client, which has every sixteenth row, so at most sixteen clients write."""
        return row_of(self._rng.randrange(0x1000) * 16 + self._number)

    def write(self, connection: Connection) -> None:
        rng = self._rng
        if rng.random() < 0.5:
            row = row_of(rng.randrange(40) * 0x660 // 16 * 16 + self._number)
            self._change_source(connection, row)
        elif rng.random() < 0.8:
            table, row = rng.choice(self._tables), self._own_row()
            self.timed("increment", lambda: connection.table(table).counter_inc(row, b"f:n"))
            self.counted[table, row] += 1
        else:
            table = rng.choice(self._tables)
            rows = {self._own_row() for _ in range(20)}
            batch = connection.table(table).batch()
            for row in rows:
                batch.put(row, {b"f:b": b"batch"})
            self.timed("mutateRows", batch.send)
            self.counted.update({(table, b"b" + row): 1 for row in rows})

    def _change_source(self, connection: Connection, row: bytes) -> None:
        rng, value = self._rng, b"value-%d" % self._rng.randrange(VALUES)
        table = connection.table(SOURCE)
        if rng.random() < 0.2:
            result = self.timed("mutate", lambda: table.mutate(row, [Delete(b"f:v"), Increment(b"f:n", 1)]))
            self.values[row] = None
        else:
            result = self.timed("mutate", lambda: table.mutate(row, [Put(b"f:v", value), Increment(b"f:n", 1)]))
            self.values[row] = value
        self.counted[SOURCE, row] += 1
        self.sequences.setdefault(row, []).append(result.sequence)

    def read(self, connection: Connection) -> None:
        rng, table = self._rng, connection.table(SOURCE)
        if rng.random() < 0.95:
            other = connection.table(rng.choice(self._tables))
            self.timed("get", lambda: other.row(row_of(rng.randrange(0x10000))))
            return
        reverse = rng.random() < 0.5
        scanner = table.scan(columns=[b"f:base"], batch_size=rng.choice((7, 50)), reverse=reverse)
        rows = []
        while (found := self.timed("scan", lambda: next(scanner, None))) is not None:
            rows.append(found[0])
        expected = base_rows()
        assert rows == (expected[::-1] if reverse else expected), "a scan misses rows, or has them twice"


def base_rows() -> list[bytes]:
    return [row_of(n * 0x10000 // BASE_ROWS + 9) for n in range(BASE_ROWS)]


class Changer:
    """A thread that splits and merges, one region after the other."""

    def __init__(self, connection: Connection, tables: list[bytes], rng: random.Random) -> None:
        self._connection, self._admin = connection, RegionAdmin(connection)
        self._tables, self._rng = tables, rng
        self.done: Counter[str] = Counter()
        self.called_off: list[str] = []
        self.longest_s = 0.0

    def change(self) -> None:
        rng = self._rng
        table = SOURCE if rng.random() < 0.4 else rng.choice(self._tables)
        regions = self._connection.table(table).regions()
        kind = "split" if len(regions) < 3 or rng.random() < 0.5 else "merge"
        begun = time.perf_counter()
        try:
            if kind == "split":
                region = rng.choice(regions)
                row = self._row_in(region) if rng.random() < 0.8 else b""
                self._admin.split(region["name"], row)
            else:
                left, right = rng.choice(list(pairwise(regions)))
                self._admin.merge(left["name"], right["name"])
            self.done[kind] += 1
        except (IOError, IllegalArgument) as error:
            if hbase_class(error) != "RegionTooBusyException" and b"fewer than two rows" not in error.message:
                raise
            self.called_off.append(f"{kind}: {error.message!r}")
        self.longest_s = max(self.longest_s, time.perf_counter() - begun)

    def _row_in(self, region: dict[str, Any]) -> bytes:
        low = int(region["start_key"] or b"0000", 16) + 1
        high = int(region["end_key"] or b"ffff", 16)
        return row_of(self._rng.randrange(low, high)) if low < high else b""


def holes(connection: Connection, tables: list[bytes]) -> list[str]:
    """Return tables whose regions do not cover all rows exactly once."""
    wrong = []
    for table in tables:
        regions = connection.table(table).regions()
        ends = [b"", *(region["end_key"] for region in regions)]
        starts = [*(region["start_key"] for region in regions), b""]
        wrong += [f"{table!r}: {starts} {ends}"] if starts != ends else []
    return wrong
