"""Triggers that yield: a real store, a real worker process, kills in the middle of a long one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import Connection
from tests.support.serving import Serving
from tests.support.store_process import StoreProcess
from tests.support.trigger_functions import MODULE

SPREAD = f"{MODULE}:spread"
LONG = 6_000  # cells of a fan-out: a dozen slices


def make(connection: Connection) -> None:
    connection.create_table(b"out", {"f": {}}, attributes={"DELETE_MARKERS": "3600000"}, splits=[b"0500"])
    connection.create_table(b"plain", {"f": {}})
    connection.create_table(b"source", {"f": {}})
    connection.triggers.add("spread", b"source", SPREAD, [b"f"], attempts=2, row=False)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path / "data").start()
    make(serving.connect())
    yield serving
    serving.stop()


def rows_with(connection: Connection, source: bytes) -> dict[bytes, tuple[bytes, int]]:
    column = b"f:" + source
    found = connection.table(b"out").scan(columns=[column], include_timestamp=True)
    return {row: cells[column] for row, cells in found}


def test_what_is_yielded_is_written_with_the_changes_own_stamp(serving: Serving) -> None:
    connection = serving.connect()
    source = connection.table(b"source")
    source.put(b"a", {b"f:count": b"1234", b"f:value": b"old"})
    source.put(b"b", {b"f:count": b"1", b"f:value": b"other"})
    assert connection.triggers.wait("spread")
    found = rows_with(connection, b"a")
    assert sorted(found) == [b"%04d" % number for number in range(1_234)]
    assert len(set(found.values())) == 1, "one value, one stamp"
    source.put(b"a", {b"f:count": b"3", b"f:value": b"new"})
    assert connection.triggers.wait("spread")
    newer = rows_with(connection, b"a")
    assert [newer[row][0] for row in (b"0000", b"0002", b"0003")] == [b"new", b"new", b"old"]
    assert newer[b"0000"][1] > found[b"0000"][1]
    assert list(rows_with(connection, b"b")) == [b"0000"]


def test_deletes_need_markers_and_leave_no_other_row(serving: Serving) -> None:
    connection = serving.connect()
    source = connection.table(b"source")
    source.put(b"a", {b"f:count": b"2", b"f:value": b"1"})
    assert connection.triggers.wait("spread")
    source.put(b"d", {b"f:do": b"delete"})
    source.put(b"e", {b"f:do": b"delete unmarked"})
    assert connection.triggers.wait("spread")
    assert list(rows_with(connection, b"a")) == [b"0001"]
    (letter,) = connection.triggers.dead_letters("spread")
    assert letter.row == b"e"
    assert "columnar alter plain --set DELETE_MARKERS=" in letter.error


def test_a_change_that_is_put_off_comes_again_with_its_checkpoint(serving: Serving) -> None:
    connection = serving.connect()
    connection.table(b"source").put(b"a", {b"f:do": b"later"})
    assert connection.triggers.wait("spread")
    assert connection.triggers.dead_letters("spread") == []


def test_a_function_may_read_and_yield(serving: Serving) -> None:
    connection = serving.connect()
    connection.create_table(b"read", {"f": {}})
    connection.triggers.add("reads", b"read", f"{MODULE}:spread_with_client", [b"f"], side_by_side=1)
    result = []
    for number in range(5):
        connection.table(b"read").put(b"r", {b"f:n": b"%d" % number})
        assert connection.triggers.wait("reads")
        result.append(len(connection.table(b"out").row(b"r")))
    assert result == [1, 2, 3, 4, 5], "a later call sees what an earlier one yielded"


def test_a_long_fan_out_goes_on_behind_its_checkpoint(tmp_path: Path) -> None:
    """kill -9 of the worker, then of the store, in its middle; then the rest, and nothing is missing."""
    store = StoreProcess(tmp_path / "data", MODULE)
    store.start()
    make(connection := store.connect())
    connection.table(b"source").put(b"a", {b"f:count": b"%d" % LONG, b"f:value": b"1"})
    pause = threading.Event()
    for kill, share in ((store.kill_workers, 0.2), (store.kill, 0.5)):
        while len(rows_with(connection, b"a")) < share * LONG:
            pause.wait(0.002)
        kill()
    store.start()
    connection = store.connect()
    assert connection.triggers.wait("spread", timeout_ms=60_000)
    assert len(rows_with(connection, b"a")) == LONG
    assert connection.triggers.dead_letters("spread") == []
    assert store.stop() == 0


def test_calls_of_a_worker_are_no_foreground_requests(serving: Serving) -> None:
    connection, doors = serving.connect(), serving.store.ports
    connection.create_table(b"audit", {"a": {}})
    connection.triggers.add("noted", b"plain", f"{MODULE}:note", [b"f"])
    before = serving.do(doors.answered)
    connection.table(b"plain").put(b"row", {b"f:a": b"1"})
    assert connection.triggers.wait("noted")
    assert serving.do(doors.answered) - before == 2, "the put and the wait"
    assert connection.table(b"audit").row(b"row"), "which the worker has written by a call of its own"


def test_messages_that_are_yielded_are_in_their_queue_once_however_often_the_function_runs(serving: Serving) -> None:
    connection = serving.connect()
    connection.queue("mail").configure(lease_ms=60_000)
    connection.triggers.add("mail", b"source", f"{MODULE}:mail", [b"f"], attempts=3, row=True)
    source = connection.table(b"source")
    for row in (b"a", b"b"):
        source.put(row, {b"f:to": b"queue:mail", b"f:mail": b"to " + row})
    source.put(b"bad", {b"f:to": b"queue:no name", b"f:mail": b"x"})
    assert connection.triggers.wait("mail")
    found = connection.queue("mail").pop(10, wait_ms=5_000)
    assert sorted((one.body, one.headers[b"row"]) for one in found) == [
        (b"to a0", b"a"), (b"to a1", b"a"), (b"to b0", b"b"), (b"to b1", b"b"),
    ]  # fmt: skip
    assert connection.queue("mail").pop(1) == []
    assert connection.table(b"out").row(b"a") == {b"f:mailed": b"to a"}
    (letter,) = connection.triggers.dead_letters("mail")
    assert letter.row == b"bad"
    assert "queue's name" in letter.error
    assert connection.table(b"out").row(b"bad") == {}
