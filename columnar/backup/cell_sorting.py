"""Cells in any order, sorted in bounded memory: runs of RUN_BYTES on disk, then merged.

Order: row, family, qualifier, then the newest first; of two with one timestamp the one that came last comes
first, for it replaces the other.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator
from typing import Final

from columnar.backup.cell_blocks import MAGIC, ExportedCell, plain_block, read_cells, unpacked_blocks

RUN_BYTES: Final = 64 * 1024 * 1024  # of keys and values; Python's objects take some three times that
_CELL_BYTES: Final = 100  # what a cell costs beside its bytes

_Order = tuple[bytes, bytes, bytes, int]


def order_of(cell: ExportedCell) -> _Order:
    return cell.row, cell.family, cell.qualifier, -cell.timestamp


def sorted_cells(cells: Iterable[ExportedCell], folder: str, *, run_bytes: int = RUN_BYTES) -> Iterator[ExportedCell]:
    """Runs are written to ``folder``, which must exist, and removed once they are read."""
    runs: list[str] = []
    buffered: list[ExportedCell] = []
    size = 0
    for cell in cells:
        buffered.append(cell)
        size += len(cell.row) + len(cell.qualifier) + len(cell.value) + _CELL_BYTES
        if size >= run_bytes:
            runs.append(_spilled(_ordered(buffered), os.path.join(folder, f"run-{len(runs):05}.cells")))
            buffered, size = [], 0
    last = _ordered(buffered)
    # What merges earlier wins a tie: the newest run first.
    yield from heapq.merge(last, *(_read(run) for run in reversed(runs)), key=order_of)
    for run in runs:
        os.remove(run)


def _ordered(cells: list[ExportedCell]) -> list[ExportedCell]:
    cells.reverse()  # sorting keeps the order of equals: the last one comes first
    cells.sort(key=order_of)
    return cells


def _spilled(cells: list[ExportedCell], path: str) -> str:
    with open(path, "wb") as file:
        file.write(MAGIC)
        for cells_of_block in unpacked_blocks(cells):
            file.write(plain_block(cells_of_block))
    return path


def _read(path: str) -> Iterator[ExportedCell]:
    with open(path, "rb") as file:
        yield from read_cells(file, path)
