"""(pure) The partition of a record: that of its key's hash, as the producers of Kafka's own clients choose it.

So a record that a client produces under a key, and one that the store appends under it, come to the same partition.
The hash is MurmurHash2 of 32 bits with Kafka's seed.

Knows nothing of topics.
"""

from __future__ import annotations

from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_U32: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the number of the partition, from 0, of ``partitions``.  O(length): some 0.2 us a byte."""
    return (hash_of(key) & _POSITIVE) % partitions


def hash_of(key: bytes) -> int:
    """Return MurmurHash2 of the key, as a number of 32 bits without sign."""
    whole = len(key) & ~3
    found = _SEED ^ len(key)
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _M & _U32
        word = (word ^ word >> 24) * _M & _U32
        found = (found * _M & _U32) ^ word
    if whole < len(key):
        found = (found ^ int.from_bytes(key[whole:], "little")) * _M & _U32
    found = (found ^ found >> 13) * _M & _U32
    return found ^ found >> 15
