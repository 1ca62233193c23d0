"""Files of one region damaged or lost: its users hear that, other tables go on, and with the file back all is well."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import Connection
from columnar.model.region_info import RegionInfo
from tests.support.failing_disk import error_of, rows, until_it_works
from tests.support.serving import Serving
from tests.support.standalone_store import ENVIRONMENT, ROOT

SPOILED, QUIET = b"spoiled", b"quiet"
ROWS = {b"%03d" % n: b"%03d" % n * 700 for n in range(200)}
DAMAGED = "CorruptHFileException: "
ADVICE = "'columnar repair' saves what is readable"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``kill -9`` leaves it: rows in table files, and some in logs only."""
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
    """A copy of the folder, to be damaged and served."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store: Serving | None = None

    def region(self, table: bytes) -> Path:
        """The folder of the table's one region."""
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
    """The largest such file."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size)


def is_damaged(call: object) -> None:
    text = error_of(call)  # type: ignore[arg-type]
    assert text.startswith(DAMAGED), text
    assert ADVICE in text, text


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


def test_garbage_behind_the_log(damaged: Damaged) -> None:
    log = max(path for path in damaged.region(SPOILED).glob("*.log") if path.stat().st_size)
    log.write_bytes(log.read_bytes() + b"\xa5" * 5_000)
    connection = damaged.serve()
    assert rows(connection, SPOILED) == ROWS | IN_LOG
    connection.table(SPOILED).put(b"200", {b"f:x": b"new"})


def test_a_log_that_lost_its_end(damaged: Damaged) -> None:
    """No power cut does that to what was synced; where something does, what stands before it is there."""
    log = max(path for path in damaged.region(SPOILED).glob("*.log") if path.stat().st_size)
    log.write_bytes(log.read_bytes()[:-10])
    connection = damaged.serve()
    found = rows(connection, SPOILED)
    assert found == ROWS | {row: value for row, value in IN_LOG.items() if row != b"log-4"}
    assert rows(connection, QUIET) == ROWS | IN_LOG


def test_a_damaged_catalogue_is_no_reason_to_begin_anew(damaged: Damaged) -> None:
    manifest = the_one(damaged.folder / "regions" / "meta", "MANIFEST-*")
    sane = manifest.read_bytes()
    manifest.write_bytes(sane[:20] + b"\xff" * 40 + sane[60:])
    command = [sys.executable, "-m", "columnar", "standalone", "--data", str(damaged.folder), "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=ENVIRONMENT)
    assert ended.returncode == 2, ended
    assert ADVICE in ended.stderr
    assert "Traceback" not in ended.stderr
    manifest.write_bytes(sane)
    connection = damaged.serve()
    assert rows(connection, SPOILED) == rows(connection, QUIET) == ROWS | IN_LOG
