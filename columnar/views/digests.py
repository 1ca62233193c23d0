"""(pure) Digests of what source rows give to groups, in BUCKETS, of no account in which order it is added.

    entry     a source row's part in one group: the group, the member, and what it gives
    bucket    crc32 of the member, the lowest bits: all entries of a source row are in one
    digest    of each bucket the number of its entries, and the sum of their hashes modulo 2^128

    packed    of each bucket with entries: bucket:u16 count:u32 sum:u128, big-endian, ascending

The entries of a view's members and those of its sources' rows are the same if and only if their digests are, but for
a chance of 2^-128.  Two sides are compared in memory that does not grow with them.

Knows nothing of how rows and members are read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct
from typing import Final

from columnar.errors import DamagedData

BUCKETS: Final = 4_096
HASH_BYTES: Final = 16
_MODULUS: Final = 1 << (8 * HASH_BYTES)
_LENGTHS: Final = Struct(">II")
_HEAD: Final = Struct(">HI")  # bucket, count
_BUCKET_BYTES: Final = _HEAD.size + HASH_BYTES


def bucket_of(member: bytes) -> int:
    return zlib.crc32(member) % BUCKETS


def entry_hash(group: bytes, member: bytes, given: bytes) -> bytes:
    """``given``: the bytes of what the member gives (``model.contribution``)."""
    lengths = _LENGTHS.pack(len(group), len(member))
    return blake2b(b"".join((lengths, group, member, given)), digest_size=HASH_BYTES).digest()


class Digest:
    __slots__ = ("_counts", "_sums")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}  # of buckets with entries
        self._sums: dict[int, int] = {}

    def add(self, bucket: int, entry: bytes) -> None:
        self._add(bucket, 1, int.from_bytes(entry, "big"))

    def _add(self, bucket: int, count: int, total: int) -> None:
        self._counts[bucket] = self._counts.get(bucket, 0) + count
        self._sums[bucket] = (self._sums.get(bucket, 0) + total) % _MODULUS

    def merge(self, other: Digest) -> None:
        for bucket, count in other._counts.items():
            self._add(bucket, count, other._sums[bucket])

    @property
    def entries(self) -> int:
        return sum(self._counts.values())

    def unequal(self, other: Digest) -> frozenset[int]:
        """The buckets that differ."""
        both = self._counts.keys() | other._counts.keys()
        return frozenset(
            bucket
            for bucket in both
            if self._counts.get(bucket) != other._counts.get(bucket)
            or self._sums.get(bucket) != other._sums.get(bucket)
        )

    def pack(self) -> bytes:
        return b"".join(
            _HEAD.pack(bucket, count) + self._sums[bucket].to_bytes(HASH_BYTES, "big")
            for bucket, count in sorted(self._counts.items())
        )


def unpack(data: bytes) -> Digest:
    """DamagedData: these are no bytes of ``Digest.pack``."""
    digest = Digest()
    if len(data) % _BUCKET_BYTES:
        raise DamagedData(f"a digest of {len(data)} bytes is none of this version: upgrade")
    for at in range(0, len(data), _BUCKET_BYTES):
        bucket, count = _HEAD.unpack_from(data, at)
        total = int.from_bytes(data[at + _HEAD.size : at + _BUCKET_BYTES], "big")
        digest._add(bucket, count, total)
    return digest


def pack_buckets(buckets: Iterable[int]) -> bytes:
    """A bit for each bucket."""
    bits = bytearray(BUCKETS // 8)
    for bucket in buckets:
        bits[bucket >> 3] |= 1 << (bucket & 7)
    return bytes(bits)


def is_in(bits: bytes, bucket: int) -> bool:
    return bool(bits[bucket >> 3] >> (bucket & 7) & 1)
