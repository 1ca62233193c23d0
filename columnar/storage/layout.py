r"""(pure) Encoding of row, qualifier and timestamp as key bytes, and decoding; the header of a stored value.

    cell key    := escape(row) 00 01 escape(qualifier)           in the family's own key space
    version key := family:u16 cell key 00 00 inverted:u64        in the key space ``versions``
    escape      := each 00 becomes 00 FF
    inverted    := 2^64 - 1 - timestamp                          so that the newest comes first

    value       := kind:u8 timestamp:u64 sequence:u64 [ttl_ms:u64] bytes      big-endian
    kind        := 1 a cell | 3 a cell with a time to live
                 | 2 a delete marker: its bytes are the time of the delete, u64 ms, from which the marker's
                   retention counts (its timestamp is that of the source's change, and may be years old)

Worked example: row ``a\0``, qualifier ``q``: ``61 00FF 0001 71``; put of ``v`` at 5 ms, sequence
7: ``01 0000000000000005 0000000000000007 76``.

Invariants:
    I1. Plain byte order of cell keys is row ascending, then qualifier ascending.
    I2. ``00 01`` occurs in a cell key exactly once, after the row, because an escaped 00 is always followed by FF.
    I3. The versions of different cells never mix: ``family cell-key 00 00`` of one cell is no prefix of a version key
        of a different cell, because ``00 00`` never occurs in a cell key.

Knows nothing of RocksDB and of the versions that a reader sees (``columnar.regions.read.family_view``).
Golden bytes: tests/golden/test_layout_golden.py; the page: docs/formats/cells.md.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

CELL: Final = 1
MARKER: Final = 2
CELL_WITH_TTL: Final = 3

HEADER: Final = Struct(">BQQ")
HEADER_BYTES: Final = HEADER.size
TTL_HEADER: Final = Struct(">BQQQ")
TTL_HEADER_BYTES: Final = TTL_HEADER.size
assert (HEADER_BYTES, TTL_HEADER_BYTES) == (17, 25), "on disk: a new layout needs a new format version"

_TTL_KIND: Final = bytes([CELL_WITH_TTL])
_FAMILY: Final = Struct(">H")
_U64: Final = Struct(">Q")
TIMESTAMP_MAX: Final = (1 << 63) - 1
_INVERT: Final = (1 << 64) - 1

END_OF_ROW: Final = b"\x00\x01"
AFTER_ROW: Final = b"\x00\x02"  # ends the first key after all keys of a row
END_OF_COLUMN: Final = b"\x00\x00"


class Stored(NamedTuple):
    """A stored value, decoded."""

    kind: int
    timestamp: int
    sequence: int
    ttl_ms: int | None
    value: bytes


# ``0 in data``, not ``b"\x00" in data``: for the latter CPython first tries to convert the bytes to a number, which
# raises and clears a TypeError with its text, at eight times the cost of the lookup itself.


def escape(data: bytes) -> bytes:
    return data.replace(b"\x00", b"\x00\xff") if 0 in data else data


def unescape(data: bytes) -> bytes:
    return data.replace(b"\x00\xff", b"\x00") if 0 in data else data


def row_prefix(row: bytes) -> bytes:
    """Return the prefix of every cell key of ``row``."""
    return escape(row) + END_OF_ROW


def row_end(row: bytes) -> bytes:
    """Return the first key after all cell keys of ``row``."""
    return escape(row) + AFTER_ROW


def cell_key(row: bytes, qualifier: bytes) -> bytes:
    return escape(row) + END_OF_ROW + escape(qualifier)


def split_cell_key(key: bytes) -> tuple[bytes, bytes]:
    row, _, qualifier = key.partition(END_OF_ROW)
    return unescape(row), unescape(qualifier)


def range_start(row: bytes) -> bytes:
    """Return the first possible key of rows at or after ``row``; b'' means the first row."""
    return escape(row)


def version_prefix(family_number: int, key: bytes) -> bytes:
    """Return the key prefix of every older version of the cell at ``key``."""
    return _FAMILY.pack(family_number) + key + END_OF_COLUMN


def version_key(family_number: int, key: bytes, timestamp: int) -> bytes:
    return _FAMILY.pack(family_number) + key + END_OF_COLUMN + _U64.pack(_INVERT - timestamp)


def version_from(prefix: bytes, timestamp: int) -> bytes:
    """Return the first possible key under ``prefix`` with a timestamp at or below ``timestamp``."""
    return prefix + _U64.pack(_INVERT - timestamp)


def version_end(prefix: bytes) -> bytes:
    """Return the first key after all versions under ``prefix``."""
    return prefix[:-1] + b"\x01"


def row_versions_range(family_number: int, row: bytes) -> tuple[bytes, bytes]:
    """Return the key range of all older versions of one row in one family."""
    family = _FAMILY.pack(family_number)
    return family + row_prefix(row), family + row_end(row)


def split_version_key(key: bytes) -> tuple[bytes, int]:
    """Return (cell key, timestamp) of a version key."""
    return key[2:-10], _INVERT - int(_U64.unpack_from(key, len(key) - 8)[0])


def cell_head(timestamp: int, sequence: int) -> bytes:
    """Return the header that ``pack_cell`` puts before the bytes of a cell without a time to live."""
    return HEADER.pack(CELL, timestamp, sequence)


def pack_cell(timestamp: int, sequence: int, value: bytes, ttl_ms: int | None = None) -> bytes:
    if ttl_ms is None:
        return HEADER.pack(CELL, timestamp, sequence) + value
    return TTL_HEADER.pack(CELL_WITH_TTL, timestamp, sequence, ttl_ms) + value


def pack_marker(timestamp: int, sequence: int, made_ms: int) -> bytes:
    return HEADER.pack(MARKER, timestamp, sequence) + _U64.pack(made_ms)


def marker_made_ms(marker: Stored) -> int:
    """Return the time of the delete, by the region's clock."""
    return int(_U64.unpack(marker.value)[0])


def timestamp_of(stored: bytes) -> int:
    return int(_U64.unpack_from(stored, 1)[0])


def head_of(stored: bytes) -> bytes:
    """Return the header of a stored value, which is the stored form of an empty value."""
    return stored[: TTL_HEADER_BYTES if stored[:1] == _TTL_KIND else HEADER_BYTES]


def unpack(stored: bytes) -> Stored:
    """Decode a stored value in O(bytes).  Raises ValueError if ``stored`` has no known format."""
    kind = stored[0] if stored else 0
    if kind == CELL_WITH_TTL:
        _, timestamp, sequence, ttl_ms = TTL_HEADER.unpack_from(stored)
        return Stored(kind, timestamp, sequence, ttl_ms, stored[TTL_HEADER_BYTES:])
    if kind not in (CELL, MARKER) or len(stored) < HEADER_BYTES:
        raise ValueError(f"a stored value begins with {stored[:HEADER_BYTES].hex()!r}: no format of ours")
    _, timestamp, sequence = HEADER.unpack_from(stored)
    return Stored(kind, timestamp, sequence, None, stored[HEADER_BYTES:])
