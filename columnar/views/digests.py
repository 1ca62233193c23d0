"""(pure) Digests of the contributions of source rows to groups, in BUCKETS, independent of the order of addition.

    entry     a source row's part in one group: the group, the member, and its contribution
    bucket    crc32 of the member, the lowest bits: all entries of a source row are in one
    digest    of each bucket the sum of its entries' hashes modulo 2^64: of a part of one side
    balance   of each bucket the sum of one side, less that of the other: 0 if they are the same

    packed    of each bucket with entries: version:u8(2), then buckets:u32*, then sums:u64*, big-endian

The entries of a view's members and those of its sources' rows are the same in a bucket if and only if its balance is
0, except for a chance of 2^-64.  Two sides are compared in memory that does not grow with them: 8 bytes per bucket.

Buckets are many, because each is compared as it was at two moments: while writers write, those are unequal whose rows
were changed between the moments, and the other buckets need not be checked again.

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
PART_BUCKETS: Final = 4_096  # of one part, about: it is added up in a millisecond
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
    """``given``: the bytes of what the member gives (``model.contribution``)."""
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
    """The sums of one side less those of the other."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums = array("Q", bytes(_SUM_BYTES * BUCKETS))

    def add(self, digest: bytes) -> None:
        """A part of the one side, packed.  DamagedData."""
        sums = self._sums
        for bucket, total in _unpacked(digest):
            sums[bucket] = (sums[bucket] + total) & _MASK

    def subtract(self, digest: bytes) -> None:
        """A part of the other side.  DamagedData."""
        sums = self._sums
        for bucket, total in _unpacked(digest):
            sums[bucket] = (sums[bucket] - total) & _MASK

    def unequal(self, first: int, last: int) -> list[int]:
        """The buckets from ``first`` to ``last`` in which the sides differ."""
        some = self._sums[first:last]
        if some.tobytes() == _EQUAL[: _SUM_BYTES * len(some)]:
            return []
        return [bucket for bucket, total in enumerate(some, first) if total]


def _unpacked(data: bytes) -> list[tuple[int, int]]:
    """DamagedData: these are no bytes of ``Digest.pack``."""
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
    """A set of buckets: a bit for each."""

    __slots__ = ("_bits", "count")

    def __init__(self) -> None:
        self._bits = bytearray(BUCKETS // 8)
        self.count = 0

    def add_bucket(self, bucket: int) -> None:
        """Add a bucket that is not in it."""
        self._bits[bucket >> 3] |= 1 << (bucket & 7)
        self.count += 1

    def pack(self) -> bytes:
        return bytes(self._bits)


def check_buckets(bits: bytes) -> None:
    """DamagedData: these are no bytes of ``Buckets.pack``."""
    if len(bits) != BUCKETS // 8:
        raise DamagedData(f"a set of {8 * len(bits)} buckets is none of this version, which has {BUCKETS}: upgrade")


def is_in(bits: bytes, bucket: int) -> bool:
    return bool(bits[bucket >> 3] >> (bucket & 7) & 1)
