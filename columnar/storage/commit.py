"""Group commit: writes in, one fsync for all that arrived meanwhile, acknowledgements out.

A write is applied to its store on the loop, unsynced (``Store.gather``: it will share the engine's
write as it shares the fsync); whoever wants to acknowledge it asks ``Committer.durable(store)`` for
a future.  While one fsync of a store runs in a thread, outside the interpreter lock, all further
writes gather for the next one.

Invariants:
    I1. A future is resolved only after a ``sync`` that began after the write it stands for.
    I2. At most one ``sync`` of a store is running.
    I3. A failed ``sync`` is never retried and resolves nothing: all its futures, and those of
        later writes of the same store, fail with OutcomeUnknown (PostgreSQL's "fsyncgate":
        the kernel may report the error once and then forget the pages).

The one door to fsync (design D3c): a log of the whole server can replace what is behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Final

from columnar.errors import ColumnarError, OutcomeUnknown
from columnar.prompt_future import PromptFuture
from columnar.storage.api import Store, StoreBusy

SYNC_THREADS: Final = 16  # stores synced at once: with 4 a fifth fewer puts over 64 regions
# Turns of the loop between the end of one fsync and the begin of the next.  In them the answers go out
# and the next requests of those who got them come in and share it: 23,000 puts a second from 64
# connections where it was 17,000 with none (six turns: 16,600).  A single writer never waits here.
TURNS_BETWEEN_SYNCS: Final = 3
# A few writers leave the loop idle, and its turns are over before they are back.  Then two halves of them would take
# turns for ever, each waiting for the other's fsync and its own: the next fsync waits until they all are back, at most
# such a share of what the last one took, in turns too, for the loop's timers know milliseconds only.
FEW: Final = 40
WAIT_SHARE: Final = 1.0
WAIT_S: Final = 0.001  # at most
BUSY_PAUSE_S: Final = 0.01  # between two tries to hand writes to an engine that is behind with flushing


class _Line:
    """One store's queue for its fsync; owned by the loop."""

    __slots__ = ("began_s", "broken", "gathered", "gathering", "in_sync", "syncing", "until_s")

    def __init__(self) -> None:
        self.gathered = 0  # who asked for the sync that has not begun
        self.in_sync = 0  # who asked for the one that runs
        self.began_s = 0.0  # when that began
        self.until_s = 0.0  # how long those of the last one are waited for
        self.gathering: PromptFuture | None = None  # resolved by the sync that has not begun
        self.syncing: PromptFuture | None = None  # resolved by the sync that runs
        self.broken: ColumnarError | None = None


class Committer:
    """Owned by the loop's thread; the threads only run ``Store.sync``."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int = SYNC_THREADS) -> None:
        self._loop = loop
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="commit")
        self._lines: dict[int, _Line] = {}
        self.syncs = 0
        self.on_broken: Callable[[Store, ColumnarError], None] | None = None

    def durable(self, store: Store) -> PromptFuture:
        """Resolved when all that was written to ``store`` so far is on disk.  Shared: do not cancel."""
        line = self._lines.get(id(store))
        if line is None:
            line = self._lines[id(store)] = _Line()
        line.gathered += 1
        if line.gathering is not None:
            return line.gathering
        asked = line.gathering = PromptFuture(self._loop)
        if line.broken is not None:
            self._fail(asked, line.broken)
        elif line.syncing is None:
            if line.in_sync == 1:
                self._begin(store, line)  # a writer that is alone need not wait for the end of this turn
            else:
                # Not at once: what else this turn of the loop writes shares the fsync, and what its fellows of the
                # last one write that are still on their way.
                self._loop.call_soon(self._begin_after, 0, line.in_sync, line.until_s, store, line)
        return asked

    def _begin(self, store: Store, line: _Line) -> None:
        """Hand over what was gathered, then sync it; while the engine is busy, wait on the loop (design D3d)."""
        failure = None
        try:
            store.settle()
        except StoreBusy:
            self._loop.call_later(BUSY_PAUSE_S, self._begin, store, line)
            return
        except ColumnarError as error:
            failure = error
        line.syncing, line.gathering = line.gathering, None
        line.in_sync, line.gathered, line.began_s = line.gathered, 0, perf_counter()
        if failure is not None:
            self._ended(store, line, failure)
            return
        self.syncs += 1
        self._threads.submit(self._sync, store, line)

    def _sync(self, store: Store, line: _Line) -> None:
        """In a thread of the pool."""
        failure: ColumnarError | None = None
        try:
            store.sync()
        except ColumnarError as error:
            failure = error
        self._loop.call_soon_threadsafe(self._ended, store, line, failure)

    def _ended(self, store: Store, line: _Line, failure: ColumnarError | None) -> None:
        done, line.syncing = line.syncing, None
        assert done is not None, "I2: a sync ended that had not begun"
        if failure is not None:
            self._broke(store, line, done, failure)
            return
        now_s = perf_counter()
        wait_s = min(WAIT_S, WAIT_SHARE * (now_s - line.began_s)) if line.gathered + line.in_sync <= FEW else 0.0
        line.until_s = now_s + wait_s
        if line.gathering is not None:
            self._begin_after(TURNS_BETWEEN_SYNCS, line.gathered + line.in_sync, line.until_s, store, line)
        done.resolve()  # last: who hears of it may write again at once

    def _broke(self, store: Store, line: _Line, done: PromptFuture, failure: ColumnarError) -> None:
        line.broken = failure
        try:
            if self.on_broken is not None:
                self.on_broken(store, failure)  # first: who hears of it may come again at once
        finally:
            self._fail(done, failure)
            if line.gathering is not None:
                self._fail(line.gathering, failure)

    def _begin_after(self, turns: int, wanted: int, until_s: float, store: Store, line: _Line) -> None:
        if turns > 0 or (line.gathered < wanted and perf_counter() < until_s):
            self._loop.call_soon(self._begin_after, turns - 1, wanted, until_s, store, line)
        else:
            self._begin(store, line)

    @staticmethod
    def _fail(future: PromptFuture, failure: ColumnarError) -> None:
        if not future.done():
            future.resolve(OutcomeUnknown(f"the disk refused to sync: {failure.text}; read before you repeat"))

    def is_idle(self, store: Store) -> bool:
        line = self._lines.get(id(store))
        # A broken line keeps its failed future: nothing runs there any more.
        return line is None or (line.syncing is None and (line.gathering is None or line.broken is not None))

    def forget(self, store: Store) -> None:
        """The store is closed.  Only when idle, or when it is broken."""
        self._lines.pop(id(store), None)

    def close(self) -> None:
        """Blocks until running syncs have ended."""
        self._threads.shutdown(wait=True)
