"""Stamps of the records of a logged table: times that rise strictly with each record of a row.

Triggers order what they derive from a row's records by the stamps, so stamps must rise whatever timestamps
clients give to cells, however many records fall into a millisecond, and whatever clock the region is opened
under.  They follow the clock, and run ahead of it if necessary.

Invariants:
    I1. A row's stamp is higher than every one that it was given before, in this opening or an earlier one.
    I2. The mark ``meta/stamp`` and the last record of the log together are at or above every stamp given before
        this opening: a stamp ahead of the clock is marked in its own batch, a stamp trimmed from the log in the
        batch that trims it, and the last of the remaining records has the highest stamp, as the clock of one opening
        never goes back.
    I3. At most REMEMBERED_ROWS rows are remembered.

Records of version 1 carry timestamps that clients invented: if the last record is one, stamps begin above every
timestamp written ahead of the clock, except those more than OLD_AHEAD_MS ahead of it.

Knows nothing of cells; the time is an argument.
"""

from __future__ import annotations

from typing import Final

from columnar.errors import DamagedData
from columnar.regions.log.change_log import ChangeLog
from columnar.regions.log.change_record import is_old, unpack
from columnar.regions.log.log_retention import META_SPACE
from columnar.storage.api import Batch, Store

STAMP: Final = b"stamp"  # in ``meta``: the highest given ahead of the clock, or whose record is gone
REMEMBERED_ROWS: Final = 4_096
OLD_AHEAD_MS: Final = 3_600_000  # cells of the region run ahead of the clock as far as their stamps do


class RowStamps:
    """Owned by the loop's thread."""

    def __init__(self, store: Store, log: ChangeLog, future: int) -> None:
        """``future``: the highest timestamp that was written ahead of the clock before this opening."""
        self._store = store
        self._log = log
        self._future = future
        self._floor = -1  # at or above all stamps of rows that are not in ``_recent``; -1: not read yet
        self._highest = 0  # given ahead of the clock, or found
        self._recent: dict[bytes, int] = {}  # rows written in this very millisecond, or while the clock stood still

    def give(self, batch: Batch, row: bytes, now_ms: int) -> int:
        """The stamp of the row's next record, which is in ``batch`` (I1)."""
        if self._floor < 0:
            self._find_floor(now_ms)
        last = self._recent.get(row, self._floor)
        stamp = now_ms
        if last >= now_ms:
            stamp = last + 1
            if stamp > self._highest:
                self._highest = stamp
            batch.put(META_SPACE, STAMP, self._highest.to_bytes(8, "big"))
        if len(self._recent) >= REMEMBERED_ROWS:
            self._forget(now_ms)
        self._recent[row] = stamp
        return stamp

    def mark(self, now_ms: int) -> int:
        """At or above every stamp given so far."""
        if self._floor < 0:
            self._find_floor(now_ms)
        return max(self._highest, now_ms)

    def _find_floor(self, now_ms: int) -> None:
        """Once an opening, before its first record: a get and a seek."""
        mark = self._store.get(META_SPACE, STAMP)
        self._floor = self._highest = max(int.from_bytes(mark or b"", "big"), self._last_stamp(now_ms))

    def _last_stamp(self, now_ms: int) -> int:
        try:
            data = self._log.last_record()
            record = unpack(data) if data is not None else None
        except DamagedData:  # readers of the log report it; writers need only the mark
            return 0
        if data is None or record is None:
            return 0
        if is_old(data):
            return min(max(record.stamp, self._future), now_ms + OLD_AHEAD_MS)
        return record.stamp

    def _forget(self, now_ms: int) -> None:
        """Forget rows whose stamp the clock has passed; if most are ahead, the lower half becomes the floor (I3)."""
        self._recent = {row: at for row, at in self._recent.items() if at >= now_ms}
        if len(self._recent) > REMEMBERED_ROWS // 2:
            floor = self._floor = max(self._floor, sorted(self._recent.values())[REMEMBERED_ROWS // 2])
            self._recent = {row: at for row, at in self._recent.items() if at > floor}
