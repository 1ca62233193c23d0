"""Triggers that raise, hang, die and take their worker along: the row waits, its neighbours go on."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import Connection, Put
from tests.support.audit import seen
from tests.support.serving import Serving
from tests.support.trigger_functions import MODULE


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("store") / "data").start()
    serving.connect().create_table(b"audit", {"a": {}})
    yield serving
    serving.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


def make(connection: Connection, name: str, **settings: int) -> None:
    connection.create_table(name, {"f": {}})
    connection.triggers.add(name, name.encode(), f"{MODULE}:obey", [b"f"], **settings)


def test_a_failing_row_waits_and_then_goes_on_in_order(connection: Connection) -> None:
    make(connection, "later")
    table = connection.table(b"later")
    table.put(b"w", {b"f:do": b"raise twice", b"f:n": b"1"})
    table.put(b"w", {b"f:n": b"2"})
    neighbour = table.mutate(b"w-neighbour", [Put(b"f:n", b"1")]).sequence
    assert connection.triggers.wait("later", neighbour)
    assert connection.triggers.wait("later")
    deliveries = [(one.attempt, one.changes[-1][3]) for one in seen(connection, b"w")]
    first = sorted(deliveries[:3])
    assert first == [(1, b"1"), (2, b"1"), (3, b"1")]
    assert [value for _, value in deliveries[3:]] == [b"2"] * (len(deliveries) - 3)
    assert len(seen(connection, b"w-neighbour")) == 1


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (b"raise", "RuntimeError: as told ? at attempt 2"),
        (b"sys.exit", "SystemExit: as told"),
        (b"hang", "it ran over its timeout of 600 ms"),
        (b"exit", "the worker process went while it ran: ended with status 3"),
        (b"segv", "the worker process went while it ran: ended by SIGSEGV"),
        (b"garbage", "the worker process went while it ran: ended by SIGKILL"),
    ],
)
def test_after_its_last_attempt_it_is_a_dead_letter_and_the_row_goes_on(
    connection: Connection, order: bytes, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = "dead-" + order.decode()
    make(connection, name, attempts=2, timeout_ms=600 if order == b"hang" else 30_000)
    table = connection.table(name.encode())
    row = b"d-" + order
    table.put(row, {b"f:do": order, b"f:n": b"1"})
    for n in range(5):
        table.put(b"n-%s-%d" % (order, n), {b"f:n": b"1"})
    assert connection.triggers.wait(name, timeout_ms=30_000)
    (letter,) = connection.triggers.dead_letters(name)
    assert (letter.trigger, letter.table, letter.row, letter.attempts) == (name, name.encode(), row, 2)
    assert error in letter.error
    (said,) = [one.getMessage() for one in caplog.records if "gave up row" in one.getMessage()]
    assert error in said, "the log says why"
    assert letter.output == ("about to fail?\n" if order == b"raise" else "")
    assert all(len(seen(connection, b"n-%s-%d" % (order, n))) >= 1 for n in range(5))
    (status,) = (one for one in connection.triggers.list() if one.name == name)
    assert (status.dead_letters, status.lag_changes, status.parked_rows) == (1, 0, 0)
    assert error.split(":")[0] in status.last_error

    table.put(row, {b"f:do": b"well", b"f:n": b"2"})
    assert connection.triggers.wait(name)
    assert seen(connection, row)[-1].changes[-1][3] == b"2", "what came after the letter goes on"
    assert connection.triggers.retry(name, b"another row") == 0
    assert connection.triggers.retry(name, row) == 1
    assert connection.triggers.wait(name)
    assert connection.triggers.dead_letters(name) == []
    again = seen(connection, row)[-1]
    assert again.is_backfill
    assert again.now == {b"f:do": b"well", b"f:n": b"2"}, "the row as it is now"


def test_many_deadly_rows_cost_no_neighbour_its_attempts(connection: Connection) -> None:
    make(connection, "poison", attempts=2)
    table = connection.table(b"poison")
    for n in range(3):
        table.put(b"q-%d" % n, {b"f:do": b"exit"})
        table.put(b"r-%d" % n, {b"f:n": b"1"})
    assert connection.triggers.wait("poison", timeout_ms=30_000)
    assert sorted(letter.row for letter in connection.triggers.dead_letters("poison")) == [
        b"q-%d" % n for n in range(3)
    ]
    for n in range(3):
        assert all(one.attempt == 1 for one in seen(connection, b"r-%d" % n))


def test_what_is_printed_is_logged(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    make(connection, "talk", attempts=1)
    with caplog.at_level(logging.INFO, logger="columnar.triggers.dispatcher"):
        connection.table(b"talk").put(b"t", {b"f:do": b"raise"})
        assert connection.triggers.wait("talk")
    assert "trigger talk printed: about to fail?" in caplog.text


def test_pauses_grow(connection: Connection) -> None:
    make(connection, "parked", attempts=4)
    began = time.monotonic()
    connection.table(b"parked").put(b"p", {b"f:do": b"raise"})
    assert not connection.triggers.wait("parked", timeout_ms=1)
    assert connection.triggers.wait("parked", timeout_ms=30_000)
    assert time.monotonic() - began >= 0.1 + 0.2 + 0.4
    assert [one.attempt for one in seen(connection, b"p")] == [1, 2, 3, 4]


def test_a_call_of_a_removed_trigger_still_ends_by_its_timeout(serving: Serving, connection: Connection) -> None:
    make(connection, "ghost", timeout_ms=300)
    table = connection.table(b"ghost")
    dispatcher = serving.store.serving.trigger_manager.dispatcher
    for n in range(8):
        table.put(b"g-%d" % n, {b"f:do": b"hang"})
    connection.triggers.remove("ghost")
    make(connection, "heir")
    connection.table(b"heir").put(b"h", {b"f:n": b"1"})
    assert connection.triggers.wait("heir", timeout_ms=20_000)
    deadline_s = time.monotonic() + 20
    while serving.do(
        lambda: any(call.source.registration.name == "ghost" for call in dispatcher.common.main.calls.values())
    ):
        assert time.monotonic() < deadline_s


@pytest.mark.parametrize("order", [b"comes back", b"stays", b"program"])
def test_a_process_that_a_function_starts_disturbs_nobody_and_ends_with_the_worker(
    serving: Serving, connection: Connection, order: bytes
) -> None:
    """A copy of the worker would answer for it, within its frames."""
    name = "forks-" + order.decode().replace(" ", "-")
    connection.create_table(name, {"f": {}})
    if b"forked" not in connection.tables():
        connection.create_table("forked", {"f": {}})
    connection.triggers.add(name, name.encode(), f"{MODULE}:forks", [b"f"], attempts=1)
    table = connection.table(name.encode())
    for n in range(5):
        table.put(b"%s-%d" % (name.encode(), n), {b"f:do": order})
    assert connection.triggers.wait(name)
    (status,) = (one for one in connection.triggers.list() if one.name == name)
    assert (status.dead_letters, status.last_error) == (0, "")
    assert len(list(connection.table("forked").scan(row_prefix=name.encode()))) == 5
    link = serving.store.serving.trigger_manager.dispatcher.workers()[0].link
    worker = link.process_id
    if order == b"comes back":
        table.put(name.encode() + b"-last", {b"f:do": order})
        assert connection.triggers.wait(name)
        while len(processes_of(worker)) > 3:  # copies that end just now
            table.put(name.encode() + b"-last", {b"f:do": order})
            assert connection.triggers.wait(name)
    else:
        assert len(processes_of(worker)) == 6
    group = processes_of(worker)
    serving.do(link.kill)
    while any(Path(f"/proc/{one}").exists() for one in group):  # killed at once, and gone when the system says so
        time.sleep(0.01)


def processes_of(group: int) -> list[int]:
    """The processes of a group."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.getpgid(int(folder.name)) == group:
                found.append(int(folder.name))
    return found
