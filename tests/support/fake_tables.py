"""Tables in memory with timestamps and delete markers, as Columnar keeps those that triggers write.

``Tables`` has the part of happybase's interface that the wiki's trigger functions use.  Each call is one step, and
``gate`` is called before it, so that a test can decide which function goes next.  ``Stepper`` runs functions in threads
of which exactly one moves at a time.  ``write_slices`` writes effects as a store does.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from columnar.triggers.api import Barrier, Effect, Put

Cell = tuple[int, bytes | None]  # timestamp, value; None: a delete marker


class Tables:
    is_columnar = True

    def __init__(self) -> None:
        self.data: dict[bytes, dict[bytes, dict[bytes, Cell]]] = {}
        self.gate: Callable[[], None] = lambda: None

    def table(self, name: bytes) -> FakeTable:
        return FakeTable(self, self.data.setdefault(name, {}))

    def visible(self, name: bytes) -> dict[bytes, dict[bytes, bytes]]:
        shown = {}
        for row, cells in self.data.get(name, {}).items():
            values = {column: value for column, (_, value) in cells.items() if value is not None}
            if values:
                shown[row] = values
        return shown


class FakeTable:
    def __init__(self, tables: Tables, rows: dict[bytes, dict[bytes, Cell]]) -> None:
        self._tables = tables
        self._rows = rows

    def _read(self, row: bytes, columns: Sequence[bytes] | None, stamps: bool) -> dict[bytes, Any]:
        found = {}
        for column, (at, value) in sorted(self._rows.get(row, {}).items()):
            asked = columns is None or column in columns or column.partition(b":")[0] in columns
            if value is not None and asked:
                found[column] = (value, at) if stamps else value
        return found

    def row(self, row: bytes, columns: Any = None, include_timestamp: bool = False) -> dict[bytes, Any]:
        self._tables.gate()
        return self._read(row, columns, include_timestamp)

    def rows(self, rows: Any, columns: Any = None, include_timestamp: bool = False) -> list[Any]:
        self._tables.gate()
        found = [(row, self._read(row, columns, include_timestamp)) for row in rows]
        return [(row, cells) for row, cells in found if cells]

    def scan(self, row_start: Any = b"", row_stop: Any = None, columns: Any = None, **_: Any) -> Iterator[Any]:
        self._tables.gate()
        for row in sorted(self._rows):
            if row >= row_start and (row_stop is None or row < row_stop) and (cells := self._read(row, columns, False)):
                yield row, cells

    def put(self, row: bytes, cells: Any, timestamp: int) -> None:
        self._tables.gate()
        self._put(row, cells, timestamp)

    def _put(self, row: bytes, cells: Any, at: int) -> None:
        held = self._rows.setdefault(row, {})
        for column, value in cells.items():
            if column not in held or held[column][0] <= at:
                held[column] = (at, value)

    def _delete(self, row: bytes, columns: Any, at: int) -> None:
        held = self._rows.setdefault(row, {})
        families = [column for column in columns if b":" not in column]
        of_families = [column for column in held if column.partition(b":")[0] in families]
        for column in [*of_families, *(column for column in columns if b":" in column)]:
            if column not in held or held[column][0] <= at:
                held[column] = (at, None)

    def delete(self, row: bytes, columns: Any, timestamp: int) -> None:
        self._tables.gate()
        self._delete(row, columns, timestamp)

    def mutate(self, row: bytes, deletes: Any) -> None:
        self._tables.gate()
        for one in deletes:
            self._delete(row, [one.column], one.timestamp)

    def batch(self, timestamp: int, batch_size: int | None = None) -> _Batch:
        return _Batch(self, timestamp)


class _Batch:
    def __init__(self, table: FakeTable, at: int) -> None:
        self._table, self._at = table, at
        self._steps: list[Callable[[], None]] = []

    def put(self, row: bytes, cells: Any) -> None:
        self._steps.append(lambda: self._table._put(row, cells, self._at))

    def delete(self, row: bytes, columns: Any) -> None:
        self._steps.append(lambda: self._table._delete(row, columns, self._at))

    def __enter__(self) -> _Batch:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            for step in self._steps:  # no atomicity across rows: others may come between
                self._table._tables.gate()
                step()


def write_slices(tables: Any, steps: Iterator[Any] | None, at_ms: int, shuffle: Callable[[list[Any]], None]) -> None:
    """Write effects; those between two barriers become durable in any order, each in a step of its own.

    For a batch ``steps`` has pairs with the change whose stamp the effect bears; otherwise effects bear ``at_ms``.
    """
    together: list[tuple[Any, int]] = []
    for step in itertools.chain(steps or (), (Barrier(),)):
        if not isinstance(step, Barrier):
            together.append((step, at_ms) if isinstance(step, Effect) else (step[1], step[0].timestamp))
            continue
        shuffle(together)
        for one, stamp in together:
            table = tables.table(one.table)
            if isinstance(one, Put):
                table.put(one.row, one.cells, stamp)
            else:
                table.delete(one.row, one.columns, stamp)
        together.clear()


class Killed(BaseException):
    """The worker that ran this is dead."""


class Run:
    """A function that runs on the tables; it stops before each step until ``go``."""

    def __init__(self, stepper: Stepper, work: Callable[[], None]) -> None:
        self.done = False
        self._stepper = stepper
        self._killed = False
        self._mine = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._main, args=(work,), daemon=True)
        self._thread.start()

    def _main(self, work: Callable[[], None]) -> None:
        self._mine.acquire()
        try:
            if not self._killed:
                work()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again in the test's own thread
            self._error = error
        self.done = True
        self._stepper.back.release()

    def pause(self) -> None:
        self._stepper.back.release()
        self._mine.acquire()
        if self._killed:
            raise Killed

    def go(self, *, kill: bool = False) -> None:
        """Do the next step (or die before it); return when the function stops before a further step, or has ended."""
        self._killed = kill
        self._stepper.current = self
        self._mine.release()
        self._stepper.back.acquire()
        if self.done:
            self._thread.join()
            if self._error is not None:
                raise self._error


class Stepper:
    def __init__(self, tables: Tables) -> None:
        self.back = threading.Semaphore(0)
        self.current: Run | None = None
        tables.gate = self._gate

    def _gate(self) -> None:
        current = self.current
        if current is not None and threading.current_thread() is current._thread:
            current.pause()

    def run(self, work: Callable[[], None]) -> Run:
        return Run(self, work)
