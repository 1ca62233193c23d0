"""The whole store in a thread: what it tells of itself, and what it does when its disk refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from columnar import standalone
from columnar.client.errors import IOError
from columnar.storage.rocks import RocksEngine
from tests.support.held_engine import HeldEngine
from tests.support.store_thread import StoreThread


def test_regions_name_the_port_that_was_free(tmp_path: Path) -> None:
    with StoreThread(tmp_path) as store:
        connection = store.connection()
        connection.create_table("t", {"f": {}})
        (region,) = connection.table("t").regions()
        assert (region["server_name"], region["port"]) == (b"127.0.0.1", store.port)
        connection.close()


def test_the_status_knows_the_size_of_what_is_not_open(tmp_path: Path) -> None:
    with StoreThread(tmp_path) as store:
        connection = store.connection()
        connection.create_table("t", {"f": {}})
        connection.create_table("never", {"f": {}})
        for number in range(20):
            connection.table("t").put(b"%d" % number, {b"f:q": os.urandom(50_000)})
        connection.close()
    with StoreThread(tmp_path) as store:
        connection = store.connection()
        sizes = {table.name: table.sizeBytes for table in connection.status().tables}
        assert 1_000_000 < sizes[b"t"] < 3_000_000
        assert sizes[b"never"] == 0
        connection.table("t").row(b"1")  # opens it
        assert 1_000_000 < {t.name: t.sizeBytes for t in connection.status().tables}[b"t"] < 3_000_000
        connection.close()


def test_a_catalogue_that_cannot_be_synced_is_changed_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody knows what of the change is on disk: a second one on top of it could end in half tables."""
    engine = HeldEngine(RocksEngine())
    with monkeypatch.context() as patch:
        patch.setattr(standalone, "RocksEngine", lambda: engine)
        with StoreThread(tmp_path) as store:
            connection = store.connection()
            connection.create_table("t", {"f": {}})
            engine.gate.fail()
            with pytest.raises(IOError, match=r"b'CallTimeoutException: the disk refused to sync"):
                connection.create_table("lost", {"f": {}})
            engine.gate.release()
            for change in (
                lambda: connection.create_table("later", {"f": {}}),
                lambda: connection.disable_table("t"),
            ):
                with pytest.raises(IOError, match=r"b'IOException: .* until the store is restarted: "):
                    change()
            connection.table("t").put(b"r", {b"f:q": b"v"})
            assert connection.tables() == [b"t"]
            connection.close()
    (line,) = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert line.getMessage().startswith("RESTART THE STORE: ")
    with StoreThread(tmp_path) as store:
        connection = store.connection()
        assert connection.table("t").row(b"r") == {b"f:q": b"v"}
        connection.create_table("later", {"f": {}})
        assert b"later" in connection.tables()
        connection.close()
