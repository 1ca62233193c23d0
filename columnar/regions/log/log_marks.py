"""(pure) Every EVERYth key of a part of a change log, in order: counts the records after a place.

Pages, metrics, imports and merges request a lag amid the store's other work; reading each record would take the
longer, the further a follower lags.

Invariants:
    I1. Keys are added in ascending order, and removed from the lowest on (``drop``).
    I2. Every record at or above a key that ``count_after`` returns is in the log.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

EVERY: Final = 128
_SLACK: Final = 1_024  # dropped keys that stay in the list: removing one from its front moves the rest


class LogMarks:
    __slots__ = ("_first", "_keys", "_missing", "count")

    def __init__(self) -> None:
        self.count = 0  # records that were added
        self._keys: list[bytes] = []
        self._first = 0  # in ``_keys``: those before it are dropped
        self._missing = 0  # keys that were removed from ``_keys``

    def add(self, key: bytes) -> None:
        """Add the key of a record above all earlier ones.  O(1), and memory for one key in EVERY records."""
        if self.count % EVERY == 0:
            self._keys.append(key)
        self.count += 1

    def drop(self, last: bytes) -> None:
        """Remove the keys of all records up to ``last``.  O(log)."""
        self._first = bisect_right(self._keys, last, self._first)
        if self._first > _SLACK:
            del self._keys[: self._first]
            self._missing, self._first = self._missing + self._first, 0

    def count_after(self, key: bytes) -> tuple[int, bytes | None]:
        """Return (count, mark): ``count`` records are at or above ``mark``, which is above ``key`` by EVERY at most.

        (0, None): no more than EVERY records are above ``key``.
        """
        at = bisect_right(self._keys, key, self._first)
        if at == len(self._keys):
            return 0, None
        return self.count - (self._missing + at) * EVERY, self._keys[at]
