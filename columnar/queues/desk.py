"""The desk of one queue, at the server that owns the queue's region: decides by ``QueueState``, and writes the rows.

    push      message, its name, its delay, totals: one batch, acknowledged after its fsync; given out from then on
    pop       leases, without waiting for an fsync: they outlive the process, and a power cut gives messages out again
    settle    a commit deletes message and lease, acknowledged after its fsync; other ends of leases need none

A desk is made of the rows when a call first needs it, and forgotten when the region closes; nothing is lost with it.

Invariants:
    I1. A message is given out only after the fsync of its push.
    I2. Messages before the first one that is there are not read again, however many were committed.
    I3. A change in memory comes after the batch was taken by the store.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import time_ns
from typing import Any, Final

from columnar.errors import IllegalArgument, RegionTooBusy
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.model.queue_place import FAMILY
from columnar.queues import keys
from columnar.queues.dead_messages import move_dead
from columnar.queues.keys import LeaseCell, Message, Purge, Settings, Subqueue, Totals
from columnar.queues.lease_ends import COMMIT, EXTEND, check_end, following
from columnar.queues.queue_rows import Found, QueueRows, delete_of, put_of
from columnar.queues.queue_state import (
    QUEUE_CACHED,
    QUEUE_LEASES,
    REFILL_ROWS,
    BackgroundWork,
    Listing,
    QueueState,
    SubqueueState,
    Touched,
    Traffic,
    refill_rows,
    size_of,
)
from columnar.regions.region import STEP_MS, Region
from columnar.regions.write.applied import Applied
from columnar.runtime.immediate_future import ImmediateFuture

_log = logging.getLogger(__name__)

NAME_KEPT_MS: Final = 5 * 60 * 1_000  # after the commit a second message of the name is dropped so long
POP_BYTES: Final = 4 * 1024 * 1024  # of one reply, and one message
CALL_MESSAGES: Final = 1_000  # of one call
CALL_BYTES: Final = 16 * 1024 * 1024
REFILL_BYTES: Final = 1024 * 1024
OPENING_ROWS: Final = 256  # read in one step while a desk is made
OPENING_SUBQUEUES: Final = 16
GRACE_MS: Final = 2 * STEP_MS  # leases in rows last so much longer: a region's clock is ahead after a crash
LISTED_ROWS: Final = 16  # of a subqueue, when it is found
LOST_AT_ONCE: Final = 1_000  # messages in memory past their retention, of one pop; their rows are left to the sweep


@dataclass(frozen=True, slots=True)
class Pushed:
    """A message that is pushed."""

    message: Message
    group: bytes = b""
    priority: int = 0
    delay_ms: int = 0
    name_ms: int = 0  # how long the name keeps others away, from the push on; 0: NAME_KEPT_MS beyond the commit

    @property
    def stored(self) -> Message:
        """The message without a name that its commit would make last longer."""
        return replace(self.message, name=b"") if self.name_ms else self.message


class Desk:
    def __init__(
        self,
        region: Region,
        queue: bytes,
        acknowledge: Callable[[Region, Applied], Any],
        on_ready: Callable[[int], None],
        on_dead: Callable[[Desk], None],
    ) -> None:
        """``on_ready`` is called with the number of messages that may be given out now.

        ``on_dead`` is called when there are dead messages for another queue.

        ``acknowledge`` returns the future for which the answer to a write waits, or None."""
        self.region = region
        self.queue = queue
        self.on_ready = on_ready
        self.on_dead = on_dead
        self._acknowledge = acknowledge
        self.rows = QueueRows(region, queue)
        self.totals = Totals()
        self.traffic = Traffic(region.now_ms)
        self.purged = 0  # messages up to this number are purged, and ``sweep`` removes their rows; 0: it has
        self._last = 0  # the highest number that was given to a message or lease
        self._pending: deque[int] = deque()  # messages whose fsync is under way
        self._is_broken = False
        self.background = BackgroundWork()
        self._listing = Listing(b"", True)
        self.state = QueueState(Settings())

    @property
    def is_usable(self) -> bool:
        return self.region.is_open and not self._is_broken

    @property
    def is_idle(self) -> bool:
        return not self._pending and not self.background.running

    @property
    def size_bytes(self) -> int:
        """The memory of the desk, about."""
        return size_of(self.state)

    # --- opening -----------------------------------------------------------------------------------------

    async def load_rows(self) -> None:
        """Read what the queue's rows say, when all of it is on disk.

        The desk is not usable afterwards if the region was closed meanwhile.
        """
        if (barrier := self.region.syncs.barrier_any()) is not None:  # of an earlier desk, which was broken
            await asyncio.shield(barrier)
        if not self.region.is_open:
            return
        cells = self.rows.cells(keys.state_row(self.queue))
        if keys.PURGE in cells:
            self.purged = keys.unpack_purge(cells[keys.PURGE]).up_to
        if keys.SETTINGS in cells:
            self.state.take_settings(keys.unpack_settings(cells[keys.SETTINGS]))
        if keys.TOTALS in cells:
            self.totals = keys.unpack_totals(cells[keys.TOTALS])
        self._last = self.totals.last
        start, stop = keys.leases_span(self.queue)
        while self.region.is_open:
            rows = self.rows.first_rows(start, stop, OPENING_ROWS)
            for row, found in rows:
                cell = keys.unpack_lease(found[keys.LEASE])
                self._last = max(self._last, cell.lease)
                if cell.lease:
                    cell = replace(cell, until_ms=cell.until_ms + GRACE_MS)
                if keys.n_of(row) > self.purged:
                    self.state.load_lease(keys.n_of(row), cell)
            if len(rows) < OPENING_ROWS:
                break
            start = rows[-1][0] + b"\x00"
            await asyncio.sleep(0)
        while self.region.is_open:
            if self._list_subqueues(OPENING_SUBQUEUES):
                break
            await asyncio.sleep(0)
        if self.region.is_open:
            self.end_waits()
            if self.state.settings.dead_to and self.totals.dead:
                self.on_dead(self)

    def _list_subqueues(self, most: int) -> bool:
        """Take up to ``most`` subqueues with messages into memory; return whether no more is to be done now."""
        first, stop = keys.messages_span(self.queue)
        start, from_first = self._listing.at or first, self._listing.is_from_first
        for _ in range(most):
            if len(self.state.subqueues) >= QUEUE_CACHED:
                self._listing = Listing(start, from_first)
                return True
            row = next(self.rows.scan(start, stop), None)
            if row is None:
                self._listing = Listing(b"", from_first)
                if start == first or from_first:
                    self.state.note_listed()
                    return True
                from_first, start = True, first
                continue
            subqueue, _ = keys.place_of(self.queue, row[0])
            state = self.state.list_subqueue(subqueue)
            if state.is_dry:
                self._refill(state, LISTED_ROWS)
            start = keys.after_subqueue(self.queue, subqueue)
        self._listing = Listing(start, from_first)
        return False

    # --- requests ----------------------------------------------------------------------------------------

    def push(self, pushed: Sequence[Pushed]) -> tuple[list[int], list[bool], Any]:
        """Store messages; return their numbers, whether each is new, and the future of the fsync.

        A message whose name is there already is not stored, and the number is that of the message with the name.
        """
        self._check_push(pushed)
        now_ms = self.region.now_ms
        numbers, fresh, added = [], [], []
        rows: list[RowMutation] = []
        named: dict[bytes, int] = {}
        for one in pushed:
            name = one.message.name
            known = (named.get(name) or self.rows.named(name, self.purged)) if name else None
            if known is not None:
                numbers.append(known)
                fresh.append(False)
                continue
            n, subqueue = self._next(), Subqueue(keys.HIGHEST_PRIORITY - one.priority, one.group)
            numbers.append(n)
            fresh.append(True)
            data = keys.pack_message(one.stored)
            rows.append(put_of(keys.message_row(self.queue, subqueue, n), keys.MESSAGE, data))
            if name:
                named[name] = n
                kept = Put(FAMILY, keys.NAMED, keys.pack_named(n), ttl_ms=one.name_ms or None)
                rows.append(RowMutation(keys.name_row(self.queue, name), (kept,)))
            delay = LeaseCell(now_ms + one.delay_ms, 0, 0, subqueue, one.stored.name) if one.delay_ms else None
            if delay is not None:
                rows.append(put_of(keys.lease_row(self.queue, n), keys.LEASE, keys.pack_lease(delay)))
            added.append((n, subqueue, delay))
        if not added:  # the first message of the name may be on its way to the disk
            return numbers, fresh, self.region.syncs.barrier_any()
        old = self.totals
        totals = replace(old, last=added[-1][0], messages=old.messages + len(added), pushed=old.pushed + len(added))
        waiting = self.write_rows(rows, totals)
        self._pending.extend(n for n, _, _ in added)
        self._when_durable(waiting, added)
        return numbers, fresh, waiting

    def _check_push(self, pushed: Sequence[Pushed]) -> None:
        size = 0
        delayed = 0
        for one in pushed:
            keys.checked_message(one.message, one.group, one.priority, one.delay_ms, one.name_ms)
            size += len(one.message.body) + sum(len(key) + len(value) for key, value in one.message.headers)
            delayed += one.delay_ms > 0
            if self.state.settings.fifo and (one.priority or one.delay_ms):
                raise IllegalArgument("a FIFO queue takes no priority and no delay: its groups keep their order")
        check_call(len(pushed), size)
        if delayed and len(self.state.touched) + delayed > QUEUE_LEASES:
            name = self.queue.decode("latin-1")
            full = f"queue {name} is full of messages that are delayed or were popped: {QUEUE_LEASES} (QUEUE_LEASES)"
            raise RegionTooBusy(f"{full}; commit some, then try again")

    def _when_durable(self, waiting: Any, added: list[tuple[int, Subqueue, LeaseCell | None]]) -> None:
        if waiting is None:
            self._take(added)
            return

        def ended(done: asyncio.Future[Any]) -> None:
            if done.cancelled() or done.exception() is not None:
                self._is_broken = True  # the region closes, and opens again from what is on disk
            else:
                self._take(added)

        if isinstance(waiting, ImmediateFuture):  # before the answer leaves
            waiting.add_callback(ended)
        else:
            waiting.add_done_callback(ended)

    def _take(self, added: list[tuple[int, Subqueue, LeaseCell | None]]) -> None:
        for n, subqueue, delay in added:
            self._pending.popleft()
            if delay is None:
                self.state.push(subqueue, n)
            else:
                self.state.load_lease(n, delay)
        self.on_ready(len(added))

    def pop(self, count: int, lease_ms: int) -> list[Found]:
        """Give out up to ``count`` messages for ``lease_ms`` (0: as the settings say)."""
        if not 0 <= lease_ms <= keys.LONGEST_MS:
            raise IllegalArgument(f"a lease of {lease_ms} ms: it is between 1 and {keys.LONGEST_MS} ms")
        check_call(count, 0)
        self.region.check_writable()
        self.end_waits()
        until_ms = self.region.now_ms + (lease_ms or self.state.settings.lease_ms)
        found: list[Found] = []
        rows: list[RowMutation] = []
        size, expired, lost = 0, expired_up_to(self.state.settings), 0
        while len(found) < count and size < POP_BYTES and lost < LOST_AT_ONCE:
            self.fill_subqueues()
            touched = self.state.pop(self._next(), until_ms)
            if touched is None:
                break
            message = self.rows.message(touched.subqueue, touched.n) if touched.n > expired else None
            if message is None:
                lost += 1
                rows.append(self._lose(touched, expired))
                continue
            touched.note_name(message.name)
            size += len(message.body)
            rows.append(put_of(keys.lease_row(self.queue, touched.n), keys.LEASE, keys.pack_lease(touched.cell), False))
            found.append(found_message(touched, message))
        if rows:
            try:
                self.write_rows(rows, None)
            except BaseException:
                self._is_broken = True  # what it has in memory was not written: the next desk reads the rows
                raise
        return found

    def settle_leases(self, receipts: Sequence[bytes], what: str, ms: int, error: bytes) -> tuple[list[bool], Any]:
        """End or extend leases; return which were not lost (``find_leased``), and the future of the fsync, if any."""
        check_call(len(receipts), 0)
        check_end(what, ms)
        pairs = [keys.unpack_receipt(receipt) for receipt in receipts]
        self.region.check_writable()
        self.end_waits()
        now_ms = self.region.now_ms
        found = [self.state.find_leased(n, lease, now_ms, may_have_ended=what == COMMIT) for n, lease in pairs]
        lasting = list({one.n: one for one in found if one is not None}.values())
        answers = [one is not None for one in found]
        if not lasting:
            return answers, None
        if what == COMMIT:
            return answers, self._commit(lasting)
        rows = []
        cells = [following(touched.cell, what, now_ms + ms, error) for touched in lasting]
        for touched, cell in zip(lasting, cells, strict=True):
            rows.append(put_of(keys.lease_row(self.queue, touched.n), keys.LEASE, keys.pack_lease(cell), False))
        self.write_rows(rows, None)
        for touched, cell in zip(lasting, cells, strict=True):
            if what == EXTEND:
                self.state.extend(touched, cell.until_ms)
            else:
                self.state.end_lease(touched, cell)
        self.end_waits()
        self.on_ready(len(lasting))  # those that wait wait for another moment now
        return answers, None

    def _commit(self, lasting: list[Touched]) -> Any:
        rows: list[RowMutation] = []
        for touched in lasting:
            rows.append(delete_of(keys.message_row(self.queue, touched.subqueue, touched.n), keys.MESSAGE))
            rows.append(delete_of(keys.lease_row(self.queue, touched.n), keys.LEASE))
            if touched.name:
                kept = Put(FAMILY, keys.NAMED, keys.pack_named(touched.n), ttl_ms=NAME_KEPT_MS)
                rows.append(RowMutation(keys.name_row(self.queue, touched.name), (kept,)))
        old = self.totals
        totals = replace(old, messages=old.messages - len(lasting), committed=old.committed + len(lasting))
        waiting = self.write_rows(rows, totals)
        for touched in lasting:
            self.state.forget_message(touched)
        if self.state.settings.fifo:
            self.on_ready(len(lasting))
        return waiting

    def configure(self, **changed: Any) -> Any:
        """Change settings, by their names in ``Settings``; return the future of the fsync."""
        old = self.state.settings
        settings = keys.checked_settings(replace(old, **changed))
        if settings.dead_to == self.queue:
            raise IllegalArgument("a queue's dead messages go to another queue, or stay without dead_to")
        if settings.fifo != old.fifo and (self.totals.messages or self._pending):
            raise IllegalArgument("a queue with messages does not become FIFO, or stop being FIFO: empty it first")
        row = put_of(keys.state_row(self.queue), keys.SETTINGS, keys.pack_settings(settings))
        waiting = self._acknowledge(self.region, self.region.apply(row))
        self.state.take_settings(settings)
        if old.retention_s and not 0 < settings.retention_s <= old.retention_s:
            self.note_broken()  # messages that are kept longer now may be forgotten in memory already
        if settings.dead_to and self.totals.dead:
            self.on_dead(self)
        return waiting

    def purge(self) -> tuple[int, Any]:
        """Remove all messages, also those that are out; return their number, and the future of the fsync.

        Their rows are removed by ``sweep``.  Messages whose push is not on disk yet stay.
        """
        old, up_to = self.totals, self._pending[0] - 1 if self._pending else self._last
        totals = replace(old, last=self._last, messages=len(self._pending))
        puts = (
            Put(FAMILY, keys.PURGE, keys.pack_purge(Purge(up_to))),
            Put(FAMILY, keys.TOTALS, keys.pack_totals(totals)),
        )
        waiting = self.write_rows([RowMutation(keys.state_row(self.queue), puts)], None)
        self.totals = totals
        self.purged = up_to
        self.state = QueueState(self.state.settings)
        self.state.note_listed()  # what is left is on its way to the disk, and pushed then
        return old.messages - len(self._pending), waiting

    def end_purge(self) -> None:
        """Note that the rows of purged messages are removed: dead messages of their time may come back now."""
        self.write_rows([delete_of(keys.state_row(self.queue), keys.PURGE, False)], None)
        self.purged = 0

    def forget_queue(self) -> tuple[bool, Any]:
        """Remove the settings and totals of a queue without messages; return whether it has none, and the fsync."""
        if self.totals.messages or self.totals.dead or self._pending:
            return False, None
        everything = RowMutation(keys.state_row(self.queue), (Delete(FAMILY, None),))
        waiting = self.write_rows([everything], None)
        self.note_broken()  # the next desk begins anew
        return True, waiting

    def note_broken(self) -> None:
        """Have the next request make a new desk from the rows: memory and rows may differ."""
        self._is_broken = True

    def next_wait_ms(self) -> int | None:
        """Return in how many ms a lease or delay may end, or 0 if a pop has stopped at LOST_AT_ONCE."""
        if self.state.has_ready:
            return 0
        until_ms = self.state.waits.next_ms()
        return None if until_ms is None else max(0, until_ms - self.region.now_ms)

    # --- what a request begins with --------------------------------------------------------------------------

    def end_waits(self) -> None:
        """Make messages ready whose lease or delay has ended, and move those that are dead."""
        dead = self.state.end_waits(self.region.now_ms)
        if dead:
            move_dead(self, dead)

    def fill_subqueues(self) -> None:
        """Have messages in memory of each subqueue that may be given out."""
        state = self.state
        if not state.is_listed and state.has_room_for_subqueues:
            self._listing = Listing(self._listing.at, not self._listing.at)
            while not self._list_subqueues(OPENING_SUBQUEUES):
                pass
        for subqueue in state.subqueues_to_refill():
            self._refill(subqueue, REFILL_ROWS)

    def _refill(self, subqueue: SubqueueState, most: int) -> None:
        most = min(most, refill_rows(self.state))
        while subqueue.is_dry:
            gone = max(self.purged, expired_up_to(self.state.settings))
            start = keys.message_row(self.queue, subqueue.key, max(subqueue.last, gone) + 1)
            found: list[int] = []
            size, has_more = 0, False
            pending = self._pending[0] if self._pending else None
            for row, cells in self.rows.scan(start, keys.after_subqueue(self.queue, subqueue.key)):
                n = keys.n_of(row)
                if (pending is not None and n >= pending) or len(found) >= most or size > REFILL_BYTES:
                    has_more = True
                    break
                found.append(n)
                size += sum(map(len, cells.values()))
            self.state.refill(subqueue, found, has_more=has_more)
            if not found:
                return

    def _lose(self, touched: Touched, expired: int) -> RowMutation:
        """Forget a message past its retention, which ``sweep`` removes and counts, or one whose row is gone.

        Returns the removal of its lease.
        """
        if touched.n > expired:  # somebody has deleted it from the table
            _log.warning("message %d of queue %s is gone from the table", touched.n, self.queue.decode("latin-1"))
            self.write_rows([], replace(self.totals, messages=self.totals.messages - 1))
        self.state.forget_message(touched)
        return delete_of(keys.lease_row(self.queue, touched.n), keys.LEASE, False)

    # --- rows ------------------------------------------------------------------------------------------------

    def write_rows(self, rows: list[RowMutation], totals: Totals | None, *, synced: bool = True) -> Any:
        """Write rows and totals as one batch; return the future for the answer."""
        if totals is not None:
            rows = [*rows, put_of(keys.state_row(self.queue), keys.TOTALS, keys.pack_totals(totals), synced)]
        applied = self.region.apply_many(rows)
        if totals is not None:
            self.traffic.note_totals(self.totals, totals, self.region.now_ms)
            self.totals = totals
        return self._acknowledge(self.region, applied)

    def _next(self) -> int:
        self._last = max(self._last + 1, time_ns() // 1_000)
        return self._last


def found_message(touched: Touched, message: Message) -> Found:
    return Found(
        touched.n, touched.lease, touched.subqueue, touched.attempts, touched.until_ms, message, touched.error,
        touched.first // 1_000,
    )  # fmt: skip


def expired_up_to(settings: Settings) -> int:
    """Return the number up to which messages are past their retention now; 0 without one."""
    retention_s = settings.retention_s
    return time_ns() // 1_000 - retention_s * 1_000_000 if retention_s else 0


def check_call(count: int, size_bytes: int) -> None:
    """Raise IllegalArgument if one call has too much."""
    if not 1 <= count <= CALL_MESSAGES or size_bytes > CALL_BYTES:
        raise IllegalArgument(
            f"{count} messages with {size_bytes} bytes in one call: it has 1 to {CALL_MESSAGES} messages and at most "
            f"{CALL_BYTES} bytes"
        )
