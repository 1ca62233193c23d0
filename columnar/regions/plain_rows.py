"""The way of a scan that most scans are: the newest cells of one family, whole rows ascending, no filter.

One loop from the engine's pairs to ``StoredCells``, where ``row_reader.RowCursor`` hands rows from function
to function.  Cells that are more than a value with a timestamp (delete markers, cells with their own time to
live) are left to ``row_reader``.
"""

from __future__ import annotations

from collections.abc import Iterator

from columnar.model.read import ReadSpec
from columnar.regions.family_view import FamilyView
from columnar.regions.row_reader import Cells, wire_cells
from columnar.storage.api import Store
from columnar.storage.layout import CELL, END_OF_ROW, unescape
from columnar.storage.stored_cells import VALUE_AT, Pairs, StoredCells

ScanRow = tuple[bytes, Cells]
CELL_OVERHEAD_BYTES = 24  # of one cell in a reply, beside its column and value


def size_of(row: ScanRow) -> int:
    """Bytes of a row in a reply, about."""
    cells = row[1]
    if isinstance(cells, StoredCells):
        return len(row[0]) + cells.size_bytes + len(cells) * CELL_OVERHEAD_BYTES
    return len(row[0]) + sum(len(column) + len(value) + CELL_OVERHEAD_BYTES for column, value, _ in cells)


class PlainStep:
    """One step over the rows of ``items``; one use.  What it did stands in its fields afterwards."""

    __slots__ = ("cells_walked", "last_row", "rows_read", "size_bytes")

    def __init__(self) -> None:
        self.last_row: bytes | None = None  # the last that was read; None: the items have ended
        self.rows_read = 0
        self.cells_walked = 0
        self.size_bytes = 0  # of the rows in a reply

    def take(
        self,
        store: Store,
        view: FamilyView,
        items: Iterator[tuple[bytes, bytes]],
        spec: ReadSpec,
        now_ms: int,
        rows: list[ScanRow],
        max_rows: int,
        max_cells: int,
        max_bytes: int,
    ) -> None:
        """Append to ``rows`` until there are ``max_rows``, or another bound is passed.

        The family of ``view`` has no time to live.
        """
        prefix, cut, row = b"", 0, b""
        overhead = len(view.column_prefix) - VALUE_AT
        pairs: Pairs = []
        plain, pairs_bytes = True, 0
        read, walked, size = 0, 0, 0
        for key, raw in items:
            if not cut or not key.startswith(prefix):
                if cut:
                    read += 1
                    found = _row(store, view, row, pairs, plain, pairs_bytes, spec, now_ms)
                    if found:
                        rows.append((row, found))
                        size += size_of(rows[-1])
                    if len(rows) >= max_rows or walked >= max_cells or size >= max_bytes:
                        self.last_row = row
                        break
                    pairs, plain, pairs_bytes = [], True, 0
                cut = key.index(END_OF_ROW) + 2
                prefix = key[:cut]
                row = unescape(key[: cut - 2])
            walked += 1
            qualifier = key[cut:]
            pairs.append((qualifier, raw))
            pairs_bytes += len(qualifier) + len(raw) + overhead
            if raw[0] != CELL or b"\x00" in qualifier:
                plain = False
        else:
            if cut:
                read += 1
                found = _row(store, view, row, pairs, plain, pairs_bytes, spec, now_ms)
                if found:
                    rows.append((row, found))
                    size += size_of(rows[-1])
        self.rows_read, self.cells_walked, self.size_bytes = read, walked, size


def _row(
    store: Store,
    view: FamilyView,
    row: bytes,
    pairs: Pairs,
    plain: bool,
    pairs_bytes: int,
    spec: ReadSpec,
    now_ms: int,
) -> Cells:
    if plain:
        return StoredCells([(view.column_prefix, pairs)], len(pairs), pairs_bytes)
    return wire_cells(store, row, [(view, pairs)], spec, now_ms)
