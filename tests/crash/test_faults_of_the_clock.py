"""A system clock that jumps back an hour, while the store runs or is down: no write hides behind an older one."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar import standalone
from columnar.client import Connection
from tests.support.serving import Serving

HOUR_NS = 3_600 * 10**9


class FakeClock:
    """The system's, shifted."""

    def __init__(self) -> None:
        self.shift_ns = 0

    def time_ns(self) -> int:
        return time.time_ns() + self.shift_ns

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(standalone, "time", clock)
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
    """The folder as ``kill -9`` leaves it, its files with the times that they have by the store's clock."""
    left = tmp_path / "left"
    shutil.copytree(tmp_path / "data", left)
    at = time.time() + 3_600
    for path in left.rglob("*"):
        os.utime(path, (at, at))
    return left
