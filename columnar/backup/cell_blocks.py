"""(pure) Cells in a file that any program can read, in blocks with a checksum each.

    file   := "CLMN-CELLS 1\\n" block*
    block  := kind:u8 stored-length:u32 length:u32 crc32:u32 stored             integers big-endian
    kind   := 0 stored as it is | 1 zlib
    crc32  := of the stored bytes, as in zlib
    cells  := cell*                                                             what a block holds, unpacked
    cell   := flags:u8 [row-length:u16 row] family-length:u8 family qualifier-length:u32 qualifier
              timestamp:u64 [ttl_ms:u64] value-length:u32 value
    flags  := 1 the row is that of the cell before it, and left out | 2 there is a ttl_ms

Cells ascend by row, family, qualifier; the newest version of a column comes first.  The first cell of a block
has its row, so a block can be read alone.  A row is in one file.

Worked example: row ``r``, column ``f:q``, 5 ms, value ``v``:
    00 0001 72 01 66 00000001 71 0000000000000005 00000001 76

Format versions, append only: 1 as above.
Golden bytes: tests/golden/cell-blocks.txt; the page: docs/formats/backups.md.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple, Protocol

from columnar.errors import DamagedData

MAGIC: Final = b"CLMN-CELLS 1\n"
BLOCK_BYTES: Final = 256 * 1024  # unpacked, about; one larger cell makes a larger block
LARGEST_BLOCK: Final = 64 * 1024 * 1024  # a length beyond it is damage
_HEAD: Final = Struct(">BIII")
assert _HEAD.size == 13, "on disk: a new layout needs a new format version"
_ROW: Final = Struct(">BH")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")
_STAMP: Final = Struct(">QI")
_STAMP_TTL: Final = Struct(">QQI")
_SAME_ROW: Final = 1
_TTL: Final = 2
_PLAIN: Final = 0
_ZLIB: Final = 1
_LEVEL: Final = 1  # text packs to a third at 80 MB/s; higher levels gain little and cost much


class ExportedCell(NamedTuple):
    row: bytes
    family: bytes
    qualifier: bytes
    timestamp: int
    ttl_ms: int | None
    value: bytes


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def blocks_of(cells: Iterable[ExportedCell]) -> Iterator[bytes]:
    """Yield the blocks of a file, after its MAGIC. Keeps one block in memory."""
    return map(packed_block, unpacked_blocks(cells))


def unpacked_blocks(cells: Iterable[ExportedCell]) -> Iterator[bytes]:
    """Yield the content of each block, unpacked."""
    parts: list[bytes] = []
    size = 0
    last: bytes | None = None
    for row, family, qualifier, timestamp, ttl_ms, value in cells:
        flags = _TTL if ttl_ms is not None else 0
        if row == last:
            head = bytes((flags | _SAME_ROW,))
        else:
            head = _ROW.pack(flags, len(row)) + row
            last = row
        stamp = _STAMP.pack(timestamp, len(value)) if ttl_ms is None else _STAMP_TTL.pack(timestamp, ttl_ms, len(value))
        parts += (head, bytes((len(family),)), family, _U32.pack(len(qualifier)), qualifier, stamp, value)
        size += len(head) + len(family) + len(qualifier) + len(value) + 17
        if size >= BLOCK_BYTES:
            yield b"".join(parts)
            parts, size, last = [], 0, None
    if parts:
        yield b"".join(parts)


def packed_block(cells: bytes) -> bytes:
    """Pack a block, mostly without the interpreter lock."""
    packed = zlib.compress(cells, _LEVEL)
    return _framed(_ZLIB, packed, cells) if len(packed) < len(cells) else plain_block(cells)


def plain_block(cells: bytes) -> bytes:
    """Make an uncompressed block, for a file that is soon read again on the same machine."""
    return _framed(_PLAIN, cells, cells)


def _framed(kind: int, stored: bytes, cells: bytes) -> bytes:
    return _HEAD.pack(kind, len(stored), len(cells), zlib.crc32(stored)) + stored


def read_cells(file: Readable, name: str) -> Iterator[ExportedCell]:
    """Yield every cell.  Raises DamagedData, which names file and block, if a block is damaged or incomplete."""
    if file.read(len(MAGIC)) != MAGIC:
        raise DamagedData(f"{name} is no file of cells of version 1")
    number = 0
    while head := file.read(_HEAD.size):
        yield from _cells(_unpacked(file, head, f"{name}, block {number}"), f"{name}, block {number}")
        number += 1


def _unpacked(file: Readable, head: bytes, where: str) -> bytes:
    if len(head) < _HEAD.size:
        raise DamagedData(f"{where}: cut off")
    kind, stored_length, length, crc = _HEAD.unpack(head)
    if max(stored_length, length) > LARGEST_BLOCK or kind not in (_PLAIN, _ZLIB):
        raise DamagedData(f"{where}: its head is damaged")
    stored = file.read(stored_length)
    if len(stored) < stored_length or zlib.crc32(stored) != crc:
        raise DamagedData(f"{where}: cut off or damaged")
    cells = stored if kind == _PLAIN else zlib.decompress(stored, bufsize=length)
    if len(cells) != length:
        raise DamagedData(f"{where}: its head is damaged")
    return cells


def _cells(data: bytes, where: str) -> Iterator[ExportedCell]:
    at, end, row = 0, len(data), b""
    try:
        while at < end:
            flags = data[at]
            at += 1
            if not flags & _SAME_ROW:
                length = data[at] << 8 | data[at + 1]
                row, at = data[at + 2 : at + 2 + length], at + 2 + length
            length = data[at]
            family, at = data[at + 1 : at + 1 + length], at + 1 + length
            (length,) = _U32.unpack_from(data, at)
            qualifier, at = data[at + 4 : at + 4 + length], at + 4 + length
            ttl_ms: int | None = None
            if flags & _TTL:
                timestamp, ttl_ms, length = _STAMP_TTL.unpack_from(data, at)
                at += _STAMP_TTL.size
            else:
                timestamp, length = _STAMP.unpack_from(data, at)
                at += _STAMP.size
            value, at = data[at : at + length], at + length
            yield ExportedCell(row, family, qualifier, timestamp, ttl_ms, value)
    except (IndexError, ValueError, ArithmeticError) as error:
        raise DamagedData(f"{where}: {error}") from error
    if at != end:
        raise DamagedData(f"{where}: its last cell is cut off")
