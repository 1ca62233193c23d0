"""The counts of one change log: how many records and bytes are in it, and how much of that a consumer still needs.

Records of earlier openings are counted in steps after the opening (``count_step``), records of this opening when they
are written.

Invariants:
    I1. ``records`` and ``size_bytes`` cover every record in the log, except inherited records not yet counted.
    I2. Only a replay may need the records below ``kept_end``; every other record is ``needed``.

Owned by the loop.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import Final

from columnar.regions.log.log_retention import LOG_SPACE
from columnar.storage.api import Store
from columnar.storage.layout import END_OF_COLUMN

EVERY: Final = 128
_SLACK: Final = 1_024  # dropped keys that stay in the list: removing one from its front moves the rest


class LogMarks:
    """Every EVERYth key of a part of a change log, in order, to count the records after a key.

    Pages, metrics, imports and merges request a lag amid the store's other work; reading each record would take longer
    the further a follower lags.

    Invariants:
        I1. Keys are added in ascending order, and removed from the lowest on (``drop``).
        I2. Every record at or above a key that ``count_after`` returns is in the log.
    """

    __slots__ = ("_first", "_keys", "_missing", "count")

    def __init__(self) -> None:
        self.count = 0  # records that were added
        self._keys: list[bytes] = []
        self._first = 0  # index in ``_keys``: the keys before it are dropped
        self._missing = 0  # keys that were removed from ``_keys``

    def add_mark(self, key: bytes) -> None:
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

        Returns (0, None) if at most EVERY records are above ``key``.
        """
        at = bisect_right(self._keys, key, self._first)
        if at == len(self._keys):
            return 0, None
        return self.count - (self._missing + at) * EVERY, self._keys[at]


class LogCounts:
    def __init__(self, store: Store, inherited_end: bytes) -> None:
        """``inherited_end`` is a key above every record of earlier openings and below every one of this opening."""
        self.records = 0  # in the log; of earlier openings only records that ``count_step`` counted
        self.size_bytes = 0
        self.kept_end = b""  # key: no consumer needs the records below it, CHANGE_LOG keeps them
        self._store = store
        self._inherited_end = inherited_end
        self._counted_to = b""  # key: inherited records up to it are in ``records``
        self._is_counted_whole = False
        self._inherited = LogMarks()  # as far as counted
        self._own = LogMarks()
        self._kept_records = 0
        self._kept_bytes = 0

    @property
    def needed(self) -> tuple[int, int]:
        """Number and bytes of the records that a consumer has still to see, without records not yet counted."""
        return self.records - self._kept_records, self.size_bytes - self._kept_bytes

    def add_record(self, key: bytes, size_bytes: int) -> None:
        """Count a record that this opening wrote."""
        self.records += 1
        self.size_bytes += size_bytes
        self._own.add_mark(key)

    def count_after(self, key: bytes, limit: int) -> int:
        """Return the number of records after ``key`` (if it is empty: of all records), at most ``limit``.

        Reads at most 2 * EVERY records (``LogMarks``).  Until ``count_step`` is done it also reads each record of
        earlier openings that it counts.
        """
        start = key + END_OF_COLUMN if key else b""
        count, stop = self._own.count_after(max(key, self._inherited_end))
        if key < self._inherited_end and self._is_counted_whole:
            inherited, place = self._inherited.count_after(key)
            count += inherited + self._count_stored(start, place or self._inherited_end, limit - count - inherited)
            start = self._inherited_end
        return min(limit, count + self._count_stored(start, stop, limit - count))

    def _count_stored(self, start: bytes, stop: bytes | None, most: int) -> int:
        return sum(1 for _ in islice(self._store.scan(LOG_SPACE, start, stop), most)) if most > 0 else 0

    def count_step(self, limit: int) -> bool:
        """Count up to ``limit`` records of earlier openings.  Returns False when all are counted."""
        start = self._counted_to + END_OF_COLUMN if self._counted_to else b""
        seen = 0
        for key, data in islice(self._store.scan(LOG_SPACE, start, self._inherited_end), limit):
            self._counted_to = key
            self._inherited.add_mark(key)
            self.records, self.size_bytes, seen = self.records + 1, self.size_bytes + len(data), seen + 1
            if key < self.kept_end:
                self._kept_records, self._kept_bytes = self._kept_records + 1, self._kept_bytes + len(data)
        self._is_counted_whole = seen < limit
        return not self._is_counted_whole

    def is_counted(self, key: bytes) -> bool:
        return key <= self._counted_to or key > self._inherited_end

    def keep_below(self, end: bytes, limit: int) -> bool:
        """Mark the records below ``end`` (a key) as needed by no consumer.

        Reads at most ``limit`` records.  Returns True if more may be left.
        """
        count = 0
        counted_end = self._counted_to + b"\x00" if self._counted_to else b""
        for start, stop in (
            (self.kept_end, min(end, counted_end)),
            (max(self.kept_end, self._inherited_end), end),
        ):
            if start >= stop:
                continue
            for key, data in islice(self._store.scan(LOG_SPACE, start, stop), limit - count):
                self._kept_records, self._kept_bytes = self._kept_records + 1, self._kept_bytes + len(data)
                self.kept_end = key + b"\x00"
                count += 1
            if count >= limit:
                return True
        self.kept_end = max(self.kept_end, end)
        return False

    def keep_all(self, end: bytes) -> None:
        """Mark every record as needed by no consumer; ``end`` is a key above all of them.  O(1)."""
        self.kept_end, self._kept_records, self._kept_bytes = end, self.records, self.size_bytes

    def remove_records(self, removed: list[tuple[bytes, int]]) -> None:
        """Subtract records that were removed, the oldest of the log; ``removed``: their keys and sizes."""
        last = removed[-1][0]
        self._inherited.drop(last)
        self._own.drop(last)
        for key, size in removed:
            if self.is_counted(key):
                self.records, self.size_bytes = self.records - 1, self.size_bytes - size
                if key < self.kept_end:
                    self._kept_records, self._kept_bytes = self._kept_records - 1, self._kept_bytes - size
