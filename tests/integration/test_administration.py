"""Administration over the wire: a real store, a real trigger worker, the client's ``Admin``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import happybase
import pytest

from columnar.client import Admin, Connection, Source, View, hex_splits
from columnar.client.errors import AlreadyExists, IllegalArgument, IOError, NotColumnar
from tests.support.serving import Serving
from tests.support.shell import Shell
from tests.support.trigger_functions import MODULE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "data"


@pytest.fixture(scope="module")
def serving(folder: Path) -> Iterator[Serving]:
    serving = Serving(folder).start()
    yield serving
    serving.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


@pytest.fixture
def admin(connection: Connection) -> Admin:
    return connection.admin


def test_create_and_describe(admin: Admin, connection: Connection) -> None:
    families = {"a": {"versions": 3, "TTL": 60, "compression": "zstd", "in_memory": True}, b"b": None}
    admin.create_table("made", families, {"MAX_FILESIZE": 1 << 30, "READONLY": False}, splits=hex_splits(4))
    found = admin.describe("made")
    assert (found.name, found.enabled, found.regions, found.triggers) == (b"made", True, 4, ())
    assert found.attributes == {"MAX_FILESIZE": str(1 << 30), "READONLY": "false"}
    first, second = found.families
    assert first.attributes | {"VERSIONS": "3", "TTL": "60", "COMPRESSION": "ZSTD"} == first.attributes
    assert second.attributes == {
        "VERSIONS": "1", "MIN_VERSIONS": "0", "TTL": "FOREVER", "COMPRESSION": "LZ4", "BLOOMFILTER": "ROW",
        "IN_MEMORY": "false", "BLOCKCACHE": "true", "DURABILITY": "USE_DEFAULT",
    }  # fmt: skip
    assert [region.start_key for region in admin.regions("made")] == [b"", *hex_splits(4)]
    assert admin.exists("made")
    assert not admin.exists("not made")
    assert connection.table("made").families()[b"a"]["compression"] in (b"ZSTD", "ZSTD")
    with pytest.raises(AlreadyExists):
        admin.create_table("made", {"a": None})
    for wrong in ({"a": {"nope": 1}}, {"a": {"compression": "gzip"}}, {}):
        with pytest.raises(IllegalArgument):
            admin.create_table("wrong", wrong)
    admin.drop("made", disable=True)
    assert not admin.exists("made")


def test_happybase_makes_tables_as_on_hbase(serving: Serving) -> None:
    """``GZ`` is what most code names; names of tables are UTF-8."""
    plain = happybase.Connection("127.0.0.1", serving.store.port)
    plain.create_table("table.é", {"f": {"compression": "GZ"}, "g": {"compression": "gz", "max_versions": 1}})
    table = plain.table("table.é")
    assert {name: one["compression"] for name, one in table.families().items()} == {b"f": b"GZ", b"g": b"GZ"}
    with table.batch() as batch:
        for number in range(20):
            batch.put(b"%d" % number, {b"f:q": b"columnar " * 200})
    assert len(list(table.scan(row_start=b"1", row_stop=b"2"))) == 11
    assert table.regions()[0]["name"].startswith("table.é,,".encode())
    assert "table.é".encode() in plain.tables()
    plain.compact_table("table.é", major=True)
    with pytest.raises(IllegalArgument, match="compression GZIP is none of"):
        plain.create_table("wrong", {"f": {"compression": "GZIP"}})
    plain.delete_table("table.é", disable=True)
    assert "table.é".encode() not in plain.tables()
    plain.close()


def test_a_name_beyond_ascii_is_a_name_everywhere(admin: Admin, connection: Connection) -> None:
    admin.create_namespace("zoé")
    admin.create_table("zoé:größe", {"f": None}, splits=[b"m"])
    admin.alter_table("zoé:größe", add={"g": {"versions": 2}})
    wire = "zoé:größe".encode()
    connection.table(wire).put(b"r", {b"f:q": b"v"})
    admin.create_table("audit", {"a": None})
    connection.triggers.add("watch", wire, f"{MODULE}:note", [b"f"], from_where="beginning")
    assert connection.triggers.wait("watch", timeout_ms=20_000)
    assert [one.table for one in connection.triggers.list()] == [wire]
    connection.triggers.remove("watch")
    admin.drop("audit", disable=True)
    connection.snapshots.take_snapshot("s1", wire)
    admin.truncate(wire)
    admin.disable(wire)
    connection.snapshots.restore_snapshot("s1")
    admin.enable(wire)
    assert connection.table(wire).row(b"r") == {b"f:q": b"v"}
    connection.snapshots.delete_snapshot("s1")
    assert admin.namespace_tables("zoé") == [wire]
    admin.drop("zoé:größe", disable=True)
    admin.drop_namespace("zoé")
    for name in ("größe".encode("latin-1"), "\ufffd".encode(), b"\xff"):
        with pytest.raises(IOError, match="TableNotFoundException"):
            admin.drop(name)


def test_gz_compresses(admin: Admin, connection: Connection, folder: Path) -> None:
    """With what the engine has; at least as small."""
    admin.create_table("packed_gz", {"f": {"compression": "gz", "versions": 2}})
    connection.table("packed_gz").put(b"r", {b"f:q": b"columnar " * 20_000})
    admin.flush("packed_gz")
    (region,) = admin.regions("packed_gz")
    sizes = [file.stat().st_size for file in (folder / "regions" / region.encoded_name).glob("*.sst")]
    assert 0 < sum(sizes) < 20_000
    assert admin.describe("packed_gz").families[0].attributes["COMPRESSION"] == "GZ"


@pytest.mark.parametrize("compression", ["none", "snappy", "lz4", "zstd"])
def test_compression_is_in_the_files(admin: Admin, connection: Connection, folder: Path, compression: str) -> None:
    name = f"packed_{compression}"
    admin.create_table(name, {"f": {"compression": compression}})
    for number in range(20):
        connection.table(name).put(b"%d" % number, {b"f:q": b"columnar " * 200})
    admin.flush(name)
    (region,) = admin.regions(name)
    marks = {"none": b"NoCompression", "snappy": b"Snappy", "lz4": b"LZ4", "zstd": b"ZSTD"}
    files = [file.read_bytes() for file in (folder / "regions" / region.encoded_name).glob("*.sst")]
    (big,) = [data for data in files if b"columnar" in data]
    assert [key for key, mark in marks.items() if mark in big] == [compression]
    assert (big.count(b"columnar columnar") > 1_000) == (compression == "none")


def test_alter_while_it_serves(admin: Admin, connection: Connection, serving: Serving) -> None:
    admin.create_table("live", {"a": {"versions": 3}, "b": None}, splits=[b"m"])
    errors: list[Exception] = []
    done, written = threading.Event(), [0]

    def work(row: bytes) -> None:
        mine = serving.connect()
        try:
            while not done.is_set():
                mine.table("live").put(row, {b"a:n": b"%d" % written[0]})
                assert mine.table("live").row(row, columns=[b"a"])
                written[0] += 1
        except Exception as error:  # noqa: BLE001 - told in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(row,)) for row in (b"a", b"x")]
    for thread in threads:
        thread.start()
    for number in range(4):
        admin.alter_table(
            "live", add={f"n{number}": {"compression": "zstd"}}, change={"a": {"in_memory": number % 2 == 0}}
        )
        connection.table("live").put(b"a", {f"n{number}:q".encode(): b"v"})
        admin.alter_table("live", drop=[f"n{number}"], change={"a": {"compression": "none", "blocksize": 8_192}})
        with pytest.raises(IOError, match="NoSuchColumnFamilyException"):
            connection.table("live").row(b"a", columns=[f"n{number}"])
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert written[0] > 0
    assert sorted(connection.table("live").families()) == [b"a", b"b"]


def test_truncate(admin: Admin, connection: Connection) -> None:
    admin.create_table("t", {"a": None}, splits=[b"g", b"p"])
    table = connection.table("t")
    for row in (b"a", b"h", b"z"):
        table.put(row, {b"a:q": b"v"})
    scan = table.scan(batch_size=1)
    assert next(scan)[0] == b"a"
    assert admin.truncate("t", preserve_splits=True) == 3
    assert list(scan) == []
    assert (list(table.scan()), len(admin.regions("t"))) == ([], 3)
    table.put(b"h", {b"a:q": b"w"})
    admin.disable("t")
    assert admin.truncate("t") == 3
    assert not admin.is_enabled("t")
    admin.enable("t")
    assert (list(table.scan()), len(admin.regions("t"))) == ([], 1)
    with pytest.raises(IOError, match="TableNotFoundException"):
        admin.truncate("nope")


def test_a_read_only_table(admin: Admin, connection: Connection) -> None:
    admin.create_table("quiet", {"a": None})
    connection.table("quiet").put(b"r", {b"a:q": b"v"})
    admin.alter_table("quiet", attributes={"READONLY": True})
    for write in (
        lambda: connection.table("quiet").put(b"r", {b"a:q": b"w"}),
        lambda: connection.table("quiet").delete(b"r"),
        lambda: connection.table("quiet").counter_inc(b"r", b"a:n"),
        lambda: admin.delete_rows("quiet"),
    ):
        with pytest.raises(IOError, match=r"DoNotRetryIOException: region is read only"):
            write()
    assert connection.table("quiet").row(b"r") == {b"a:q": b"v"}
    admin.alter_table("quiet", attributes={"READONLY": None})
    connection.table("quiet").put(b"r", {b"a:q": b"w"})


def test_upkeep(admin: Admin, connection: Connection) -> None:
    admin.create_table("kept", {"a": {"versions": 2}}, splits=[b"m"])
    for number in range(5):
        connection.table("kept").put(b"r", {b"a:q": b"%d" % number * 1_000}, timestamp=1_000 + number)
    first, second = admin.regions("kept")
    assert (first.open, second.open, second.writes) == (False, True, 5)
    for name in ("kept", second.name, second.encoded_name):
        admin.flush(name)
        admin.compact(name)
        admin.major_compact(name)
    assert [value[:1] for value in connection.table("kept").cells(b"r", b"a:q", versions=9)] == [b"4", b"3"]
    assert all(region.open for region in admin.regions("kept"))
    with pytest.raises(IOError, match="neither a table nor a region"):
        admin.flush("nope")


def test_namespaces(admin: Admin, connection: Connection) -> None:
    with pytest.raises(IOError, match=r"NamespaceNotFoundException: team"):
        connection.create_table("team:pages", {"f": {}})
    admin.create_namespace("team")
    with pytest.raises(IOError, match="NamespaceExistException"):
        admin.create_namespace("team")
    connection.create_table("team:pages", {"f": {}})
    connection.table("team:pages").put(b"r", {b"f:q": b"v"})
    assert connection.table("team:pages").row(b"r") == {b"f:q": b"v"}
    assert b"team:pages" in connection.tables()
    assert {b"default", b"columnar", b"team"} <= set(admin.namespaces())
    assert admin.namespace_tables("team") == [b"team:pages"]
    for name in ("team", "default", "columnar"):
        with pytest.raises(IOError, match="ConstraintException"):
            admin.drop_namespace(name)
    admin.drop("team:pages", disable=True)
    admin.drop_namespace("team")
    with pytest.raises(IOError, match="NamespaceNotFoundException"):
        admin.namespace_tables("team")
    with pytest.raises(IllegalArgument):
        admin.create_namespace("a:b")


# --- triggers ------------------------------------------------------------------------------------


def recomputed(connection: Connection) -> dict[bytes, set[bytes]]:
    found: dict[bytes, set[bytes]] = {}
    for row, cells in connection.table("source").scan(columns=[b"f:v"]):
        found.setdefault(cells[b"f:v"], set()).add(row)
    return found


def derived(connection: Connection) -> dict[bytes, set[bytes]]:
    return {value: {column[2:] for column in cells} for value, cells in connection.table("index").scan()}


def test_a_table_with_a_trigger(admin: Admin, connection: Connection) -> None:
    admin.create_table("source", {"f": None, "g": None, "h": None}, splits=[b"r3"])
    admin.create_table("index", {"i": None}, {"DELETE_MARKERS": 3_600_000})
    connection.triggers.add("by_value", b"source", f"{MODULE}:index", [b"f"], before=True)
    for number in range(8):
        connection.table("source").put(b"r%d" % number, {b"f:v": b"%d" % (number % 3), b"g:x": b"y"})
    assert admin.describe("source").triggers == ("by_value",)
    for change in (
        lambda: admin.alter_table("source", drop=["f"]),
        lambda: admin.alter_table("source", drop=["g", "f"]),
        lambda: admin.alter_table("source", change={"f": {"ttl": 60}}),
        lambda: admin.truncate("source"),
    ):
        with pytest.raises(IOError, match=r"ConstraintException: .*trigger by_value"):
            change()
    with pytest.raises(IOError, match=r"ConstraintException: .*DELETE_MARKERS"):
        admin.truncate("index")
    admin.alter_table("source", drop=["g"], change={"f": {"versions": 2, "in_memory": True}, "h": {"ttl": 60}})
    connection.table("source").put(b"r9", {b"f:v": b"9"})
    assert admin.delete_rows("source", "r2", "r5") == 3
    assert connection.triggers.wait("by_value", timeout_ms=30_000)
    assert derived(connection) == recomputed(connection)
    assert set(recomputed(connection)) == {b"0", b"1", b"2", b"9"}
    assert admin.delete_rows("source") == 6
    assert connection.triggers.wait("by_value", timeout_ms=30_000)
    assert derived(connection) == {}
    connection.triggers.remove("by_value")
    admin.truncate("source")
    admin.alter_table("source", drop=["f"])
    assert sorted(connection.table("source").families()) == [b"h"]


def test_a_refused_drop_leaves_an_enabled_table_enabled(admin: Admin, connection: Connection, serving: Serving) -> None:
    """A table that a view follows: by the client's two ways and by the command, on the wire and as happybase."""
    admin.create_table("followed", {"f": None}, splits=[b"m"])
    connection.table("followed").put(b"r", {b"f:k": b"v"})
    connection.views.add(View("by_k", Source("followed", key=("f:k",))))
    shell = Shell(f"127.0.0.1:{serving.store.port}")
    for drop in (
        lambda: admin.drop("followed", disable=True),
        lambda: connection.delete_table("followed", disable=True),
        lambda: admin.drop("by_k", disable=True),
    ):
        with pytest.raises(IOError, match=r"columnar view drop by_k"):
            drop()
    assert "columnar view drop by_k" in shell.error("drop", "followed", "--yes")
    assert "columnar view drop by_k" in shell("shell", "-c", "drop followed --yes").stderr
    assert admin.is_enabled("followed")
    assert admin.is_enabled("by_k")
    assert connection.table("followed").row(b"r") == {b"f:k": b"v"}
    with pytest.raises(IllegalArgument, match="system"):
        admin.drop("columnar:dead_letters", disable=True)
    with pytest.raises(IOError, match="TableNotDisabledException"):
        admin.drop("followed")
    connection.views.drop("by_k")
    shell.out("drop", "followed", "--yes")
    assert not admin.exists("followed")
    admin.create_table("followed", {"f": None})
    admin.disable("followed")
    connection.delete_table("followed", disable=True)
    assert not admin.exists("followed")
    with pytest.raises(IOError, match="TableNotFoundException"):
        admin.drop("followed", disable=True)


def test_a_drop_that_a_plain_gateway_refuses_leaves_the_table_enabled(
    admin: Admin, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.create_table("guarded", {"f": None})
    connection.views.add(View("of_guarded", Source("guarded", key=("f:k",))))
    call = Connection.call

    def plain(self: Connection, method: str, *args: Any) -> Any:
        if method == "columnarDropTable":
            raise NotColumnar(method, "here")
        return call(self, method, *args)

    monkeypatch.setattr(Connection, "call", plain)
    with pytest.raises(IOError, match="columnar view drop of_guarded"):
        connection.delete_table("guarded", disable=True)
    assert admin.is_enabled("guarded")
    connection.views.drop("of_guarded")
    connection.delete_table("guarded", disable=True)
    assert not admin.exists("guarded")


def test_a_table_that_logs_is_not_truncated(admin: Admin, connection: Connection) -> None:
    admin.create_table("logged", {"f": None})
    admin.alter_table("logged", attributes={"CHANGE_LOG": 3_600})
    connection.table("logged").put(b"r", {b"f:q": b"v"})
    (region,) = admin.regions("logged")
    assert region.log_records == 1
    with pytest.raises(IOError, match="CHANGE_LOG keeps its changes"):
        admin.truncate("logged")
    assert admin.delete_rows("logged") == 1
    admin.alter_table("logged", attributes={"CHANGE_LOG": None})
    assert admin.regions("logged")[0].log_records <= 1, "what nobody reads any more goes, but for the last"
    admin.truncate("logged")


def test_tables_of_the_system_stay_as_they_are(admin: Admin) -> None:
    for change in (
        lambda: admin.alter_table("columnar:dead_letters", add={"x": None}),
        lambda: admin.truncate("columnar:dead_letters"),
        lambda: admin.delete_rows("columnar:dead_letters"),
    ):
        with pytest.raises(IllegalArgument, match="system"):
            change()
