"""How far the clock had come when a region was written to last: kept in its ``meta``, with its rows.

    reached -> u64        in the space ``meta``, big-endian: no timestamp that the clock gave to a row is above it

It goes into the batch of the first write after each STEP_MS, that much ahead, so that a power cut keeps it with the
rows or takes both; a closing takes it back to what was given.  An opening shows it to the clock, which is another
one where the folder was copied, restored or moved.  What clients stamp themselves does not count.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError
from columnar.regions.log_retention import META_SPACE
from columnar.storage.api import Batch, Store

REACHED: Final = b"reached"
STEP_MS: Final = 250  # what a clock may have to catch up with after a crash


class Reached:
    """Owned by the loop's thread."""

    def __init__(self, store: Store, clock: Clock, bound_ms: int) -> None:
        """``bound_ms``: what the store has, which the clock has observed."""
        self._store = store
        self._clock = clock
        self.bound_ms = bound_ms

    def covering(self, batch: Batch, now_ms: int) -> int:
        """What ``bound_ms`` is once the batch is written, whose rows the clock stamped with ``now_ms``."""
        if now_ms <= self.bound_ms:
            return self.bound_ms
        batch.put(META_SPACE, REACHED, (now_ms + STEP_MS).to_bytes(8, "big"))
        return now_ms + STEP_MS

    @property
    def highest_ms(self) -> int:
        """Nothing above it was given to a row."""
        return min(self.bound_ms, self._clock())

    def close(self) -> None:
        """Before the store is closed; one that failed keeps the bound, which holds all the same."""
        highest_ms = self.highest_ms
        if highest_ms < self.bound_ms:
            batch = self._store.batch()
            batch.put(META_SPACE, REACHED, highest_ms.to_bytes(8, "big"))
            with suppress(ColumnarError):
                self._store.write(batch)
