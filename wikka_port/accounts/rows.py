"""Conditional changes of one row, on Columnar and on a plain HBase.

``change`` is atomic on Columnar: if all expected values match, everything is written, else nothing.  On a plain
HBase the first expected cell guards the first put (``checkAndPut``), and the other writes follow.  So the first put
must be unique to the attempt, such as a new id or token: then a repeated attempt whose answer was lost is recognised.

Knows nothing of accounts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from columnar.client import Connection, Delete, Expect, Put
from columnar.client.row_operations import Operation
from wikka_port.store import Store, check_and_put

Cells = Mapping[bytes, bytes]
_STEP = 200
_KEYS_ONLY = b"FirstKeyOnlyFilter() AND KeyOnlyFilter()"


class Rows:
    """The rows of a store.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def row(self, table: bytes, row: bytes, columns: Sequence[bytes] | None = None) -> Cells:
        """Return the cells of a row, or those in ``columns``; the name of a family means all its columns."""
        wanted = None if columns is None else list(columns)
        return self._store.run(lambda c: dict(c.table(table).row(row, columns=wanted)))

    def rows(self, table: bytes, rows: Collection[bytes], columns: Sequence[bytes] | None = None) -> dict[bytes, Cells]:
        wanted = None if columns is None else list(columns)
        return self._store.run(lambda c: dict(c.table(table).rows(list(rows), columns=wanted))) if rows else {}

    def scan(
        self, table: bytes, start: bytes = b"", *, columns: Sequence[bytes] | None = None, limit: int | None = None
    ) -> Iterator[tuple[bytes, Cells]]:
        """Yield the rows from ``start`` on, by several scans: no connection is occupied while the caller works."""
        left = limit
        while left is None or left > 0:
            step = _STEP if left is None else min(left, _STEP)
            found = self._store.run(lambda c, s=start, n=step: _scanned(c, table, s, columns, n))  # type: ignore[misc]
            yield from found
            if len(found) < step:
                return
            start = found[-1][0] + b"\x00"
            left = None if left is None else left - len(found)

    def row_keys(self, table: bytes, start: bytes, stop: bytes, *, limit: int) -> list[bytes]:
        """Return the keys of the first ``limit`` rows from ``start`` to ``stop``; their values are not sent."""
        return self._store.run(
            lambda c: [
                row
                for row, _ in c.table(table).scan(
                    row_start=start, row_stop=stop, filter=_KEYS_ONLY, limit=limit, batch_size=limit
                )
            ]
        )

    def put(self, table: bytes, row: bytes, cells: Cells, timestamp: int | None = None) -> None:
        self._store.run(lambda c: c.table(table).put(row, cells, timestamp=timestamp))

    def put_rows(self, table: bytes, rows: Mapping[bytes, Cells]) -> None:
        """Put cells of several rows in one call; a crash may leave some of the rows without theirs."""

        def work(connection: Connection) -> None:
            with connection.table(table).batch() as batch:
                for row, cells in rows.items():
                    batch.put(row, cells)

        self._store.run(work)

    def delete(self, table: bytes, row: bytes, columns: Sequence[bytes] | None = None) -> None:
        """Delete the ``columns`` of a row, whole families by their names, or with None the whole row."""
        wanted = None if columns is None else list(columns)
        self._store.run(lambda c: c.table(table).delete(row, columns=wanted))

    def delete_rows(self, table: bytes, rows: Collection[bytes]) -> None:
        def work(connection: Connection) -> None:
            with connection.table(table).batch() as batch:
                for row in rows:
                    batch.delete(row)

        self._store.run(work)

    @property
    def is_atomic(self) -> bool:
        """Whether ``change`` compares all expected cells in the step that writes."""
        return self._store.is_columnar

    def change(
        self,
        table: bytes,
        row: bytes,
        expected: Mapping[bytes, bytes | None],
        puts: Cells,
        deletes: Sequence[bytes] = (),
    ) -> bool:
        """Change a row if its cells match ``expected`` (None for an absent cell), as the module describes.

        Returns False, with nothing written, if they do not match.
        """
        step = _in_one_step if self._store.is_columnar else _in_steps
        return self._store.run(lambda c: step(c, table, row, expected, puts, deletes))


def _scanned(
    connection: Connection, table: bytes, start: bytes, columns: Sequence[bytes] | None, limit: int
) -> list[tuple[bytes, Cells]]:
    wanted = None if columns is None else list(columns)
    return list(connection.table(table).scan(row_start=start, columns=wanted, limit=limit, batch_size=limit))


def _in_one_step(
    connection: Connection,
    table: bytes,
    row: bytes,
    expected: Mapping[bytes, bytes | None],
    puts: Cells,
    deletes: Sequence[bytes],
) -> bool:
    conditions = [
        Expect(column, value) if value else Expect.absent_or_empty(column) for column, value in expected.items()
    ]
    operations: list[Operation] = [
        *(Delete(column) for column in deletes),
        *(Put(column, value) for column, value in puts.items()),
    ]
    if connection.table(table).check_and_mutate(row, conditions, operations).applied:
        return True
    return _was_ours(connection, table, row, expected, puts)


def _in_steps(
    connection: Connection,
    table: bytes,
    row: bytes,
    expected: Mapping[bytes, bytes | None],
    puts: Cells,
    deletes: Sequence[bytes],
) -> bool:
    """Put the first cell under its condition, then write the rest; an earlier attempt at this change is continued."""
    (guard, known), (first, *others) = next(iter(expected.items())), puts.items()
    applied = check_and_put(connection, table, row, guard, known, first[1], put=first[0])
    if not applied and not _was_ours(connection, table, row, expected, puts):
        return False
    if deletes:
        connection.table(table).delete(row, columns=list(deletes))
    if others:
        connection.table(table).put(row, dict(others))
    return True


def _was_ours(
    connection: Connection, table: bytes, row: bytes, expected: Mapping[bytes, bytes | None], puts: Cells
) -> bool:
    """Return whether an earlier attempt, whose answer was lost, has put the first cell."""
    column, value = next(iter(puts.items()))
    return expected.get(column) != value and connection.table(table).row(row, columns=[column]) == {column: value}
