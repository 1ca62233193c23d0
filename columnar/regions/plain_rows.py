"""The way of a scan that most scans are: the newest cells of one family, whole rows ascending, no filter.

One loop from the engine's pairs to ``StoredRows``, where ``row_reader.RowCursor`` hands rows from function
to function.  Rows with cells that are more than a value with a timestamp (delete markers, cells with their
own time to live) are left to ``row_reader``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from columnar.limits import KIB
from columnar.model.read import ReadSpec
from columnar.regions.family_view import FamilyView
from columnar.regions.found_rows import CELL_OVERHEAD_BYTES, FoundRows
from columnar.regions.row_reader import wire_cells
from columnar.storage.api import Store
from columnar.storage.layout import CELL, END_OF_ROW, unescape
from columnar.storage.stored_cells import VALUE_AT, Pairs, StoredRows

BLOCK_BYTES: Final = 128 * KIB  # packed at a time: what is read and what is made of it stay in a core's cache
_THE_END: Final = ((b"", b""),)  # no key is empty


class PlainStep:
    """One step over the rows of ``items``; one use.  What it did stands in its fields afterwards."""

    __slots__ = ("cells_walked", "last_row", "rows_read")

    def __init__(self) -> None:
        self.last_row: bytes | None = None  # the last that was read; None: the items have ended
        self.rows_read = 0
        self.cells_walked = 0

    def take(
        self,
        store: Store,
        view: FamilyView,
        items: Iterator[tuple[bytes, bytes]],
        spec: ReadSpec,
        now_ms: int,
        found: FoundRows,
        max_rows: int,
        max_cells: int,
        max_bytes: int,
    ) -> None:
        """Append to ``found`` until it has ``max_rows``, or another bound is passed.

        The family of ``view`` has no time to live.  The bounds of cells and bytes are of this step alone.
        """
        block = StoredRows(view.column_prefix)
        keys, cells, ends = block.keys, block.cells, block.ends
        column_bytes = len(view.column_prefix) - VALUE_AT
        prefix, cut, row = b"", 0, b""
        odd: Pairs | None = None  # the cells of the row that is read, once one of them is more than a value
        read, walked, size, count, before = 0, 0, 0, found.count, found.size_bytes
        for key, raw in chain(items, _THE_END):
            if not cut or not key.startswith(prefix):
                if cut:
                    read += 1
                    if odd is None:
                        keys.append(row)
                        ends.append(len(cells))
                        count += 1
                        size += len(row)
                    if odd is not None or size >= BLOCK_BYTES:
                        _end(found, block, size)
                        if odd is not None:
                            _add_odd(found, store, view, row, odd, spec, now_ms)
                        block = StoredRows(view.column_prefix)
                        keys, cells, ends = block.keys, block.cells, block.ends
                        odd, size, count = None, 0, found.count
                    taken = found.size_bytes - before + size + block.cell_count * CELL_OVERHEAD_BYTES
                    if key and (count >= max_rows or walked >= max_cells or taken >= max_bytes):
                        self.last_row = row
                        break
                if not key:
                    break
                cut = key.index(END_OF_ROW) + 2
                prefix = key[:cut]
                row = unescape(key[: cut - 2])
            walked += 1
            qualifier = key[cut:]
            if odd is None:
                if raw[0] == CELL and 0 not in qualifier:
                    cells.append(qualifier)
                    cells.append(raw)
                    size += len(qualifier) + len(raw) + column_bytes
                    continue
                odd = _taken_back(block)
                size -= sum(len(name) + len(cell) + column_bytes for name, cell in odd)
            odd.append((qualifier, raw))
        _end(found, block, size)
        self.rows_read, self.cells_walked = read, walked


def _end(found: FoundRows, block: StoredRows, size_bytes: int) -> None:
    block.size_bytes = size_bytes
    found.add_block(block)


def _taken_back(block: StoredRows) -> Pairs:
    """The cells of the row that has not ended."""
    cells, start = block.cells, block.ends[-1] if block.ends else 0
    pairs = [(cells[at], cells[at + 1]) for at in range(start, len(cells), 2)]
    del cells[start:]
    return pairs


def _add_odd(
    found: FoundRows, store: Store, view: FamilyView, row: bytes, pairs: Pairs, spec: ReadSpec, now_ms: int
) -> None:
    cells = wire_cells(store, row, [(view, pairs)], spec, now_ms)
    if cells:
        found.add(row, cells)
