"""Damaged or lost files of one region: its users get an error, other tables continue, and the file's return ends it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Connection
from columnar.model.region_info import RegionInfo
from tests.support.failing_disk import error_of, rows, until_it_works
from tests.support.serving import Serving
from tests.support.standalone_store import ENVIRONMENT, ROOT

SPOILED, QUIET = b"spoiled", b"quiet"
ROWS = {b"%03d" % n: b"%03d" % n * 700 for n in range(200)}
DAMAGED = "CorruptHFileException: "
ADVICE = re.compile(r"'columnar repair --data (\S+)' saves what is readable")
EMPTY = re.compile(r"'columnar repair --data (\S+)' puts an empty region there")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as ``kill -9`` leaves it, with rows in table files and some rows in logs only."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    store = Serving(folder).start()
    connection = store.connect()
    for table in (SPOILED, QUIET):
        connection.create_table(table, {"f": {"max_versions": 1}})
        with connection.table(table).batch() as batch:
            for row, value in ROWS.items():
                batch.put(row, {b"f:x": value})
        connection.admin.flush(table)
        for n in range(5):
            connection.table(table).put(b"log-%d" % n, {b"f:x": b"in the log"})
    left = folder.with_name("left")
    shutil.copytree(folder, left)
    store.stop()
    return left


IN_LOG = {b"log-%d" % n: b"in the log" for n in range(5)}


class Damaged:
    """A copy of the folder, which is damaged and served."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store: Serving | None = None

    def region(self, table: bytes) -> Path:
        """Return the folder of the table's one region."""
        names = {RegionInfo(table.decode(), number).encoded for number in range(1, 20)}
        (path,) = [path for path in (self.folder / "regions").iterdir() if path.name in names]
        return path

    def serve(self) -> Connection:
        self._store = Serving(self.folder).start()
        return self._store.connect()

    def stop(self) -> None:
        if self._store is not None:
            self._store.stop()
            self._store = None


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Iterator[Damaged]:
    folder = tmp_path / "data"
    shutil.copytree(whole, folder)
    damaged = Damaged(folder)
    yield damaged
    damaged.stop()


def the_one(folder: Path, pattern: str) -> Path:
    """Return the largest file that matches ``pattern``."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size)


def is_damaged(call: Callable[[], object]) -> None:
    text = error_of(call)
    assert text.startswith(DAMAGED), text
    names_the_folder(ADVICE, text)


def names_the_folder(advice: re.Pattern[str], text: str) -> None:
    """Check that the command in the text can be typed as it stands."""
    found = advice.search(text)
    assert found is not None, text
    assert Path(found[1], "FORMAT").exists(), text


def test_a_damaged_block_of_a_table_file(damaged: Damaged) -> None:
    path = the_one(damaged.region(SPOILED), "*.sst")
    sane = path.read_bytes()
    path.write_bytes(sane[:100] + bytes(byte ^ 0xFF for byte in sane[100:160]) + sane[160:])
    connection = damaged.serve()
    table = connection.table(SPOILED)
    is_damaged(lambda: table.row(b"000"))
    is_damaged(lambda: list(table.scan()))
    assert table.row(b"199") == {b"f:x": ROWS[b"199"]}, "other blocks are read"
    table.put(b"200", {b"f:x": b"new"})
    assert rows(connection, QUIET) == ROWS | IN_LOG
    is_damaged(lambda: connection.admin.major_compact(SPOILED))
    until_it_works(lambda: table.put(b"201", {b"f:x": b"new"}))
    path = the_one(damaged.region(SPOILED), path.name)
    path.write_bytes(sane)
    until_it_works(lambda: list(table.scan()))
    assert rows(connection, SPOILED) == ROWS | IN_LOG | {b"200": b"new", b"201": b"new"}


@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*", "CURRENT"])
def test_a_lost_file(damaged: Damaged, pattern: str) -> None:
    path = the_one(damaged.region(SPOILED), pattern)
    aside = damaged.folder.with_name("aside")
    shutil.move(path, aside)
    connection = damaged.serve()
    is_damaged(lambda: connection.table(SPOILED).row(b"000"))
    is_damaged(lambda: connection.table(SPOILED).put(b"000", {b"f:x": b"other"}))
    assert rows(connection, QUIET) == ROWS | IN_LOG
    connection.table(QUIET).put(b"200", {b"f:x": b"new"})
    shutil.move(aside, path)
    assert rows(connection, SPOILED) == ROWS | IN_LOG, "with the file back nothing is lost, and nobody restarted"
    connection.table(SPOILED).put(b"000", {b"f:x": b"other"})


def is_lost(call: Callable[[], object]) -> None:
    text = error_of(call)
    assert text.startswith(DAMAGED), text
    assert "is missing, with all that was written to it" in text, text
    names_the_folder(EMPTY, text)


def test_a_lost_folder_is_not_begun_anew(damaged: Damaged) -> None:
    path, aside = damaged.region(SPOILED), damaged.folder.with_name("aside")
    shutil.move(path, aside)
    connection = damaged.serve()
    table = connection.table(SPOILED)
    is_lost(lambda: table.row(b"000"))
    is_lost(lambda: list(table.scan()))
    is_lost(lambda: table.put(b"000", {b"f:x": b"other"}))
    is_lost(lambda: table.counter_inc(b"000", b"f:n"))
    is_lost(lambda: connection.snapshots.take_snapshot("holed", SPOILED))
    assert connection.snapshots.list_snapshots() == []
    assert rows(connection, QUIET) == ROWS | IN_LOG
    assert not path.exists()
    shutil.move(aside, path)
    assert rows(connection, SPOILED) == ROWS | IN_LOG, "with the folder back nothing is lost, and nobody restarted"
    table.put(b"000", {b"f:x": b"other"})


def test_a_lost_folder_of_a_region_that_nobody_had_opened(damaged: Damaged) -> None:
    connection = damaged.serve()
    connection.admin.create_table(b"new", {"f": {}}, splits=[b"g", b"p"])
    ends = [(region["start_key"], region["end_key"]) for region in connection.table(b"new").regions()]
    folders = [
        damaged.folder / "regions" / info.encoded
        for number in range(1, 40)
        for start, end in ends
        if (info := RegionInfo("new", number, start, end)) and (damaged.folder / "regions" / info.encoded).exists()
    ]
    assert len(folders) == 3
    assert [list(folder.iterdir()) for folder in folders] == [[], [], []], "a store is made by its first use"
    folders[1].rmdir()
    table = connection.table(b"new")
    table.put(b"a", {b"f:x": b"1"})
    table.put(b"z", {b"f:x": b"2"})
    is_lost(lambda: table.put(b"k", {b"f:x": b"3"}))
    is_lost(lambda: table.row(b"k"))
    damaged.stop()
    table = damaged.serve().table(b"new")
    is_lost(lambda: table.row(b"k"))
    assert table.row(b"z") == {b"f:x": b"2"}


def test_a_table_with_a_lost_folder_can_be_emptied_and_dropped(damaged: Damaged) -> None:
    shutil.rmtree(damaged.region(SPOILED))
    connection = damaged.serve()
    connection.admin.truncate(SPOILED)
    assert rows(connection, SPOILED) == {}
    connection.table(SPOILED).put(b"000", {b"f:x": b"new"})
    shutil.rmtree(damaged.region(QUIET))
    connection.delete_table(QUIET, disable=True)
    assert connection.tables() == [SPOILED]
    damaged.stop()
    assert rows(damaged.serve(), SPOILED) == {b"000": b"new"}


def test_a_folder_of_an_older_format_gets_the_folders_that_it_lacks(damaged: Damaged) -> None:
    """In the older format a region's first use made its folder."""
    untouched = [path for path in (damaged.folder / "regions").iterdir() if not any(path.iterdir())]
    assert untouched, "tables of the system that nobody needed"
    for path in untouched:
        path.rmdir()
    (damaged.folder / "FORMAT").write_text("columnar-data 2\n")
    connection = damaged.serve()
    assert rows(connection, SPOILED) == rows(connection, QUIET) == ROWS | IN_LOG
    assert connection.triggers.list() == []
    assert all(path.is_dir() for path in untouched)
    assert (damaged.folder / "FORMAT").read_text() == "columnar-data 6\n"


def test_garbage_behind_the_log(damaged: Damaged) -> None:
    log = max(path for path in damaged.region(SPOILED).glob("*.log") if path.stat().st_size)
    log.write_bytes(log.read_bytes() + b"\xa5" * 5_000)
    connection = damaged.serve()
    assert rows(connection, SPOILED) == ROWS | IN_LOG
    connection.table(SPOILED).put(b"200", {b"f:x": b"new"})


def _cut(data: bytes) -> bytes:
    return data[:-10]


def _flipped(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


def _zeroed(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes(len(data) - len(data) // 2)


@pytest.mark.parametrize("damage", [_cut, _flipped, _zeroed])
@pytest.mark.parametrize("pattern", ["*.log", "MANIFEST-*"])
def test_a_file_that_the_engine_writes_behind(damaged: Damaged, damage: Callable[[bytes], bytes], pattern: str) -> None:
    """To the engine such a file looks like one whose unsynced end a power cut removed."""
    path = the_one(damaged.region(SPOILED), pattern)
    sane = path.read_bytes()
    path.write_bytes(damage(sane))
    connection = damaged.serve()
    is_damaged(lambda: connection.table(SPOILED).row(b"000"))
    is_damaged(lambda: connection.table(SPOILED).put(b"000", {b"f:x": b"other"}))
    assert rows(connection, QUIET) == ROWS | IN_LOG
    path.write_bytes(sane)
    assert rows(connection, SPOILED) == ROWS | IN_LOG, "with the file back nothing is lost, and nobody restarted"


@pytest.mark.parametrize("pattern", ["*.log", "MANIFEST-*"])
def test_a_repair_gives_back_what_is_readable(damaged: Damaged, pattern: str) -> None:
    path = the_one(damaged.region(SPOILED), pattern)
    sane = path.read_bytes()
    path.write_bytes(sane[: len(sane) * 3 // 4])
    data = str(damaged.folder)
    assert columnar("check", "--data", data).returncode == 1
    repaired = columnar("repair", "--data", data)
    assert "compare with a backup" in repaired.stdout
    assert columnar("check", "--data", data).returncode == 0
    connection = damaged.serve()
    found = rows(connection, SPOILED)
    everything = ROWS | IN_LOG
    assert found.items() <= everything.items()
    assert found.keys() >= ROWS.keys(), "what stands in tables"
    assert found.keys() >= {b"log-0", b"log-1"}, "what stands before the damage"
    assert rows(connection, QUIET) == everything


def columnar(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "columnar", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=ENVIRONMENT, timeout=60)


def refusal(folder: Path) -> str:
    """Return the message of a store that does not start."""
    ended = columnar("standalone", "--data", str(folder), "--port", "0", "--web-port", "-1")
    assert ended.returncode == 2, ended
    assert "Traceback" not in ended.stderr
    return ended.stderr


@pytest.mark.parametrize("lost", ["regions", "regions/meta"])
def test_a_lost_catalogue_is_no_reason_to_begin_anew(damaged: Damaged, lost: str) -> None:
    path, aside = damaged.folder / lost, damaged.folder.with_name("aside")
    shutil.move(path, aside)
    for _ in range(2):
        said = refusal(damaged.folder)
        assert f"{path}" in said
        assert "is missing" in said
        assert "columnar restore-backup" in said
        assert not path.exists()
    shutil.move(aside, path)
    connection = damaged.serve()
    assert rows(connection, SPOILED) == rows(connection, QUIET) == ROWS | IN_LOG


def test_a_damaged_catalogue_is_no_reason_to_begin_anew(damaged: Damaged) -> None:
    manifest = the_one(damaged.folder / "regions" / "meta", "MANIFEST-*")
    sane = manifest.read_bytes()
    manifest.write_bytes(sane[:20] + b"\xff" * 40 + sane[60:])
    names_the_folder(ADVICE, refusal(damaged.folder))
    manifest.write_bytes(sane)
    connection = damaged.serve()
    assert rows(connection, SPOILED) == rows(connection, QUIET) == ROWS | IN_LOG


def test_copies_of_a_closed_region_do_not_hide_what_it_lost(damaged: Damaged, tmp_path: Path) -> None:
    """After a start regions are closed, and are copied as they are."""
    (log,) = [path for path in damaged.region(SPOILED).glob("*.log") if path.stat().st_size]
    data = bytearray(log.read_bytes())
    data[len(data) // 10] ^= 4
    log.write_bytes(data)
    connection = damaged.serve()
    try:
        store = f"--store=127.0.0.1:{connection.port}"
        for command in (
            ["check", store],
            ["backup", str(tmp_path / "backup"), store],
            ["export", SPOILED.decode(), str(tmp_path / "export"), store],
            ["snapshot", "take", "s", SPOILED.decode(), store],
        ):
            done = CliRunner().invoke(main, command)
            assert done.exit_code in (1, 2), f"{command[0]}: {done.output}"
            assert "were synced" in done.output, command[0]
        assert CliRunner().invoke(main, ["export", QUIET.decode(), str(tmp_path / "quiet"), store]).exit_code == 0
    finally:
        damaged.stop()
