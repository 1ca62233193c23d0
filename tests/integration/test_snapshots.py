"""Snapshots of a table that serves: taken under writes, cloned, restored, deleted, and cut off by a crash."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import Connection
from columnar.client.admin import RegionAdmin
from columnar.client.errors import AlreadyExists, IllegalArgument, IOError
from columnar.config import MemorySettings
from columnar.master import view_generations
from columnar.model.view_definition import Source, View
from tests.support import trigger_functions
from tests.support.cluster_process import until
from tests.support.serving import Serving


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    store = Serving(tmp_path / "data").start()
    yield store
    store.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


def made(connection: Connection, name: bytes = b"t", **attributes: str) -> None:
    families = {"a": {"max_versions": 3}, "b": {"max_versions": 1}}
    connection.create_table(name, families, attributes=attributes, splits=[b"m"])


def fill(connection: Connection, table: bytes, count: int, text: bytes = b"v") -> None:
    with connection.table(table).batch() as batch:
        for n in range(count):
            batch.put(b"%c%03d" % (b"bq"[n % 2], n), {b"a:x": text, b"b:y": b"%d" % n})


def dump(connection: Connection, name: bytes) -> list[object]:
    """Every row: its newest cells, and all versions of the one that keeps several."""
    table = connection.table(name)
    return [
        (row, cells, table.cells(row, b"a:x", 9, include_timestamp=True))
        for row, cells in table.scan(include_timestamp=True)
    ]


def test_a_clone_is_what_the_table_was(connection: Connection) -> None:
    made(connection)
    fill(connection, b"t", 40, b"older")
    fill(connection, b"t", 40, b"newer")
    then = dump(connection, b"t")
    taken = connection.snapshots.take_snapshot("s1", b"t")
    assert (taken.name, taken.table, taken.regions) == ("s1", b"t", 2)
    assert taken.size_bytes > 0
    fill(connection, b"t", 50, b"newest")
    connection.snapshots.clone_snapshot("s1", b"copy")
    assert dump(connection, b"copy") == then
    assert len(connection.table(b"copy").regions()) == 2
    fill(connection, b"copy", 3, b"its own")
    assert connection.table(b"t").row(b"b000")[b"a:x"] == b"newest"
    assert [one.name for one in connection.snapshots.list_snapshots()] == ["s1"]
    with pytest.raises(AlreadyExists):
        connection.snapshots.clone_snapshot("s1", b"copy")


def test_a_restored_table_is_what_it_was_and_outlives_a_restart(serving: Serving, connection: Connection) -> None:
    made(connection)
    fill(connection, b"t", 20)
    then = dump(connection, b"t")
    connection.snapshots.take_snapshot("s1", b"t")
    fill(connection, b"t", 60, b"later")
    scan = connection.table(b"t").scan(batch_size=2)
    next(scan)
    connection.snapshots.restore_snapshot("s1")
    assert len(list(scan)) == 19, "an open scan goes on in what the table is now"
    assert dump(connection, b"t") == then
    fill(connection, b"t", 1, b"after")
    assert connection.table(b"t").row(b"b000")[b"a:x"] == b"after"
    connection.disable_table(b"t")
    connection.delete_table(b"t")
    connection.snapshots.restore_snapshot("s1")
    assert dump(connection, b"t") == then
    regions = Path(serving.store.folder.path) / "regions"
    named = {info.encoded for entry in serving.store.leading.catalogue.tables.values() for info in entry.regions}
    assert {path.name for path in regions.iterdir()} - {"meta"} <= named, "folders of old regions are gone"
    serving.stop()
    serving.start()
    assert dump(serving.connect(), b"t") == then


def test_what_is_refused(serving: Serving, connection: Connection) -> None:
    made(connection)
    snapshots = connection.snapshots
    snapshots.take_snapshot("s1", b"t")
    for text, call in (
        (b"SnapshotExistsException: snapshot s1 exists already", lambda: snapshots.take_snapshot("s1", b"t")),
        (b"TableNotFoundException: none", lambda: snapshots.take_snapshot("s2", b"none")),
        (b"SnapshotDoesNotExistException: there is no snapshot no", lambda: snapshots.clone_snapshot("no", b"x")),
        (b"NamespaceNotFoundException: columnar is the", lambda: snapshots.clone_snapshot("s1", b"columnar:x")),
        (b"NamespaceNotFoundException: none; make it first", lambda: snapshots.clone_snapshot("s1", b"none:x")),
        (b"SnapshotDoesNotExistException", lambda: snapshots.restore_snapshot("no")),
        (b"SnapshotDoesNotExistException", lambda: snapshots.delete_snapshot("no")),
    ):
        with pytest.raises(IOError) as refused:
            call()
        assert text in refused.value.message
    for name in ("../x", "", ".hidden", "x.taking"):
        with pytest.raises(IllegalArgument):
            snapshots.take_snapshot(name, b"t")
    assert [name for name in connection.tables() if name != b"t"] == []
    snapshots.delete_snapshot("s1")
    assert snapshots.list_snapshots() == []
    assert list((Path(serving.store.folder.path) / "snapshots").iterdir()) == []
    snapshots.take_snapshot("s1", b"t")


def test_a_table_does_not_come_back_without_its_namespace(connection: Connection) -> None:
    admin, snapshots = connection.admin, connection.snapshots
    admin.create_namespace("n")
    made(connection, b"n:t")
    fill(connection, b"n:t", 10)
    snapshots.take_snapshot("s1", b"n:t")
    connection.disable_table(b"n:t")
    connection.delete_table(b"n:t")
    admin.drop_namespace("n")
    with pytest.raises(IOError, match="NamespaceNotFoundException: n; make it first"):
        snapshots.restore_snapshot("s1")
    assert connection.tables() == []
    admin.create_namespace("n")
    snapshots.restore_snapshot("s1")
    assert len(dump(connection, b"n:t")) == 10


def test_a_namespace_that_is_full_takes_no_table_back(connection: Connection) -> None:
    connection.admin.create_namespace("small", {"hbase.namespace.quota.maxtables": "1"})
    made(connection, b"small:t")
    connection.snapshots.take_snapshot("kept", b"small:t")
    connection.snapshots.restore_snapshot("kept")
    with pytest.raises(IOError, match="namespace small has 1 tables, and takes 1"):
        connection.snapshots.clone_snapshot("kept", b"small:u")
    connection.delete_table(b"small:t", disable=True)
    made(connection, b"small:other")
    with pytest.raises(IOError, match="namespace small has 1 tables, and takes 1"):
        connection.snapshots.restore_snapshot("kept")
    connection.admin.alter_namespace("small", {"hbase.namespace.quota.maxtables": None})
    connection.snapshots.restore_snapshot("kept")
    assert connection.admin.namespace_tables("small") == [b"small:other", b"small:t"]


def test_a_namespace_takes_so_many_regions(connection: Connection) -> None:
    admin, regions = connection.admin, RegionAdmin(connection)
    admin.create_namespace("few", {"hbase.namespace.quota.maxregions": "3"})
    with pytest.raises(IOError, match="namespace few has 0 regions, and takes 3"):
        admin.create_table("few:wide", {"a": None}, splits=[b"c", b"f", b"k"])
    made(connection, b"few:t")  # two regions
    fill(connection, b"few:t", 40)
    with pytest.raises(IOError, match="namespace few has 2 regions, and takes 3"):
        made(connection, b"few:u")
    regions.split(b"few:t", b"c")
    assert len(admin.regions("few:t")) == 3
    with pytest.raises(IOError, match="namespace few has 3 regions, and takes 3"):
        regions.split(b"few:t", b"r")
    assert len(admin.regions("few:t")) == 3
    connection.snapshots.take_snapshot("three", b"few:t")
    with pytest.raises(IOError, match="namespace few has 3 regions"):
        connection.snapshots.clone_snapshot("three", b"few:copy")
    admin.disable("few:t")
    admin.truncate("few:t", enable=True)
    assert len(admin.regions("few:t")) == 1
    connection.snapshots.restore_snapshot("three")
    assert (len(admin.regions("few:t")), len(dump(connection, b"few:t"))) == (3, 40)


def test_no_table_comes_under_the_name_that_means_a_generation_of_a_view(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody could reach it: readers of the name see the view."""
    monkeypatch.setattr(view_generations, "KEPT_MS", 0)
    monkeypatch.setattr(view_generations, "SWEEP_S", 0.01)
    store = Serving(tmp_path / "data").start()
    try:
        clones_and_restores_beside_a_view(store.connect())
    finally:
        store.stop()


def clones_and_restores_beside_a_view(connection: Connection) -> None:
    made(connection, b"by_x")
    connection.snapshots.take_snapshot("s1", b"by_x")
    connection.disable_table(b"by_x")
    connection.delete_table(b"by_x")
    made(connection)
    connection.views.add(View("by_x", Source("t", ("a:x",))))
    connection.views.rebuild("by_x")
    while [one.state for one in connection.views.list()] != ["live", "live"]:
        assert connection.views.wait("by_x@2")
    connection.views.swap("by_x")
    while [one.table for one in connection.views.list()] != ["by_x.2"]:
        pass  # the first one is dropped soon
    with pytest.raises(AlreadyExists):
        connection.snapshots.clone_snapshot("s1", b"by_x")
    with connection.snapshots.staged("copy", b"t") as staged, pytest.raises(AlreadyExists):
        connection.snapshots.adopt_staged(staged, b"by_x")
    with pytest.raises(IOError, match="by_x is a view"):
        connection.snapshots.restore_snapshot("s1")


def test_regions_that_were_staged_become_a_new_table_and_replace_none(connection: Connection) -> None:
    """A command looks before it begins; a table that was made meanwhile keeps its rows."""
    made(connection)
    fill(connection, b"t", 10)
    then = dump(connection, b"t")
    with connection.snapshots.staged("copy", b"t") as staged:
        fill(connection, b"t", 5, b"later")
        now = dump(connection, b"t")
        with pytest.raises(AlreadyExists):
            connection.snapshots.adopt_staged(staged, b"t")
        with pytest.raises(IOError, match="NamespaceNotFoundException: columnar is the system's own"):
            connection.snapshots.adopt_staged(staged, b"columnar:x")
        assert dump(connection, b"t") == now
        connection.snapshots.adopt_staged(staged, b"copy")
        assert dump(connection, b"copy") == then
        with pytest.raises(IOError, match="is gone; begin again"):
            connection.snapshots.adopt_staged(staged, b"again")
    assert sorted(connection.tables()) == [b"copy", b"t"]


def test_a_disabled_table_can_be_kept_and_stays_disabled(serving: Serving, connection: Connection) -> None:
    made(connection)
    fill(connection, b"t", 10)
    then = dump(connection, b"t")
    connection.disable_table(b"t")
    connection.snapshots.take_snapshot("s1", b"t")
    assert serving.do(lambda: serving.store.serving.server.open_regions_of("t")) == []
    connection.snapshots.clone_snapshot("s1", b"copy")
    assert dump(connection, b"copy") == then
    connection.snapshots.restore_snapshot("s1")
    assert not connection.is_table_enabled(b"t")
    connection.enable_table(b"t")
    assert dump(connection, b"t") == then


def test_triggers_keep_a_table_from_being_restored_and_do_not_follow_a_clone(
    serving: Serving, connection: Connection
) -> None:
    made(connection)
    connection.create_table(b"audit", {"a": {}})
    fill(connection, b"t", 4)
    connection.triggers.add("copier", b"t", f"{trigger_functions.MODULE}:note", [b"a"])
    fill(connection, b"t", 8)
    assert connection.triggers.wait("copier")
    connection.snapshots.take_snapshot("s1", b"t")
    with pytest.raises(IOError, match=r"watched by copier.*columnar trigger remove"):
        connection.snapshots.restore_snapshot("s1")
    connection.snapshots.clone_snapshot("s1", b"clone")
    fill(connection, b"clone", 8, b"of the clone")
    cells = serving.do(
        lambda: [
            (list(region.store.scan("log", b"", None)), region.log.cursors.all_cursors())
            for region in serving.store.serving.server.open_regions_of("clone")
        ]
    )
    assert cells == [([], {}), ([], {})]
    connection.triggers.remove("copier")
    connection.snapshots.restore_snapshot("s1")


def test_rows_are_whole_in_a_snapshot_taken_under_writes(serving: Serving, connection: Connection) -> None:
    made(connection)
    fill(connection, b"t", 2_000)
    stopped = threading.Event()
    rounds = [0]

    def write() -> None:
        mine = serving.connect().table(b"t")
        while not stopped.is_set():
            rounds[0] += 1
            for row in (b"b-hot", b"q-hot"):
                mine.put(row, {b"a:x": b"%d" % rounds[0], b"b:y": b"%d" % rounds[0]})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = []
        for n in range(3):
            before = rounds[0]
            connection.snapshots.take_snapshot(f"s{n}", b"t")
            connection.snapshots.clone_snapshot(f"s{n}", b"clone%d" % n)
            for row in (b"b-hot", b"q-hot"):
                cells = connection.table(b"clone%d" % n).row(row)
                if cells:
                    assert cells[b"a:x"] == cells[b"b:y"], "a row is whole"
                    assert before - 1 <= int(cells[b"a:x"]) <= rounds[0]
                    seen.append(cells)
    finally:
        stopped.set()
        writer.join()
    assert seen, "nothing was written: the test shows nothing"
    assert connection.snapshots.list_snapshots()[0].regions == 2


def test_regions_that_are_closed_are_copied_without_being_opened(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "data", memory=MemorySettings(open_regions=3)).start()
    try:
        connection = serving.connect()
        connection.create_table(b"t", {"a": {"max_versions": 3}, "b": {}}, splits=[b"c", b"d", b"m", b"r"])
        fill(connection, b"t", 60)
        then = dump(connection, b"t")
        server = serving.store.serving.server
        until(lambda: serving.do(lambda: len(list(server.all_open()))) <= 3)  # those over the bound are closed
        before = serving.do(lambda: {region.info.region_id for region in server.all_open()})
        assert len(serving.do(lambda: server.open_regions_of("t"))) < 5
        connection.snapshots.take_snapshot("s1", b"t")
        assert serving.do(lambda: {region.info.region_id for region in server.all_open()}) == before
        fill(connection, b"t", 60, b"later")
        connection.snapshots.clone_snapshot("s1", b"copy")
        assert dump(connection, b"copy") == then
        connection.snapshots.restore_snapshot("s1")
        assert dump(connection, b"t") == then
    finally:
        serving.stop()
    again = Serving(tmp_path / "data").start()
    try:
        assert dump(again.connect(), b"t") == dump(again.connect(), b"copy") == then
    finally:
        again.stop()
