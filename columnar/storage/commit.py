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
from typing import Final

from columnar.errors import ColumnarError, OutcomeUnknown
from columnar.storage.api import Store, StoreBusy

SYNC_THREADS: Final = 4
BUSY_PAUSE_S: Final = 0.01  # between two tries to hand writes to an engine that is behind with flushing


class _Line:
    """One store's queue for its fsync; owned by the loop."""

    __slots__ = ("broken", "gathering", "syncing")

    def __init__(self) -> None:
        self.gathering: asyncio.Future[None] | None = None  # resolved by the sync that has not begun
        self.syncing: asyncio.Future[None] | None = None  # resolved by the sync that runs
        self.broken: ColumnarError | None = None


class Committer:
    """Owned by the loop's thread; the threads only run ``Store.sync``."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int = SYNC_THREADS) -> None:
        self._loop = loop
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="commit")
        self._lines: dict[int, _Line] = {}
        self.syncs = 0
        self.on_broken: Callable[[Store, ColumnarError], None] | None = None

    def durable(self, store: Store) -> asyncio.Future[None]:
        """Resolved when all that was written to ``store`` so far is on disk.  Shared: do not cancel."""
        line = self._lines.get(id(store))
        if line is None:
            line = self._lines[id(store)] = _Line()
        if line.gathering is None:
            line.gathering = self._loop.create_future()
            if line.broken is not None:
                self._fail(line.gathering, line.broken)
            elif line.syncing is None:
                # Not at once: what else this turn of the loop writes shares the fsync.
                self._loop.call_soon(self._begin, store, line)
        return line.gathering

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
            line.broken = failure
            self._fail(done, failure)
            if line.gathering is not None:
                self._fail(line.gathering, failure)
            if self.on_broken is not None:
                self.on_broken(store, failure)
            return
        done.set_result(None)
        if line.gathering is not None:
            self._begin(store, line)

    @staticmethod
    def _fail(future: asyncio.Future[None], failure: ColumnarError) -> None:
        if not future.done():
            future.set_exception(OutcomeUnknown(f"the disk refused to sync: {failure.text}; read before you repeat"))
            future.exception()  # marked as seen: a write that nobody waits for must not warn

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
