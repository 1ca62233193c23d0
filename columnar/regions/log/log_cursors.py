"""The cursors in a region's log: the last saved state of each consumer, in the space ``meta``.

    cursor/ consumer  ->  the consumer's own bytes
    number/ consumer  ->  u64, of the consumer's registration; missing if an earlier version began the cursor

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from columnar.storage.api import Store
from columnar.storage.ownership import META_SPACE

CURSOR: Final = b"cursor/"
NUMBER: Final = b"number/"


def cursors_in(store: Store) -> dict[str, bytes]:
    """Return the last saved state of each consumer of a region's log."""
    found = store.scan(META_SPACE, CURSOR, CURSOR[:-1] + b"0")
    return {key[len(CURSOR) :].decode(): value for key, value in found}


class LogCursors:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: frozenset[str] | None = None  # None: not read yet

    def all_cursors(self) -> dict[str, bytes]:
        """Return the last saved state of each consumer."""
        return cursors_in(self._store)

    def cursor(self, consumer: str) -> bytes | None:
        return self._store.get(META_SPACE, CURSOR + consumer.encode())

    def cursor_names(self) -> frozenset[str]:
        """Return the names of the consumers that have cursors.  O(1), but for the first call."""
        if self._names is None:
            self._names = frozenset(self.all_cursors())
        return self._names

    def save_cursor(self, consumer: str, state: bytes) -> None:
        """Save the cursor, without an fsync: after a crash a consumer may see records again, never miss one."""
        batch = self._store.batch()
        batch.put(META_SPACE, CURSOR + consumer.encode(), state)
        self._store.write_batch(batch)
        if self._names is not None and consumer not in self._names:
            self._names = None

    def begin_cursor(self, consumer: str, state: bytes, number: int) -> None:
        """Save the first cursor of a consumer as ``save_cursor`` does, with the number of its registration."""
        batch = self._store.batch()
        batch.put(META_SPACE, CURSOR + consumer.encode(), state)
        batch.put(META_SPACE, NUMBER + consumer.encode(), number.to_bytes(8, "big"))
        self._store.write_batch(batch)
        self._names = None

    def rewind_cursor(self, consumer: str, state: bytes, marks: Mapping[bytes, bytes]) -> None:
        """Save the cursor as ``save_cursor`` does, with ``marks`` in ``meta``: a crash keeps both or neither."""
        batch = self._store.batch()
        batch.put(META_SPACE, CURSOR + consumer.encode(), state)
        for key, value in marks.items():
            batch.put(META_SPACE, key, value)
        self._store.write_batch(batch)
        self._names = None

    def number_of(self, consumer: str) -> int:
        """Return the number of the registration that began the cursor; 0 if an earlier program version began it."""
        return int.from_bytes(self._store.get(META_SPACE, NUMBER + consumer.encode()) or b"", "big")

    def drop_cursor(self, consumer: str, *marks: bytes) -> None:
        """Forget the consumer and the ``marks`` that ``Region.log_records`` wrote for it."""
        batch = self._store.batch()
        for key in (CURSOR + consumer.encode(), NUMBER + consumer.encode(), *marks):
            batch.delete(META_SPACE, key)
        self._store.write_batch(batch)
        self._names = None
