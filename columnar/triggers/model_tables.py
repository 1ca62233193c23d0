"""(pure) Tables of a test: cells with timestamps and delete markers, as a store keeps the tables that triggers write.

The cell with the later timestamp wins, at equal timestamps the later write.  A delete leaves a marker, so that a late
put stays hidden.  Contributions and tallies are kept by source and sequence; a repeated or older sequence of a source
changes nothing.

A ``Write`` is one thing that a function does to a row: by an effect, or through a client (``ModelClient``).

Knows nothing of histories and functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[bytes, bytes]
TableContents = dict[bytes, dict[bytes, Row]]  # table -> row -> column -> value


@dataclass(frozen=True, slots=True)
class Write:
    """A put of ``cells``, an increment by ``amounts``, or else a delete of ``columns`` (None: of the whole row)."""

    table: bytes
    row: bytes
    at: int | None  # None: by the store's clock, when it arrives
    cells: Mapping[bytes, bytes] | None = None
    columns: Sequence[bytes] | None = None
    amounts: Mapping[bytes, int] | None = None
    source: bytes | None = None  # set for a contribution of ``amounts`` (None: withdrawn) as of ``sequence``
    sequence: tuple[int, ...] = ()
    relative: bool = False


class ModelTables:
    def __init__(self, now_ms: Callable[[], int], *, leaves_markers: bool = True) -> None:
        """``leaves_markers``: deletes leave markers, as in a table with the attribute DELETE_MARKERS."""
        self._now_ms = now_ms
        self._leaves_markers = leaves_markers
        self._cells: dict[bytes, dict[bytes, dict[bytes, tuple[int, bytes | None]]]] = {}
        self._members: dict[tuple[bytes, bytes, bytes], tuple[tuple[int, ...], dict[bytes, int]]] = {}
        self._markers: dict[tuple[bytes, bytes, bytes], int] = {}  # table, row and family (empty: all) -> deleted at

    def apply(self, write: Write) -> None:
        at = self._now_ms() if write.at is None else write.at
        if write.source is not None:
            self._contribute(write, write.source, at)
        elif write.amounts is not None:
            cells = self.row(write.table, write.row)
            counters = {c: _number(cells.get(c)) + amount for c, amount in write.amounts.items()}
            self._put(write.table, write.row, {c: n.to_bytes(8, "big", signed=True) for c, n in counters.items()}, at)
        elif write.cells is not None:
            self._put(write.table, write.row, write.cells, at)
        else:
            self._delete(write.table, write.row, write.columns, at)

    def _contribute(self, write: Write, source: bytes, at: int) -> None:
        place = (write.table, write.row, source)
        said, given = self._members.get(place, ((), {}))
        if write.sequence <= said:
            return
        wanted = dict(write.amounts or {})
        if write.relative:
            wanted = {c: given.get(c, 0) + wanted.get(c, 0) for c in given.keys() | wanted.keys()}
        self._members[place] = (write.sequence, wanted)
        cells = self._cells.setdefault(write.table, {}).setdefault(write.row, {})
        for column in given.keys() | wanted.keys():
            total = _number(cells.get(column, (0, None))[1]) + wanted.get(column, 0) - given.get(column, 0)
            cells[column] = (at, total.to_bytes(8, "big", signed=True) if total else None)

    def _put(self, table: bytes, row: bytes, cells: Mapping[bytes, bytes], at: int) -> None:
        written = self._cells.setdefault(table, {}).setdefault(row, {})
        for column, value in cells.items():
            family = column.partition(b":")[0]
            hidden = max(self._markers.get((table, row, name), -1) for name in (b"", family))
            if at >= hidden and (column not in written or written[column][0] <= at):
                written[column] = (at, value)

    def _delete(self, table: bytes, row: bytes, columns: Sequence[bytes] | None, at: int) -> None:
        cells = self._cells.setdefault(table, {}).setdefault(row, {})
        if not self._leaves_markers:
            for column, (written, _) in list(cells.items()):
                is_meant = columns is None or column in columns or column.partition(b":")[0] in columns
                if is_meant and written <= at:
                    del cells[column]
            return
        for named in columns if columns is not None else (b"",):
            if b":" in named:
                if named not in cells or cells[named][0] <= at:
                    cells[named] = (at, None)
                continue
            self._markers[table, row, named] = max(at, self._markers.get((table, row, named), -1))
            for column, (written, _) in list(cells.items()):
                if (not named or column.startswith(named + b":")) and written <= at:
                    cells[column] = (at, None)

    def row(self, table: bytes, row: bytes) -> Row:
        cells = self._cells.get(table, {}).get(row, {})
        return {column: value for column, (_, value) in sorted(cells.items()) if value is not None}

    def rows(self, table: bytes) -> list[bytes]:
        return [row for row in sorted(self._cells.get(table, {})) if self.row(table, row)]

    def table_contents(self) -> TableContents:
        found = {table: {row: self.row(table, row) for row in self.rows(table)} for table in sorted(self._cells)}
        return {table: rows for table, rows in found.items() if rows}


def _number(value: bytes | None) -> int:
    return int.from_bytes(value, "big", signed=True) if value else 0


class ModelClient:
    """The part of ``columnar.client.Connection`` that functions use; its operations call ``write`` and ``read``."""

    is_columnar = True

    def __init__(self, tables: ModelTables, write: Callable[[Write], None], read: Callable[[], None]) -> None:
        self.tables, self.write, self.read = tables, write, read

    def table(self, name: bytes | str) -> ModelTable:
        return ModelTable(self, name.encode() if isinstance(name, str) else name)


class ModelTable:
    def __init__(self, client: ModelClient, name: bytes) -> None:
        self.name = name
        self._client = client

    def row(self, row: bytes, columns: Sequence[bytes] | None = None) -> Row:
        self._client.read()
        found = self._client.tables.row(self.name, row)
        return {c: v for c, v in found.items() if columns is None or c in columns or c.partition(b":")[0] in columns}

    def rows(self, rows: Sequence[bytes], columns: Sequence[bytes] | None = None) -> list[tuple[bytes, Row]]:
        return [(row, cells) for row in rows if (cells := self.row(row, columns))]

    def scan(
        self,
        row_start: bytes = b"",
        row_stop: bytes | None = None,
        row_prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
    ) -> Iterator[tuple[bytes, Row]]:
        for row in self._client.tables.rows(self.name):
            is_wanted = row >= row_start and (row_stop is None or row < row_stop) and row.startswith(row_prefix)
            if is_wanted and (cells := self.row(row, columns)):
                yield row, cells

    def slice(
        self, row: bytes, family: bytes, start: bytes = b"", stop: bytes = b"", *, limit: int = 1_000
    ) -> list[tuple[bytes, bytes]]:
        prefix = family.removesuffix(b":") + b":"
        found = [(c[len(prefix) :], v) for c, v in self.row(row).items() if c.startswith(prefix)]
        return [(q, v) for q, v in found if q >= start and (not stop or q < stop)][:limit]

    def put(self, row: bytes, cells: Mapping[bytes, bytes], timestamp: int | None = None) -> None:
        self._client.write(Write(self.name, row, timestamp, cells=dict(cells)))

    def delete(self, row: bytes, columns: Sequence[bytes] | None = None, timestamp: int | None = None) -> None:
        self._client.write(Write(self.name, row, timestamp, columns=None if columns is None else list(columns)))

    def counter_inc(self, row: bytes, column: bytes, value: int = 1) -> int:
        self._client.write(Write(self.name, row, None, amounts={column: value}))
        return _number(self.row(row).get(column))

    def counter_dec(self, row: bytes, column: bytes, value: int = 1) -> int:
        return self.counter_inc(row, column, -value)

    def counter_get(self, row: bytes, column: bytes) -> int:
        return _number(self.row(row).get(column))

    def batch(
        self,
        timestamp: int | None = None,
        batch_size: int | None = None,
        transaction: bool = False,
        wal: bool = True,
    ) -> ModelBatch:
        """Return a batch as in ``happybase``: it is written at ``send`` and at the end of a ``with`` block.

        ``wal`` has no effect.
        """
        if batch_size is not None and (transaction or batch_size <= 0):
            raise TypeError("give batch_size, at least 1, or transaction=True")
        return ModelBatch(self, timestamp, batch_size, transaction)

    def mutate(self, row: bytes, operations: Sequence[Any]) -> None:
        """Apply operations of ``columnar.client``: puts, deletes, increments and contributions."""
        for one in operations:
            at = getattr(one, "timestamp", None)
            if hasattr(one, "source"):
                sequence = tuple(map(int, str(one.sequence).split("-")))
                self._client.write(
                    Write(
                        self.name, row, None, amounts=one.amounts, source=one.source, sequence=sequence,
                        relative=one.relative,
                    )
                )  # fmt: skip
            elif hasattr(one, "amount"):
                self._client.write(Write(self.name, row, None, amounts={one.column: one.amount}))
            elif hasattr(one, "value"):
                self._client.write(Write(self.name, row, at, cells={one.column: one.value}))
            else:
                self._client.write(Write(self.name, row, at, columns=[one.column]))


class ModelBatch:
    def __init__(self, table: ModelTable, timestamp: int | None, batch_size: int | None, transaction: bool) -> None:
        self._table = table
        self._timestamp = timestamp
        self._batch_size = batch_size
        self._is_transaction = transaction
        self._calls: list[Callable[[], None]] = []
        self._mutations = 0  # in them

    def put(self, row: bytes, data: Mapping[bytes, bytes], wal: bool | None = None) -> None:
        cells = dict(data)
        self._add(lambda: self._table.put(row, cells, self._timestamp), len(cells))

    def delete(self, row: bytes, columns: Sequence[bytes] | None = None, wal: bool | None = None) -> None:
        named = None if columns is None else list(columns)
        self._add(lambda: self._table.delete(row, named, self._timestamp), 1 if named is None else len(named))

    def _add(self, call: Callable[[], None], mutations: int) -> None:
        self._calls.append(call)
        self._mutations += mutations
        if self._batch_size is not None and self._mutations >= self._batch_size:
            self.send()

    def send(self) -> None:
        calls, self._calls, self._mutations = self._calls, [], 0
        for call in calls:
            call()

    def __enter__(self) -> ModelBatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Send the batch, even if the ``with`` block raised, unless the batch is a transaction."""
        if kind is None or not self._is_transaction:
            self.send()
