"""How many edits each address may still make, in memory that all processes of a wiki share.

    table := slot*        slot := key:16 tokens:f64 when:f64        in sets of WAYS slots; ``when`` 0: empty

A file without a name, mapped by every process that was forked after it was opened.  A key has its place in one set;
where the set is full the longest idle is forgotten: it is the fullest, or the attacker has that many addresses.
A lock on the file guards the table between processes; the system releases it when its holder is killed.

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
    """For threads and processes; at most ``addresses`` are remembered, rounded up to whole sets."""

    def __init__(self, file: int, table: mmap.mmap) -> None:
        """``file``: a descriptor, closed when this object goes; ``table``: the file mapped, whole sets."""
        self._sets = len(table) // (SLOTS_PER_SET * _SLOT.size)
        self._file = file
        weakref.finalize(self, os.close, file)
        self._table = table
        self._lock = threading.Lock()  # a lock on a file is one for all threads of a process

    @classmethod
    def opened(cls, addresses: int) -> EditBuckets:
        """Return a new table, in a file without a name.  OSError."""
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
        """Return the slot of ``address``, and its tokens and when they were counted, if known.  Under ``locked``."""
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
