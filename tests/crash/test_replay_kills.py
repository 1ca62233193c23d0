"""kill -9 in the middle of a replay and of a retry ``--as-it-was``: both continue, and no change is missed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from thriftpy2.thrift import TException

from columnar.client import Connection
from tests.support import trigger_functions
from tests.support.store_process import StoreProcess

ROWS = [b"row-%03d" % number for number in range(200)]
PAUSE_S = 0.005
PATIENCE_S = 30.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    store = StoreProcess(tmp_path / "data", trigger_functions.MODULE)
    store.start()
    yield store
    assert store.stop() == 0


def told(connection: Connection) -> dict[bytes, int]:
    """Return how often each row was delivered."""
    return {row: cells[b"a:log"].count(b"\n") for row, cells in connection.table(b"audit").scan()}


def told_by_change(connection: Connection) -> dict[bytes, Counter[bytes]]:
    """Return how often each change of each row was delivered, by its sequence."""
    rows = connection.table(b"audit").scan()
    return {row: Counter(line.split(b";")[0] for line in cells[b"a:log"].splitlines()) for row, cells in rows}


def make(connection: Connection, function: str, **settings: int) -> None:
    connection.create_table(b"audit", {b"a": {}}, attributes={"DURABILITY": "SYNC_WAL"})
    connection.create_table(b"t", {b"f": {}}, attributes={"CHANGE_LOG": "3600"}, splits=[b"row-100"])
    connection.triggers.add("t", b"t", f"{trigger_functions.MODULE}:{function}", [b"f"], **settings)


def kill_once(store: StoreProcess, connection: Connection, more: int) -> Connection:
    """Kill the store when some but not all repeated changes have been delivered."""
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / PAUSE_S)):
        if sum(told(connection).values()) >= more:
            break
        pause.wait(PAUSE_S)
    else:
        raise AssertionError("too little of it has come")
    store.kill()
    store.start()
    return store.connect()


def test_a_replay_goes_on_after_a_kill(store: StoreProcess) -> None:
    connection = store.connect()
    make(connection, "note")
    table = connection.table(b"t")
    for row in ROWS:
        table.put(row, {b"f:q": b"v"})
    assert connection.triggers.wait(timeout_ms=60_000)
    assert told(connection) == dict.fromkeys(ROWS, 1)
    with suppress(TException, OSError, EOFError):
        connection.triggers.replay("t")
    connection = kill_once(store, connection, len(ROWS) + 20)
    assert connection.triggers.wait(timeout_ms=60_000)
    assert all(count >= 2 for count in told(connection).values()), "each row was shown again"
    (before,) = connection.triggers.list()
    assert before.lag_changes == 0
    connection.close()
    store.kill()
    store.start()
    connection = store.connect()
    assert connection.triggers.wait(timeout_ms=60_000)
    counts = told(connection)
    assert set(counts) == set(ROWS)
    connection.close()


def test_a_retry_as_it_was_is_in_the_log_or_in_its_letter(store: StoreProcess) -> None:
    connection = store.connect()
    make(connection, "obey", attempts=1)
    table = connection.table(b"t")
    for row in ROWS[:40]:
        table.put(row, {b"f:do": b"raise"})
    assert connection.triggers.wait(timeout_ms=60_000)
    assert len(connection.triggers.dead_letters("t", 100)) == 40

    def retry() -> None:
        with closing(store.connect()) as mine, suppress(TException, OSError, EOFError):
            mine.triggers.retry("t", as_it_was=True)

    retrying = threading.Thread(target=retry)
    retrying.start()
    connection = kill_once(store, connection, 50)
    retrying.join()
    assert connection.triggers.wait(timeout_ms=60_000)
    deliveries = told_by_change(connection)
    letters = {letter.row for letter in connection.triggers.dead_letters("t", 100)}
    assert letters == set(ROWS[:40]), "what was delivered again has failed again, what was not is still there"
    for row, by_change in deliveries.items():
        assert len(by_change) <= 2, f"{row!r}: the change, and its retry: {by_change}"
        assert max(by_change.values()) <= 2, f"{row!r}: the one kill repeats a delivery once: {by_change}"
    connection.close()
