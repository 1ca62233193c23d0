"""Shared fsync: appends the unsynced batches of several stores to the server's log and syncs that log once.

    join --end of the loop iteration, no round running--> a round --appended--> every store's writers are answered

A store syncs its own log instead at its first sync, when its writes exceed its capture, when RocksDB is busy,
and when the server's log has no room.  When a segment is full, its stores are synced, a few at a time; then the segment
is removed.

Invariants:
    I1. At most one round is running.
    I2. The records of a store's ``take`` are in the round, or the store syncs its own log (``Line.by_itself``) before
        the next ``take`` counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Final, Protocol

from columnar.errors import ColumnarError, HostError, ProgramFault
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.storage.api import Store
from columnar.storage.capture import Capture
from columnar.storage.server_log import Written
from columnar.storage.server_log_files import RETRY_S, ServerLog

# Loop iterations between the end of an fsync and the beginning of the next.  During these iterations answers are sent,
# and the clients' next requests arrive and share the next fsync.  64 connections make 23,000 puts a second, against
# 17,000 without a pause and 16,600 with six iterations.  A single writer does not wait for these iterations.
ITERATIONS_BETWEEN_SYNCS: Final = 3
# If the loop takes this long to notice the end of an fsync, its iterations take milliseconds, and each collects the
# next writes anyway.  With reads of 8 KB from 128 connections, writers waited three iterations of 9 ms for a 2 ms
# fsync.
BUSY_S: Final = 0.001


class Line:
    """The queue of one store's writers for its fsync.  Owned by the loop."""

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
        self.gathered = 0  # writers that wait for the next sync
        self.in_sync = 0  # writers that wait for the running sync
        self.began_s = 0.0  # when the running sync began
        self.over_s = 0.0  # when the running sync ended, set by its thread; 0: not yet, or the loop has noticed
        self.until_s = 0.0  # how long to wait for the writers of the last sync
        self.next_sync: ImmediateFuture | None = None  # resolved by the next sync
        self.syncing: ImmediateFuture | None = None  # resolved by the running sync
        self.overtaken: deque[ImmediateFuture] = deque()  # of successful syncs whose end the loop has yet to notice
        self.broken: ColumnarError | None = None
        self.capture: Capture | None = None  # of a store that has been in a round of the server's log
        self.by_itself = False  # the next sync must be one of the store's own log

    def begins(self, now_s: float) -> None:
        """Begin a sync, for which the gathered writers wait from now on."""
        self.syncing, self.next_sync = self.next_sync, None
        self.in_sync, self.gathered, self.began_s, self.over_s = self.gathered, 0, now_s, 0.0

    def is_late(self) -> bool:
        """Tell whether the sync has been over for BUSY_S while the loop was busy."""
        return self.over_s > 0.0 and perf_counter() - self.over_s > BUSY_S


_log = logging.getLogger(__name__)

AGAIN_S: Final = 0.01  # after an unexpected exception
LOOP: Final = "rounds of the server's log"
SETTLED_AT_ONCE: Final = 2  # stores of a full segment that are synced concurrently, while rounds continue


class Syncs(Protocol):
    """The part of the committer that rounds use."""

    def count_sync(self) -> None: ...

    def sync_by_itself(self, store: Store) -> ImmediateFuture:
        """Return a future that resolves when the store's own log is on disk."""

    def begin_by_itself(self, store: Store, line: Line) -> None: ...

    def sync_again(self, store: Store, line: Line) -> None:
        """Sync the store's own log for the running sync, whose round failed."""

    def ended(self, store: Store, line: Line, failure: ColumnarError | None) -> None: ...

    def never_began(self, store: Store, line: Line, fault: BaseException) -> None:
        """Fail the writers of the store, whose sync cannot end because of an exception."""


class SharedRounds:
    """The rounds of the server's log.  Owned by the loop; its thread only writes the log."""

    def __init__(self, loop: asyncio.AbstractEventLoop, log: ServerLog, syncs: Syncs) -> None:
        self._loop = loop
        self._log = log
        self._syncs = syncs
        self._appender = ThreadPoolExecutor(1, thread_name_prefix="server-log")
        self._waiting: list[tuple[Store, Line]] = []
        self._members: list[tuple[Store, Line]] = []  # of the running round
        self._numbers: dict[Capture, int] = {}  # the last number of each member in the round
        self.is_running = False  # a round runs or is planned
        self._known: dict[Capture, Store] = {}
        self._to_settle: deque[Capture] = deque()
        self._settling = 0
        self._is_preparing = False
        self._is_closed = False

    def has_room(self) -> bool:
        """Tell whether a round may begin.  Has the thread prepare the log and remove full segments if needed."""
        if not self._log.is_ready:
            if not self._is_preparing:
                self._is_preparing = True
                self._appender.submit(self._prepare)
            return False
        return self._log.has_room() or (self._free() and self._log.has_room())

    def _prepare(self) -> None:
        """Make the log ready.  Runs in the thread."""
        try:
            self._log.prepare()
        except ColumnarError as error:
            _log.error("%s; every region syncs its own log", error.text)
        except Exception as fault:  # noqa: BLE001 - the log would never be made ready
            FAULTS.met(LOOP, fault)
        else:
            return
        self._loop.call_soon_threadsafe(self._loop.call_later, RETRY_S, self._may_prepare)

    def _may_prepare(self) -> None:
        self._is_preparing = False

    def join(self, store: Store, line: Line) -> None:
        self._waiting.append((store, line))
        if not self.is_running:
            self.is_running = True
            self._loop.call_soon(self._begin_after, ITERATIONS_BETWEEN_SYNCS)

    def _begin_after(self, iterations: int) -> None:
        if iterations > 0:
            self._loop.call_soon(self._begin_after, iterations - 1)
            return
        try:
            self._begin()
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            self._loop.call_later(AGAIN_S, self._begin_after, 0)  # ``is_running`` until then

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        records: list[Written] = []
        now_s = perf_counter()
        for store, line in waiting:
            try:
                taken = self._taken(store, line)
                if taken is None:
                    line.by_itself = True
                    self._syncs.begin_by_itself(store, line)
                    continue
                line.begins(now_s)
            except UNEXPECTED as fault:
                self._syncs.never_began(store, line, fault)
                continue
            records += taken
            self._members.append((store, line))
        if self._members:
            self._syncs.count_sync()
            try:
                self._appender.submit(self._append, records)
            except UNEXPECTED as fault:
                FAULTS.met(LOOP, fault)
                self._ended(0, ProgramFault(fault))
        else:
            self._next()

    def _taken(self, store: Store, line: Line) -> list[Written] | None:
        """Take the store's records; returns None if the store must sync its own log."""
        if line.by_itself or not self.has_room():
            return None
        try:
            store.settle()
            if line.capture is None:
                line.capture = store.begin_capture(self._log.era, self._log.stamp)
                if line.capture is not None:
                    self._known[line.capture] = store
                return None
        except ColumnarError:
            return None  # its own sync meets the error again, and waits or fails
        taken = line.capture.take()
        if taken:
            self._numbers[line.capture] = line.capture.last
        return taken

    def _append(self, records: list[Written]) -> None:
        """Append the round's records.  Runs in the thread."""
        segment, failure = 0, None
        try:
            segment = self._log.append(records)
        except ColumnarError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - the writers of the round must be answered
            FAULTS.met(LOOP, error)
            failure = HostError(f"the server's log failed: {error!r}")
        self._loop.call_soon_threadsafe(self._ended, segment, failure)

    def _ended(self, segment: int, failure: ColumnarError | None) -> None:
        members, self._members = self._members, []
        numbers, self._numbers = self._numbers, {}
        if failure is not None:
            _log.error("%s; meanwhile every region syncs its own log", failure.text)
            for store, line in members:
                try:
                    self._syncs.sync_again(store, line)
                except UNEXPECTED as fault:
                    self._syncs.never_began(store, line, fault)
        else:
            try:
                self._settle(self._log.round_stands(segment, numbers))
            except UNEXPECTED as fault:  # the segment stays, and the writers are answered
                FAULTS.met(LOOP, fault)
        try:
            self._next()
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            self._loop.call_later(AGAIN_S, self._begin_after, 0)
        if failure is None:
            for store, line in members:
                try:
                    self._syncs.ended(store, line, None)
                except UNEXPECTED as fault:
                    self._syncs.never_began(store, line, fault)

    def _next(self) -> None:
        self.is_running = bool(self._waiting)
        if self._waiting:
            self._loop.call_soon(self._begin_after, ITERATIONS_BETWEEN_SYNCS)

    # --- full segments --------------------------------------------------------------------------------

    def _settle(self, captures: list[Capture]) -> None:
        self._to_settle.extend(captures)
        while self._to_settle and self._settling < SETTLED_AT_ONCE:
            self._settle_one()

    def _settle_one(self) -> None:
        store = self._known.get(self._to_settle.popleft())
        if store is not None:
            self._syncs.sync_by_itself(store).add_callback(self._settled)
            self._settling += 1

    def _settled(self, _: asyncio.Future[None]) -> None:
        self._settling -= 1
        try:
            self._settle([])
            if not self._settling:
                self._free()
        except UNEXPECTED as fault:  # as above; the next round tries again
            FAULTS.met(LOOP, fault)

    def _free(self) -> bool:
        names = self._log.free()
        if names and not self._is_closed:
            self._appender.submit(self._log.remove_segments, names)
        return bool(names)

    def forget(self, line: Line) -> None:
        if line.capture is not None:
            self._known.pop(line.capture, None)

    def close(self) -> None:
        """Wait until running writes and removals have ended.  Blocks."""
        self._is_closed = True
        self._appender.shutdown(wait=True)
