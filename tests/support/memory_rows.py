"""Rows of accounts in a dictionary: what ``wikka_port.accounts.rows.Rows`` promises, without a store.

``asked`` is called before each step with the step's name, and may raise StoreUnavailable or count.  Families with a
time to live keep their cells, so that readers cannot rely on expiry.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

Cells = Mapping[bytes, bytes]


class MemoryRows:
    def __init__(self, asked: Callable[[str], None] = lambda what: None) -> None:
        self.data: dict[bytes, dict[bytes, dict[bytes, bytes]]] = {}
        self.asked = asked
        self._lock = threading.RLock()

    def _of(self, table: bytes) -> dict[bytes, dict[bytes, bytes]]:
        return self.data.setdefault(table, {})

    def row(self, table: bytes, row: bytes, columns: Sequence[bytes] | None = None) -> Cells:
        self.asked("rows.row")
        with self._lock:
            return _chosen(self._of(table).get(row, {}), columns)

    def rows(self, table: bytes, rows: Collection[bytes], columns: Sequence[bytes] | None = None) -> dict[bytes, Cells]:
        if not rows:
            return {}
        self.asked("rows.rows")
        with self._lock:
            found = {row: _chosen(self._of(table).get(row, {}), columns) for row in rows}
        return {row: cells for row, cells in found.items() if cells}

    def scan(
        self, table: bytes, start: bytes = b"", *, columns: Sequence[bytes] | None = None, limit: int | None = None
    ) -> Iterator[tuple[bytes, Cells]]:
        self.asked("rows.scan")
        with self._lock:
            found = [(row, _chosen(cells, columns)) for row, cells in sorted(self._of(table).items()) if row >= start]
        yield from [one for one in found if one[1]][:limit]

    def row_keys(self, table: bytes, start: bytes, stop: bytes, *, limit: int) -> list[bytes]:
        self.asked("rows.row_keys")
        with self._lock:
            return sorted(row for row in self._of(table) if start <= row < stop)[:limit]

    def delete_rows(self, table: bytes, rows: Collection[bytes]) -> None:
        self.asked("rows.delete_rows")
        with self._lock:
            for row in rows:
                self._delete(table, row, None)

    is_atomic = True

    def put(self, table: bytes, row: bytes, cells: Cells, timestamp: int | None = None) -> None:
        self.asked("rows.put")
        with self._lock:
            self._of(table).setdefault(row, {}).update(cells)

    def put_rows(self, table: bytes, rows: Mapping[bytes, Cells]) -> None:
        self.asked("rows.put_rows")
        with self._lock:
            for row, cells in rows.items():
                self._of(table).setdefault(row, {}).update(cells)

    def delete(self, table: bytes, row: bytes, columns: Sequence[bytes] | None = None) -> None:
        self.asked("rows.delete")
        with self._lock:
            self._delete(table, row, columns)

    def _delete(self, table: bytes, row: bytes, columns: Sequence[bytes] | None) -> None:
        held = self._of(table).get(row, {})
        for column in list(_chosen(held, columns)):
            del held[column]
        if not held:
            self._of(table).pop(row, None)

    def change(
        self,
        table: bytes,
        row: bytes,
        expected: Mapping[bytes, bytes | None],
        puts: Cells,
        deletes: Sequence[bytes] = (),
    ) -> bool:
        self.asked("rows.change")
        with self._lock:
            held = self._of(table).get(row, {})
            if any((held.get(column) or None) != (value or None) for column, value in expected.items()):
                self.asked("rows.refused")
                first, value = next(iter(puts.items()))
                return expected.get(first) != value and held.get(first) == value
            if deletes:
                self._delete(table, row, list(deletes))
            self._of(table).setdefault(row, {}).update(puts)
            return True


def _chosen(cells: Cells, columns: Sequence[bytes] | None) -> dict[bytes, bytes]:
    return {
        column: value
        for column, value in cells.items()
        if columns is None or column in columns or column.partition(b":")[0] in columns
    }
