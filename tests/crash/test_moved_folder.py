"""The data folder is moved away while the store serves: nothing new grows at its old place.

After the folder is moved back everything continues.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from columnar.client import Connection
from columnar.client.errors import IOError
from columnar.storage import commit
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


def test_the_log_of_the_server_is_not_begun_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, away = tmp_path / "data", tmp_path / "away"
    store = Serving(data).start()
    connection = store.connect()
    connection.create_table(b"t", {"f": {}})
    connection.table(b"t").put(b"r", {b"f:x": b"v"})
    data.rename(away)
    monkeypatch.setattr(commit, "SHARED_FROM", 0)

    def write() -> None:
        connection.table(b"t").put(b"r", {b"f:x": b"w"})
        rounds = store.do(lambda: store.store.stores.committer._rounds)
        assert rounds is not None
        rounds._appender.submit(lambda: None).result(10)  # behind what readies the log

    write()
    assert not data.exists()
    assert connection.table(b"t").row(b"r") == {b"f:x": b"w"}, "by the region's own log"
    away.rename(data)
    store.do(lambda: store.store.stores.committer._rounds._may_prepare())  # type: ignore[union-attr]
    write()
    assert (data / "server-log" / "run").exists()
    store.stop()
    again = Serving(data).start()
    assert again.connect().table(b"t").row(b"r") == {b"f:x": b"w"}
    again.stop()
