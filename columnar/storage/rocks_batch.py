"""Batches of operations for RocksDB, and the buffer of batches that share one write."""

from __future__ import annotations

from typing import Any, Final

import rocksdict

from columnar.storage.capture import Capture
from columnar.storage.server_log import MARK_SPACE

LARGE_ROWS: Final = 16  # from so many rows on a batch is a ``LargeBatch``


class RocksBatch:
    """Operations in our own form, which are converted to RocksDB's form when the batch is written."""

    __slots__ = ("_size", "has_ranges", "operations")

    def __init__(self) -> None:
        self.operations: list[tuple[str, bytes, bytes | None, bytes | None]] = []  # space, key, value, stop of a range
        self.has_ranges = False
        self._size = 0

    def put(self, space: str, key: bytes, value: bytes) -> None:
        self._size += len(key) + len(value)
        self.operations.append((space, key, value, None))

    def delete(self, space: str, key: bytes) -> None:
        self._size += len(key)
        self.operations.append((space, key, None, None))

    def delete_range(self, space: str, start: bytes, stop: bytes) -> None:
        if start >= stop:
            return  # RocksDB would number it and write it to no table, so ``synced_bound`` would miss it
        self._size += len(start) + len(stop)
        self.has_ranges = True
        self.operations.append((space, start, None, stop))

    def size_bytes(self) -> int:
        return self._size


class LargeBatch:
    """Operations in RocksDB's form from the start: each value is copied once, while it is in the processor's cache.

    A large batch is for many rows at once, and does not share its write to RocksDB with other batches.
    """

    __slots__ = ("_handles", "_size", "raw")

    def __init__(self, handles: dict[str, Any]) -> None:
        self.raw: Any = rocksdict.WriteBatch(raw_mode=True)
        self._handles = handles
        self._size = 0

    def put(self, space: str, key: bytes, value: bytes) -> None:
        self._size += len(key) + len(value)
        self.raw.put(key, value, self._handles[space])

    def delete(self, space: str, key: bytes) -> None:
        self._size += len(key)
        self.raw.delete(key, self._handles[space])

    def delete_range(self, space: str, start: bytes, stop: bytes) -> None:
        if start >= stop:
            return
        self._size += len(start) + len(stop)
        self.raw.delete_range(start, stop, self._handles[space])

    def size_bytes(self) -> int:
        return self._size


def fill(raw: Any, batch: RocksBatch, handles: dict[str, Any]) -> None:
    """Add the operations to RocksDB's batch ``raw``."""
    for space, key, value, stop in batch.operations:
        if value is not None:
            raw.put(key, value, handles[space])
        elif stop is None:
            raw.delete(key, handles[space])
        else:
            raw.delete_range(key, stop, handles[space])


def add_mark(raw: Any, capture: Capture, handles: dict[str, Any]) -> None:
    """Add to ``raw`` the mark that the next batch of a captured store must carry, and delete outdated marks."""
    handle = handles[MARK_SPACE]
    key, floor = capture.mark()
    keys, span = capture.outdated()
    for old in keys:
        raw.delete(old, handle)
    if span is not None:
        raw.delete_range(span[0], span[1], handle)
    raw.put(key, floor, handle)


class WriteBuffer:
    """Batches that share one write to RocksDB, and their pairs for reads."""

    __slots__ = ("_batches", "_handles", "fresh", "raw", "size_bytes")

    def __init__(self, handles: dict[str, Any]) -> None:
        self._handles = handles
        self.raw: Any = None  # RocksDB's batch of everything buffered; None if nothing is
        self._batches: list[RocksBatch] = []
        self.size_bytes = 0
        self.fresh: dict[tuple[str, bytes], bytes | None] = {}  # None: deleted; never replaced by a new dictionary

    def add(self, batch: RocksBatch) -> None:
        if self.raw is None:
            self.raw = rocksdict.WriteBatch(raw_mode=True)
        fill(self.raw, batch, self._handles)
        self._batches.append(batch)
        self.size_bytes += batch.size_bytes()
        fresh = self.fresh
        for space, key, value, _ in batch.operations:
            fresh[space, key] = value

    def fill_again(self) -> None:
        """Make RocksDB's batch again, without a mark: an attempt to write uses up the batch and its mark."""
        self.raw = rocksdict.WriteBatch(raw_mode=True)
        for batch in self._batches:
            fill(self.raw, batch, self._handles)

    def clear(self) -> None:
        self.raw = None
        self._batches.clear()
        self.size_bytes = 0
        self.fresh.clear()

    def pairs_within(self, space: str, start: bytes, stop: bytes | None) -> dict[bytes, bytes | None]:
        return {
            key: value
            for (name, key), value in self.fresh.items()
            if name == space and start <= key and (stop is None or key < stop)
        }
