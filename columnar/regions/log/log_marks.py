"""Every EVERYth record of a part of a change log, in order (pure): how many stand behind a place.

A lag is asked for by pages, metrics, imports and merges, in the middle of the store's other work; a look at each record
would take the longer, the further somebody is behind.

Invariants:
    I1. Keys are added in ascending order, and removed from the lowest on (``drop``).
    I2. All that stands at or above a key that ``behind`` names is there.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

EVERY: Final = 128
_SLACK: Final = 1_024  # dropped keys that stay in the list: taking one out of its front moves all others


class LogMarks:
    __slots__ = ("_first", "_keys", "_missing", "count")

    def __init__(self) -> None:
        self.count = 0  # records that were added
        self._keys: list[bytes] = []
        self._first = 0  # in ``_keys``: those before it are dropped
        self._missing = 0  # keys that are in ``_keys`` no more

    def add(self, key: bytes) -> None:
        """A record above all others.  O(1), and memory for one key in EVERY records."""
        if self.count % EVERY == 0:
            self._keys.append(key)
        self.count += 1

    def drop(self, last: bytes) -> None:
        """All records up to ``last`` are gone.  O(log)."""
        self._first = bisect_right(self._keys, last, self._first)
        if self._first > _SLACK:
            del self._keys[: self._first]
            self._missing, self._first = self._missing + self._first, 0

    def count_after(self, key: bytes) -> tuple[int, bytes | None]:
        """How many records stand at or above a key that is above ``key`` by EVERY records at most; that key.

        (0, None): no more than EVERY are above ``key``.
        """
        at = bisect_right(self._keys, key, self._first)
        if at == len(self._keys):
            return 0, None
        return self.count - (self._missing + at) * EVERY, self._keys[at]
