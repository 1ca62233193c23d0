"""The operations of one write to RocksDB."""

from __future__ import annotations

from typing import Any, Final

import rocksdict

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
