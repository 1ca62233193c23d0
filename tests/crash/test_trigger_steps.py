"""kill -9 while a trigger is added, at each step, and while the triggers of an older folder move to the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from thriftpy2.thrift import TException

from columnar.client import Connection
from tests.support import trigger_functions
from tests.support.older_store import make_older
from tests.support.store_process import StoreProcess

NOTE = f"{trigger_functions.MODULE}:note"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    store = StoreProcess(tmp_path / "data", trigger_functions.MODULE)
    store.start()
    yield store
    assert store.stop() == 0


def rows_told(connection: Connection) -> list[bytes]:
    """Return the rows of the trigger's calls."""
    assert connection.triggers.wait(timeout_ms=60_000), "not delivered in time"
    return [row for row, _ in connection.table(b"audit").scan()]


def make(connection: Connection) -> None:
    connection.create_table(b"audit", {b"a": {}}, attributes={"DURABILITY": "SYNC_WAL"})
    connection.create_table(b"t", {b"f": {}}, attributes={}, splits=[b"m"])
    for row in (b"before-a", b"z-before"):
        connection.table(b"t").put(row, {b"f:q": b"v"})


def test_a_trigger_is_added_or_not(store: StoreProcess) -> None:
    connection = store.connect()
    make(connection)
    told: list[bytes] = []
    for step in ("written", "marked", "running"):
        (store.folder.parent / "data.die").write_text(step)
        with suppress(TException, OSError, EOFError):
            connection.triggers.add("t", b"t", NOTE, [b"f"])
            raise AssertionError("it did not die")
        connection.close()
        store.kill()
        store.start()
        connection = store.connect()
        names = [one.name for one in connection.triggers.list()]
        assert names == (["t"] if step == "running" else []), step
        for row in (b"a-" + step.encode(), b"z-" + step.encode()):
            connection.table(b"t").put(row, {b"f:q": b"v"})
            told += [row] if names else []
        assert rows_told(connection) == told, step
    connection.close()


@pytest.mark.parametrize("step", ["not moved", "moved"])
def test_triggers_of_an_older_folder_move_once(store: StoreProcess, step: str) -> None:
    connection = store.connect()
    make(connection)
    connection.triggers.add("t", b"t", NOTE, [b"f"])
    connection.triggers.add("rests", b"t", NOTE, [b"f"])
    connection.triggers.add("gone", b"t", NOTE, [b"f"])
    connection.triggers.remove("gone")
    for name in ("t", "rests"):
        connection.triggers.pause(name)
    connection.table(b"t").put(b"a", {b"f:q": b"v"})
    regions = len(list((store.folder / "regions").iterdir()))
    connection.close()
    assert store.stop() == 0
    make_older(store.folder, {b"stray": {b"state": b"running"}})
    assert len(list((store.folder / "regions").iterdir())) == regions + 1
    (store.folder.parent / "data.die").write_text(step)
    with pytest.raises(AssertionError, match="ended while it started"):
        store.start()
    assert (store.folder / "FORMAT").read_text() == "columnar-data 6\n"
    store.start()
    connection = store.connect()
    assert [(one.name, one.state) for one in connection.triggers.list()] == [("rests", "paused"), ("t", "paused")]
    with pytest.raises(TException, match="TableNotFound"):
        connection.table(b"columnar:triggers").put(b"x", {b"info:state": b"running"})
    assert len(list((store.folder / "regions").iterdir())) == regions, "the table's folder is gone"
    connection.table(b"t").put(b"z", {b"f:q": b"v"})
    connection.triggers.resume("t")
    connection.triggers.remove("rests")
    assert rows_told(connection) == [b"a", b"z"]
    connection.triggers.add("gone", b"t", NOTE, [b"f"])
    assert rows_told(connection) == [b"a", b"z"], "its number is another than before"
    connection.close()
