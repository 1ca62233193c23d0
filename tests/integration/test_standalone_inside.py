"""The whole store in a thread: what it tells of itself, and what it does when its disk refuses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection
from columnar.client.admin import RegionAdmin
from columnar.client.errors import IOError
from columnar.errors import DamagedData
from columnar.master.catalogue import Catalogue
from columnar.master.ownership_rows import OwnershipRows
from columnar.roles import meta_region, standalone
from columnar.roles.leading import Leading
from columnar.roles.ports import ServerPorts
from columnar.storage.rocks import RocksEngine
from columnar.triggers.trigger_manager import TriggerManager
from tests.support.failing_disk import until_it_works
from tests.support.held_engine import HeldEngine
from tests.support.serving import Serving
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


def test_a_catalogue_that_cannot_be_synced_is_mended_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody knows what of the change is on disk: a second one on top of it could end in half tables."""
    monkeypatch.setattr(meta_region, "RETRY_S", 0.05)
    engine = HeldEngine(RocksEngine())
    with monkeypatch.context() as patch:
        patch.setattr(standalone.RocksEngine, "planned", lambda _plan: engine)
        with StoreThread(tmp_path) as store:
            connection = store.connection()
            connection.create_table("t", {"f": {}})
            engine.gate.fail()
            with pytest.raises(IOError, match=r"^CallTimeoutException: the disk refused to sync"):
                connection.create_table("lost", {"f": {}})
            for _ in range(2):  # it is tried, and not believed before the disk has it
                engine.gate.entered.clear()
                assert engine.gate.entered.wait(20)
            for change in (
                lambda: connection.create_table("later", {"f": {}}),
                lambda: connection.disable_table("t"),
            ):
                with pytest.raises(IOError, match=r"^IOException: .* until the disk takes writes of the catalogue"):
                    change()
            assert connection.tables() == [b"t"]
            engine.gate.release()
            until_it_works(lambda: connection.create_table("later", {"f": {}}))
            assert sorted(connection.tables()) == [b"later", b"t"]
            connection.create_table("lost", {"f": {}})
            connection.table("lost").put(b"r", {b"f:q": b"v"})
            connection.close()
    (line,) = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert "none can be made, changed or dropped until the disk takes writes again" in line.getMessage()
    with StoreThread(tmp_path) as store:
        connection = store.connection()
        assert sorted(connection.tables()) == [b"later", b"lost", b"t"]
        assert connection.table("lost").row(b"r") == {b"f:q": b"v"}
        connection.close()


def test_a_region_whose_split_is_of_unknown_outcome_serves_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meta_region, "RETRY_S", 0.05)
    engine = HeldEngine(RocksEngine())

    def at(step: str) -> None:
        if step == "made":
            engine.gate.fail()

    with monkeypatch.context() as patch:
        patch.setattr(standalone.RocksEngine, "planned", lambda _plan: engine)
        with StoreThread(tmp_path) as store:
            connection = store.connection()
            connection.create_table("t", {"f": {}})
            for row in (b"a", b"z"):
                connection.table("t").put(row, {b"f:q": b"v"})
            store.inside.leading.region_changes.at = at
            with pytest.raises(IOError, match="refused to sync"):
                RegionAdmin(connection).split(b"t", b"m")
            with pytest.raises(IOError, match="known when the disk takes writes again"):
                connection.table("t").row(b"a")
            store.inside.leading.region_changes.at = lambda _step: None
            engine.gate.release()
            until_it_works(lambda: connection.table("t").put(b"b", {b"f:q": b"v"}))
            assert [row for row, _ in connection.table("t").scan()] == [b"a", b"b", b"z"]
            assert len(RegionAdmin(connection).split(b"t", b"m")) == 2
            connection.close()
    with StoreThread(tmp_path) as store:
        connection = store.connection()
        assert [row for row, _ in connection.table("t").scan()] == [b"a", b"b", b"z"]
        connection.close()


LOSSES: dict[str, tuple[str, Callable[[Connection], object]]] = {  # the catalogue's method whose write fails; how
    "truncate": ("adopt", lambda connection: connection.admin.truncate("t")),
    "drop a family": ("alter", lambda connection: connection.admin.alter_table("t", drop=["g"])),
    "restore": ("adopt", lambda connection: connection.snapshots.restore_snapshot("empty")),
}


@pytest.mark.parametrize(("method", "change"), LOSSES.values(), ids=LOSSES)
def test_a_table_that_may_have_lost_its_rows_takes_nothing_that_could_be_lost_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, change: Callable[[Connection], object]
) -> None:
    monkeypatch.setattr(meta_region, "RETRY_S", 0.05)
    engine = HeldEngine(RocksEngine())
    with monkeypatch.context() as patch:
        patch.setattr(standalone.RocksEngine, "planned", lambda _plan: engine)
        with StoreThread(tmp_path) as store:
            connection = store.connection()
            connection.create_table("t", {"f": {}, "g": {}})
            connection.snapshots.take_snapshot("empty", b"t")
            connection.table("t").put(b"a", {b"f:q": b"v", b"g:q": b"v"})
            write = getattr(store.inside.leading.catalogue, method)

            async def refused(*asked: Any, **more: Any) -> Any:
                engine.gate.fail()
                return await write(*asked, **more)

            patch.setattr(store.inside.leading.catalogue, method, refused)
            with pytest.raises(IOError, match="refused to sync"):
                change(connection)
            with pytest.raises(IOError, match="TableNotEnabled"):
                connection.table("t").put(b"b", {b"g:q": b"v"})
            engine.gate.release()
            until_it_works(lambda: connection.table("t").put(b"b", {b"g:q": b"v"}))
            connection.close()
    with StoreThread(tmp_path) as store:
        connection = store.connection()
        held = dict(connection.table("t").scan())
        assert held == {b"a": {b"f:q": b"v", b"g:q": b"v"}, b"b": {b"g:q": b"v"}}
        connection.close()


def test_a_store_stops_while_its_catalogue_cannot_be_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = HeldEngine(RocksEngine())
    with monkeypatch.context() as patch:
        patch.setattr(standalone.RocksEngine, "planned", lambda _plan: engine)
        with StoreThread(tmp_path) as store:
            connection = store.connection()
            engine.gate.fail()
            with pytest.raises(IOError, match="refused to sync"):
                connection.create_table("lost", {"f": {}})
            connection.close()
    with StoreThread(tmp_path) as store:
        connection = store.connection()
        connection.create_table("t", {"f": {}})
        connection.close()


@pytest.mark.parametrize(
    ("owner", "step"),
    [
        (Catalogue, "_load"),
        (OwnershipRows, "raise_epoch"),
        (Leading, "start"),
        (TriggerManager, "load"),
        (ServerPorts, "listen"),
    ],
)
def test_a_start_that_fails_leaves_no_store_open(
    tmp_path: Path, owner: type, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same process can start again at once: it holds no lock of a store."""
    first = Serving(tmp_path / "data").start()
    first.stop()

    def fails(*_: object) -> None:
        raise DamagedData("as a test would have it")

    failed = Serving(tmp_path / "data")
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, fails)
        with pytest.raises(DamagedData, match="as a test would have it"):
            failed.start()
    again = Serving(tmp_path / "data").start()
    again.stop()
