"""kill -9 at each step of a swap, of a rollback and of the end of a generation, while readers read by the view's name.

Before and after the kill every answer comes from one generation as a whole, and the change is done or not done.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from thriftpy2.thrift import TException

from columnar.client import Connection, Source, View
from columnar.model.view_generations import KEPT_MS
from tests.support.standalone_store import StoreProcess

ROWS = 40
GROUPS = (b"a", b"b")
WAIT_MS = 60_000
SIZES = View("groups", Source("t", key=("f:a",), sums={"size": "f:n"}))
HALVES = View("groups", Source("t", key=("f:a",), sums={"half": "f:h"}))
GONE = (TException, OSError, EOFError)
OLD, NEW = {"live": "groups", "next": "groups.2"}, {"kept": "groups", "live": "groups.2"}
BACK = {"live": "groups", "kept": "groups.2"}


class DyingStore(StoreProcess):
    """``tests.support.dying_store``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._command = [sys.executable, "-m", "tests.support.dying_store", *self._command[4:]]
        self.keep_generations(KEPT_MS)

    def keep_generations(self, for_ms: int) -> None:
        self.environment["VIEW_STORE_KEPT_MS"] = str(for_ms)

    def begin_to_die_at(self, step: str = "") -> None:
        """Begin a store that ends at ``step``; an empty step begins a store that lives."""
        self.environment["VIEW_STORE_DIES_AT"] = step
        self.begin()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DyingStore]:
    store = DyingStore(tmp_path / "data")
    store.begin_to_die_at()
    store.await_ready()
    with closing(store.connection()) as connection:
        connection.create_table("t", {"f": {}}, splits=[b"20"])
        with connection.table("t").batch() as batch:
            for number in range(ROWS):
                cells = {b"f:a": GROUPS[number % 2], b"f:n": b"%d" % number, b"f:h": b"%d" % (number // 2)}
                batch.put(b"%02d" % number, cells)
        connection.views.add(SIZES)
        built(connection, "groups")
        connection.views.rebuild("groups", HALVES)
        built(connection, "groups.2")
    assert store.stop() == 0
    yield store
    if not store.has_ended():
        store.kill()


def built(connection: Connection, table: str) -> None:
    while not any(one.table == table and one.state == "live" for one in connection.views.list()):
        assert connection.views.wait(table.replace(".", "@"), timeout_ms=WAIT_MS)


def roles(connection: Connection) -> dict[str, str]:
    return {one.role: one.table for one in connection.views.list()}


def read(connection: Connection) -> None:
    """Read by the view's API and as any HBase client does."""
    for group in GROUPS:
        assert connection.view("groups").get(group).count == ROWS // 2
        row = connection.table("groups").row(group, [b"v"])
        assert (b"v:half" in row) != (b"v:size" in row), row


class Readers(threading.Thread):
    """Threads that read until the store has ended, at least once; ``join`` raises their errors."""

    def __init__(self, store: DyingStore) -> None:
        super().__init__()
        self._store = store
        self._connection = store.connection()
        self._failure: BaseException | None = None
        self.has_read = threading.Event()

    def run(self) -> None:
        try:
            while True:
                read(self._connection)
                self.has_read.set()
        except GONE as error:
            if not self._store.has_ended(30):
                self._failure = error
        except BaseException as error:  # noqa: BLE001 - raised in the test's thread
            self._failure = error
        finally:
            self.has_read.set()

    def join(self, timeout: float | None = None) -> None:
        super().join(timeout)
        self._connection.close()
        if self._failure is not None:
            raise self._failure


def dies_at(store: DyingStore, step: str, change: str) -> None:
    store.begin_to_die_at(step)
    store.await_ready()
    readers = Readers(store)
    readers.start()
    readers.has_read.wait(30)
    with closing(store.connection()) as connection, pytest.raises(GONE):
        connection.call(change, "groups")
    readers.join()
    ended(store)


def ended(store: DyingStore) -> None:
    assert store.has_ended(30)
    store.kill()  # which closes what is left of it here


def then(store: DyingStore, stands: dict[str, str]) -> None:
    """Check that the change is done or not done, that readers get an answer, and that both generations are right."""
    store.begin_to_die_at()
    store.await_ready()
    with closing(store.connection()) as connection:
        read(connection)
        assert roles(connection) == stands
        assert connection.views.check("groups").wrong == 0
    store.kill()


def test_a_swap_and_a_rollback_are_done_or_not_done(store: DyingStore) -> None:
    dies_at(store, "deciding", "columnarViewSwap")
    then(store, OLD)
    dies_at(store, "decided", "columnarViewSwap")
    then(store, NEW)
    dies_at(store, "deciding", "columnarViewRollback")
    dies_at(store, "told", "columnarViewRollback")
    then(store, BACK)


def test_a_generation_whose_time_is_over_goes_or_stays(store: DyingStore) -> None:
    store.keep_generations(0)
    dies_at(store, "told", "columnarViewSwap")
    for step in ("dropping", "dropped"):  # at once when it starts
        store.begin_to_die_at(step)
        ended(store)
    then(store, {"live": "groups.2"})
