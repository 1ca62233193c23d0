"""(pure) The rows of a scan on their way into a reply: some as they are stored, in blocks, some as cells."""

from __future__ import annotations

from collections.abc import Iterator

from columnar.regions.row_reader import Cells
from columnar.storage.stored_cells import StoredCells, StoredRows

ScanRow = tuple[bytes, Cells]
CELL_OVERHEAD_BYTES = 24  # of one cell in a reply, beside its column and value


def size_of(row: ScanRow) -> int:
    """Bytes of a row in a reply, about."""
    cells = row[1]
    if isinstance(cells, StoredCells):
        return len(row[0]) + cells.size_bytes + len(cells) * CELL_OVERHEAD_BYTES
    return len(row[0]) + sum(len(column) + len(value) + CELL_OVERHEAD_BYTES for column, value, _ in cells)


class FoundRows:
    """In the order in which they were found.  Iterating gives ``ScanRow``s."""

    __slots__ = ("blocks", "count", "size_bytes")

    def __init__(self) -> None:
        self.blocks: list[ScanRow | StoredRows] = []
        self.count = 0
        self.size_bytes = 0

    def add(self, row: bytes, cells: Cells) -> None:
        found = (row, cells)
        self.blocks.append(found)
        self.count += 1
        self.size_bytes += size_of(found)

    def add_block(self, block: StoredRows) -> None:
        keys = block.keys
        if keys:
            self.blocks.append(block)
            self.count += len(keys)
            self.size_bytes += block.size_bytes + (len(block.cells) >> 1) * CELL_OVERHEAD_BYTES

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[ScanRow]:
        for block in self.blocks:
            if isinstance(block, StoredRows):
                yield from block.rows()
            else:
                yield block
