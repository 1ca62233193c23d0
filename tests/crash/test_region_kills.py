"""kill -9 in the middle of splits and merges, at named steps, under writes: no row is lost, the catalogue has no hole.

``columnar.master.region_changes`` names its steps; the store of the test dies when one of them is over.
COLUMNAR_ALL_STEPS=1 takes every step; otherwise only steps between which the disk changes are taken.
"""

from __future__ import annotations

import os
import random
import threading
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from thriftpy2.thrift import TException

from columnar.client import Connection, Increment, Put
from columnar.client.admin import RegionAdmin
from tests.support import trigger_functions
from tests.support.region_load import holes
from tests.support.store_process import StoreProcess

ALL = ("prepared", "held", "shut", "made", "committed", "succeeded", "removed", "forgotten")
STEPS = ALL if os.environ.get("COLUMNAR_ALL_STEPS") else ("prepared", "made", "committed", "removed")
SEED = int(os.environ.get("COLUMNAR_SEED", "20261121"))
ROWS = 60
DRAIN_MS = 60_000


class Writer:
    """A writer, until the store is dead; each row has a counter and a value in two families."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.acknowledged: dict[bytes, int] = {}
        self.tried: dict[bytes, int] = {}
        self.sequences: dict[bytes, set[str]] = {}

    def run(self, store: StoreProcess) -> None:
        connection = store.connect()
        table = connection.table(b"source")
        try:
            while True:
                row = b"%02d" % self._rng.randrange(ROWS)
                self.tried[row] = self.tried.get(row, 0) + 1
                result = table.mutate(row, [Increment(b"f:n", 1), Put(b"g:v", b"value-%d" % self._rng.randrange(9))])
                self.acknowledged[row] = self.acknowledged.get(row, 0) + 1
                self.sequences.setdefault(row, set()).add(result.sequence)
        except (TException, OSError, EOFError):  # the store is dead: not acknowledged
            return
        finally:
            connection.close()

    def check(self, connection: Connection) -> None:
        held = {row: int.from_bytes(cells[b"f:n"], "big") for row, cells in connection.table(b"source").scan()}
        for row, tried in self.tried.items():
            sure = self.acknowledged.get(row, 0)
            assert sure <= held.get(row, 0) <= tried, f"{row!r}: {sure} acknowledged, {held.get(row, 0)} there"
            self.acknowledged[row] = self.tried[row] = held.get(row, 0)


def begin_change(connection: Connection, kind: str, rng: random.Random) -> None:
    admin, regions = RegionAdmin(connection), connection.table(b"source").regions()
    if kind == "split":
        largest = max(regions, key=lambda region: int(region["end_key"] or b"99") - int(region["start_key"] or b"0"))
        low, high = int(largest["start_key"] or b"0"), int(largest["end_key"] or b"99")
        admin.split(largest["name"], b"%02d" % ((low + high) // 2))
    else:
        left, right = rng.choice(list(pairwise(regions)))
        admin.merge(left["name"], right["name"])


def folders_are_those_of_the_catalogue(folder: Path, connection: Connection) -> None:
    status = connection.status()
    regions = sum(table.regions for table in status.tables) + 1  # the catalogue's own
    assert len(list((folder / "regions").iterdir())) <= regions, "folders are left that no table has"


def test_whatever_the_step_it_dies_at(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    rng = random.Random(SEED)
    writer = Writer(rng)
    store = StoreProcess(tmp_path / "data", trigger_functions.MODULE)
    rounds = [(kind, step) for step in STEPS for kind in ("split", "merge")]
    store.start()
    connection = store.connect()
    connection.create_table(b"source", {b"f": {}, b"g": {}}, attributes={}, splits=[b"30"])
    connection.create_table(b"index", {b"i": {}}, attributes={"DELETE_MARKERS": "3600000"})
    connection.create_table(b"audit", {b"a": {}}, attributes={"DURABILITY": "SYNC_WAL"})
    connection.triggers.add("note", b"source", f"{trigger_functions.MODULE}:note", [b"f", b"g"])
    for kind, step in rounds:
        (tmp_path / "data.die").write_text(step)
        writing = threading.Thread(target=writer.run, args=(store,))
        writing.start()
        with suppress(TException, OSError, EOFError):  # it dies meanwhile
            begin_change(connection, kind, rng)
        connection.close()
        writing.join()
        store.kill()
        store.start()
        connection = store.connect()
        assert holes(connection, [b"source"]) == [], (kind, step)
        writer.check(connection)
        folders_are_those_of_the_catalogue(tmp_path / "data", connection)
    assert connection.triggers.wait(timeout_ms=DRAIN_MS), "not delivered in time"
    told = {
        row: {line.split(b";")[0].decode() for line in cells[b"a:log"].splitlines()}
        for row, cells in connection.table(b"audit").scan()
    }
    for row, sequences in writer.sequences.items():
        assert sequences <= told.get(row, set()), f"never delivered of {row!r}"
    connection.close()
    assert store.stop() == 0
