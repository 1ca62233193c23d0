"""A system clock that jumps back an hour, while the store runs or is down: no write is hidden by an older one.

This also holds if the files of a data folder lost their times, by a copy or from a backup.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from columnar import clock as clocks
from columnar.cli import main
from columnar.client import Connection
from tests.support.serving import Serving

HOUR_NS = 3_600 * 10**9


class FakeClock:
    """The system's clock, shifted."""

    def __init__(self) -> None:
        self.shift_ns = 0

    def time_ns(self) -> int:
        return time.time_ns() + self.shift_ns

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(clocks, "time", clock)
    return clock


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[Serving]:
    clock.shift_ns = HOUR_NS
    store = Serving(tmp_path / "data").start()
    yield store
    store.stop()


def write_all_kinds(connection: Connection, n: int) -> None:
    table = connection.table(b"t")
    table.put(b"r", {b"v:x": b"%d" % n, b"one:x": b"%d" % n})
    assert table.counter_inc(b"r", b"one:count") == n
    table.put(b"deleted", {b"v:x": b"there"})
    table.delete(b"deleted")
    assert table.row(b"deleted") == {}
    table.put(b"back", {b"v:x": b"there"})
    assert table.row(b"r") == {b"v:x": b"%d" % n, b"one:x": b"%d" % n, b"one:count": n.to_bytes(8, "big")}
    assert table.row(b"back") == {b"v:x": b"there"}
    table.delete(b"back")


def test_while_it_runs(store: Serving, clock: FakeClock) -> None:
    connection = store.connect()
    connection.create_table(b"t", {"v": {"max_versions": 3}, "one": {"max_versions": 1}})
    write_all_kinds(connection, 1)
    clock.shift_ns = 0
    for n in (2, 3):
        write_all_kinds(connection, n)


def test_while_it_does_not(store: Serving, clock: FakeClock, tmp_path: Path) -> None:
    connection = store.connect()
    connection.create_table(b"t", {"v": {"max_versions": 3}, "one": {"max_versions": 1}})
    write_all_kinds(connection, 1)
    _, written = connection.table(b"t").row(b"r", include_timestamp=True)[b"v:x"]
    left = _as_killed(tmp_path)
    clock.shift_ns = 0
    again = Serving(left).start()
    try:
        connection = again.connect()
        for n in (2, 3):
            write_all_kinds(connection, n)
        _, now = connection.table(b"t").row(b"r", include_timestamp=True)[b"v:x"]
        assert now >= written
        connection.create_table(b"later", {"f": {}})
        connection.delete_table(b"t", disable=True)
        assert b"t" not in connection.tables()
    finally:
        again.stop()


def _as_killed(tmp_path: Path) -> Path:
    """Return the folder as ``kill -9`` leaves it, with files dated by the store's clock."""
    left = tmp_path / "left"
    shutil.copytree(tmp_path / "data", left)
    at = time.time() + 3_600
    for path in left.rglob("*"):
        os.utime(path, (at, at))
    return left


CELLS: Final = 20


def fill(connection: Connection) -> None:
    connection.create_table(b"t", {"v": {"max_versions": 5}}, splits=[b"put1"])
    table = connection.table(b"t")
    for n in range(CELLS):
        table.put(b"put%d" % n, {b"v:x": b"old"})
        table.put(b"gone%d" % n, {b"v:x": b"old"})


def hidden(folder: Path) -> list[bytes]:
    """Return rows on which an acknowledged write has no effect, in a store that is started there."""
    again = Serving(folder).start()
    try:
        connection = again.connect()
        table = connection.table(b"t")
        for n in range(CELLS):
            table.put(b"put%d" % n, {b"v:x": b"new"})
            table.delete(b"gone%d" % n)
        found = [b"put%d" % n for n in range(CELLS) if table.row(b"put%d" % n) != {b"v:x": b"new"}]
        found += [b"gone%d" % n for n in range(CELLS) if table.row(b"gone%d" % n) != {}]
        connection.create_table(b"later", {"f": {}})
        connection.delete_table(b"later", disable=True)
        return found
    finally:
        again.stop()


def columnar(*words: str, port: int = 0) -> None:
    done = CliRunner().invoke(main, words, env={"COLUMNAR_STORE": f"127.0.0.1:{port}"})
    assert done.exit_code == 0, done.output


def without_times(folder: Path) -> Path:
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (1, 1))
    return folder


def test_a_restored_backup(store: Serving, clock: FakeClock, tmp_path: Path) -> None:
    fill(store.connect())
    columnar("backup", str(tmp_path / "backups"), port=store.store.port)
    clock.shift_ns = 0
    restored = tmp_path / "restored"
    columnar("restore-backup", str(tmp_path / "backups"), "--data", str(restored))
    assert hidden(without_times(restored)) == []


@pytest.mark.parametrize("left_out", ["", "clock"], ids=["all of it", "without the clock's file"])
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_copied_folder(store: Serving, clock: FakeClock, tmp_path: Path, left_out: str, how: str) -> None:
    fill(store.connect())
    copy = tmp_path / "copy"
    if how == "stopped":
        store.stop()
    shutil.copytree(tmp_path / "data", copy, ignore=shutil.ignore_patterns(left_out))
    if how == "stopped":
        store.start()
    clock.shift_ns = 0
    assert hidden(without_times(copy)) == []


def test_rows_that_come_from_another_store(store: Serving, clock: FakeClock, tmp_path: Path) -> None:
    fill(store.connect())
    columnar("export", "t", str(tmp_path / "exported"), port=store.store.port)
    clock.shift_ns = 0
    other = Serving(tmp_path / "other").start()
    try:
        columnar("import", str(tmp_path / "exported"), port=other.store.port)
    finally:
        other.stop()
    (tmp_path / "other" / "clock").unlink()
    assert hidden(without_times(tmp_path / "other")) == []


def test_a_snapshot_whose_regions_say_nothing(store: Serving, clock: FakeClock, tmp_path: Path) -> None:
    """An older program took such a snapshot, and its manifest has the time."""
    connection = store.connect()
    fill(connection)
    connection.snapshots.take_snapshot("s", b"t")
    (taken,) = connection.snapshots.list_snapshots()
    store.stop()
    clock.shift_ns = 0
    (tmp_path / "data" / "snapshots").rename(tmp_path / "snapshots")
    shutil.rmtree(tmp_path / "data")
    store.start()  # another store
    store.stop()
    (tmp_path / "snapshots").rename(tmp_path / "data" / "snapshots")
    store.start()
    connection = store.connect()
    connection.create_table(b"any", {"f": {}})
    connection.snapshots.restore_snapshot("s")
    connection.table(b"any").put(b"r", {b"f:x": b"v"})
    _, now = connection.table(b"any").row(b"r", include_timestamp=True)[b"f:x"]
    assert now >= taken.created_ms


def test_a_client_that_is_ahead_moves_nobody(store: Serving, clock: FakeClock, tmp_path: Path) -> None:
    clock.shift_ns = 0
    ahead_ms = (time.time_ns() + 24 * HOUR_NS) // 1_000_000
    connection = store.connect()
    fill(connection)
    connection.table(b"t").put(b"ahead", {b"v:x": b"v"}, timestamp=ahead_ms)
    store.stop()
    store.start()
    table = store.connect().table(b"t")
    assert table.row(b"ahead", include_timestamp=True) == {b"v:x": (b"v", ahead_ms)}
    table.put(b"now", {b"v:x": b"v"})
    assert table.row(b"now", include_timestamp=True)[b"v:x"][1] < ahead_ms - 12 * HOUR_NS // 1_000_000
    store.stop()
    (tmp_path / "data" / "clock").unlink()
    store.start()
    table = store.connect().table(b"t")
    table.put(b"now", {b"v:x": b"v"})
    assert table.row(b"now", include_timestamp=True)[b"v:x"][1] < ahead_ms - 12 * HOUR_NS // 1_000_000
