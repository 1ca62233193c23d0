"""Group commit: one fsync for all writes that arrived while the previous fsync ran.

A write is applied to its store on the loop, unsynced.  ``Store.gather`` buffers the write, so that several writes share
one write to RocksDB as they share the fsync.  ``Committer.durable(store)`` returns the future after which the caller
acknowledges the write.  While an fsync of a store runs in a thread, outside the interpreter lock, all further writes
are buffered for the next fsync.

Invariants:
    I1. A future is resolved only after a ``sync`` that began after the write that the future stands for.
    I2. At most one ``sync`` of a store is running.
    I3. A failed ``sync`` is never retried: all its futures, and those of later writes of the same store, fail with
        OutcomeUnknown.  The reason is PostgreSQL's "fsyncgate": the kernel may report the error once and then forget
        the pages.
    I4. An unexpected exception counts as a failed ``sync``: no writer waits for a ``sync`` that never began.

Every fsync of a write goes through the committer (design D3c).  The committer syncs the stores' own logs, or, if
several stores must be synced at once, the log of the server, whose fsync they share (``shared_rounds``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Final

from columnar.errors import ColumnarError, OutcomeUnknown, ProgramFault
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.storage.api import Store, StoreBusy
from columnar.storage.server_log_files import ServerLog
from columnar.storage.shared_rounds import ITERATIONS_BETWEEN_SYNCS, Line, SharedRounds

SYNC_THREADS: Final = 16  # stores that sync their own logs concurrently: 4 take a fifth fewer puts over 64 regions
# With few writers the loop is idle, so its iterations end before the writers write again.  Then two halves of the
# writers would alternate for ever, each waiting for the other half's fsync and for its own.  So the next fsync waits
# until all have written again, for at most WAIT_SHARE of the last fsync's duration.  It polls once per loop iteration,
# because the loop's timers have a resolution of milliseconds.
FEW: Final = 40
WAIT_SHARE: Final = 1.0
WAIT_S: Final = 0.001  # at most
# If at least this many stores are being synced, the next store shares the server's log with the stores that follow.
SHARED_FROM: Final = 2
LOOP: Final = "the committer"
BUSY_PAUSE_S: Final = 0.01  # between two attempts to write to RocksDB while its flushes lag


class Committer:
    """Group commit for the stores of a process.  Owned by the loop's thread; the threads only run ``Store.sync``."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, threads: int = SYNC_THREADS, log: ServerLog | None = None
    ) -> None:
        """Take the server's ``log``, in which stores share an fsync; without it every store syncs its own log."""
        self._loop = loop
        self._rounds = SharedRounds(loop, log, self) if log is not None else None
        self._running = 0  # stores that are syncing their own log
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="commit")
        self._lines: dict[int, Line] = {}
        self._is_closed = False
        self.syncs = 0
        self.on_broken: Callable[[Store, ColumnarError], None] | None = None

    def call_if_broken(self, on_broken: Callable[[Store, ColumnarError], None]) -> None:
        """Call ``on_broken`` with each store whose sync fails, before its writers get the error."""
        self.on_broken = on_broken

    def count_sync(self) -> None:
        self.syncs += 1

    def durable(self, store: Store) -> ImmediateFuture:
        """Return a future that resolves when all writes to ``store`` so far are on disk.

        Several writers share the future, so it must not be cancelled.
        """
        line = self._lines.get(id(store))
        if line is None:
            line = self._lines[id(store)] = Line()
        line.gathered += 1
        synced = line.next_sync
        if synced is None:
            synced = self._plan_next_sync(store, line)
        if line.next_sync is not None and line.is_late():
            self._begin_early(store, line)
        return synced

    def _plan_next_sync(self, store: Store, line: Line) -> ImmediateFuture:
        synced = line.next_sync = ImmediateFuture(self._loop)
        if line.broken is not None:
            self._fail(synced, line.broken)
        elif line.syncing is None:
            if line.in_sync == 1:
                self._begin(store, line)  # a single writer need not wait for the end of this loop iteration
            else:
                # Not at once, so that other writes of this loop iteration share the fsync, and the writes that writers
                # of the last fsync are about to send.
                self._loop.call_soon(self._begin_after, 0, line.in_sync, line.until_s, store, line)
        return synced

    def sync_by_itself(self, store: Store) -> ImmediateFuture:
        """Return a future as ``durable`` does; here the next fsync is one of the store's own log."""
        synced = self.durable(store)
        self._lines[id(store)].by_itself = True
        return synced

    def _begin(self, store: Store, line: Line) -> None:
        if line.broken is not None:  # since this was planned; the waiting writers have the error
            return
        try:
            rounds = self._rounds
            if rounds is None or self._goes_by_itself(rounds, line):
                self.begin_by_itself(store, line)
            else:
                rounds.join(store, line)
        except UNEXPECTED as fault:
            self.never_began(store, line, fault)

    def never_began(self, store: Store, line: Line, fault: BaseException) -> None:
        """Fail the writers of a sync that could not begin or end because of an exception (I4)."""
        if not self._is_closed:
            FAULTS.met(LOOP, fault)
        if line.syncing is None and line.next_sync is not None:
            line.begins(perf_counter())
        if line.syncing is not None:
            self.ended(store, line, ProgramFault(fault))

    def _goes_by_itself(self, rounds: SharedRounds, line: Line) -> bool:
        return line.by_itself or not (rounds.is_running or self._running >= SHARED_FROM) or not rounds.has_room()

    def _begin_early(self, store: Store, line: Line) -> None:
        """Begin the next sync now: the last one has ended, which the busy loop learns only after this iteration."""
        if self._rounds is not None and not self._goes_by_itself(self._rounds, line):
            return
        try:
            store.settle()
        except ColumnarError:
            return  # the callback of the sync's end meets the error again
        self._running -= 1
        over = line.syncing
        self.begin_by_itself(store, line)
        if over is not None and line.syncing is not over:
            line.overtaken.append(over)

    def begin_by_itself(self, store: Store, line: Line) -> None:
        """Write the buffered batches to RocksDB, then sync the store.

        While RocksDB is busy, the loop calls this again after a pause (D3d).
        """
        failure = None
        try:
            store.settle()
        except StoreBusy:
            self._loop.call_later(BUSY_PAUSE_S, self._begin, store, line)
            return
        except ColumnarError as error:
            failure = error
        except Exception as fault:  # noqa: BLE001 - I4
            FAULTS.met(LOOP, fault)
            failure = ProgramFault(fault)
        line.begins(perf_counter())
        if failure is not None:
            self.ended(store, line, failure)
            return
        line.by_itself = False
        if line.capture is not None:
            line.capture.take()  # this sync covers its batches
        self.sync_again(store, line)

    def sync_again(self, store: Store, line: Line) -> None:
        """Sync the store's own log for the writers that wait for the current sync."""
        self.syncs += 1
        self._running += 1
        assert line.syncing is not None, "a sync begins for those who were gathered"
        self._threads.submit(self._sync, store, line, line.syncing)

    def _sync(self, store: Store, line: Line, done: ImmediateFuture) -> None:
        """Sync the store.  Runs in a thread of the pool."""
        failure: ColumnarError | None = None
        try:
            store.sync()
        except ColumnarError as error:
            failure = error
        except Exception as fault:  # noqa: BLE001 - I4
            FAULTS.met(LOOP, fault)
            failure = ProgramFault(fault)
        else:
            line.over_s = perf_counter()  # last: from now on the next sync may begin
        self._loop.call_soon_threadsafe(self._synced, store, line, done, failure)

    def _synced(self, store: Store, line: Line, done: ImmediateFuture, failure: ColumnarError | None) -> None:
        # Earlier syncs first: an interrupted thread may report its sync after the thread of a later sync.
        while line.overtaken and not done.done():
            line.overtaken.popleft().complete()
        if done.done():
            return
        self._running -= 1
        try:
            self.ended(store, line, failure)
        except UNEXPECTED as fault:
            self.never_began(store, line, fault)

    def ended(self, store: Store, line: Line, failure: ColumnarError | None) -> None:
        done, line.syncing = line.syncing, None
        assert done is not None, "I2: a sync ended that had not begun"
        if failure is not None:
            self._broke(store, line, done, failure)
            return
        try:
            self._next(store, line)
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            line.over_s = 0.0
            if line.next_sync is not None:
                self._begin(store, line)
        done.complete()  # last: its callbacks may write again at once

    def _next(self, store: Store, line: Line) -> None:
        """Begin the next sync after a successful one: now, or when the last sync's writers have written again."""
        is_late, line.over_s = line.is_late(), 0.0
        now_s = perf_counter()
        wait_s = min(WAIT_S, WAIT_SHARE * (now_s - line.began_s)) if line.gathered + line.in_sync <= FEW else 0.0
        line.until_s = now_s + wait_s
        if line.next_sync is not None and is_late:
            self._begin(store, line)
        elif line.next_sync is not None:
            self._begin_after(ITERATIONS_BETWEEN_SYNCS, line.gathered + line.in_sync, line.until_s, store, line)

    def _broke(self, store: Store, line: Line, done: ImmediateFuture, failure: ColumnarError) -> None:
        line.broken, line.over_s = failure, 0.0
        try:
            if self.on_broken is not None:
                self.on_broken(store, failure)  # first: writers that get the error may retry at once
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
        finally:
            self._fail(done, failure)
            if line.next_sync is not None:
                self._fail(line.next_sync, failure)

    def _begin_after(self, iterations: int, wanted: int, until_s: float, store: Store, line: Line) -> None:
        if iterations > 0 or (line.gathered < wanted and perf_counter() < until_s):
            self._loop.call_soon(self._begin_after, iterations - 1, wanted, until_s, store, line)
            return
        try:
            self._begin(store, line)
        except UNEXPECTED as fault:
            self.never_began(store, line, fault)

    @staticmethod
    def _fail(future: ImmediateFuture, failure: ColumnarError) -> None:
        if not future.done():
            future.complete(OutcomeUnknown(f"the disk refused to sync: {failure.text}; read before you repeat"))

    def is_idle(self, store: Store) -> bool:
        line = self._lines.get(id(store))
        # A broken line keeps its failed future: no sync of it runs any more.
        return line is None or (line.syncing is None and (line.next_sync is None or line.broken is not None))

    def pending_sync(self, store: Store) -> ImmediateFuture | None:
        """Return the future of the last fsync of the store that is planned or running, or None if it is idle."""
        line = self._lines.get(id(store))
        return line.next_sync or line.syncing if line is not None else None

    def forget_store(self, store: Store) -> None:
        """Forget a closed store, which must be idle or broken."""
        line = self._lines.pop(id(store), None)
        if line is not None and self._rounds is not None:
            self._rounds.forget(line)

    def close(self) -> None:
        """Wait until running syncs have ended.  Blocks."""
        self._is_closed = True
        self._threads.shutdown(wait=True)
        if self._rounds is not None:
            self._rounds.close()
