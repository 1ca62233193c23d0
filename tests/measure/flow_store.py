"""A store for measurements of flows: the processor time of its processes, and the times of its triggers' runs."""

from __future__ import annotations

import os
import queue
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from columnar.client import Connection
from tests.measure.flow_functions import HEARD_AT, MODULE, NOTE
from tests.support.standalone_store import StoreProcess

TABLES: Final = ("source", "quiet", "derived", "spread")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_LONGEST_NOTE: Final = 4_096


class FlowStore:
    """A store with a trigger worker and ``TABLES``, each with one family ``f``."""

    def __init__(self, process: StoreProcess, heard: socket.socket) -> None:
        self.process = process
        self._notes: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._hear, args=(heard,), daemon=True).start()  # a full socket would block the worker
        self.connection = process.connection()

    def connect(self) -> None:
        """Connect; to be called again after a restart."""
        self.connection = self.process.connection()

    def register(self, name: str, table: str, function: str, **settings: object) -> None:
        adding: dict[str, object] = {"row": False, **settings}
        self.connection.triggers.add(name, table.encode(), f"{MODULE}:{function}", [b"f"], **adding)  # type: ignore[arg-type]

    def put(self, table: str, rows: Iterator[bytes] | list[bytes], at_once: int = 500) -> None:
        with self.connection.table(table.encode()).batch(batch_size=at_once) as batch:
            for row in rows:
                batch.put(row, {b"f:a": b"1"})

    def wait(self, name: str, timeout_s: float = 600.0) -> None:
        connection = Connection("127.0.0.1", self.process.port, timeout=round(1_000 * timeout_s) + 10_000)
        delivered = connection.triggers.wait(name, timeout_ms=round(1_000 * timeout_s))
        connection.close()
        assert delivered, f"{name} is behind"

    def _hear(self, heard: socket.socket) -> None:
        while note := heard.recv(_LONGEST_NOTE):
            self._notes.put(note)

    def note(self, patience_s: float = 60.0) -> tuple[float, int, bytes]:
        """Return time, number of changes and first row of the next call of ``told`` or ``told_batches``."""
        note = self._notes.get(timeout=patience_s)
        at_s, changes = NOTE.unpack_from(note)
        return at_s, changes, note[NOTE.size :]

    def cpu_s(self) -> tuple[float, float]:
        """Return the processor seconds of the store and of its workers so far."""
        workers = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return _cpu_s(self.process.pid), sum(_cpu_s(int(worker)) for worker in workers)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def flow_store(*flags: str) -> Iterator[FlowStore]:
    with tempfile.TemporaryDirectory(prefix="columnar-flows-") as folder:
        path = os.path.join(folder, "heard")
        heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        heard.bind(path)
        process = StoreProcess(Path(folder) / "data", "--trigger-modules", MODULE, *flags, is_forked=False)
        process.environment[HEARD_AT] = path
        with process, heard:
            store = FlowStore(process, heard)
            for table in TABLES:
                store.connection.create_table(table, {"f": {}})
            yield store
            store.connection.close()
            heard.shutdown(socket.SHUT_RD)  # ends the thread that hears


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def milliseconds(values: list[float]) -> str:
    p50, p99 = quantile(values, 0.5), quantile(values, 0.99)
    return f"p50 {1_000 * p50:.2f} ms, p99 {1_000 * p99:.2f} ms, longest {1_000 * max(values):.2f} ms"


def now_s() -> float:
    """Return the time by the clock of ``flow_functions``."""
    return time.monotonic()
