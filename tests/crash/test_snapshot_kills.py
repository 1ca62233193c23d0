"""``kill -9`` while snapshots are taken, cloned, restored and deleted, and while a table is imported.

After each restart every table is whole or absent, every listed snapshot can be restored, and the check of the folder
finds nothing: no half table, no folder that the catalogue does not name.  COLUMNAR_KILLS, COLUMNAR_SEED.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from columnar.cli import main
from columnar.client import Connection
from tests.support.seeds import seed
from tests.support.standalone_store import ENVIRONMENT, StoreProcess

KILLS = int(os.environ.get("COLUMNAR_KILLS", "3"))
SEED = seed(1603)
ROWS = 300


def fill(connection: Connection, generation: bytes) -> None:
    with connection.table(b"t").batch() as batch:
        for n in range(ROWS):
            batch.put(b"%c%d" % (b"az"[n % 2], n), {b"f:g": generation, b"f:v": b"x" * 100})


def generations(connection: Connection, table: bytes) -> set[bytes]:
    """Return the values of a table's rows; a whole table has ROWS rows."""
    rows = list(connection.table(table).scan())
    assert len(rows) == ROWS, f"{table!r} has {len(rows)} rows"
    return {cells[b"f:g"] for _, cells in rows}


class Operator(threading.Thread):
    """An operator who takes, clones, restores and deletes snapshots until the server dies."""

    def __init__(self, store: StoreProcess, round_number: int) -> None:
        super().__init__()
        self._connection = store.connection()
        self._round = round_number
        self.done = 0
        self.once = threading.Event()  # one of each was done

    def run(self) -> None:
        snapshots = self._connection.snapshots
        try:
            for n in range(1_000):
                name = f"s{self._round}-{n}"
                snapshots.take_snapshot(name, b"t")
                snapshots.clone_snapshot(name, f"c{self._round}-{n}".encode())
                snapshots.restore_snapshot(name)
                if n % 2:
                    snapshots.delete_snapshot(name)
                self.done += 1
                self.once.set()
        except (OSError, EOFError, TTransportException, TException):
            return  # the server was killed


def findings(data: Path) -> list[object]:
    result = CliRunner().invoke(main, ["check", "--data", str(data), "--json"])
    found: list[object] = json.loads(result.stdout)["findings"]
    return [one for one in found if not (isinstance(one, dict) and one["severity"] == "note")]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
def test_snapshots_are_whole_or_not_there(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED} COLUMNAR_KILLS={KILLS}")
    rng = random.Random(SEED)
    done = 0
    with StoreProcess(tmp_path / "data") as store:
        connection = store.connection()
        connection.create_table(b"t", {"f": {"max_versions": 1}}, splits=[b"m"])
        fill(connection, b"1")
        connection.close()
        for number in range(KILLS):
            operator = Operator(store, number)
            operator.start()
            assert number > 0 or operator.once.wait(20)
            threading.Event().wait(rng.uniform(0.05, 0.7))
            store.kill()
            operator.join()
            done += operator.done
            store.start()
            connection = store.connection()
            for table in connection.tables():
                assert generations(connection, table) == {b"1"}
            for one in connection.snapshots.list_snapshots():
                connection.snapshots.restore_snapshot(one.name)
                assert generations(connection, b"t") == {b"1"}
                connection.snapshots.delete_snapshot(one.name)
            for table in connection.tables():
                if table != b"t":
                    connection.delete_table(table, disable=True)
            connection.close()
            assert store.stop() == 0
            assert findings(tmp_path / "data") == []
            assert [path for path in (tmp_path / "data" / "snapshots").glob("*") if path.is_dir()] == []
            store.start()
    assert done > 0, "nothing was done: the test shows nothing"


def drop_copy(connection: Connection) -> None:
    """Drop the table of a killed import, which must be whole if it exists."""
    if b"copy" in connection.tables():
        assert generations(connection, b"copy") == {b"1"}
        connection.delete_table(b"copy", disable=True)


def test_an_import_that_was_shot_leaves_nothing_and_can_be_begun_again(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with StoreProcess(tmp_path / "data") as store:
        connection = store.connection()
        connection.create_table(b"t", {"f": {"max_versions": 1}}, splits=[b"m"])
        fill(connection, b"1")
        environment = {**ENVIRONMENT, "COLUMNAR_STORE": f"127.0.0.1:{store.port}"}
        command = [sys.executable, "-m", "columnar"]
        folder = str(tmp_path / "x")
        subprocess.run([*command, "export", "t", folder], env=environment, check=True, capture_output=True)
        for _ in range(2):
            importing = subprocess.Popen(
                [*command, "import", folder, "copy"], env=environment, stderr=subprocess.DEVNULL
            )
            threading.Event().wait(rng.uniform(0.3, 0.6))  # it takes half a second
            importing.kill()
            importing.wait()
            drop_copy(connection)
        # What the last one asked for before it died may still be carried out: then the table is there, whole.
        for _ in range(3):
            done = subprocess.run([*command, "import", folder, "copy"], env=environment, capture_output=True, text=True)
            if done.returncode == 0:
                break
            assert "already" in done.stderr, done.stderr
            drop_copy(connection)
        assert generations(connection, b"copy") == {b"1"}
        connection.close()
        assert store.stop() == 0
        store.start()
        assert list((tmp_path / "data" / "staging").iterdir()) == [], "the start removes what dead commands left"
        assert store.stop() == 0
        assert findings(tmp_path / "data") == []
        store.start()
