"""(pure) Digests of the contributions of source rows to groups, in BUCKETS, independent of the order of addition.

    entry     a source row's part in one group: the group, the member, and its contribution
    bucket    the lowest bits of the member's crc32: all entries of a source row are in one bucket
    digest    of a part of one side: for each bucket the sum of its entries' hashes modulo 2^64
    balance   for each bucket the sum of one side less the sum of the other side: 0 if the sides are equal
    packed    version:u8(2), then buckets:u32*, then sums:u64*, big-endian: only buckets with entries

In a bucket the entries of a view's members equal the entries of its sources' rows if and only if its balance is 0,
except for a chance of 2^-64.  The memory of a comparison does not grow with the sides: 8 bytes per bucket.

There are many buckets, because the two sides are read at different moments.  While writers write, a bucket is unequal
if one of its rows changed between these moments; the other buckets need not be checked again.

Knows nothing of how rows and members are read.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from hashlib import blake2b
from struct import Struct
from typing import Final

from columnar.errors import DamagedData

BUCKETS: Final = 1 << 20
HASH_BYTES: Final = 16
PART_BUCKETS: Final = 4_096  # of one part, about; a part is added up in a millisecond
BLOCK: Final = 16_384  # buckets of a balance that are checked in one step
_SUM_BYTES: Final = 8
_MASK: Final = (1 << (8 * _SUM_BYTES)) - 1
_LENGTHS: Final = Struct(">II")
_VERSION: Final = b"\x02"
_PACKED_BYTES: Final = 4 + _SUM_BYTES  # of a bucket
_EQUAL: Final = bytes(_SUM_BYTES * BLOCK)
assert (array("I").itemsize, array("Q").itemsize) == (4, _SUM_BYTES), "the packed form counts on it"


def bucket_of(member: bytes) -> int:
    return zlib.crc32(member) & (BUCKETS - 1)


def entry_hash(group: bytes, member: bytes, given: bytes) -> bytes:
    """Return the hash of an entry.  ``given`` has the bytes of the member's contribution (``model.contribution``)."""
    lengths = _LENGTHS.pack(len(group), len(member))
    return blake2b(b"".join((lengths, group, member, given)), digest_size=HASH_BYTES).digest()


class Digest:
    """The digest of one part of a side."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[int, int] = {}  # of buckets with entries

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, bucket: int, entry: bytes) -> None:
        sums = self._sums
        sums[bucket] = (sums.get(bucket, 0) + int.from_bytes(entry[:_SUM_BYTES], "big")) & _MASK

    def pack(self) -> bytes:
        parts = array("I", self._sums.keys()), array("Q", self._sums.values())
        if sys.byteorder == "little":
            for one in parts:
                one.byteswap()
        return b"".join((_VERSION, *[one.tobytes() for one in parts])) if self._sums else b""


class Balance:
    """For each bucket, the sum of one side less the sum of the other side."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums = array("Q", bytes(_SUM_BYTES * BUCKETS))

    def add(self, digest: bytes) -> None:
        """Add the packed digest of a part of the one side.  Raises DamagedData."""
        sums = self._sums
        for bucket, total in _unpacked(digest):
            sums[bucket] = (sums[bucket] + total) & _MASK

    def subtract(self, digest: bytes) -> None:
        """Subtract the packed digest of a part of the other side.  Raises DamagedData."""
        sums = self._sums
        for bucket, total in _unpacked(digest):
            sums[bucket] = (sums[bucket] - total) & _MASK

    def unequal(self, first: int, last: int) -> list[int]:
        """Return the buckets of ``range(first, last)`` in which the sides differ."""
        some = self._sums[first:last]
        if some.tobytes() == _EQUAL[: _SUM_BYTES * len(some)]:
            return []
        return [bucket for bucket, total in enumerate(some, first) if total]


def _unpacked(data: bytes) -> list[tuple[int, int]]:
    """Return (bucket, sum) pairs.  Raises DamagedData if ``data`` is not from ``Digest.pack``."""
    if not data:
        return []
    count, more = divmod(len(data) - 1, _PACKED_BYTES)
    if data[:1] != _VERSION or more:
        raise DamagedData(f"a digest of {len(data)} bytes is none of this version: upgrade")
    buckets, sums = array("I"), array("Q")
    buckets.frombytes(data[1 : 1 + 4 * count])
    sums.frombytes(data[1 + 4 * count :])
    if sys.byteorder == "little":
        buckets.byteswap()
        sums.byteswap()
    if max(buckets) >= BUCKETS:
        raise DamagedData(f"a digest names the bucket {max(buckets)}: there are {BUCKETS}")
    return list(zip(buckets, sums, strict=True))


class Buckets:
    """A set of buckets, with a bit for each bucket."""

    __slots__ = ("_bits", "count")

    def __init__(self) -> None:
        self._bits = bytearray(BUCKETS // 8)
        self.count = 0

    def add_bucket(self, bucket: int) -> None:
        """Add a bucket that is not in the set yet."""
        self._bits[bucket >> 3] |= 1 << (bucket & 7)
        self.count += 1

    def pack(self) -> bytes:
        return bytes(self._bits)


def check_buckets(bits: bytes) -> None:
    """Raise DamagedData if ``bits`` is not from ``Buckets.pack``."""
    if len(bits) != BUCKETS // 8:
        raise DamagedData(f"a set of {8 * len(bits)} buckets is none of this version, which has {BUCKETS}: upgrade")


def is_in(bits: bytes, bucket: int) -> bool:
    return bool(bits[bucket >> 3] >> (bucket & 7) & 1)
