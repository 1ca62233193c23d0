"""The clock's high-water mark at a region's last write: kept in the region's ``meta``, with its rows.

    reached -> u64        in the space ``meta``, big-endian: no timestamp that the clock gave to a row is above it

The mark is written in the batch of the first write after each STEP_MS, STEP_MS ahead, so that a power cut keeps both
mark and rows or neither.  Closing the region lowers the mark to the time of the clock.  Opening the region lets the
clock observe the mark: after a copy, a restore or a move of the folder it is another clock.  Timestamps from clients do
not count.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError
from columnar.regions.log.log_retention import META_SPACE
from columnar.storage.api import Batch, Store

CLOCK_MARK: Final = b"reached"
STEP_MS: Final = 250  # after a crash a clock may have to catch up with so much


class ClockHighWaterMark:
    """Owned by the loop's thread."""

    def __init__(self, store: Store, clock: Clock, bound_ms: int) -> None:
        """``bound_ms``: the mark in the store, which the clock has observed."""
        self._store = store
        self._clock = clock
        self.bound_ms = bound_ms

    def covering(self, batch: Batch, now_ms: int) -> int:
        """The value of ``bound_ms`` after the batch is written, whose rows the clock stamped with ``now_ms``."""
        if now_ms <= self.bound_ms:
            return self.bound_ms
        batch.put(META_SPACE, CLOCK_MARK, (now_ms + STEP_MS).to_bytes(8, "big"))
        return now_ms + STEP_MS

    @property
    def highest_ms(self) -> int:
        """An upper bound of the timestamps that the clock gave to rows."""
        return min(self.bound_ms, self._clock())

    def close(self) -> None:
        """Lower the mark before the store is closed; a failed store keeps the mark, which is still a bound."""
        highest_ms = self.highest_ms
        if highest_ms < self.bound_ms:
            batch = self._store.batch()
            batch.put(META_SPACE, CLOCK_MARK, highest_ms.to_bytes(8, "big"))
            with suppress(ColumnarError):
                self._store.write(batch)
