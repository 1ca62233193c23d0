"""Export, import and digest of tables over a real process, with writers running meanwhile."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from columnar.cli import main
from columnar.client import Connection, Put
from tests.support.standalone_store import StoreProcess


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path_factory.mktemp("transfer") / "data") as running:
        yield running


@pytest.fixture
def connection(store: StoreProcess) -> Iterator[Connection]:
    opened = store.connection()
    yield opened
    for table in opened.tables():
        opened.delete_table(table, disable=opened.is_table_enabled(table))
    opened.close()


@pytest.fixture
def run(store: StoreProcess) -> Callable[..., Any]:
    def invoke(*words: str, status: int = 0) -> Any:
        result: Result = CliRunner().invoke(main, [*words, "--json"], env={"COLUMNAR_STORE": f"127.0.0.1:{store.port}"})
        assert result.exit_code == status, (result.output, result.exception)
        return json.loads(result.stdout) if status == 0 and result.stdout.strip() else result.stderr

    return invoke


def made(connection: Connection, name: bytes = b"t") -> None:
    connection.create_table(name, {"a": {"max_versions": 3}, "b": {"max_versions": 1}}, splits=[b"k", b"s\x00"])


def fill(connection: Connection, name: bytes = b"t") -> None:
    """Rows in every region, versions, times to live, empty values and names with every odd byte."""
    table = connection.table(name)
    for n in range(60):
        row = b"%c\x00\xff%d" % (b"amz"[n % 3], n)
        for at in (5, 7, 9, 11):
            table.put(row, {b"a:": b"%d" % at, b"a:\x00q": b""}, timestamp=at)
        table.mutate(row, [Put(b"b:t", os.urandom(50), ttl_ms=3_600_000_000), Put(b"b:f", b"x", 1 << 50)])
    table.delete(b"a\x00\xff0", columns=[b"a:"], timestamp=11)


def dump(connection: Connection, name: bytes) -> list[object]:
    table = connection.table(name)
    return [
        (row, cells, [table.cells(row, column, 9, include_timestamp=True) for column in cells])
        for row, cells in table.scan(include_timestamp=True)
    ]


def test_an_export_comes_back_as_the_same_table(
    connection: Connection, run: Callable[..., Any], tmp_path: Path
) -> None:
    made(connection)
    fill(connection)
    exported = run("export", "t", str(tmp_path / "x"))
    assert (exported["rows"], exported["cells"]) == (60, 60 * 2 + 59 * 3 + 60 * 3)
    told = run("digest", "t")
    imported = run("import", str(tmp_path / "x"), "copy")
    for one in (told, imported, run("digest", "copy")):
        assert (one["rows"], one["cells"], one["digest"]) == (exported["rows"], exported["cells"], exported["digest"])
    assert dump(connection, b"copy") == dump(connection, b"t")
    assert connection.table(b"copy").families() == connection.table(b"t").families()
    assert [r["start_key"] for r in connection.table(b"copy").regions()] == [b"", b"k", b"s\x00"]
    connection.table(b"copy").put(b"m\x00\xff1", {b"b:f": b"now"})
    assert connection.table(b"copy").row(b"m\x00\xff1")[b"b:f"] == b"x", "a cell in the future still wins"
    connection.table(b"t").put(b"new", {b"b:x": b"1"})
    assert run("digest", "t")["digest"] != exported["digest"]
    assert "is there already" in run("import", str(tmp_path / "x"), status=1)
    assert "columnar is the system's own" in run("import", str(tmp_path / "x"), "columnar:copy", status=1)
    assert "not empty" in run("export", "t", str(tmp_path / "x"), status=2)


def test_a_table_is_exported_while_it_is_written(
    store: StoreProcess, connection: Connection, run: Callable[..., Any], tmp_path: Path
) -> None:
    made(connection)
    fill(connection)
    begun, stopped = threading.Event(), threading.Event()
    rounds = [0]

    def write() -> None:
        mine = store.connection()
        while not stopped.is_set():
            rounds[0] += 1
            value = b"%d" % rounds[0]
            mine.table(b"t").put(b"hot", {b"a:": value, b"b:t": value})
            begun.set()
            mine.table(b"t").put(b"n%d" % rounds[0], {b"a:": value})
        mine.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(30)
        exported = run("export", "t", str(tmp_path / "x"))
        seen = rounds[0]
    finally:
        stopped.set()
        writer.join()
    run("import", str(tmp_path / "x"), "copy")
    copied = dict(connection.table(b"copy").scan())
    assert 0 < seen <= rounds[0]
    assert len(copied) == exported["rows"]
    assert copied[b"hot"][b"a:"] == copied[b"hot"][b"b:t"], "a row is whole"
    later = {row for row in copied if row.startswith(b"n")}
    assert later == {b"n%d" % n for n in range(1, len(later) + 1)}, "a prefix of what one writer wrote to one region"


def test_damaged_and_cut_off_exports_are_refused(
    connection: Connection, run: Callable[..., Any], tmp_path: Path
) -> None:
    made(connection)
    fill(connection)
    folder = tmp_path / "x"
    run("export", "t", str(folder))
    part = folder / "part-00001.cells"
    whole = part.read_bytes()
    part.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
    assert "block 0: cut off or damaged" in run("import", str(folder), "copy", status=1)
    part.write_bytes(whole[:-1])
    assert "cut off" in run("import", str(folder), "copy", status=1)
    part.write_bytes(whole[:13])
    assert "its manifest says" in run("import", str(folder), "copy", status=1)
    (folder / "manifest.json").unlink()
    assert "no whole export" in run("import", str(folder), "copy", status=1)
    assert connection.tables() == [b"t"], "nothing of a failed import is seen"
    run("export", "t", str(folder))  # over what a cut-off export left
    run("import", str(folder), "copy")
