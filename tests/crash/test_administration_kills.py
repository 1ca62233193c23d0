"""kill -9 in the middle of alter and truncate: each is wholly done or wholly undone after the restart.

COLUMNAR_KILLS says how many kills (4), COLUMNAR_SEED repeats a run.  The kill comes at a random moment after a change
was requested; a change that was acknowledged before the kill must be there.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from thriftpy2.thrift import TException

from columnar.client import Admin, Connection
from tests.support.seeds import seed
from tests.support.store_process import StoreProcess

KILLS = int(os.environ.get("COLUMNAR_KILLS", "4"))
SEED = seed(3905050724)
ROWS = [b"%02d" % n for n in range(8)]
LONGEST_S = 0.08  # a change takes some 30 ms

State = dict[bytes, set[bytes]]  # family -> the values in it, over all rows and versions


@dataclass
class Change:
    """A change requested in a thread of its own, with the state of the table after it."""

    ask: Callable[[Admin], object]
    after: State
    acknowledged: threading.Event = field(default_factory=threading.Event)

    def run(self, connection: Connection) -> None:
        try:
            self.ask(connection.admin)
            self.acknowledged.set()
        except (OSError, EOFError, TException):
            return  # the server was killed


def filled(connection: Connection, value: bytes) -> State:
    """Fill every family of every row with as many versions as it keeps, because a dropped family's must not come back.

    So no versions of an earlier filling are left.
    """
    table = connection.table("t")
    state: State = {}
    for family in connection.admin.describe("t").families:
        versions = [b"older " + value, b"old " + value, value]
        for version in versions:
            with table.batch() as batch:
                for row in ROWS:
                    batch.put(row, {family.name + b":q": version})
            [(_, newest_ms)] = table.cells(ROWS[-1], family.name + b":q", versions=1, include_timestamp=True)
            # Of one millisecond only the last version stays, and after a kill the store's clock stands a while.
            while time.time_ns() // 1_000_000 <= newest_ms:
                threading.Event().wait(0.001)
        state[family.name] = set(versions[-int(family.attributes["VERSIONS"]) :])
    return state


def found_in(connection: Connection) -> State:
    table = connection.table("t")
    return {
        family.name: {value for row in ROWS for value in table.cells(row, family.name + b":q", versions=9)}
        for family in connection.admin.describe("t").families
    }


def drawn(rng: random.Random, before: State, value: bytes) -> Change:
    compression = rng.choice(["none", "lz4", "zstd"])
    if b"extra" not in before:
        after = {b"keep": {value}, b"extra": set[bytes]()}
        change = {"keep": {"versions": 1, "compression": compression}}
        return Change(lambda admin: admin.alter_table("t", add={"extra": {"versions": 3}}, change=change), after)
    if rng.random() < 0.4:
        preserve = rng.random() < 0.5
        return Change(lambda admin: admin.truncate("t", preserve_splits=preserve), {name: set() for name in before})
    after = {b"keep": before[b"keep"]}
    change = {"keep": {"versions": 3, "in_memory": rng.random() < 0.5}}
    return Change(lambda admin: admin.alter_table("t", drop=["extra"], change=change), after)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
def test_changes_are_whole(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED} COLUMNAR_KILLS={KILLS}")
    rng = random.Random(SEED)
    store = StoreProcess(tmp_path / "data")
    store.start()
    try:
        connection = store.connect()
        connection.admin.create_table("t", {"keep": {"versions": 3}}, splits=[ROWS[4]])
        for number in range(KILLS):
            before = filled(connection, b"%d" % number)
            change = drawn(rng, before, b"%d" % number)
            thread = threading.Thread(target=change.run, args=(connection,))
            thread.start()
            threading.Event().wait(rng.uniform(0, LONGEST_S))
            store.kill()
            thread.join()
            store.start()
            connection = store.connect()
            found = found_in(connection)
            possible = [change.after] if change.acknowledged.is_set() else [change.after, before]
            assert found in possible, f"kill {number}: {found} is none of {possible}"
            assert len(list((tmp_path / "data" / "regions").iterdir())) >= 2  # meta and what the table has
        connection.close()
    finally:
        store.kill()
