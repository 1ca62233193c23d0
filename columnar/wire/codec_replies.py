"""(pure) Hand-packed replies of the binary protocol: lists of rows and of cells.

    reply     := 80 01 00 02 length:u32 name seqid:u32  0F 0000 0C count:u32 element*  00
    TCell     := 0B 0001 length:u32 value  0A 0002 timestamp:i64  00
    TRowResult:= 0B 0001 length:u32 row  columns | sorted  00
    columns   := 0D 0002 0B 0C count:u32 (length:u32 column TCell)*
    sorted    := 0F 0003 0C count:u32 (0B 0001 length:u32 column  0C 0002 TCell 00)*

Worked example: the success of ``get`` with one cell, value "v", timestamp 5:
    0F 0000 0C 00000001  0B 0001 00000001 76  0A 0002 0000000000000005 00  00

Knows nothing of methods; ``codec`` chooses what is packed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

CellOut = tuple[bytes, int]  # value, timestamp
ColumnOut = tuple[bytes, bytes, int]  # column, value, timestamp
RowOut = tuple[bytes, list[ColumnOut]]


class RowList(NamedTuple):
    """What a handler returns where the IDL says ``list<TRowResult>``."""

    rows: list[RowOut]
    sorted: bool = False  # as sortedColumns, a list, rather than columns, a map


_U32 = Struct(">I").pack
_VALUE = Struct(">BHI").pack  # field header and length of a TCell's value
_CELL = Struct(">BHBHI").pack  # field header of a TColumn's cell, then as _VALUE
_TIMESTAMP = Struct(">BHqB").pack  # the rest of the TCell, its stop included
_TIMESTAMP_SORTED = Struct(">BHqBB").pack  # ... and the stop of the TColumn around it
_LIST_SUCCESS: Final = b"\x0f\x00\x00\x0c"
_MAP_HEAD: Final = b"\x0d\x00\x02\x0b\x0c"
_SORTED_HEAD: Final = b"\x0f\x00\x03\x0c"


def cells_success(cells: Iterable[CellOut]) -> bytes:
    """The whole result struct of a method that answers ``list<TCell>``."""
    packed = [_VALUE(11, 1, len(value)) + value + _TIMESTAMP(10, 2, timestamp, 0) for value, timestamp in cells]
    return b"%b%b%b\x00" % (_LIST_SUCCESS, _U32(len(packed)), b"".join(packed))


def rows_success(result: RowList) -> bytes:
    """The whole result struct of a method that answers ``list<TRowResult>``."""
    parts: list[bytes] = [_LIST_SUCCESS, _U32(len(result.rows))]
    pack_row = _sorted_row if result.sorted else _map_row
    for row, columns in result.rows:
        pack_row(parts, row, columns)
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
