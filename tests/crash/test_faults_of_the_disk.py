"""A disk that is full, mounted read-only, or fails its fsyncs, and a process without descriptors.

What all have in common: writers hear a typed error that says what to do, readers read on where that shows
nothing a crash could take back, nothing acknowledged is lost, other tables are unharmed, and it ends by itself
when the cause is gone.  ``docs/faults.md`` is the table of it.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import Connection
from tests.support.failing_disk import (
    FULL,
    READ_ONLY,
    SYNCS_FAIL,
    FailingStore,
    error_of,
    library,
    rows,
    until_it_works,
)

CLASS_AND_ADVICE = re.compile(r"(IOException|CallTimeoutException): .+; \w+")
SPOILED, QUIET = b"spoiled", b"quiet"

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler: the disk cannot be made to fail")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FailingStore]:
    with FailingStore(tmp_path / "data") as store:
        yield store
        store.mend()


@pytest.fixture
def connection(store: FailingStore) -> Iterator[Connection]:
    connection = store.connection()
    for table in (SPOILED, QUIET):
        connection.create_table(table, {"f": {"max_versions": 1}})
        for n in range(20):
            connection.table(table).put(b"%02d" % n, {b"f:x": b"before"})
    yield connection
    connection.close()


def put(connection: Connection, table: bytes, row: bytes) -> str:
    return error_of(lambda: connection.table(table).put(row, {b"f:x": b"during"}))


BEFORE = {b"%02d" % n: b"before" for n in range(20)}


def check_after(store: FailingStore, sure: dict[bytes, bytes], maybe: set[bytes]) -> None:
    """After ``kill -9`` and a start: what was acknowledged, and of what was not at most what was tried."""
    store.kill()
    store.start()
    connection = store.connection()
    try:
        found = rows(connection, SPOILED)
        assert {row: value for row, value in found.items() if row not in maybe} == sure
        assert rows(connection, QUIET) == BEFORE
    finally:
        connection.close()


@pytest.mark.parametrize(("how", "said"), [(FULL, "the disk is full"), (READ_ONLY, "the disk takes no writes")])
def test_a_disk_that_takes_no_writes(store: FailingStore, connection: Connection, how: str, said: str) -> None:
    store.fail(how)
    texts = [put(connection, SPOILED, b"tried-%d" % n) for n in range(4)]
    for text in texts:
        assert CLASS_AND_ADVICE.match(text), text
        assert said in text
    assert texts[0].startswith("CallTimeoutException"), "nobody knows what became of it"
    assert texts[-1].startswith("IOException"), "nothing was done"
    found = rows(connection, SPOILED)
    assert BEFORE.items() <= found.items(), "readers read on"
    assert found.keys() - BEFORE.keys() <= {b"tried-0"}
    assert connection.table(SPOILED).row(b"07") == {b"f:x": b"before"}
    assert rows(connection, QUIET) == BEFORE
    store.mend()
    until_it_works(lambda: connection.table(SPOILED).put(b"again", {b"f:x": b"after"}))
    assert put(connection, QUIET, b"00") == ""
    connection.table(QUIET).put(b"00", {b"f:x": b"before"})
    check_after(store, BEFORE | {b"again": b"after"}, {b"tried-%d" % n for n in range(4)})


def test_fsyncs_that_fail(store: FailingStore, connection: Connection) -> None:
    """What the disk says of its pages afterwards is not believed: not even readers see them before they are synced."""
    store.fail(SYNCS_FAIL)
    text = put(connection, SPOILED, b"tried")
    assert text.startswith("CallTimeoutException: the disk refused to sync: the disk fails"), text
    assert text.endswith("read before you repeat")
    assert "the disk fails" in error_of(lambda: connection.table(SPOILED).row(b"tried"))
    assert rows(connection, QUIET) == BEFORE, "a region that nobody wrote to is read as before"
    store.mend()
    until_it_works(lambda: connection.table(SPOILED).put(b"again", {b"f:x": b"after"}))
    check_after(store, BEFORE | {b"again": b"after"}, {b"tried"})


def test_administration_on_a_full_disk_says_that_it_wants_a_restart(
    store: FailingStore, connection: Connection
) -> None:
    store.fail(FULL)
    first = error_of(lambda: connection.create_table(b"third", {"f": {}}))
    assert "the disk is full" in first, first
    assert "until the store is restarted" in error_of(lambda: connection.create_table(b"third", {"f": {}}))
    assert rows(connection, QUIET) == BEFORE
    store.mend()
    assert put(connection, QUIET, b"00") == "", "rows are written as before"
    store.kill()
    store.start()
    again = store.connection()
    if b"third" not in again.tables():
        again.create_table(b"third", {"f": {}})
    again.table(b"third").put(b"r", {b"f:x": b"1"})
    again.close()


def test_no_descriptors_left(store: FailingStore, connection: Connection) -> None:
    assert store.stop() == 0
    store.start()
    connection = store.connection()
    assert rows(connection, QUIET) == BEFORE
    limits = resource.prlimit(store.pid, resource.RLIMIT_NOFILE)
    held = len(list(Path(f"/proc/{store.pid}/fd").iterdir()))
    resource.prlimit(store.pid, resource.RLIMIT_NOFILE, (held, limits[1]))
    text = put(connection, SPOILED, b"tried")
    assert text.startswith("IOException: no file descriptor is left"), text
    assert "ulimit -n" in text
    assert rows(connection, QUIET) == BEFORE, "what is open is served"
    resource.prlimit(store.pid, resource.RLIMIT_NOFILE, limits)
    until_it_works(lambda: connection.table(SPOILED).put(b"again", {b"f:x": b"after"}))
    assert rows(connection, SPOILED) == BEFORE | {b"again": b"after"}
    connection.close()
