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
    I4. An exception that nobody expected counts as a failed ``sync``: no writer waits for one that never began.

The one door to fsync (design D3c).  Behind it are the logs of the stores, and where several stores want to be
synced at once the log of the server, whose fsync they share (``shared_rounds``).
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
from columnar.storage.commit_line import ITERATIONS_BETWEEN_SYNCS, Line
from columnar.storage.server_log_files import ServerLog
from columnar.storage.shared_rounds import SharedRounds

SYNC_THREADS: Final = 16  # stores synced by themselves at once: with 4 a fifth fewer puts over 64 regions
# A few writers leave the loop idle, and its turns are over before they are back.  Then two halves of them would take
# turns for ever, each waiting for the other's fsync and its own: the next fsync waits until they all are back, at most
# such a share of what the last one took, in turns too, for the loop's timers know milliseconds only.
FEW: Final = 40
WAIT_SHARE: Final = 1.0
WAIT_S: Final = 0.001  # at most
# So many stores are being synced when the next one shares the server's log with those that come after it.
SHARED_FROM: Final = 2
LOOP: Final = "the committer"
BUSY_PAUSE_S: Final = 0.01  # between two tries to hand writes to an engine that is behind with flushing


class Committer:
    """Owned by the loop's thread; the threads only run ``Store.sync``."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, threads: int = SYNC_THREADS, log: ServerLog | None = None
    ) -> None:
        """``log``: the server's; without it every store is synced by itself."""
        self._loop = loop
        self._rounds = SharedRounds(loop, log, self) if log is not None else None
        self._running = 0  # stores that are being synced by themselves
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="commit")
        self._lines: dict[int, Line] = {}
        self._is_closed = False
        self.syncs = 0
        self.on_broken: Callable[[Store, ColumnarError], None] | None = None

    def durable(self, store: Store) -> ImmediateFuture:
        """Resolved when all that was written to ``store`` so far is on disk.  Shared: do not cancel."""
        line = self._lines.get(id(store))
        if line is None:
            line = self._lines[id(store)] = Line()
        line.gathered += 1
        asked = line.next_sync
        if asked is None:
            asked = self._plan_next_sync(store, line)
        if line.next_sync is not None and line.is_late():
            self._begin_early(store, line)
        return asked

    def _plan_next_sync(self, store: Store, line: Line) -> ImmediateFuture:
        asked = line.next_sync = ImmediateFuture(self._loop)
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

    def sync_by_itself(self, store: Store) -> ImmediateFuture:
        """As ``durable``, with an fsync of the store's own log."""
        asked = self.durable(store)
        self._lines[id(store)].by_itself = True
        return asked

    def _begin(self, store: Store, line: Line) -> None:
        if line.broken is not None:  # since this was planned; those who were gathered have heard of it
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
        """I4."""
        if not self._is_closed:
            FAULTS.met(LOOP, fault)
        if line.syncing is None and line.next_sync is not None:
            line.begins(perf_counter())
        if line.syncing is not None:
            self.ended(store, line, ProgramFault(fault))

    def _goes_by_itself(self, rounds: SharedRounds, line: Line) -> bool:
        return line.by_itself or not (rounds.is_running or self._running >= SHARED_FROM) or not rounds.has_room()

    def _begin_early(self, store: Store, line: Line) -> None:
        """The sync is over, and the loop too busy to hear of it before this turn's end: the next waits no longer."""
        if self._rounds is not None and not self._goes_by_itself(self._rounds, line):
            return
        try:
            store.settle()
        except ColumnarError:
            return  # whoever is told of the end meets that again
        self._running -= 1
        over = line.syncing
        self.begin_by_itself(store, line)
        if over is not None and line.syncing is not over:
            line.overtaken.append(over)

    def begin_by_itself(self, store: Store, line: Line) -> None:
        """Hand over what was gathered, then sync it; while the engine is busy, wait on the loop (design D3d)."""
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
            line.capture.take()  # it is part of this
        self.sync_again(store, line)

    def sync_again(self, store: Store, line: Line) -> None:
        """Those who wait for the sync that runs wait for one of the store itself."""
        self.syncs += 1
        self._running += 1
        assert line.syncing is not None, "a sync begins for those who were gathered"
        self._threads.submit(self._sync, store, line, line.syncing)

    def _sync(self, store: Store, line: Line, done: ImmediateFuture) -> None:
        """In a thread of the pool."""
        failure: ColumnarError | None = None
        try:
            store.sync()
        except ColumnarError as error:
            failure = error
        except Exception as fault:  # noqa: BLE001 - I4
            FAULTS.met(LOOP, fault)
            failure = ProgramFault(fault)
        else:
            line.over_s = perf_counter()  # last: from here on the next may begin
        self._loop.call_soon_threadsafe(self._synced, store, line, done, failure)

    def _synced(self, store: Store, line: Line, done: ImmediateFuture, failure: ColumnarError | None) -> None:
        # They come first: a thread that was interrupted may tell of its sync after that of a later one has.
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
        done.complete()  # last: who hears of it may write again at once

    def _next(self, store: Store, line: Line) -> None:
        """A sync went well: the next one begins now, or when those of the last one are back."""
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
                self.on_broken(store, failure)  # first: who hears of it may come again at once
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
        finally:
            self._fail(done, failure)
            if line.next_sync is not None:
                self._fail(line.next_sync, failure)

    def _begin_after(self, turns: int, wanted: int, until_s: float, store: Store, line: Line) -> None:
        if turns > 0 or (line.gathered < wanted and perf_counter() < until_s):
            self._loop.call_soon(self._begin_after, turns - 1, wanted, until_s, store, line)
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
        # A broken line keeps its failed future: nothing runs there any more.
        return line is None or (line.syncing is None and (line.next_sync is None or line.broken is not None))

    def pending_sync(self, store: Store) -> ImmediateFuture | None:
        """The last fsync of the store that is wanted or runs, whoever asked for it; None: it is idle."""
        line = self._lines.get(id(store))
        return line.next_sync or line.syncing if line is not None else None

    def forget(self, store: Store) -> None:
        """The store is closed.  Only when idle, or when it is broken."""
        line = self._lines.pop(id(store), None)
        if line is not None and self._rounds is not None:
            self._rounds.forget(line)

    def close(self) -> None:
        """Blocks until running syncs have ended."""
        self._is_closed = True
        self._threads.shutdown(wait=True)
        if self._rounds is not None:
            self._rounds.close()
