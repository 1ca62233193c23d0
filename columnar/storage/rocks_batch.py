"""The operations of one write to RocksDB, and those that are buffered for one."""

from __future__ import annotations

from typing import Any, Final

import rocksdict

from columnar.storage.capture import Capture
from columnar.storage.server_log import MARK_SPACE

LARGE_ROWS: Final = 16  # a batch of so many is a ``LargeBatch``


class RocksBatch:
    """Operations by name: converted to the engine's when they are written, perhaps together with other batches."""

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
            return  # RocksDB would number it, and keep it in no table: ``synced_bound`` would miss it
        self._size += len(start) + len(stop)
        self.has_ranges = True
        self.operations.append((space, start, None, stop))

    def size_bytes(self) -> int:
        return self._size


class LargeBatch:
    """Operations in the engine's form from the start: each value is copied once, while it is in the processor's cache.

    For many rows at once; it shares the engine's write with no other.
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
    """Add the operations to a batch of the engine's."""
    for space, key, value, stop in batch.operations:
        if value is not None:
            raw.put(key, value, handles[space])
        elif stop is None:
            raw.delete(key, handles[space])
        else:
            raw.delete_range(key, stop, handles[space])


def add_mark(raw: Any, capture: Capture, handles: dict[str, Any]) -> None:
    """Add the mark that the next batch of a captured store must carry."""
    handle = handles[MARK_SPACE]
    key, floor = capture.mark()
    keys, span = capture.outdated()
    for old in keys:
        raw.delete(old, handle)
    if span is not None:
        raw.delete_range(span[0], span[1], handle)
    raw.put(key, floor, handle)


class WriteBuffer:
    """Batches that share one write of the engine, and their pairs as reads see them."""

    __slots__ = ("_batches", "_handles", "fresh", "raw", "size_bytes")

    def __init__(self, handles: dict[str, Any]) -> None:
        self._handles = handles
        self.raw: Any = None  # the engine's batch of all that is buffered; None: nothing is
        self._batches: list[RocksBatch] = []
        self.size_bytes = 0
        self.fresh: dict[tuple[str, bytes], bytes | None] = {}  # None: deleted; one dictionary for ever

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
        """Make the engine's batch again: a try to write uses it up, and its mark with it."""
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
