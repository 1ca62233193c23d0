"""kill -9 of the worker, of the store, of both, at many moments under load: no change is missed.

COLUMNAR_KILLS says how many kills (5; 12 in a deep run), COLUMNAR_SEED chooses them (it is printed, so that a failure
can be repeated).  After each kill, restart and drain:
    * the index that the trigger keeps equals the one recomputed from the source;
    * every acknowledged change was delivered at least once;
    * of each row the trigger saw the changes in their order, repeats included: after a change comes
        the next one of its row, or an earlier one again.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from thriftpy2.thrift import TException

from columnar.client import Connection, Delete, Increment, Put
from columnar.regions.log.change_record import Sequence, parse_token
from tests.support import trigger_functions
from tests.support.deep import seeds
from tests.support.store_process import StoreProcess

KILLS = int(os.environ.get("COLUMNAR_KILLS") or seeds("kills beside triggers", deep=12, short=5))
SEED = int(os.environ.get("COLUMNAR_SEED", "20261121"))
WRITERS = 4
ROWS = 24
DRAIN_MS = 60_000


class Load:
    """Writers that continue until told to stop; each has rows of its own and one connection at a time."""

    def __init__(self, store: StoreProcess, rng: random.Random) -> None:
        self.store = store
        self.acknowledged: dict[bytes, set[Sequence]] = {}
        self._rngs = [random.Random(rng.random()) for _ in range(WRITERS)]
        self._begun = 0
        self._goal = 0
        self._reached = threading.Condition()

    def run_until_killed(self, writes: int, kill: str) -> None:
        """Write, kill after ``writes`` writes have begun, and stop when a living store has answered."""
        self._stop = threading.Event()
        self._begun, self._goal = 0, writes
        threads = [threading.Thread(target=self._write, args=(n,)) for n in range(WRITERS)]
        for thread in threads:
            thread.start()
        with self._reached:
            assert self._reached.wait_for(lambda: self._begun >= writes, 60)
        if kill in ("worker", "both"):
            self.store.kill_workers()
        if kill in ("store", "both"):
            self.store.kill()
        self._stop.set()
        for thread in threads:
            thread.join()

    def _write(self, number: int) -> None:
        rng = self._rngs[number]
        connection = self.store.connect()
        table = connection.table(b"source")
        try:
            while not self._stop.is_set():
                row = b"%02d-%d" % (rng.randrange(ROWS), number)
                with self._reached:
                    self._begun += 1
                    if self._begun >= self._goal:
                        self._reached.notify_all()
                sequence = parse_token(table.mutate(row, self._operations(rng)).sequence)
                self.acknowledged.setdefault(row, set()).add(sequence)
        except (TException, OSError):  # the store was killed: not acknowledged
            pass
        finally:
            connection.close()

    @staticmethod
    def _operations(rng: random.Random) -> list[Put | Delete | Increment]:
        kind = rng.random()
        if kind < 0.6:
            return [Put(b"f:v", b"value-%d" % rng.randrange(12))]
        if kind < 0.75:
            return [Delete(b"f:v")]
        if kind < 0.85:
            return [Delete(b"f"), Put(b"f:v", b"value-%d" % rng.randrange(12))]
        return [Increment(b"f:n", rng.randrange(5))]


def entries_of(connection: Connection) -> dict[bytes, list[Sequence]]:
    """Return the trigger's deliveries of each row, in their order."""
    return {
        row: [parse_token(line.split(b";")[0].decode()) for line in cells[b"a:log"].splitlines()]
        for row, cells in list(connection.table(b"audit").scan())
    }


def check(connection: Connection, load: Load) -> None:
    wanted = {(c[b"f:v"], row) for row, c in connection.table(b"source").scan() if b"f:v" in c}
    found = {(v, column[2:]) for v, cells in connection.table(b"index").scan() for column in cells}
    assert found == wanted
    seen = entries_of(connection)
    for row, sequences in load.acknowledged.items():
        assert sequences <= set(seen.get(row, ())), f"never delivered of {row!r}"
    for row, order in seen.items():
        known = sorted(set(order))
        following = dict(pairwise(known))
        assert order[0] == known[0], row
        for earlier, later in pairwise(order):
            assert later <= earlier or later == following[earlier], f"{row!r}: {later} after {earlier}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    store = StoreProcess(tmp_path / "data", trigger_functions.MODULE)
    store.start()
    yield store
    assert store.stop() == 0


def test_nothing_is_missed_whoever_is_killed(store: StoreProcess) -> None:
    print(f"COLUMNAR_SEED={SEED} COLUMNAR_KILLS={KILLS}")
    rng = random.Random(SEED)
    connection = store.connect()
    connection.create_table(b"source", {b"f": {}}, attributes={}, splits=[b"12"])
    connection.create_table(b"index", {b"i": {}}, attributes={"DELETE_MARKERS": "3600000"}, splits=[b"value-5"])
    connection.create_table(b"audit", {b"a": {}}, attributes={"DURABILITY": "SYNC_WAL"})
    connection.triggers.add(
        "index", b"source", f"{trigger_functions.MODULE}:index_and_note", [b"f"], before=True, attempts=1_000
    )
    load = Load(store, rng)
    for _ in range(KILLS):
        kill = rng.choice(["worker", "store", "both"])
        load.run_until_killed(rng.randrange(5, 200), kill)
        if kill != "worker":
            store.start()
            connection.close()
            connection = store.connect()
        assert connection.triggers.wait(timeout_ms=DRAIN_MS), "not delivered in time"
        check(connection, load)
    assert connection.triggers.dead_letters() == []
    connection.close()
