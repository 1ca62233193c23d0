"""(pure) Hand-packed replies of the Thrift 2 service: a TResult, or a list of them.  The binary protocol first:

    success   := 0F 0000 0C count:u32 result*  00        or  0C 0000 result 00
    TResult   := [0B 0001 length:u32 row]  0F 0002 0C count:u32 value*  02 0003 00  02 0004 partial:u8  00
    value     := 0B 0001 length:u32 family  0B 0002 length:u32 qualifier  0B 0003 length:u32 value
                 0A 0004 timestamp:i64  03 0006 04  00

The same values in the compact protocol (``codec_compact`` has the bytes of its types):

    success   := 09 00 list 00                           or  0C 00 result 00
    TResult   := [18 length:varint row 19 | 29 00] list  12 | 11 of both flags  00
    value     := 18 length family  18 length qualifier  18 length value  16 timestamp:zigzag  23 04  00

A value's type is always 4 (put) and its tags are always omitted, as in replies of HBase's gateway.

On a busy 2-core machine both protocols pack as many cells per second as ``codec_replies`` does for Thrift 1, and four
times as many as structs with thriftpy2's C codec.

A row of either service may also be packed in slices (``RowPieces``), which gives the same bytes:

    row := head(row, number of cells) piece* tail

The head contains the number of cells, so it is packed last.  The packer of whole rows also packs each piece, and head
and tail of its output are cut off, so each form has only one packer.

Knows nothing of methods; ``codec`` chooses the replies that this module packs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from columnar.storage.stored_cells import PackedRows
from columnar.wire.codec_replies import (
    ColumnOut,
    ColumnsOut,
    compact_packed_row,
    packed_row,
    struct_list,
    varint,
)

_U32 = Struct(">I").pack
_STRING = Struct(">BHI").pack  # field header and length
_TAIL = Struct(">BHqBHBB").pack  # timestamp, type and the stop of a value
_LIST_SUCCESS: Final = b"\x0f\x00\x00\x0c"
_VALUES: Final = b"\x0f\x00\x02\x0c"
_FLAGS: Final = (b"\x02\x00\x03\x00\x02\x00\x04\x00\x00", b"\x02\x00\x03\x00\x02\x00\x04\x01\x00")
_COMPACT_FLAGS: Final = (b"\x12\x12\x00", b"\x12\x11\x00")  # a bool's value is in its type: 1 true, 2 false
_PUT: Final = 4
SHORT_BYTES: Final = 128  # a longer name of a column is packed each time
REMEMBERED: Final = 1024  # names of columns, timestamps
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


class Result(NamedTuple):
    """A handler's result for the IDL's TResult; the reply omits the row's key if the row has no cells."""

    row: bytes
    cells: list[ColumnOut]  # column (family:qualifier), value, timestamp
    partial: bool = False  # more cells of the row follow


class Results(NamedTuple):
    """A handler's result for the IDL's ``list<TResult>``."""

    results: Sequence[Result | PackedRows]  # packed: by the server that owns the rows


def result_success(result: Result | PackedRows) -> bytes:
    if isinstance(result, PackedRows):
        return b"".join((b"\x0c\x00\x00", result.data, b"\x00"))
    parts: list[bytes] = [b"\x0c\x00\x00"]
    _pack(parts, result)
    parts.append(b"\x00")
    return b"".join(parts)


def results_success(found: Results) -> bytes:
    parts: list[bytes] = [_LIST_SUCCESS, _U32(_count(found))]
    for result in found.results:
        if isinstance(result, PackedRows):
            parts.append(result.data)
        else:
            _pack(parts, result)
    parts.append(b"\x00")
    return b"".join(parts)


def _count(found: Results) -> int:
    count = 0
    for one in found.results:
        count += one.row_count if isinstance(one, PackedRows) else 1
    return count


def packed_result(row: bytes, cells: list[ColumnOut]) -> bytes:
    """Return a TResult in binary, as ``results_success`` packs it."""
    parts: list[bytes] = []
    _pack(parts, Result(row, cells))
    return b"".join(parts)


def _pack(parts: list[bytes], result: Result) -> None:
    cells = result.cells
    extend = parts.extend
    if cells:
        extend((_STRING(11, 1, len(result.row)), result.row))
    extend((_VALUES, _U32(len(cells))))
    for column, value, timestamp in cells:
        extend((_names(column), _STRING(11, 3, len(value)), value, _TAIL(10, 4, timestamp, 3, 6, _PUT, 0)))
    parts.append(_FLAGS[result.partial])


def _names(column: bytes) -> bytes:
    return _short_names(column) if len(column) <= SHORT_BYTES else _packed_names(column)


def _packed_names(column: bytes) -> bytes:
    """Return the packed fields of family and qualifier."""
    family, _, qualifier = column.partition(b":")
    return b"%b%b%b%b" % (_STRING(11, 1, len(family)), family, _STRING(11, 2, len(qualifier)), qualifier)


def compact_result_success(result: Result | PackedRows) -> bytes:
    if isinstance(result, PackedRows):
        return b"".join((b"\x0c\x00", result.data, b"\x00"))
    parts: list[bytes] = [b"\x0c\x00"]
    _pack_compact(parts, result)
    parts.append(b"\x00")
    return b"".join(parts)


def compact_results_success(found: Results) -> bytes:
    parts: list[bytes] = [b"\x09\x00", struct_list(_count(found))]
    for result in found.results:
        if isinstance(result, PackedRows):
            parts.append(result.data)
        else:
            _pack_compact(parts, result)
    parts.append(b"\x00")
    return b"".join(parts)


def compact_packed_result(row: bytes, cells: list[ColumnOut]) -> bytes:
    parts: list[bytes] = []
    _pack_compact(parts, Result(row, cells))
    return b"".join(parts)


def _compact_names(column: bytes) -> bytes:
    return _short_compact_names(column) if len(column) <= SHORT_BYTES else _packed_compact_names(column)


def _packed_compact_names(column: bytes) -> bytes:
    """Return the packed fields of family and qualifier, and the header of the value."""
    family, _, qualifier = column.partition(b":")
    return b"\x18%b%b\x18%b%b\x18" % (varint(len(family)), family, varint(len(qualifier)), qualifier)


_short_names = lru_cache(maxsize=REMEMBERED)(_packed_names)  # rows of one table share their columns
_short_compact_names = lru_cache(maxsize=REMEMBERED)(_packed_compact_names)


@lru_cache(maxsize=REMEMBERED)
def _compact_tail(timestamp: int) -> bytes:
    """Return the packed timestamp, type and stop; cached, because cells of one write share them."""
    return b"\x16%b\x23\x04\x00" % varint((timestamp << 1 ^ timestamp >> 63) & _MASK)


def _pack_compact(parts: list[bytes], result: Result) -> None:
    cells = result.cells
    extend = parts.extend
    if cells:
        extend((b"\x18", varint(len(result.row)), result.row, b"\x19"))
    else:
        parts.append(b"\x29")
    parts.append(struct_list(len(cells)))
    for column, value, timestamp in cells:
        extend((_compact_names(column), varint(len(value)), value, _compact_tail(timestamp)))
    parts.append(_COMPACT_FLAGS[result.partial])


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
    """The packed slices of one row."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._pieces: list[bytes] = []
        self._tail = b""
        self.cells = 0
        self.size_bytes = 0

    def add_columns(self, cells: ColumnsOut) -> None:
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
        """Return the whole row, packed.  At least one cell must have been added."""
        data = b"".join((self._form.head(row, self.cells), *self._pieces, self._tail))
        return PackedRows(data, 1, self.cells, row)
