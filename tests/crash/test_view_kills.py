"""kill -9 of the store at many moments under load, while views are built and kept: each equals its recomputation.

COLUMNAR_KILLS says how many kills (6; 12 in a deep run), COLUMNAR_SEED chooses them (it is printed, so that a failure
can be repeated).  A view is added at the beginning, and a view of this view under load; a third view is added and
dropped between kills.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from thriftpy2.thrift import TException

from columnar.client import Connection, Delete, Put
from columnar.model.view_definition import Source, View, to_json
from tests.support.deep import seeds
from tests.support.store_process import StoreProcess

KILLS = int(os.environ.get("COLUMNAR_KILLS") or seeds("kills beside views", deep=12, short=6))
SEED = int(os.environ.get("COLUMNAR_SEED", "20261124"))
WRITERS = 3
ROWS = 40
DRAIN_MS = 20_000

BY_A = View("by_a", Source("source", ("f:a",), ("f:off absent",), {"n": "f:n"}, order="f:n desc"))
SIZES = View("sizes", Source("by_a", ("v:count",)))
ADDED = View("added", Source("source", ("f:n",)))


def amount(n: int) -> bytes:
    return b"%d" % n


class Load:
    """Writers that continue until the store is killed; each has rows of its own."""

    def __init__(self, store: StoreProcess, rng: random.Random) -> None:
        self.store = store
        self._rngs = [random.Random(rng.random()) for _ in range(WRITERS)]
        self._begun = self._goal = 0
        self._reached = threading.Condition()

    def run_until_killed(self, writes: int) -> None:
        self._begun, self._goal = 0, writes
        threads = [threading.Thread(target=self._write, args=(n,)) for n in range(WRITERS)]
        for thread in threads:
            thread.start()
        with self._reached:
            assert self._reached.wait_for(lambda: self._begun >= writes, 60)
        self.store.kill()
        for thread in threads:
            thread.join()

    def _write(self, number: int) -> None:
        rng = self._rngs[number]
        with suppress(TException, OSError, EOFError):
            connection = self.store.connect()
            table = connection.table(b"source")
            while True:
                with self._reached:
                    self._begun += 1
                    self._reached.notify_all()
                table.mutate(b"%02d-%d" % (rng.randrange(ROWS), number), self._operations(rng))

    @staticmethod
    def _operations(rng: random.Random) -> list[Put | Delete]:
        kind = rng.random()
        if kind < 0.5:
            return [Put(b"f:a", b"group-%d" % rng.randrange(6)), Put(b"f:n", amount(rng.randrange(9)))]
        if kind < 0.7:
            return [Put(b"f:n", rng.choice((amount(rng.randrange(9)), b"none")))]
        if kind < 0.8:
            return [rng.choice((Put(b"f:off", b"1"), Delete(b"f:off")))]
        return [Delete(b"f")]


def totals(connection: Connection, view: bytes) -> dict[bytes, dict[bytes, int]]:
    found: dict[bytes, dict[bytes, int]] = {}
    for row, cells in connection.table(view).scan():
        held = {c: int.from_bytes(v, "big", signed=True) for c, v in cells.items() if c.startswith(b"v:")}
        if held:
            found[row] = held
    return found


def expected(connection: Connection) -> tuple[dict[bytes, dict[bytes, int]], int]:
    """Return the totals of ``by_a``, and the number of unreadable rows."""
    groups: dict[bytes, dict[bytes, int]] = {}
    rejected = 0
    for _, cells in connection.table(b"source").scan():
        if b"f:a" not in cells or b"f:off" in cells:
            continue
        if cells.get(b"f:n") == b"none":
            rejected += 1
            continue
        held = groups.setdefault(cells[b"f:a"], {b"v:count": 0, b"v:n": 0})
        held[b"v:count"] += 1
        held[b"v:n"] += int(cells.get(b"f:n", b"0"))
    return {row: {c: n for c, n in held.items() if n} for row, held in groups.items()}, rejected


def check(connection: Connection) -> None:
    for view in ("by_a", "sizes"):
        assert connection.call("columnarViewWait", view, "", DRAIN_MS), "not there in time"
    wanted, rejected = expected(connection)
    assert totals(connection, b"by_a") == wanted
    sizes: dict[bytes, int] = {}
    for held in wanted.values():
        count = held[b"v:count"].to_bytes(8, "big")
        sizes[count] = sizes.get(count, 0) + 1
    assert {row: held[b"v:count"] for row, held in totals(connection, b"sizes").items()} == sizes
    found = {one.name: one for one in connection.views.list()}
    assert found["by_a"].rejected_rows == rejected
    assert found["by_a"].lag_changes == 0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    store = StoreProcess(tmp_path / "data")
    store.start()
    yield store
    assert store.stop() == 0


def test_views_are_exact_whoever_is_killed(store: StoreProcess) -> None:
    print(f"COLUMNAR_SEED={SEED} COLUMNAR_KILLS={KILLS}")
    rng = random.Random(SEED)
    connection = store.connect()
    connection.create_table(b"source", {b"f": {}}, splits=[b"20"])
    load = Load(store, rng)
    load.run_until_killed(300)
    for number in range(KILLS):
        store.start()
        connection.close()
        connection = store.connect()
        for view in (BY_A, SIZES):  # the very same again changes nothing
            connection.call("columnarViewAdd", to_json(view))
        if number % 3 == 1:
            connection.call("columnarViewAdd", to_json(ADDED))
        if number % 3 == 2:
            connection.call("columnarViewDrop", "added")
        load.run_until_killed(rng.randrange(5, 150))
    store.start()
    connection.close()
    connection = store.connect()
    check(connection)
    connection.close()
