"""A store process under attack, which must answer others meanwhile, store nothing and keep its memory in bounds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TBufferedTransport, TSocket

from columnar.limits import MIB
from columnar.wire.idl import SERVICE
from tests.support.standalone_store import StoreProcess

ROWS = 3  # of table t
LARGE_ROWS = 40  # of table large, 1 MiB each
PATIENCE_S = 10.0  # how long a neighbour may wait for one answer; the machine may be busy


def furnish(store: StoreProcess) -> None:
    """Make the tables t and large."""
    connection = store.connection()
    for name in ("t", "large"):
        connection.create_table(name, {"a": {"max_versions": 3}, "b": {"max_versions": 1}})
    for number in range(ROWS):
        connection.table("t").put(b"r%d" % number, {b"a:x": b"value", b"b:n": b"\0\0\0\0\0\0\0\5"}, timestamp=7)
    for number in range(LARGE_ROWS):
        connection.table("large").put(b"r%03d" % number, {b"a:x": b"v" * MIB})
    connection.close()


class Raw:
    """A connection that may send any call that the IDL allows."""

    def __init__(self, port: int, timeout_ms: int = 60_000) -> None:
        self._transport = TBufferedTransport(TSocket("127.0.0.1", port, socket_timeout=timeout_ms))
        self._transport.open()
        self.client = TClient(SERVICE, TBinaryProtocol(self._transport, decode_response=False))

    def is_alive(self) -> bool:
        return [cell.value for cell in self.client.get(b"t", b"r0", b"a:x", {})] == [b"value"]

    def close(self) -> None:
        self._transport.close()


class Neighbour(threading.Thread):
    """A client that reads a row again and again, over a connection of its own."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._raw = Raw(port)
        self._over = threading.Event()
        self.answers = 0
        self.slowest_s = 0.0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._over.wait(0.002):
                begun = time.monotonic()
                assert self._raw.is_alive()
                self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
                self.answers += 1
        except BaseException as failure:  # noqa: BLE001 - told to the test
            self.failure = failure

    def stop(self) -> None:
        self._over.set()
        self.join()
        self._raw.close()


@contextmanager
def besieged(store: StoreProcess, growth_bytes: int) -> Iterator[None]:
    """Check that the store stays good while the ``with`` block attacks it."""
    before = state_of(store)
    held = store.resident_bytes()
    store.forget_peak()
    neighbour = Neighbour(store.port)
    neighbour.start()
    try:
        yield
        answered = neighbour.answers
        while neighbour.answers < answered + 3 and neighbour.failure is None:
            threading.Event().wait(0.002)
    finally:
        neighbour.stop()
    assert neighbour.failure is None, f"a neighbour was not answered: {neighbour.failure!r}"
    assert neighbour.slowest_s < PATIENCE_S
    grown = store.peak_bytes() - held
    print(f"grew by {grown / MIB:.0f} MiB, a neighbour waited {1000 * neighbour.slowest_s:.0f} ms at most")
    assert grown < growth_bytes, f"the store grew by {grown / MIB:.0f} MiB"
    assert state_of(store) == before, "something was stored"


def state_of(store: StoreProcess) -> Any:
    connection = store.connection()
    try:
        return connection.tables(), store.dump(b"t"), connection.table("t").families()
    finally:
        connection.close()


def log_lines(store: StoreProcess) -> list[str]:
    return Path(store.log).read_text().splitlines()


def next_log_lines(store: StoreProcess, before: int) -> list[str]:
    """Return the store's log lines after the first ``before``; waits for a line, since a thread writes them."""
    ends = time.monotonic() + PATIENCE_S
    while len(lines := log_lines(store)) <= before and time.monotonic() < ends:
        time.sleep(0.01)
    return lines[before:]
