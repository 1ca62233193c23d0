"""(pure) Cells as they are stored: a reply copies the bytes that it needs, in their own byte order.

Only cells that are a value with a timestamp (``layout.CELL``), each the newest of its column, under
qualifiers without a zero byte: their bytes are copied to replies without intermediate numbers and tuples.
Iterating yields such tuples.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from columnar.storage.layout import HEADER_BYTES

Pairs = list[tuple[bytes, bytes]]  # qualifier, stored cell; ascending
VALUE_AT: Final = HEADER_BYTES  # of a stored cell; its timestamp is bytes 1 to 9, big-endian
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
        """(column, value, timestamp), column ascending."""
        for prefix, pairs in self.groups:
            for qualifier, raw in pairs:
                yield prefix + qualifier, raw[VALUE_AT:], _U64(raw[1:9])[0]

    def __eq__(self, other: object) -> bool:
        """As the list of its cells."""
        return isinstance(other, list | StoredCells) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"StoredCells({list(self)})"


class StoredRows:
    """The stored cells of whole rows of one family, in flat lists: no object for a row or a cell."""

    __slots__ = ("cells", "ends", "keys", "prefix", "size_bytes")

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix  # ``family:``
        self.keys: list[bytes] = []  # of the rows
        self.cells: list[bytes] = []  # qualifier, stored cell, qualifier, ...
        self.ends: list[int] = []  # where in ``cells`` each row ends
        self.size_bytes = 0  # of keys, columns and values

    def end_block(self, size_bytes: int) -> None:
        """Note the bytes of keys, columns and values: no row is added any more."""
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
    """Values and timestamps that are bytes of a reply already."""

    pieces: list[bytes]
    cell_count: int


class PackedRows(NamedTuple):
    """Rows that are bytes of a reply already."""

    data: bytes
    row_count: int
    cell_count: int
    last_key: bytes
