"""The queue of one store's writers for its fsync."""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import Final

from columnar.errors import ColumnarError
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.storage.capture import Capture

# Loop iterations between the end of one fsync and the begin of the next.  In them the answers go out and the next
# requests of their clients come in and share the next fsync: 23,000 puts a second from 64 connections, against 17,000
# without (six iterations: 16,600).  A single writer does not wait for them.
ITERATIONS_BETWEEN_SYNCS: Final = 3
# A loop that takes so long to learn of the end of an fsync has iterations of milliseconds, each of which collects the
# next writes anyway: with reads of 8 KB from 128 connections, writers waited three iterations of 9 ms for a 2 ms fsync.
BUSY_S: Final = 0.001


class Line:
    """Owned by the loop."""

    __slots__ = (
        "began_s",
        "broken",
        "by_itself",
        "capture",
        "gathered",
        "in_sync",
        "next_sync",
        "over_s",
        "overtaken",
        "syncing",
        "until_s",
    )

    def __init__(self) -> None:
        self.gathered = 0  # writers that wait for the sync that has not begun
        self.in_sync = 0  # writers that wait for the sync that runs
        self.began_s = 0.0  # when that sync began
        self.over_s = 0.0  # when it was over, set by its thread; 0: it is not, or the loop has learned of it
        self.until_s = 0.0  # how long to wait for the writers of the last sync
        self.next_sync: ImmediateFuture | None = None  # resolved by the sync that has not begun
        self.syncing: ImmediateFuture | None = None  # resolved by the sync that runs
        self.overtaken: deque[ImmediateFuture] = deque()  # of successful syncs: the loop learns of their end later
        self.broken: ColumnarError | None = None
        self.capture: Capture | None = None  # of a store that has been in a round of the server's log
        self.by_itself = False  # the next sync is one of the store's own log in any case

    def begins(self, now_s: float) -> None:
        """Begin a sync: the waiting writers wait for it from now on."""
        self.syncing, self.next_sync = self.next_sync, None
        self.in_sync, self.gathered, self.began_s, self.over_s = self.gathered, 0, now_s, 0.0

    def is_late(self) -> bool:
        """Tell whether the sync has been over for BUSY_S while the loop was busy."""
        return self.over_s > 0.0 and perf_counter() - self.over_s > BUSY_S
