"""(pure) The rows of a scan before they become a reply: some as they are stored, in blocks, some as cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from columnar.regions.read.row_reader import Cells
from columnar.storage.stored_cells import PackedRows, StoredCells, StoredRows

ScanRow = tuple[bytes, Cells]
PackRows = Callable[[StoredRows], bytes]
CELL_OVERHEAD_BYTES = 24  # of one cell in a reply, beside its column and value


def size_of(row: ScanRow) -> int:
    """Return the approximate size of a row in a reply, in bytes."""
    cells = row[1]
    if isinstance(cells, StoredCells):
        return len(row[0]) + cells.size_bytes + len(cells) * CELL_OVERHEAD_BYTES
    return len(row[0]) + sum(len(column) + len(value) + CELL_OVERHEAD_BYTES for column, value, _ in cells)


class FoundRows:
    """The rows in the order in which they were found.  Iterating yields ``ScanRow``s if no rows are packed."""

    __slots__ = ("_pack", "blocks", "count", "size_bytes")

    def __init__(self, pack: PackRows | None = None) -> None:
        """``pack`` turns a block into bytes of the reply at once, while its cells are in the processor's cache."""
        self._pack = pack
        self.blocks: list[ScanRow | StoredRows | PackedRows] = []
        self.count = 0
        self.size_bytes = 0

    def add_row(self, row: bytes, cells: Cells) -> None:
        found = (row, cells)
        self.blocks.append(found)
        self.count += 1
        self.size_bytes += size_of(found)

    def add_block(self, block: StoredRows) -> None:
        keys, pack = block.keys, self._pack
        if keys:
            cells = block.cell_count
            self.blocks.append(block if pack is None else PackedRows(pack(block), len(keys), cells, keys[-1]))
            self.count += len(keys)
            self.size_bytes += block.size_bytes + cells * CELL_OVERHEAD_BYTES

    def add_packed(self, rows: PackedRows) -> None:
        """Add rows that another server has packed in the form of the reply."""
        self.blocks.append(rows)
        self.count += rows.row_count
        self.size_bytes += len(rows.data)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[ScanRow]:
        for found in self.each():
            if isinstance(found, PackedRows):
                raise TypeError("these rows are packed; ask for them without a way to pack")
            yield found

    def each(self) -> Iterator[ScanRow | PackedRows]:
        """Yield stored rows one by one, and packed rows in their blocks."""
        for block in self.blocks:
            if isinstance(block, StoredRows):
                yield from block.rows()
            else:
                yield block
