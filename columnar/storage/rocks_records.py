"""(pure) RocksDB's log format, read: records of a region's log (``N.log``) and of its list of files (``MANIFEST-N``).

    file    := block*                                    32 KiB each, the last one may be shorter; little-endian
    block   := piece* filler                             fewer than 7 bytes are left: filler
    piece   := crc:u32 length:u16 type:u8 data           type 1: a whole record; 2, 3, 4: its first, middle, last piece
    crc     := masked CRC-32C of type and data
    batch   := sequence:u64 count:u32 operation*         a record of a log

RocksDB ends a file silently at a piece that the file's end cuts off, and reads over pieces of zeros: it cannot know
how long the file was.  This reader stops at the first byte that is not believed, and says so.

Knows nothing of files, of fsyncs and of the meaning of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

BLOCK_BYTES: Final = 32 * 1024
_PIECE: Final = Struct("<IHB")  # crc, length, type
_BATCH: Final = Struct("<QI")  # sequence, count
HEADER_BYTES: Final = _PIECE.size
BATCH_BYTES: Final = _BATCH.size
assert HEADER_BYTES == 7, "on disk: RocksDB's"
assert BATCH_BYTES == 12, "on disk: RocksDB's"
_WHOLE: Final = 1
_FIRST: Final = 2
_LAST: Final = 4
_MASK: Final = 0xA282EAD8


class Records:
    """Iterate once; then ``end`` is the end of the whole part, and ``fault`` describes what follows it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.end = 0  # after the last whole record
        self.fault = ""  # why the next one is not believed; empty: the file ends there

    def __iter__(self) -> Iterator[bytes]:
        from google_crc32c import value as crc32c  # half a megabyte that a store without regions needs not

        data, size, at = self._data, len(self._data), 0
        unpack_piece = _PIECE.unpack_from
        begun: list[bytes] | None = None  # pieces of a record that is not whole yet
        while at < size:
            start = at + HEADER_BYTES
            block_end = at - at % BLOCK_BYTES + BLOCK_BYTES
            if start > block_end:
                at = block_end
                continue
            if start > size:
                self.fault = "short"
                return
            crc, length, kind = unpack_piece(data, at)
            at = start + length
            if at > size or at > block_end:
                self.fault = "length" if at > block_end else "short"
                return
            typed = data[start - 1 : at]
            found = crc32c(typed)
            if (((found >> 15) | (found << 17)) + _MASK) & 0xFFFFFFFF != crc:
                self.fault = "zeros" if crc == length == kind == 0 else "checksum"
                return
            piece = typed[1:]
            if kind != _WHOLE or begun is not None:
                if kind > _LAST:
                    self.end = at
                    continue  # a piece of a later format, about the encoding of other records
                if (kind in (_WHOLE, _FIRST)) != (begun is None):
                    self.fault = "order"
                    return
                begun = [*(begun or ()), piece]
                if kind != _LAST:
                    continue
                piece, begun = b"".join(begun), None
            self.end = at
            yield piece
        if begun is not None:
            self.fault = "short"


def batch_head(record: bytes) -> tuple[int, int]:
    """Sequence of the first operation, and how many there are."""
    found: tuple[int, int] = _BATCH.unpack_from(record)
    return found
