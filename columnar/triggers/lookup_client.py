"""A row of another table that a function looks up: ``Change.look(name)``.

The row's first cells may be sent with the change; all further cells are read through the client, in pages of
PAGE_CELLS, as the function reaches them.

Consistency: a page shows the row at one moment, and holds nothing that a crash could undo.  Pages are read in the order
of columns: a column that exists all the while is seen exactly once; a column that is added or removed meanwhile may be
seen or not.  The row may be newer than the change.  A change of the looked-up row does not call this trigger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from columnar.triggers.obstacles import NotReadable

PAGE_CELLS: Final = 2_000


class Table(Protocol):
    def slice(self, row: bytes, family: bytes, start: bytes, stop: bytes, *, limit: int) -> list[tuple[bytes, bytes]]:
        """Return (qualifier, value) pairs, as ``client.table.Table.slice``."""


class Looked:
    """Iterates over the row's columns, ascending; each iteration reads further pages again."""

    __slots__ = ("_cells", "_families", "_passes", "_problem", "_table_of", "row", "table")

    def __init__(
        self,
        table: bytes,
        row: bytes,
        cells: Mapping[bytes, bytes],
        families: list[bytes] | None = None,
        table_of: Callable[[bytes], Any] | None = None,
        problem: str = "",
        *,
        passes: bool = False,
    ) -> None:
        """``cells`` are the row's first cells; further cells are read from ``families``, if there are any.

        ``passes`` says that the problem is temporary.
        """
        self.table = table
        self.row = row  # empty: the changed row does not say which row that is
        self._cells = dict(cells)
        self._families = families or []
        self._table_of = table_of
        self._problem = problem
        self._passes = passes

    def __iter__(self) -> Iterator[bytes]:
        for column, _ in self.items():
            yield column

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (column, value) of each cell.

        Raises LookupError if the table does not exist, NotReadable if it is disabled, and the client's errors.
        """
        self._check()
        yield from self._cells.items()
        last_family, _, last = next(reversed(self._cells), b"").partition(b":")
        for family in self._families:
            start = last + b"\x00" if family == last_family else b""
            while page := self._client_table().slice(self.row, family, start, b"", limit=PAGE_CELLS):
                for qualifier, value in page:
                    yield family + b":" + qualifier, value
                start = page[-1][0] + b"\x00"

    def get(self, column: bytes, default: bytes | None = None) -> bytes | None:
        """Return the cell's value, as sent with the change or as it is now; ``default`` if there is no such cell."""
        self._check()
        if column in self._cells or not self._families:
            return self._cells.get(column, default)
        family, _, qualifier = column.partition(b":")
        if family not in self._families:
            return default
        found = self._client_table().slice(self.row, family, qualifier, qualifier + b"\x00", limit=1)
        return found[0][1] if found else default

    def __getitem__(self, column: bytes) -> bytes:
        """Return the cell's value.  Raises KeyError if the row has no such cell."""
        value = self.get(column)
        if value is None:
            raise KeyError(column)
        return value

    def __contains__(self, column: bytes) -> bool:
        return self.get(column) is not None

    def _check(self) -> None:
        if self._problem:
            raise NotReadable(f"change.look: {self._problem}") if self._passes else LookupError(self._problem)

    def _client_table(self) -> Table:
        assert self._table_of is not None, "a look that goes on has a client"
        table: Table = self._table_of(self.table)
        return table


def lookup_rows_from(
    parts: Mapping[str, list[Any]] | None, table_of: Callable[[bytes], Any] | None
) -> dict[str, Looked]:
    """Return the lookups of a change as frames carry them (``lookup_prefetch``)."""
    return {
        name: Looked(table, row, dict(cells), families, table_of, problem, passes=passes)
        for name, (table, row, families, cells, problem, passes) in (parts or {}).items()
    }
