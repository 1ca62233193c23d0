"""(pure) A number that two tables share when, and practically only when, they hold the same cells.

    digest := sum of SHA-256(cell) modulo 2^256, in hex
    cell   := row-length:u16 row family-length:u8 qualifier-length:u32 family qualifier
              timestamp:u64 ttl_ms:u64 (0: none) value                          integers big-endian

A sum does not depend on order, so regions, files and families are reckoned by themselves and added up;
how a table is split, or on which machine it stands, does not count.  It is made to find accidents, not
somebody who forges cells on purpose.

Golden: tests/golden/cell-digests.txt.
"""

from __future__ import annotations

from hashlib import sha256
from struct import Struct
from typing import Final

from columnar.backup.cell_blocks import ExportedCell

_MODULUS: Final = 1 << 256
_ROW: Final = Struct(">H")
_QUALIFIER: Final = Struct(">BI")
_STAMP: Final = Struct(">QQ")


class CellDigest:
    """Counts and sums; owned by one thread."""

    __slots__ = ("_last_row", "_sum", "cells", "rows", "value_bytes")

    def __init__(self) -> None:
        self._sum = 0
        self._last_row: bytes | None = None
        self.rows = 0
        self.cells = 0
        self.value_bytes = 0

    def add(self, cell: ExportedCell) -> None:
        """Add a cell.  The cells of one row must come together: rows are counted by that."""
        row, family, qualifier, timestamp, ttl_ms, value = cell
        head = _ROW.pack(len(row)) + row + _QUALIFIER.pack(len(family), len(qualifier)) + family + qualifier
        data = head + _STAMP.pack(timestamp, ttl_ms or 0) + value
        self._sum += int.from_bytes(sha256(data).digest(), "big")
        self.cells += 1
        self.value_bytes += len(value)
        if row != self._last_row:
            self._last_row = row
            self.rows += 1

    def include(self, other: CellDigest) -> None:
        """Add what ``other`` counted, of other rows."""
        self._sum += other._sum
        self.rows += other.rows
        self.cells += other.cells
        self.value_bytes += other.value_bytes

    @property
    def hex(self) -> str:
        return f"{self._sum % _MODULUS:064x}"
