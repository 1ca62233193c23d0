"""Waits for records of partitions, wherever these are: one call for each partition, however many readers wait.

A watch is a call at the owner of a partition that ends when the partition has records from an offset on.  It begins
with the first reader that waits, begins again while readers wait, and ends WATCH_MS after the last one at the latest.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Final

from columnar.errors import RegionTooBusy
from columnar.model.topic import Waited
from columnar.wire.local_calls import CallFailed

WATCH_MS: Final = 10_000
WATCHES: Final = 10_000  # of one server
CHECK_S: Final = 1.0  # whether the client of a reader is still there
FAILED_S: Final = 1.0  # for which readers wait after a watch that failed, before they look for themselves

# (has_gone, key, offset, least_bytes, wait_ms) -> how much there is
Request = Callable[[Callable[[], bool], bytes, int, int, int], Awaitable[Waited]]


class _Watch:
    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.readers: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    def begin_task(self, watching: Coroutine[None, None, None]) -> None:
        self._task = asyncio.ensure_future(watching)  # kept, so that it is not collected

    def rise(self, offset: int) -> None:
        """Note a new high watermark, and wake the readers."""
        self.offset = offset
        self.wake()

    def wake(self) -> None:
        for event in self.readers:
            event.set()


class TopicWatches:
    def __init__(self) -> None:
        self._watches: dict[bytes, _Watch] = {}

    async def wait_for_data(
        self,
        request: Request,
        has_gone: Callable[[], bool],
        positions: list[tuple[bytes, int]],
        min_bytes: int,
        deadline_s: float,
    ) -> None:
        """Wait until the partitions together have ``min_bytes`` from their offsets on, or until ``deadline_s``."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        entered: set[_Watch] = set()
        try:
            while True:
                event.clear()
                found = await asyncio.gather(
                    *(request(has_gone, key, offset, min_bytes, 0) for key, offset in positions)
                )
                if any(one.error for one in found) or sum(one.size_bytes for one in found) >= min_bytes:
                    return
                for (key, _), one in zip(positions, found, strict=True):
                    entered.add(self._enter(request, key, one.high_watermark, event))
                while not event.is_set():
                    left_s = deadline_s - loop.time()
                    if left_s <= 0 or has_gone():
                        return
                    with suppress(TimeoutError):
                        await asyncio.wait_for(event.wait(), min(left_s, CHECK_S))
        finally:
            for watch in entered:
                watch.readers.discard(event)

    def _enter(self, request: Request, key: bytes, high_watermark: int, event: asyncio.Event) -> _Watch:
        watch = self._watches.get(key)
        if watch is None:
            if len(self._watches) >= WATCHES:
                raise RegionTooBusy(f"readers wait for {WATCHES} partitions at this server; try later")
            watch = self._watches[key] = _Watch(high_watermark)
            watch.begin_task(self._watch(request, key, watch))
        watch.readers.add(event)
        if watch.offset > high_watermark:  # the reader has not seen what the watch has seen
            event.set()
        return watch

    async def _watch(self, request: Request, key: bytes, watch: _Watch) -> None:
        pause_s = 0.0
        try:
            await self._follow(request, key, watch, partial(_has_no_readers, watch))
        except CallFailed:  # readers look for themselves then, and get the error, but not again and again at once
            pause_s = FAILED_S
        finally:
            asyncio.get_running_loop().call_later(pause_s, self._end_watch, key, watch)

    def _end_watch(self, key: bytes, watch: _Watch) -> None:
        del self._watches[key]
        watch.wake()

    async def _follow(self, request: Request, key: bytes, watch: _Watch, is_over: Callable[[], bool]) -> None:
        while watch.readers:
            found = await request(is_over, key, watch.offset, 1, WATCH_MS)
            if found.error:
                return
            if found.high_watermark > watch.offset:
                watch.rise(found.high_watermark)


def _has_no_readers(watch: _Watch) -> bool:
    return not watch.readers
