"""What is no fault of a change counts no attempt: its trigger is blocked, says why, and goes on by itself."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from columnar.client import Connection, TriggerStatus
from tests.support.serving import Serving
from tests.support.shell import Shell

MODULE = "blocked_in_a_test"
GOOD = """
from columnar.triggers.api import Put


def copy(change):
    yield Put("out", change.row, {b"f:v": b"first"})


def by_client(change, client):
    client.table(b"out").put(change.row, {b"f:v": b"first"}, timestamp=change.stamp)


def both(change):
    yield Put("out" if b"out" in change.row else "other", change.row, {b"f:v": b"first"})


def both_of_batch(changes):
    for change in changes:
        yield from ((change, effect) for effect in both(change))


def both_by_client(changes, client):
    for change in changes:
        table = "out" if b"out" in change.row else "other"
        client.table(table).put(change.row, {b"f:v": b"first"}, timestamp=change.stamp)
"""
ROWS = [b"r%02d" % n for n in range(20)]


class Place:
    """A store, and the module that its workers import."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._file = folder, folder / f"{MODULE}.py"
        self.write(GOOD)
        self.serving = Serving(folder / "data", trigger_modules=(MODULE,)).start()
        self.connection: Connection = self.serving.connect()
        self.shell = Shell(f"127.0.0.1:{self.serving.store.port}")
        for table in ("src", "out", "other"):
            self.connection.create_table(table, {"f": {}})

    def write(self, text: str) -> None:
        self._file.write_text(text)

    def add(self, function: str = "copy", **settings: int) -> None:
        self.connection.triggers.add("t", b"src", f"{MODULE}:{function}", [b"f"], attempts=1, **settings)

    def put(self, *rows: bytes) -> None:
        with self.connection.table("src").batch() as batch:
            for row in rows:
                batch.put(row, {b"f:v": b"1"})

    @property
    def status(self) -> TriggerStatus:
        (found,) = self.connection.triggers.list()
        return found

    def until_blocked(self, why: str) -> TriggerStatus:
        self.until(lambda: self.status.state == "blocked" and why in self.status.last_error)
        return self.status

    def until(self, is_so: Callable[[], bool]) -> None:
        ends_s = time.monotonic() + 30
        while not is_so():
            assert time.monotonic() < ends_s, self.status
            time.sleep(0.01)

    def copied(self) -> dict[bytes, bytes]:
        return {row: cells[b"f:v"] for row, cells in self.connection.table("out").scan()}

    def restart_worker(self) -> None:
        worker = self.serving.store.serving.trigger_manager.dispatcher.workers()[0].link.process_id
        os.kill(worker, signal.SIGKILL)
        self.until(lambda: self.serving.store.serving.trigger_manager.dispatcher.workers()[0].link.process_id != worker)

    def goes_on(self, rows: int) -> None:
        """All is delivered, by nobody's help, and nothing was given up."""
        assert self.connection.triggers.wait("t", timeout_ms=30_000)
        assert len(self.copied()) == rows
        assert (self.status.state, self.status.dead_letters) == ("running", 0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    found = Place(tmp_path)
    try:
        yield found
    finally:
        found.serving.stop()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("raise RuntimeError('as told')\n", "RuntimeError: as told"),
        ("import os\nos._exit(3)\n", "ended with status 3"),
        ("def other(change):\n    pass\n", "has no attribute 'copy'"),
    ],
)
def test_source_that_cannot_be_imported_is_not_taken_up(place: Place, text: str, why: str) -> None:
    place.add()
    place.put(b"a")
    assert place.connection.triggers.wait("t")
    place.write(text)
    said = place.shell.error("trigger", "reload")
    assert why in said
    assert "nothing was taken up" in said
    assert "trigger t" in said
    place.put(*ROWS)
    place.goes_on(21)
    assert set(place.copied().values()) == {b"first"}
    place.write(GOOD.replace('b"first"', 'b"second"'))
    place.shell.out("trigger", "reload")
    place.put(b"a")
    place.goes_on(21)
    assert place.copied()[b"a"] == b"second"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import os\nos._exit(3)\n", "the worker process went while it imported the module: ended with status 3"),
        ("def other(change):\n    pass\n", "has no attribute 'copy'"),
    ],
)
def test_a_worker_that_begins_with_such_source_blocks_the_trigger(place: Place, text: str, why: str) -> None:
    place.add()
    place.put(b"a")
    assert place.connection.triggers.wait("t")
    place.write(text)
    place.restart_worker()
    place.put(*ROWS)
    assert place.until_blocked(why).dead_letters == 0
    place.write(GOOD)
    place.goes_on(21)


@pytest.mark.parametrize("function", ["copy", "by_client"])
@pytest.mark.parametrize(
    ("closes", "opens", "why"),
    [
        (("disable", "out"), ("enable", "out"), "TableNotEnabledException"),
        (("alter", "out", "--set", "READONLY=true"), ("alter", "out", "--set", "READONLY=false"), "is read only"),
    ],
)
def test_a_target_that_takes_no_writes_blocks_the_trigger(
    place: Place, function: str, closes: tuple[str, ...], opens: tuple[str, ...], why: str
) -> None:
    place.add(function, row=False)
    place.shell.out(*closes)
    place.put(*ROWS)
    assert place.until_blocked(why).dead_letters == 0
    place.shell.out(*opens)
    place.goes_on(20)


def test_a_row_of_a_disabled_table_that_comes_along_blocks_the_trigger(place: Place) -> None:
    place.write(
        "from columnar.triggers.api import Put, on\n\n"
        "@on('src', columns=['f:v'], look={'seen': ('other', 'row')}, attempts=1, name='t', writes=['out'])\n"
        "def looks(change):\n"
        "    yield Put('out', change.row, {b'f:v': change.look('seen').get(b'f:v', b'none')})\n"
    )
    place.shell.out("trigger", "sync", MODULE, "--yes")
    place.connection.admin.disable("other")
    place.put(*ROWS)
    assert place.until_blocked("other is disabled").dead_letters == 0
    place.connection.admin.enable("other")
    place.goes_on(20)


def test_one_disabled_target_of_several_stops_no_changes_for_the_others(place: Place) -> None:
    place.add("both", row=False)
    place.connection.admin.disable("other")
    for n in range(40):
        place.put(b"out%d" % n, b"other%d" % n)
    place.until(lambda: len(place.copied()) == 40)
    assert place.status.dead_letters == 0
    place.connection.admin.enable("other")
    place.goes_on(40)
    assert len(list(place.connection.table("other").scan())) == 40


@pytest.mark.parametrize("function", ["both_of_batch", "both_by_client"])
def test_one_disabled_target_of_a_batch_stops_no_changes_for_the_others(place: Place, function: str) -> None:
    place.add(function, row=False, batch=10, within_ms=50)
    place.connection.admin.disable("other")
    for n in range(40):
        place.put(b"%02d-other" % n, b"%02d-out" % n)
    place.until(lambda: len(place.copied()) == 40 and place.status.lag_changes == 40)
    assert place.status.dead_letters == 0
    place.connection.admin.enable("other")
    place.goes_on(40)
    assert len(list(place.connection.table("other").scan())) == 40
