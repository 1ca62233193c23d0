"""The operations of one write to RocksDB."""

from __future__ import annotations


class RocksBatch:
    """Operations by name: they become the engine's when they are written, perhaps together with others'."""

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
        self._size += len(start) + len(stop)
        self.has_ranges = True
        self.operations.append((space, start, None, stop))

    def size_bytes(self) -> int:
        return self._size
