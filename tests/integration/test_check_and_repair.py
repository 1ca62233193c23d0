"""``columnar check`` and ``repair``: sound stores pass, each kind of damage is found, what is readable is saved."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.backup.region_reader import cells_of
from columnar.cli import main
from columnar.client.errors import IOError
from columnar.master.catalogue import META_SCHEMA
from columnar.model import region_info
from columnar.model.region_info import RegionInfo
from columnar.model.system_tables import SYSTEM_TABLES
from columnar.regions.log.change_record import Sequence
from columnar.regions.log.lost_changes import spans_in
from columnar.regions.read.family_view import views_of
from columnar.storage.api import Batch
from columnar.storage.layout import cell_key, pack_cell, version_key
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore
from tests.support import trigger_functions
from tests.support.serving import Serving

ROWS = 3_000
VALUE = 120


def run(*words: str, status: int = 0) -> Any:
    result = CliRunner().invoke(main, [*words, "--json"])
    assert result.exit_code == status, (result.output, result.stderr, result.exception)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped store with everything in it: regions, versions, a log with a cursor, a snapshot."""
    data = tmp_path_factory.mktemp("sound") / "data"
    serving = Serving(data).start()
    connection = serving.connect()
    connection.create_table(b"t", {"a": {"max_versions": 3}, "b": {"max_versions": 1}}, splits=[b"m"])
    connection.create_table(b"watched", {"f": {"max_versions": 1}}, attributes={"CHANGE_LOG": "3600"})
    connection.create_table(b"audit", {"a": {"max_versions": 1}})
    connection.create_table(b"never", {"f": {"max_versions": 1}})
    for _ in range(2):
        with connection.table(b"t").batch(batch_size=500) as batch:
            for n in range(ROWS):
                row = b"%c%06d" % (b"az"[n % 2], n)
                batch.put(row, {b"a:v": os.urandom(VALUE), b"b:v": b"%d" % n})
    connection.triggers.add("noter", b"watched", f"{trigger_functions.MODULE}:note", [b"f"])
    for n in range(30):
        connection.table(b"watched").put(b"%d" % n, {b"f:v": b"1"})
    connection.table(b"watched").delete(b"3")
    assert connection.triggers.wait("noter")
    connection.snapshots.take_snapshot("kept", b"t")
    online = run("check", "--store", f"127.0.0.1:{serving.store.port}")
    assert online["findings"] == []
    assert online["looked_at"]["regions"] == 5 + len(SYSTEM_TABLES)
    serving.stop()
    return data


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "data")
    return tmp_path / "data"


def test_a_new_store_is_sound_and_has_no_stores_that_nobody_needs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    serving = Serving(data).start()
    connection = serving.connect()
    assert connection.triggers.list() == []
    assert [path.name for path in (data / "regions").iterdir() if any(path.iterdir())] == ["meta"]
    assert run("check", "--store", f"127.0.0.1:{serving.store.port}")["findings"] == []
    serving.stop()
    assert run("check", "--data", str(data))["findings"] == []


def catalogue_rows(data: Path) -> dict[bytes, bytes]:
    store = RocksEngine().open_reading(str(data / "regions" / "meta"))
    try:
        return {cell.row: cell.value for cell in cells_of(store, views_of(META_SCHEMA), 0)}
    finally:
        store.close()


def regions_of(data: Path, table: bytes) -> list[RegionInfo]:
    rows = catalogue_rows(data)
    return [region_info.from_json(value) for row, value in rows.items() if row.startswith(b"r/" + table + b"\x00")]


def change(path: Path, work: Callable[[RocksStore, Batch], None]) -> None:
    store = RocksEngine().open_store(str(path), frozenset())
    batch = store.batch()
    work(store, batch)
    store.write_batch(batch)
    store.sync()
    store.close()


def region_path(data: Path, table: bytes = b"t", number: int = 0) -> Path:
    return data / "regions" / regions_of(data, table)[number].encoded


def texts(report: Any, severity: str = "error") -> list[str]:
    return [f"{one['place']}: {one['text']}" for one in report["findings"] if one["severity"] == severity]


def test_a_sound_store_is_clean_and_stays_as_it_is(data: Path) -> None:
    ours = [path for path in data.rglob("*") if path.is_file() and path.name not in ("LOCK", "rocksdict-config.json")]
    before = {path: path.stat().st_mtime_ns for path in ours}
    report = run("check", "--data", str(data))
    assert report["findings"] == []
    looked = report["looked_at"]
    assert (looked["tables"], looked["regions"], looked["snapshots"]) == (
        4 + len(SYSTEM_TABLES),
        5 + len(SYSTEM_TABLES),
        1,
    )
    assert looked["cells"] >= 2 * ROWS
    assert looked["older_versions"] == ROWS
    assert looked["log_records"] == 31
    assert looked["cursors"] == 1
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert run("repair", "--data", str(data)) == {"done": [], "left": [], "errors_after": 0}


def test_a_folder_in_use_and_no_folder_are_refused(data: Path, tmp_path: Path) -> None:
    serving = Serving(data).start()
    try:
        result = CliRunner().invoke(main, ["check", "--data", str(data)])
        assert (result.exit_code, "in use" in result.stderr) == (2, True)
    finally:
        serving.stop()
    assert CliRunner().invoke(main, ["repair", "--data", str(tmp_path)]).exit_code == 2


def test_values_keys_and_logs_that_cannot_be(data: Path) -> None:
    def spoil(_store: RocksStore, batch: Batch) -> None:
        batch.put("f:b", cell_key(b"a-row", b"q"), b"\x09garbage")
        batch.put("f:b", cell_key(b"zzz", b"q"), pack_cell(1, 1, b"of the other region"))
        batch.put("f:b", b"no key of ours", pack_cell(1, 1, b""))
        batch.put("versions", version_key(1, cell_key(b"b-none", b"q"), 5), pack_cell(5, 1, b"headless"))
        batch.put("versions", version_key(1, cell_key(b"a000000", b"v"), 1 << 50), pack_cell(1 << 50, 1, b"above"))
        batch.put("log", b"\x00" * 20, b"no record")
        batch.put("meta", b"cursor/x", b"\xc1")

    change(region_path(data), spoil)
    report = run("check", "--data", str(data), status=1)
    assert "1 cells of rows outside its range" in texts(report, "warning")[0]
    found = "\n".join(texts(report))
    for said in (
        "a value that does not decode: row a-row, b:q",
        "a key that is none of ours: no key of ours in f:b",
        "an older version without a newest one: row b-none, a:q, at 5",
        "an older version with a time that cannot be: row a000000, a:v",
        "a change record that does not decode",
        "a cursor that does not decode: x",
    ):
        assert said in found
    assert found.count("\n") == 5


def test_a_cell_older_than_what_the_log_tells_is_found(data: Path) -> None:
    change(
        region_path(data, b"watched"),
        lambda _store, batch: batch.put("f:f", cell_key(b"7", b"v"), pack_cell(1, 1, b"from before")),
    )
    (said,) = texts(run("check", "--data", str(data), status=1))
    assert "a cell older than what the log tells of it: row 7, f:v: 1 < " in said


def the_other_region_is_whole_and_the_new_one_takes_writes(data: Path) -> None:
    serving = Serving(data).start()
    try:
        table = serving.connect().table(b"t")
        assert len(list(table.scan())) == ROWS // 2
        table.put(b"z", {b"b:v": b"1"})
        assert table.row(b"z") == {b"b:v": b"1"}
    finally:
        serving.stop()


def test_holes_overlaps_and_folders_that_nobody_names(data: Path) -> None:
    left, right = regions_of(data, b"t")
    meta = data / "regions" / "meta"
    rows = [row for row in catalogue_rows(data) if row.startswith(b"r/t\x00m")]
    change(meta, lambda _store, batch: batch.delete("f:info", cell_key(rows[0], b"region")))
    (data / "regions" / "abandoned").mkdir()
    report = run("check", "--data", str(data), status=1)
    assert texts(report) == ["t: no region holds the rows from 'm' to ''"]
    assert [one.split(":")[0] for one in texts(report, "warning")] == [f"regions/{right.encoded}"]
    assert [one.split(":")[0] for one in texts(report, "note")] == ["regions/abandoned"]
    result = run("repair", "--data", str(data))
    assert len(result["done"]) == 3
    assert {path.name for path in (data / "lost+found").iterdir()} == {"abandoned", right.encoded}
    the_other_region_is_whole_and_the_new_one_takes_writes(data)
    other = RegionInfo("t", 900, b"c", b"x")
    (data / "regions" / other.encoded).mkdir()
    row = b"r/t\x00c\x00900"
    raw = pack_cell(1, 1, region_info.to_json(other))
    change(meta, lambda _store, batch: batch.put("f:info", cell_key(row, b"region"), raw))
    result = run("repair", "--data", str(data), status=1)
    assert all("hold the same rows; nobody can tell which is right" in one for one in result["left"])
    assert left in regions_of(data, b"t")


def test_an_unnamed_folder_is_a_warning_once_it_has_data(data: Path) -> None:
    left = data / "regions" / "abandoned"
    left.mkdir()
    for name in ("LOCK", "000000.dbtmp", "000004.log"):
        (left / name).touch()  # an opening was cut off
    report = run("check", "--data", str(data))
    assert (texts(report, "warning"), len(texts(report, "note"))) == ([], 1)
    (left / "000004.log").write_bytes(b"x")
    report = run("check", "--data", str(data))
    assert (len(texts(report, "warning")), texts(report, "note")) == (1, [])


def test_a_region_without_its_folder(data: Path) -> None:
    lost = regions_of(data, b"t")[1]
    shutil.rmtree(data / "regions" / lost.encoded)
    text = f"t {lost.encoded}: its folder is missing, with all that was written to it"
    assert texts(run("check", "--data", str(data), status=1)) == [text]
    result = run("repair", "--data", str(data), status=1)
    assert result["done"] == [f"t {lost.encoded}: an empty region, for its folder is missing"]
    assert [one.partition(";")[0] for one in result["left"]] == [
        f"t {lost.encoded}: all that was written to it is lost"
    ]
    assert result["errors_after"] == 0
    store = RocksEngine().open_reading(str(data / "regions" / lost.encoded))
    (span,) = spans_in(store)
    store.close()
    assert span.has(Sequence(lost.region_id, 9, 9)), "its log is lost, and readers of it are told"
    the_other_region_is_whole_and_the_new_one_takes_writes(data)


def test_a_region_without_its_folder_in_an_older_format(data: Path) -> None:
    """Nothing was ever written to it, as far as such a format can tell."""
    lost = regions_of(data, b"t")[1]
    shutil.rmtree(data / "regions" / lost.encoded)
    (data / "FORMAT").write_text("columnar-data 2\n")
    assert run("check", "--data", str(data))["findings"] == []
    assert run("repair", "--data", str(data)) == {"done": [], "left": [], "errors_after": 0}


def largest(path: Path) -> Path:
    return max(path.glob("*.sst"), key=lambda file: file.stat().st_size)


def newest_cells_file(path: Path) -> Path:
    """The table file with the most of f:a."""
    store = RocksEngine().open_reading(str(path))
    files = [file for file in store._dicts["f:a"].live_files() if file["start_key"].startswith(b"a")]
    store.close()
    return path / max(files, key=lambda file: file["size"])["name"].lstrip("/")


def test_a_damaged_block_is_found_refused_to_readers_and_the_rest_is_saved(data: Path) -> None:
    file = newest_cells_file(region_path(data))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.unlink()  # the snapshot's link stays whole
    file.write_bytes(content)
    said = texts(run("check", "--data", str(data), status=1))
    assert any("damaged table file in" in one for one in said)
    serving = Serving(data).start()
    try:
        with pytest.raises(IOError, match="CorruptHFileException"):
            list(serving.connect().table(b"t").scan())
    finally:
        serving.stop()
    result = run("repair", "--data", str(data), status=1)
    assert result["errors_after"] == 0
    assert len(result["done"]) == 2
    assert len(result["left"]) >= 1
    assert all("lost in " in one for one in result["left"])
    serving = Serving(data).start()
    try:
        held = [row for row, _ in serving.connect().table(b"t").scan()]
        assert len(held) > ROWS * 0.8
        serving.connect().snapshots.restore_snapshot("kept")
        assert len(list(serving.connect().table(b"t").scan())) == ROWS
    finally:
        serving.stop()
    assert run("check", "--data", str(data))["errors"] == 0


def test_a_missing_file_and_a_lost_list_of_files(data: Path) -> None:
    largest(region_path(data)).unlink()
    next(region_path(data, b"t", 1).glob("MANIFEST-*")).unlink()
    said = texts(run("check", "--data", str(data), status=1))
    assert sum("cannot be opened" in one for one in said) == 2
    next(region_path(data, b"watched").glob("MANIFEST-*")).unlink()
    result = run("repair", "--data", str(data), status=1)
    assert sum("its list of table files was made anew" in one for one in result["left"]) == 3
    assert result["errors_after"] == 0
    serving = Serving(data).start()
    try:
        rows = {row[:1] for row, _ in serving.connect().table(b"t").scan()}
        assert b"z" in rows
        connection = serving.connect()
        assert len(list(connection.table(b"watched").scan())) == 29
        before = len(connection.table(b"audit").row(b"5")[b"a:log"].splitlines())
        connection.table(b"watched").put(b"5", {b"f:v": b"2"})
        assert connection.triggers.wait("noter")
        assert len(connection.table(b"audit").row(b"5")[b"a:log"].splitlines()) == before + 1, (
            "log and cursor came along"
        )
    finally:
        serving.stop()


def test_a_damaged_snapshot_and_a_damaged_catalogue(data: Path) -> None:
    file = largest(next(path for path in (data / "snapshots" / "kept").iterdir() if path.is_dir()))
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.unlink()
    file.write_bytes(content)
    (said,) = texts(run("check", "--data", str(data), status=1))
    assert said.startswith("snapshots/kept: ")
    (data / "regions" / "meta" / "CURRENT").unlink()
    report = run("check", "--data", str(data), status=1)
    assert any(one.startswith("catalogue: cannot be read") for one in texts(report))
    assert run("repair", "--data", str(data), status=1)["done"] == []


def test_every_block_of_the_catalogue_is_looked_at(data: Path) -> None:
    """Not only those with its rows: a start reads the marks of its region too, and is refused by a damaged one."""
    tables = sorted((data / "regions" / "meta").glob("*.sst"))
    assert tables
    for file in tables:
        content = file.read_bytes()
        file.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
        report = run("check", "--data", str(data), status=1)
        assert any("catalogue" in one for one in texts(report)), (file.name, texts(report))
        file.write_bytes(content)
    assert run("check", "--data", str(data))["findings"] == []


def test_a_store_that_is_written_to_is_clean(tmp_path: Path) -> None:
    """Puts in the past and in the future, deletes, counters, on a table with a trigger: no false alarm."""
    serving = Serving(tmp_path / "data").start()
    try:
        connection = serving.connect()
        connection.create_table(b"t", {"f": {"max_versions": 3}, "c": {"max_versions": 1}}, splits=[b"5"])
        connection.create_table(b"audit", {"a": {"max_versions": 1}})
        connection.triggers.add("noter", b"t", f"{trigger_functions.MODULE}:note", [b"f"])
        stopped = threading.Event()
        rounds = [0]

        def write() -> None:
            rng, table = random.Random(4), serving.connect().table(b"t")
            while not stopped.is_set():
                rounds[0] += 1
                row = b"%d" % rng.randrange(10)
                stamp = rng.choice((None, None, 1_000, 2_000, 1 << 50))
                what = rng.randrange(5)
                if what == 0:
                    table.delete(row, columns=rng.choice(([b"f:v"], [b"f"], None)), timestamp=stamp)
                elif what == 1:
                    table.counter_inc(row, b"f:n")
                else:
                    table.put(row, {b"f:v": b"%d" % rounds[0], b"c:v": b"x"}, timestamp=stamp)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(4):
                report = run("check", "--store", f"127.0.0.1:{serving.store.port}")
                assert report["findings"] == []
        finally:
            stopped.set()
            writer.join()
        assert rounds[0] > 20
        assert connection.triggers.wait("noter", timeout_ms=30_000)
    finally:
        serving.stop()
    report = run("check", "--data", str(tmp_path / "data"))
    assert report["findings"] == []
