"""The fast path of the most frequent scan: the newest cells of one family, whole rows ascending, no filter.

A single loop turns the engine's pairs into ``StoredRows``, without the function calls that ``row_reader.RowCursor``
makes for each row.  Rows with cells that have more than a value and a timestamp (delete markers, cells with their own
time to live) are left to ``row_reader``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from columnar.limits import KIB, STEP_BYTES, STEP_CELLS
from columnar.model.read import ReadSpec
from columnar.regions.read.family_view import FamilyView
from columnar.regions.read.found_rows import CELL_OVERHEAD_BYTES, FoundRows
from columnar.regions.read.row_reader import wire_cells
from columnar.storage.api import Store
from columnar.storage.layout import CELL, END_OF_ROW, unescape
from columnar.storage.stored_cells import VALUE_AT, Pairs, StoredRows

ROW_BYTES: Final = STEP_BYTES  # a row of more than one cell is wide above this size
BLOCK_BYTES: Final = 128 * KIB  # packed at a time: input and output stay in a core's cache
_THE_END: Final = ((b"", b""),)  # no key is empty


class PlainStep:
    """A step over the rows of a family without a time to live.  Single use; its public fields are the result."""

    __slots__ = (
        "_bounds",
        "_found",
        "_now_ms",
        "_spec",
        "_store",
        "_view",
        "cells_walked",
        "last_row",
        "rows_read",
        "wide_row",
    )

    def __init__(
        self,
        store: Store,
        view: FamilyView,
        spec: ReadSpec,
        now_ms: int,
        found: FoundRows,
        bounds: tuple[int, int, int],
    ) -> None:
        """``bounds`` are the most rows in ``found``, and the most cells and the most bytes of this step."""
        self._store = store
        self._view = view
        self._spec = spec
        self._now_ms = now_ms
        self._found = found
        self._bounds = bounds
        self.last_row: bytes | None = None  # the last row before a bound or ``wide_row``; None: the end, or no such row
        self.wide_row: bytes | None = None  # the next row, if it costs more than a step: reading ended within it
        self.rows_read = 0
        self.cells_walked = 0

    def take(self, items: Iterator[tuple[bytes, bytes]]) -> None:
        """Append to ``found`` until a bound is passed."""
        found, view, (max_rows, max_cells, max_bytes) = self._found, self._view, self._bounds
        block = StoredRows(view.column_prefix)
        keys, cells, ends = block.keys, block.cells, block.ends
        column_bytes = len(view.column_prefix) - VALUE_AT
        prefix, cut, row, passed = b"", 0, b"", None  # type: bytes, int, bytes, bytes | None
        odd: Pairs | None = None  # the cells of the row that is read, once one of them is more than a value
        read, walked, size, count, before = 0, 0, 0, found.count, found.size_bytes
        most = max_cells + STEP_CELLS  # after this many cells the current row is wide
        for key, raw in chain(islice(items, most), _THE_END):
            if not cut or not key.startswith(prefix):
                if not key and walked == most:
                    self.wide_row = row
                    break
                if cut:
                    read += 1
                    passed = row
                    if odd is None:
                        keys.append(row)
                        ends.append(len(cells))
                        count += 1
                        size += len(row)
                    if odd is not None or size >= BLOCK_BYTES:
                        _end(found, block, size if odd is None else _size_of(block))
                        if odd is not None:
                            _add_odd(found, self._store, view, row, odd, self._spec, self._now_ms)
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
            size += len(qualifier) + len(raw) + column_bytes
            if size > ROW_BYTES and _is_wide(block, odd):
                self.wide_row = row
                break
            if odd is None:
                if raw[0] == CELL and 0 not in qualifier:
                    cells.append(qualifier)
                    cells.append(raw)
                    continue
                odd = _take_unfinished_row(block)
            odd.append((qualifier, raw))
        if self.wide_row is not None:
            self.last_row = passed
            _take_unfinished_row(block)
            size = _size_of(block)
        _end(found, block, size)
        self.rows_read, self.cells_walked = read, walked


def _is_wide(block: StoredRows, odd: Pairs | None) -> bool:
    """Tell whether the unfinished row has a cell already: a row of one cell is not wide, however large the cell is."""
    return bool(odd) or len(block.cells) > (block.ends[-1] if block.ends else 0)


def _size_of(block: StoredRows) -> int:
    column_bytes = len(block.prefix) - VALUE_AT
    return sum(map(len, block.cells)) + sum(map(len, block.keys)) + block.cell_count * column_bytes


def _end(found: FoundRows, block: StoredRows, size_bytes: int) -> None:
    block.end_block(size_bytes)
    found.add_block(block)


def _take_unfinished_row(block: StoredRows) -> Pairs:
    """Remove the cells of the unfinished row from the block and return them."""
    cells, start = block.cells, block.ends[-1] if block.ends else 0
    pairs = [(cells[at], cells[at + 1]) for at in range(start, len(cells), 2)]
    del cells[start:]
    return pairs


def _add_odd(
    found: FoundRows, store: Store, view: FamilyView, row: bytes, pairs: Pairs, spec: ReadSpec, now_ms: int
) -> None:
    cells = wire_cells(store, row, [(view, pairs)], spec, now_ms)
    if cells:
        found.add_row(row, cells)
