"""Promises 1 and 2 against ``kill -9``: a store in a process of its own dies at random moments.

Writers note the acknowledged writes.  After each restart every acknowledged write is stored, each row is whole over its
families, and each counter has the acknowledged value, or more by at most the increments under way.  COLUMNAR_KILLS says
how often, COLUMNAR_SEED repeats a run (new: draws one).
"""

from __future__ import annotations

import os
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

import happybase
import pytest
from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from tests.support.deep import seeds
from tests.support.seeds import seed
from tests.support.store_process import StoreProcess

KILLS = int(os.environ.get("COLUMNAR_KILLS") or seeds("kills of a store", deep=6, short=3))
SEED = seed(1602)
WRITERS = 3
FAMILIES = {"a": {}, "b": {"max_versions": 1}, "c": {"max_versions": 1}}


def connect(port: int) -> happybase.Connection:
    return happybase.Connection("127.0.0.1", port, timeout=20_000)


@dataclass
class Writer:
    """A writer of its own rows, until its server dies; it knows for sure which writes were acknowledged."""

    number: int
    acknowledged: dict[bytes, int] = field(default_factory=dict)  # row -> the last value that was acknowledged
    attempted: dict[bytes, int] = field(default_factory=dict)
    added: int = 0  # acknowledged increments
    tried: int = 0

    def run(self, port: int, rng: random.Random) -> None:
        try:
            connection = connect(port)
            table = connection.table("t")
            while True:
                row = b"row-%d-%d" % (self.number, rng.randrange(40))
                n = self.attempted[row] = self.attempted.get(row, 0) + 1
                value = b"%d " % n + b"." * rng.choice((0, 0, 200, 3_000))
                table.put(row, {b"a:v": value, b"b:v": value, b"c:v": value})
                self.acknowledged[row] = n
                self.tried += 1
                table.counter_inc(b"counter-%d" % self.number, b"c:n")
                self.added += 1
        except (OSError, EOFError, TTransportException, TException):
            return  # the server was killed

    def check(self, table: happybase.Table) -> None:
        for row, tried in self.attempted.items():
            cells = table.row(row)
            assert len(cells) in (0, 3), f"{row!r} is torn: {sorted(cells)}"
            assert len(set(cells.values())) <= 1, f"{row!r} mixes two mutations"
            held = int(next(iter(cells.values()), b"0 ").split()[0])
            sure = self.acknowledged.get(row, 0)
            assert sure <= held <= tried, f"{row!r} holds {held}; {sure} was acknowledged, {tried} tried"
            self.acknowledged[row] = self.attempted[row] = held
        counted = table.counter_get(b"counter-%d" % self.number, b"c:n")
        assert self.added <= counted <= self.tried, f"counter {self.number}: {self.added} <= {counted} <= {self.tried}"
        self.added = self.tried = counted


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
def test_what_was_acknowledged_survives(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED} COLUMNAR_KILLS={KILLS}")
    rng = random.Random(SEED)
    writers = [Writer(n) for n in range(WRITERS)]
    store = StoreProcess(tmp_path / "data")
    store.start()
    try:
        connect(store.port).create_table("t", FAMILIES)
        for _ in range(KILLS):
            seeds = [random.Random(rng.random()) for _ in writers]
            threads = [
                threading.Thread(target=w.run, args=(store.port, s)) for w, s in zip(writers, seeds, strict=True)
            ]
            for thread in threads:
                thread.start()
            threading.Event().wait(rng.uniform(0.02, 0.5))
            store.kill()
            for thread in threads:
                thread.join()
            store.start()
            connection = connect(store.port)
            for writer in writers:
                writer.check(connection.table("t"))
            connection.close()
    finally:
        store.kill()
    assert sum(writer.added for writer in writers) > 0, "nothing was written: the test shows nothing"
