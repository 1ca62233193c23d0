"""The data folder is moved away while the store serves: nothing new grows at its old place.

Moved back all goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from columnar.client import Connection
from columnar.client.errors import IOError
from tests.support.serving import Serving

MAKERS: dict[str, Callable[[Connection], object]] = {
    "a table": lambda connection: connection.create_table(b"new", {"f": {}}, splits=[b"m"]),
    "a snapshot": lambda connection: connection.snapshots.take_snapshot("new", b"t"),
    "a clone": lambda connection: connection.snapshots.clone_snapshot("old", b"new"),
    "a staging folder": lambda connection: connection.call("columnarStage", "everything", b""),
    "an emptied table": lambda connection: connection.admin.truncate("u"),
}


def test_nothing_is_made_in_its_place(tmp_path: Path) -> None:
    data, away = tmp_path / "data", tmp_path / "away"
    store = Serving(data).start()
    connection = store.connect()
    for table in (b"t", b"u"):
        connection.create_table(table, {"f": {}})
        connection.table(table).put(b"r", {b"f:x": b"v"})
    connection.snapshots.take_snapshot("old", b"t")
    data.rename(away)
    for what, make in MAKERS.items():
        with pytest.raises(IOError) as refused:
            make(connection)
        assert refused.value.message.startswith((b"IOException: ", b"SnapshotDoesNotExistException: ")), what
        assert not data.exists(), what
    assert connection.table(b"t").row(b"r") == {b"f:x": b"v"}, "what is open is served"
    away.rename(data)
    assert sorted(connection.tables()) == [b"t", b"u"]
    connection.create_table(b"new", {"f": {}}, splits=[b"m"])
    connection.snapshots.take_snapshot("new", b"t")
    assert connection.table(b"u").row(b"r") == {b"f:x": b"v"}
    store.stop()
    again = Serving(data).start()
    assert sorted(again.connect().tables()) == [b"new", b"t", b"u"]
    assert [one.name for one in again.connect().snapshots.list_snapshots()] == ["new", "old"]
    again.stop()
