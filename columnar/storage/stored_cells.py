"""(pure) Cells in their stored form, whose bytes are copied to a reply as they are.

The module is only for cells without a time to live (``layout.CELL``), each the newest of its column, whose qualifiers
have no zero byte.  So a reply can copy their bytes without making numbers and tuples.  Iteration yields tuples.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from columnar.storage.layout import HEADER_BYTES

Pairs = list[tuple[bytes, bytes]]  # qualifier, stored cell; ascending
VALUE_AT: Final = HEADER_BYTES  # in a stored cell; the timestamp is bytes 1 to 8, big-endian
_U64 = Struct(">Q").unpack


class StoredCells:
    """The stored cells of one row.  Constant."""

    __slots__ = ("_count", "groups", "size_bytes")

    def __init__(self, groups: list[tuple[bytes, Pairs]], count: int, size_bytes: int) -> None:
        self.groups = groups  # (``family:``, its cells), family ascending
        self._count = count
        self.size_bytes = size_bytes  # of columns and values

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[bytes, bytes, int]]:
        """Yield (column, value, timestamp) in ascending order of columns."""
        for prefix, pairs in self.groups:
            for qualifier, raw in pairs:
                yield prefix + qualifier, raw[VALUE_AT:], _U64(raw[1:9])[0]

    def __eq__(self, other: object) -> bool:
        """Compare with a list of cells, or with other stored cells."""
        return isinstance(other, list | StoredCells) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"StoredCells({list(self)})"


class StoredRows:
    """The stored cells of whole rows of one family, in flat lists, without an object per row or cell."""

    __slots__ = ("cells", "ends", "keys", "prefix", "size_bytes")

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix  # ``family:``
        self.keys: list[bytes] = []  # of the rows
        self.cells: list[bytes] = []  # qualifier, stored cell, qualifier, ...
        self.ends: list[int] = []  # the end of each row in ``cells``
        self.size_bytes = 0  # of keys, columns and values

    def end_block(self, size_bytes: int) -> None:
        """Set the size of keys, columns and values, after the last row was added."""
        self.size_bytes = size_bytes

    @property
    def cell_count(self) -> int:
        return len(self.cells) >> 1

    def rows(self) -> Iterator[tuple[bytes, StoredCells]]:
        start = 0
        for row, end in zip(self.keys, self.ends, strict=True):
            pairs = list(zip(self.cells[start:end:2], self.cells[start + 1 : end : 2], strict=True))
            size = sum(len(name) + len(raw) for name, raw in pairs) + len(pairs) * (len(self.prefix) - VALUE_AT)
            yield row, StoredCells([(self.prefix, pairs)], len(pairs), size)
            start = end


class PackedCells(NamedTuple):
    """Values and timestamps that are already encoded for a reply."""

    pieces: list[bytes]
    cell_count: int


class PackedRows(NamedTuple):
    """Rows that are already encoded for a reply."""

    data: bytes
    row_count: int
    cell_count: int
    last_key: bytes
