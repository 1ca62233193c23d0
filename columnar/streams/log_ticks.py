"""Ticks of a server's change logs: which region got more durable changes since when, and who waits for that.

The counter of the server rises with each group of durable changes.  A reader that found nothing more at
tick T waits until one of its regions has a later tick.  The counter begins at the server's start time, so a tick of an
earlier process of the same name is never above the present one.

Invariants:
    I1. A change that becomes durable after a reader's tick ends the reader's wait, whichever came first.
    I2. At most STREAM_WAITS wait at a time; a further reader is refused with RegionTooBusy.
    I3. No wait holds up a server that leaves or stops (``runtime.long_waits``).
    I4. A wait that a change or its timeout ends is over when it has a slot of the queue: many readers that wait for the
        same time do not come back in one iteration of the loop.  Each is in the queue once.

Cost: O(1) for a region without waiting readers.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from columnar.errors import RegionTooBusy
from columnar.regions.region import Region
from columnar.runtime.long_waits import LongWaits
from columnar.streams.reader_queue import ReaderQueue

STREAM_WAITS: Final = 10_000


class LogTicks:
    def __init__(self, queue: ReaderQueue, waits: LongWaits | None = None) -> None:
        """Readers that changes have woken go on through ``queue``."""
        self._queue = queue
        self._tick = self._first = time.time_ns() // 1_000  # no wait is for a tick below ``_first``
        self._of_region: dict[int, int] = {}  # by region id, as long as the region is open
        self._waiting: dict[int, set[asyncio.Future[bool]]] = {}
        self._readers: set[asyncio.Future[bool]] = set()
        self._queued: dict[asyncio.Future[bool], bool] = {}  # of them; whether a change has brought it there
        self.waits = waits or LongWaits()
        self.waits.on_end(self._end_waits)

    @property
    def waiting_count(self) -> int:
        return len(self._readers)

    @property
    def tick(self) -> int:
        return self._tick

    def note_durable(self, region: Region) -> None:
        """Note that more of the region's log is durable."""
        region_id = region.info.region_id
        self._tick += 1
        self._of_region[region_id] = self._tick
        if self._waiting:
            self.wake((region_id,))

    def wake(self, region_ids: Iterable[int]) -> None:
        """End the waits for these regions: they have changed, or are replaced."""
        for region_id in region_ids:
            for waiting in self._waiting.pop(region_id, ()):
                self._enqueue(waiting, True)

    def _enqueue(self, waiting: asyncio.Future[bool], is_woken: bool) -> None:
        if waiting.done():
            return
        is_new = waiting not in self._queued
        self._queued[waiting] = is_woken or self._queued.get(waiting, False)
        if is_new:
            self._queue.enqueue(waiting)

    def _end_waits(self) -> None:
        for waiting in self._readers:
            if not waiting.done():
                waiting.set_result(False)

    def forget_region(self, region_id: int) -> None:
        """Forget the ticks of a region that is closing: every reader at an earlier tick looks again once."""
        if self._of_region.pop(region_id, None) is not None:
            self._tick += 1
            self._first = self._tick

    async def wait_later(
        self,
        region_ids: Iterable[int],
        tick: int,
        timeout_s: float,
        ends: Callable[[asyncio.Future[bool]], Callable[[], None]] | None = None,
    ) -> bool:
        """Wait until a region has a later tick or the timeout is over, then for a slot; return False if none has.

        ``ends`` may have something else end the wait as well; it gets the future to complete, and returns a function
        that undoes that.
        """
        ids, of_region = tuple(region_ids), self._of_region
        if not self._first <= tick <= self._tick or any(of_region.get(one, 0) > tick for one in ids):
            await self._queue.wait_slot()
            return True
        if self.waiting_count >= STREAM_WAITS:
            raise RegionTooBusy(f"{STREAM_WAITS} readers wait for changes at this server; read again later")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        undo = ends(done) if ends is not None else None
        for one in ids:
            self._waiting.setdefault(one, set()).add(done)
        self._readers.add(done)
        ends_s = loop.time() + self.waits.bounded_s(timeout_s)  # uvloop's handle of a wait of 0 s has no time
        timer = loop.call_at(ends_s, self._enqueue, done, False)
        try:
            return await done and self._queued.get(done, True)
        finally:
            timer.cancel()
            self._readers.discard(done)
            self._queued.pop(done, None)
            for one in ids:
                waiting = self._waiting.get(one)
                if waiting is not None:
                    waiting.discard(done)
                    if not waiting:
                        del self._waiting[one]
            if undo is not None:
                undo()
