"""(pure) Hand-packed replies: lists of rows and of cells.  The binary protocol first:

    reply     := 80 01 00 02 length:u32 name seqid:u32  0F 0000 0C count:u32 element*  00
    TCell     := 0B 0001 length:u32 value  0A 0002 timestamp:i64  00
    TRowResult:= 0B 0001 length:u32 row  columns | sorted  00
    columns   := 0D 0002 0B 0C count:u32 (length:u32 column TCell)*
    sorted    := 0F 0003 0C count:u32 (0B 0001 length:u32 column  0C 0002 TCell 00)*

Worked example: the success of ``get`` with one cell, value "v", timestamp 5:
    0F 0000 0C 00000001  0B 0001 00000001 76  0A 0002 0000000000000005 00  00

The same values in the compact protocol (``codec_compact`` has the bytes of its types):

    result    := 09 00 list  00          list := (count << 4 | 0C):u8 or FC count:varint
    TCell     := 18 length:varint value  16 timestamp:zigzag  00
    TRowResult:= 18 length:varint row  columns | sorted  00
    columns   := 1B (00 | count:varint 8C (length:varint column TCell)*)
    sorted    := 29 list (18 length:varint column  1C TCell 00)*

Knows nothing of methods; ``codec`` chooses the replies that this module packs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from columnar.storage.stored_cells import VALUE_AT, PackedCells, PackedRows, StoredCells, StoredRows

CellOut = tuple[bytes, int]  # value, timestamp
ColumnOut = tuple[bytes, bytes, int]  # column, value, timestamp
ColumnsOut = list[ColumnOut] | StoredCells
RowOut = tuple[bytes, ColumnsOut]
BlockOut = RowOut | StoredRows | PackedRows


class RowList(NamedTuple):
    """A handler's result for the IDL's ``list<TRowResult>``."""

    rows: Sequence[BlockOut]
    sorted: bool = False  # as sortedColumns, a list, rather than columns, a map

    def size(self) -> tuple[int, int, bytes]:
        """Return (number of rows, number of cells, key of the last row)."""
        rows, cells, key = 0, 0, b""
        for one in self.rows:
            if isinstance(one, PackedRows):
                rows, cells, key = rows + one.row_count, cells + one.cell_count, one.last_key
            elif isinstance(one, StoredRows):
                rows, cells, key = rows + len(one.keys), cells + one.cell_count, one.keys[-1]
            else:
                rows, cells, key = rows + 1, cells + len(one[1]), one[0]
        return rows, cells, key


_U32 = Struct(">I").pack
_VALUE = Struct(">BHI").pack  # field header and length of a TCell's value
_CELL = Struct(">BHBHI").pack  # field header of a TColumn's cell, then as _VALUE
_TIMESTAMP = Struct(">BHqB").pack  # the rest of the TCell, its stop included
_TIMESTAMP_SORTED = Struct(">BHqBB").pack  # the rest of the TCell, then the stop of the TColumn around it
_LIST_SUCCESS: Final = b"\x0f\x00\x00\x0c"
_MAP_HEAD: Final = b"\x0d\x00\x02\x0b\x0c"
_SORTED_HEAD: Final = b"\x0f\x00\x03\x0c"


def cells_success(cells: Iterable[CellOut] | PackedCells) -> bytes:
    """Return the whole result struct of a method that returns ``list<TCell>``."""
    if isinstance(cells, PackedCells):
        return b"".join((_LIST_SUCCESS, _U32(cells.cell_count), *cells.pieces, b"\x00"))
    packed = [_VALUE(11, 1, len(value)) + value + _TIMESTAMP(10, 2, timestamp, 0) for value, timestamp in cells]
    return b"".join((_LIST_SUCCESS, _U32(len(packed)), *packed, b"\x00"))


def packed_cells(cells: Iterable[CellOut]) -> bytes:
    """Return ``cells`` packed in binary, as a part of the list."""
    return b"".join([_VALUE(11, 1, len(value)) + value + _TIMESTAMP(10, 2, stamp, 0) for value, stamp in cells])


def compact_packed_cells(cells: Iterable[CellOut]) -> bytes:
    return b"".join([b"\x18%b%b%b" % (varint(len(value)), value, _stamp(timestamp)) for value, timestamp in cells])


def rows_success(result: RowList) -> bytes:
    """Return the whole result struct of a method that returns ``list<TRowResult>``."""
    parts: list[bytes] = [_LIST_SUCCESS, b""]
    in_order, count = result.sorted, 0
    for one in result.rows:
        if isinstance(one, PackedRows):
            count += one.row_count
            parts.append(one.data)
            continue
        if isinstance(one, StoredRows):
            count += len(one.keys)
            for row, cells in one.rows():
                (_sorted_stored if in_order else _map_stored)(parts, row, cells)
            continue
        count += 1
        row, columns = one
        if isinstance(columns, StoredCells):
            (_sorted_stored if in_order else _map_stored)(parts, row, columns)
        else:
            (_sorted_row if in_order else _map_row)(parts, row, columns)
    parts[1] = _U32(count)
    parts.append(b"\x00")
    return b"".join(parts)


def _map_row(parts: list[bytes], row: bytes, columns: list[ColumnOut]) -> None:
    parts.append(b"\x0b\x00\x01%b%b%b%b" % (_U32(len(row)), row, _MAP_HEAD, _U32(len(columns))))
    extend = parts.extend
    for column, value, timestamp in columns:
        extend((_U32(len(column)), column, _VALUE(11, 1, len(value)), value, _TIMESTAMP(10, 2, timestamp, 0)))
    parts.append(b"\x00")


def _sorted_row(parts: list[bytes], row: bytes, columns: list[ColumnOut]) -> None:
    parts.append(b"\x0b\x00\x01%b%b%b%b" % (_U32(len(row)), row, _SORTED_HEAD, _U32(len(columns))))
    extend = parts.extend
    for column, value, timestamp in columns:
        extend((_VALUE(11, 1, len(column)), column, _CELL(12, 2, 11, 1, len(value)), value))
        parts.append(_TIMESTAMP_SORTED(10, 2, timestamp, 0, 0))
    parts.append(b"\x00")


_U32_SMALL: Final = [_U32(length) for length in range(1024)]
_VALUE_SMALL: Final = [_VALUE(11, 1, length) for length in range(1024)]
_ROW_SMALL: Final = [b"\x0b\x00\x01" + _U32(length) for length in range(256)]
_COUNT_SMALL: Final = [_MAP_HEAD + _U32(count) for count in range(256)]
_END_OF_ROW: Final = b"\x00\x00"  # the stops of its last cell and of the row
_STAMP: Final = b"\x0a\x00\x02"
_COLUMN_CELL: Final = b"\x0c\x00\x02"


def _u32(length: int) -> bytes:
    return _U32_SMALL[length] if length < 1024 else _U32(length)


def _value_head(length: int) -> bytes:
    return _VALUE_SMALL[length] if length < 1024 else _VALUE(11, 1, length)


def _map_stored(parts: list[bytes], row: bytes, cells: StoredCells) -> None:
    """Pack a row, copying its stored timestamps and values; takes a third of the time of ``_map_row``."""
    parts.append(b"\x0b\x00\x01%b%b%b%b" % (_u32(len(row)), row, _MAP_HEAD, _u32(len(cells))))
    for prefix, pairs in cells.groups:
        before = len(prefix)
        for qualifier, raw in pairs:
            parts += (
                _u32(before + len(qualifier)),
                prefix,
                qualifier,
                _value_head(len(raw) - VALUE_AT),
                raw[VALUE_AT:],
                _STAMP,
                raw[1:9],
                b"\x00",
            )
    parts.append(b"\x00")


def map_rows(block: StoredRows) -> bytes:
    """Return the rows of a block packed in binary, with columns as a map, as ``_map_stored`` packs one row."""
    parts: list[bytes] = []
    cells, prefix, at = block.cells, block.prefix, 0
    before = len(prefix)
    for row, end in zip(block.keys, block.ends):  # noqa: B905 - of one length, and this is the hottest loop
        length, count = len(row), (end - at) >> 1
        parts.append(_ROW_SMALL[length] if length < 256 else b"\x0b\x00\x01" + _U32(length))
        parts.append(row)
        parts.append(_COUNT_SMALL[count] if count < 256 else _MAP_HEAD + _U32(count))
        while at < end:
            qualifier, raw = cells[at], cells[at + 1]
            column, value = before + len(qualifier), len(raw) - VALUE_AT
            parts.append(_U32_SMALL[column] if column < 1024 else _U32(column))
            parts.append(prefix)
            parts.append(qualifier)
            parts.append(_VALUE_SMALL[value] if value < 1024 else _VALUE(11, 1, value))
            parts.append(raw[VALUE_AT:])
            parts.append(_STAMP)
            parts.append(raw[1:9])
            at += 2
            parts.append(_END_OF_ROW if at == end else b"\x00")
    return b"".join(parts)


def _sorted_stored(parts: list[bytes], row: bytes, cells: StoredCells) -> None:
    parts.append(b"\x0b\x00\x01%b%b%b%b" % (_u32(len(row)), row, _SORTED_HEAD, _u32(len(cells))))
    for prefix, pairs in cells.groups:
        before = len(prefix)
        for qualifier, raw in pairs:
            parts += (
                _value_head(before + len(qualifier)),
                prefix,
                qualifier,
                _COLUMN_CELL,
                _value_head(len(raw) - VALUE_AT),
                raw[VALUE_AT:],
                _STAMP,
                raw[1:9],
                b"\x00\x00",
            )
    parts.append(b"\x00")


# --- the compact protocol ------------------------------------------------------------------------------

_ONE_BYTE: Final = [bytes([value]) for value in range(128)]
_STRUCT_LIST: Final = [bytes([count << 4 | 0x0C]) for count in range(15)]


def varint(value: int) -> bytes:
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(maxsize=1024)
def _stamp(timestamp: int) -> bytes:
    """Return the bytes of a TCell after its value; cached, because cells of the same write have the same bytes."""
    if not -(2**63) <= timestamp < 2**63:
        raise OverflowError(f"timestamp {timestamp}")
    return b"\x16%b\x00" % varint((timestamp << 1 ^ timestamp >> 63) & 0xFFFF_FFFF_FFFF_FFFF)


def struct_list(count: int) -> bytes:
    return _STRUCT_LIST[count] if count < 15 else b"\xfc" + varint(count)


def compact_cells_success(cells: Iterable[CellOut] | PackedCells) -> bytes:
    if isinstance(cells, PackedCells):
        return b"".join((b"\x09\x00", struct_list(cells.cell_count), *cells.pieces, b"\x00"))
    packed = [b"\x18%b%b%b" % (varint(len(value)), value, _stamp(timestamp)) for value, timestamp in cells]
    return b"\x09\x00%b%b\x00" % (struct_list(len(packed)), b"".join(packed))


def compact_rows_success(result: RowList) -> bytes:
    parts: list[bytes] = [b"\x09\x00", b""]
    count = 0
    for one in result.rows:
        if isinstance(one, PackedRows):
            count += one.row_count
            parts.append(one.data)
        elif isinstance(one, StoredRows):
            count += len(one.keys)
            for row, cells in one.rows():
                _compact_row(parts, row, cells, result.sorted)
        else:
            count += 1
            _compact_row(parts, one[0], one[1], result.sorted)
    parts.append(b"\x00")
    parts[1] = struct_list(count)
    return b"".join(parts)


def _compact_row(parts: list[bytes], row: bytes, columns: ColumnsOut, in_order: bool) -> None:
    append, extend = parts.append, parts.extend
    append(b"\x18%b%b" % (varint(len(row)), row))
    if in_order:
        append(b"\x29" + struct_list(len(columns)))
        for column, value, timestamp in columns:
            extend((b"\x18", varint(len(column)), column, b"\x1c\x18", varint(len(value)), value))
            extend((_stamp(timestamp), b"\x00"))
    else:
        append(b"\x1b%b\x8c" % varint(len(columns)) if columns else b"\x1b\x00")
        for column, value, timestamp in columns:
            extend((varint(len(column)), column, b"\x18", varint(len(value)), value, _stamp(timestamp)))
    append(b"\x00")


# --- rows for a reply that another server packs ----------------------------------------------------------


def packed_row(row: bytes, cells: ColumnsOut, *, in_order: bool) -> bytes:
    """Return a TRowResult in binary, as ``rows_success`` packs it."""
    parts: list[bytes] = []
    if isinstance(cells, StoredCells):
        (_sorted_stored if in_order else _map_stored)(parts, row, cells)
    else:
        (_sorted_row if in_order else _map_row)(parts, row, cells)
    return b"".join(parts)


def compact_packed_row(row: bytes, cells: ColumnsOut, *, in_order: bool) -> bytes:
    parts: list[bytes] = []
    _compact_row(parts, row, cells, in_order)
    return b"".join(parts)
