"""(pure) Digests of what source rows give to groups, in BUCKETS, of no account in which order it is added.

    entry     a source row's part in one group: the group, the member, and what it gives
    bucket    crc32 of the member, the lowest bits: all entries of a source row are in one
    digest    of each bucket the number of its entries, and the sum of their hashes modulo 2^128

    packed    BUCKETS times (count:u32 sum:u128), big-endian

The entries of a view's members and those of its sources' rows are the same if and only if their digests are, but for
a chance of 2^-128.  Two sides are compared in memory that does not grow with them.

Knows nothing of how rows and members are read.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct
from typing import Final

from columnar.errors import DamagedData

BUCKETS: Final = 4_096
HASH_BYTES: Final = 16
_MODULUS: Final = 1 << (8 * HASH_BYTES)
_LENGTHS: Final = Struct(">II")
_BUCKET_BYTES: Final = 4 + HASH_BYTES


def bucket_of(member: bytes) -> int:
    return zlib.crc32(member) % BUCKETS


def entry_hash(group: bytes, member: bytes, given: bytes) -> bytes:
    """``given``: the bytes of what the member gives (``model.contribution``)."""
    lengths = _LENGTHS.pack(len(group), len(member))
    return blake2b(b"".join((lengths, group, member, given)), digest_size=HASH_BYTES).digest()


class Digest:
    __slots__ = ("_counts", "_sums")

    def __init__(self) -> None:
        self._counts = array("L", bytes(array("L").itemsize * BUCKETS))
        self._sums = [0] * BUCKETS

    def add(self, bucket: int, entry: bytes) -> None:
        self._counts[bucket] += 1
        self._sums[bucket] = (self._sums[bucket] + int.from_bytes(entry, "big")) % _MODULUS

    def merge(self, other: Digest) -> None:
        for bucket in range(BUCKETS):
            self._counts[bucket] += other._counts[bucket]
            self._sums[bucket] = (self._sums[bucket] + other._sums[bucket]) % _MODULUS

    @property
    def entries(self) -> int:
        return sum(self._counts)

    def unequal(self, other: Digest) -> frozenset[int]:
        """The buckets that differ."""
        return frozenset(
            bucket
            for bucket in range(BUCKETS)
            if self._counts[bucket] != other._counts[bucket] or self._sums[bucket] != other._sums[bucket]
        )

    def pack(self) -> bytes:
        pairs = zip(self._counts, self._sums, strict=True)
        return b"".join(count.to_bytes(4, "big") + total.to_bytes(HASH_BYTES, "big") for count, total in pairs)


def unpack(data: bytes) -> Digest:
    """DamagedData: these are no bytes of ``Digest.pack``."""
    if len(data) != BUCKETS * _BUCKET_BYTES:
        raise DamagedData(f"a digest of {len(data)} bytes; this version makes {BUCKETS * _BUCKET_BYTES}: upgrade")
    digest = Digest()
    for bucket in range(BUCKETS):
        at = bucket * _BUCKET_BYTES
        digest._counts[bucket] = int.from_bytes(data[at : at + 4], "big")
        digest._sums[bucket] = int.from_bytes(data[at + 4 : at + _BUCKET_BYTES], "big")
    return digest


def pack_buckets(buckets: Iterable[int]) -> bytes:
    """A bit for each bucket."""
    bits = bytearray(BUCKETS // 8)
    for bucket in buckets:
        bits[bucket >> 3] |= 1 << (bucket & 7)
    return bytes(bits)


def is_in(bits: bytes, bucket: int) -> bool:
    return bool(bits[bucket >> 3] >> (bucket & 7) & 1)
