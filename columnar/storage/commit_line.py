"""One store's queue for its fsync."""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import Final

from columnar.errors import ColumnarError
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.storage.capture import Capture

# Turns of the loop between the end of one fsync and the begin of the next.  In them the answers go out
# and the next requests of those who got them come in and share it: 23,000 puts a second from 64
# connections where it was 17,000 with none (six turns: 16,600).  A single writer never waits here.
ITERATIONS_BETWEEN_SYNCS: Final = 3
# A loop that takes so long to hear of the end of an fsync has turns of milliseconds, and in each the next writes are
# gathered anyhow: reads of 8 KB from 128 connections had them wait three turns of 9 ms for their fsync, which took 2.
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
        self.gathered = 0  # who asked for the sync that has not begun
        self.in_sync = 0  # who asked for the one that runs
        self.began_s = 0.0  # when that began
        self.over_s = 0.0  # when it was over, as its thread says; 0: it is not, or the loop has heard of it
        self.until_s = 0.0  # how long those of the last one are waited for
        self.next_sync: ImmediateFuture | None = None  # resolved by the sync that has not begun
        self.syncing: ImmediateFuture | None = None  # resolved by the sync that runs
        self.overtaken: deque[ImmediateFuture] = deque()  # of syncs that went well: the loop hears of them later
        self.broken: ColumnarError | None = None
        self.capture: Capture | None = None  # of a store that has been in a round of the server's log
        self.by_itself = False  # the next sync is one of the store, whatever others do

    def begins(self, now_s: float) -> None:
        """Who was gathered waits for the sync that begins now."""
        self.syncing, self.next_sync = self.next_sync, None
        self.in_sync, self.gathered, self.began_s, self.over_s = self.gathered, 0, now_s, 0.0

    def is_late(self) -> bool:
        """The sync has been over for some time, and the loop busy all the while."""
        return self.over_s > 0.0 and perf_counter() - self.over_s > BUSY_S
