"""The tail of a region's change log in memory: the last records as objects, for followers that keep up.

A follower that reads after a sequence of the tail neither reads the store nor unpacks records.  A follower that lags
behind the tail reads the log itself (``change_log``).

Invariants:
    I1. The tail has every record of the log above ``after``, in order, and no record at or below ``after``.
    I2. A tail is charged at most LOG_TAIL_BYTES, and all tails of a server together at most the bound of their
        ``LogTails``.  Within a tail the oldest records are dropped first.  If the tails together are too large, the
        tail whose last write is the oldest loses records first.

Knows nothing of followers, durability and disks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from columnar.limits import LOG_TAIL_BYTES, LOG_TAILS_BYTES
from columnar.regions.log.change_record import ChangeRecord, Sequence

RECORD_BYTES: Final = 512  # of the objects of a record, beside its packed bytes
_COMPACT: Final = 256  # dropped records that stay in the lists


class LogTails:
    """Owned by the loop's thread."""

    def __init__(self, bound_bytes: int = LOG_TAILS_BYTES) -> None:
        self._bound = bound_bytes
        self.size_bytes = 0
        self._tails: OrderedDict[LogTail, None] = OrderedDict()  # written to longest ago first

    def charge(self, tail: LogTail, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self._tails[tail] = None
        self._tails.move_to_end(tail)
        while self.size_bytes > self._bound:
            oldest = next(iter(self._tails))
            oldest.drop_oldest()

    def release_bytes(self, tail: LogTail, size_bytes: int) -> None:
        self.size_bytes -= size_bytes
        if not tail.size_bytes:
            self._tails.pop(tail, None)


class LogTail:
    """Owned by the loop's thread."""

    def __init__(self, tails: LogTails, after: Sequence) -> None:
        """``after`` is a sequence above which the log has no record."""
        self._tails = tails
        self.after = after
        self.size_bytes = 0
        self._sequences: list[Sequence] = []
        self._records: list[ChangeRecord] = []
        self._sizes: list[int] = []
        self._first = 0  # index: the records before it are dropped

    def append(self, sequence: Sequence, record: ChangeRecord, packed_bytes: int) -> None:
        size = packed_bytes + RECORD_BYTES
        self._sequences.append(sequence)
        self._records.append(record)
        self._sizes.append(size)
        self.size_bytes += size
        self._tails.charge(self, size)
        while self.size_bytes > LOG_TAIL_BYTES:
            self.drop_oldest()

    def drop_oldest(self) -> None:
        self._drop_to(self._first + 1)

    def trim(self, to: Sequence) -> None:
        """Drop the records up to ``to``: they were removed from the log, or no follower needs them."""
        end = bisect_right(self._sequences, to, self._first)
        if end > self._first:
            self._drop_to(end)

    def clear(self) -> None:
        if self._first < len(self._sequences):
            self._drop_to(len(self._sequences))

    def _drop_to(self, end: int) -> None:
        size = sum(self._sizes[self._first : end])
        self.after = self._sequences[end - 1]
        self._first = end
        if end >= _COMPACT or end == len(self._sequences):
            del self._sequences[:end]
            del self._records[:end]
            del self._sizes[:end]
            self._first = 0
        else:
            for at in range(end - 1, -1, -1):
                if self._records[at] is _GONE:
                    break
                self._records[at] = _GONE
        self.size_bytes -= size
        self._tails.release_bytes(self, size)

    # --- reading -------------------------------------------------------------------------------------

    def covers(self, after: Sequence | None) -> bool:
        """Tell whether every record above ``after`` is in the tail."""
        return after is not None and after >= self.after

    def read_records(self, after: Sequence, last: Sequence) -> Iterator[tuple[Sequence, ChangeRecord]]:
        """Yield the records above ``after``, which must be covered, up to ``last``."""
        start = bisect_right(self._sequences, after, self._first)
        end = bisect_right(self._sequences, last, start)
        return zip(self._sequences[start:end], self._records[start:end], strict=True)

    def find(self, sequence: Sequence) -> ChangeRecord | None:
        at = bisect_right(self._sequences, sequence, self._first) - 1
        if at < self._first or self._sequences[at] != sequence:
            return None
        return self._records[at]

    def count_after(self, after: Sequence) -> int:
        """Return the number of records above ``after``, which must be covered."""
        return len(self._sequences) - bisect_right(self._sequences, after, self._first)

    def check_invariants(self) -> None:
        """Assert the invariants, for tests."""
        sequences = self._sequences[self._first :]
        assert sequences == sorted(set(sequences))
        assert not sequences or sequences[0] > self.after
        assert self.size_bytes == sum(self._sizes[self._first :]) <= LOG_TAIL_BYTES
        assert len(self._sequences) == len(self._records) == len(self._sizes)
        assert all(record is _GONE for record in self._records[: self._first])


_GONE: Final = ChangeRecord(b"", 0, ())
