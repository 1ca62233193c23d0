"""A disk that is full, mounted read-only, or fails its fsyncs, and a process without descriptors.

All these faults have in common: writers get a typed error with the remedy, readers continue unless they would see data
that a crash could remove, no acknowledged write is lost, other tables are unharmed, and the fault ends by itself when
the cause is gone.  ``docs/faults.md`` has the table of them.
"""

from __future__ import annotations

import itertools
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from thriftpy2.transport import TTransportException

from columnar.client import Connection
from columnar.client.admin import RegionAdmin
from tests.support import trigger_functions
from tests.support.audit import seen
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

BEFORE = {b"%02d" % n: b"before" for n in range(8)}
CLASS_AND_ADVICE = re.compile(r"(IOException|CallTimeoutException): .+; \w+")

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler: the disk cannot be made to fail")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingStore]:
    """Yield one store for all tests; each test leaves it in a state from which the next can continue."""
    folder = tmp_path_factory.mktemp("faults") / "data"
    with FailingStore(folder, "--trigger-modules", trigger_functions.MODULE) as store:
        yield store


class Tables(NamedTuple):
    connection: Connection
    spoiled: bytes
    quiet: bytes


@pytest.fixture
def tables(store: FailingStore, request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Yield two tables of the test's own, with rows that were acknowledged before anything failed."""
    word = f"{abs(hash(request.node.name)):x}".encode()
    tables = Tables(store.connection(), b"spoiled-" + word, b"quiet-" + word)
    for table in tables[1:]:
        tables.connection.create_table(table, {"f": {"max_versions": 1}})
        for row, value in BEFORE.items():
            tables.connection.table(table).put(row, {b"f:x": value})
    yield tables
    store.mend()
    tables.connection.close()


def put(connection: Connection, table: bytes, row: bytes) -> str:
    return error_of(lambda: connection.table(table).put(row, {b"f:x": b"during"}))


def check_after(store: FailingStore, tables: Tables, sure: dict[bytes, bytes], maybe: set[bytes]) -> None:
    """Check after ``kill -9`` and a start that acknowledged rows are stored, and beside them only attempted writes."""
    store.kill()
    store.start()
    connection = store.connection()
    try:
        found = rows(connection, tables.spoiled)
        assert {row: value for row, value in found.items() if row not in maybe} == sure
        assert rows(connection, tables.quiet) == BEFORE
    finally:
        connection.close()


@pytest.mark.parametrize(("how", "said"), [(FULL, "the disk is full"), (READ_ONLY, "the disk takes no writes")])
def test_a_disk_that_takes_no_writes(store: FailingStore, tables: Tables, how: str, said: str) -> None:
    connection, spoiled, quiet = tables
    store.fail(how)
    texts = [put(connection, spoiled, b"tried-%d" % n) for n in range(4)]
    for text in texts:
        assert CLASS_AND_ADVICE.match(text), text
        assert said in text
    assert texts[0].startswith("CallTimeoutException"), "nobody knows what became of it"
    assert texts[-1].startswith("IOException"), "nothing was done"
    found = rows(connection, spoiled)
    assert BEFORE.items() <= found.items(), "readers read on"
    assert found.keys() - BEFORE.keys() <= {b"tried-0"}
    assert connection.table(spoiled).row(b"03") == {b"f:x": b"before"}
    assert rows(connection, quiet) == BEFORE
    store.mend()
    until_it_works(lambda: connection.table(spoiled).put(b"again", {b"f:x": b"after"}))
    assert put(connection, quiet, b"00") == ""
    connection.table(quiet).put(b"00", {b"f:x": b"before"})
    if how == FULL:
        check_after(store, tables, BEFORE | {b"again": b"after"}, {b"tried-%d" % n for n in range(4)})


def test_fsyncs_that_fail(store: FailingStore, tables: Tables) -> None:
    """The pages of such a disk are not trusted afterwards: not even readers see them before they are synced."""
    connection, spoiled, quiet = tables
    store.fail(SYNCS_FAIL)
    text = put(connection, spoiled, b"tried")
    assert text.startswith("CallTimeoutException: the disk refused to sync: the disk fails"), text
    assert text.endswith("read before you repeat")
    assert "the disk fails" in error_of(lambda: connection.table(spoiled).row(b"tried"))
    assert rows(connection, quiet) == BEFORE, "a region that nobody wrote to is read as before"
    store.mend()
    until_it_works(lambda: connection.table(spoiled).put(b"again", {b"f:x": b"after"}))
    check_after(store, tables, BEFORE | {b"again": b"after"}, {b"tried"})


def test_triggers_go_on_when_the_disk_does(store: FailingStore, tables: Tables) -> None:
    connection, spoiled, _ = tables
    connection.create_table(b"audit", {"a": {"max_versions": 1}})
    connection.triggers.add("told", spoiled, f"{trigger_functions.MODULE}:note", [b"f"])
    connection.table(spoiled).put(b"before", {b"f:x": b"1"})
    store.fail(FULL)
    assert put(connection, spoiled, b"tried")
    assert put(connection, b"audit", b"tried")
    assert connection.table(spoiled).row(b"before") == {b"f:x": b"1"}
    store.mend()
    until_it_works(lambda: connection.table(spoiled).put(b"again", {b"f:x": b"after"}))
    assert connection.triggers.wait("told", timeout_ms=20_000)
    assert seen(connection, b"before")
    assert seen(connection, b"again")
    connection.triggers.remove("told")


@pytest.mark.parametrize("how", [FULL, READ_ONLY, SYNCS_FAIL], ids=["full", "read-only", "syncs fail"])
def test_tables_are_made_again_when_the_disk_is_mended(store: FailingStore, tables: Tables, how: str) -> None:
    connection, _, quiet = tables
    third = b"made-" + how.encode()
    store.fail(how)
    assert error_of(lambda: connection.create_table(third, {"f": {}}))
    refusal = error_of(lambda: connection.create_table(third, {"f": {}}))
    assert "until the disk takes writes of the catalogue" in refusal, refusal
    assert rows(connection, quiet) == BEFORE
    assert third not in connection.tables()
    store.mend()
    until_it_works(lambda: connection.create_table(third, {"f": {}}))
    connection.table(third).put(b"r", {b"f:x": b"1"})
    connection.disable_table(third)
    store.kill()
    store.start()
    again = store.connection()
    assert {third, quiet} <= set(again.tables())
    again.enable_table(third)
    assert again.table(third).row(b"r") == {b"f:x": b"1"}
    again.close()


def test_a_split_that_a_full_disk_refused_goes_when_there_is_room(store: FailingStore, tables: Tables) -> None:
    connection, spoiled, _ = tables
    store.fail(FULL)
    assert error_of(lambda: RegionAdmin(connection).split(spoiled, b"02"))
    store.mend()
    until_it_works(lambda: connection.table(spoiled).put(b"again", {b"f:x": b"after"}))
    until_it_works(lambda: RegionAdmin(connection).split(spoiled, b"02"))
    assert len(connection.table(spoiled).regions()) == 2
    check_after(store, tables, BEFORE | {b"again": b"after"}, set())


def test_a_start_on_a_full_disk_says_why_it_cannot_be(store: FailingStore, tables: Tables) -> None:
    store.kill()
    store.fail(FULL)
    ended = store.refused_start()
    store.mend()
    store.start()
    assert ended.returncode == 2, ended
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("\n") == 1, "one line"
    assert "No space left on device" in ended.stderr
    connection = store.connection()
    assert rows(connection, tables.spoiled) == rows(connection, tables.quiet) == BEFORE
    connection.close()


def test_no_descriptors_left(store: FailingStore, tables: Tables) -> None:
    _, spoiled, quiet = tables
    store.kill()
    store.start()
    connection = store.connection()
    assert rows(connection, quiet) == BEFORE, "it is open now; the other is not"
    limits = resource.prlimit(store.pid, resource.RLIMIT_NOFILE)
    taken = {int(path.name) for path in Path(f"/proc/{store.pid}/fd").iterdir()}
    held = next(number for number in itertools.count() if number not in taken)  # the next one would get this number
    resource.prlimit(store.pid, resource.RLIMIT_NOFILE, (held, limits[1]))
    text = put(connection, spoiled, b"tried")
    assert text.startswith("IOException: no file descriptor is left"), text
    assert "ulimit -n" in text
    text = error_of(lambda: connection.snapshots.take_snapshot("s", quiet))
    assert text.startswith("IOException: no file descriptor is left"), text
    assert rows(connection, quiet) == BEFORE, "what is open is served"
    with pytest.raises((TTransportException, ConnectionResetError)):  # closed at once: nobody waits in vain
        store.connection().tables()
    resource.prlimit(store.pid, resource.RLIMIT_NOFILE, limits)
    until_it_works(lambda: connection.table(spoiled).put(b"again", {b"f:x": b"after"}))
    assert rows(connection, spoiled) == BEFORE | {b"again": b"after"}
    connection.snapshots.take_snapshot("s", quiet)
    connection.snapshots.delete_snapshot("s")
    connection.close()
