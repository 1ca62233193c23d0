"""(pure) A row packed piece by piece: the same bytes as in one piece, without one step that packs all of it.

    row := head(row, number of cells) piece* tail

The head has the number of cells, which is known last.  A piece is what the packer of whole rows makes of its cells,
without head and tail, so there is one packer of each form.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from columnar.storage.stored_cells import PackedRows
from columnar.wire.codec_replies import (
    ColumnsOut,
    compact_packed_row,
    packed_row,
    struct_list,
    varint,
)
from columnar.wire.codec_results import compact_packed_result, packed_result

_U32 = Struct(">I").pack


class Form(NamedTuple):
    pack: Callable[[bytes, ColumnsOut], bytes]
    head: Callable[[bytes, int], bytes]  # of a row with at least one cell
    tail_bytes: int


def _name(row: bytes) -> bytes:
    return b"\x0b\x00\x01%b%b" % (_U32(len(row)), row)


def _compact_name(row: bytes) -> bytes:
    return b"\x18%b%b" % (varint(len(row)), row)


MAP: Final = Form(
    lambda row, cells: packed_row(row, cells, in_order=False),
    lambda row, count: b"%b\x0d\x00\x02\x0b\x0c%b" % (_name(row), _U32(count)),
    1,
)
SORTED: Final = Form(
    lambda row, cells: packed_row(row, cells, in_order=True),
    lambda row, count: b"%b\x0f\x00\x03\x0c%b" % (_name(row), _U32(count)),
    1,
)
COMPACT_MAP: Final = Form(
    lambda row, cells: compact_packed_row(row, cells, in_order=False),
    lambda row, count: b"%b\x1b%b\x8c" % (_compact_name(row), varint(count)),
    1,
)
COMPACT_SORTED: Final = Form(
    lambda row, cells: compact_packed_row(row, cells, in_order=True),
    lambda row, count: b"%b\x29%b" % (_compact_name(row), struct_list(count)),
    1,
)
RESULT: Final = Form(
    lambda row, cells: packed_result(row, list(cells)),
    lambda row, count: b"%b\x0f\x00\x02\x0c%b" % (_name(row), _U32(count)),
    9,
)
COMPACT_RESULT: Final = Form(
    lambda row, cells: compact_packed_result(row, list(cells)),
    lambda row, count: b"%b\x19%b" % (_compact_name(row), struct_list(count)),
    3,
)


class RowPieces:
    """The pieces of one row."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._pieces: list[bytes] = []
        self._tail = b""
        self.cells = 0
        self.size_bytes = 0

    def add(self, cells: ColumnsOut) -> None:
        if len(cells) == 0:
            return
        form = self._form
        packed = form.pack(b"", cells)
        start, end = len(form.head(b"", len(cells))), len(packed) - form.tail_bytes
        self._tail = packed[end:]
        self._pieces.append(packed[start:end])
        self.cells += len(cells)
        self.size_bytes += end - start

    def row(self, row: bytes) -> PackedRows:
        """There is at least one cell."""
        data = b"".join((self._form.head(row, self.cells), *self._pieces, self._tail))
        return PackedRows(data, 1, self.cells, row)
