"""A table of the edits that each address may still make, in memory that all processes of a wiki share.

    table := slot*        slot := key:16 tokens:f64 when:f64        in sets of WAYS slots; ``when`` 0: empty

The table is a file without a name, mapped by every process that is forked after the file was opened.  A key belongs to
one set.  If the set is full, the slot that was idle longest is overwritten: its bucket has refilled most, unless an
attacker has that many addresses.  A lock on the file guards the table between processes; the system releases the lock
when its holder is killed.

Knows nothing of rates; ``security.RateLimiter`` does.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SLOT: Final = struct.Struct("<16sdd")
SLOTS_PER_SET: Final = 8
assert _SLOT.size == 32, "sets are aligned"


class EditBuckets:
    """The buckets of at most ``addresses`` addresses, rounded up to whole sets; for all threads and processes."""

    def __init__(self, file: int, table: mmap.mmap) -> None:
        """Take a descriptor, which is closed with this object, and ``table``, the mapped file of whole sets."""
        self._sets = len(table) // (SLOTS_PER_SET * _SLOT.size)
        self._file = file
        weakref.finalize(self, os.close, file)
        self._table = table
        self._lock = threading.Lock()  # a file lock does not separate the threads of one process

    @classmethod
    def opened(cls, addresses: int) -> EditBuckets:
        """Return a new table, in a file without a name.  Raises OSError."""
        size_bytes = max(1, -(-addresses // SLOTS_PER_SET)) * SLOTS_PER_SET * _SLOT.size
        file, path = tempfile.mkstemp(prefix="wikka-edits-")
        try:
            os.unlink(path)
            os.truncate(file, size_bytes)
            table = mmap.mmap(file, size_bytes)
        except OSError:
            os.close(file)
            raise
        return cls(file, table)

    def __len__(self) -> int:
        return sum(1 for _, _, when in _SLOT.iter_unpack(self._table) if when)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def place(self, address: str) -> tuple[int, tuple[float, float] | None]:
        """Return the slot of ``address``; also its tokens and their time, or None if it is new.  Needs ``locked``."""
        key = _key(address)
        first = int.from_bytes(key[:8], "little") % self._sets * SLOTS_PER_SET * _SLOT.size
        idle, idle_since = first, float("inf")
        for offset in range(first, first + SLOTS_PER_SET * _SLOT.size, _SLOT.size):
            found, tokens, when = _SLOT.unpack_from(self._table, offset)
            if when and found == key:
                return offset, (tokens, when)
            if when < idle_since:
                idle, idle_since = offset, when
        return idle, None

    def put(self, place: int, address: str, tokens: float, when: float) -> None:
        _SLOT.pack_into(self._table, place, _key(address), tokens, when)


def _key(address: str) -> bytes:
    return hashlib.blake2b(address.encode("utf-8", "replace"), digest_size=16).digest()
