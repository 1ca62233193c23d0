"""(pure) Which message of a queue is given out next: subqueues of ready messages, leases, delays.

A subqueue has the messages of one group with one priority.  The highest priority goes first, and within it the
subqueues take turns, so a group with many messages delays no other by more than its share.  A subqueue has its first
messages in memory; the rest are read from behind the last one, when it is empty (``subqueues_to_refill``).

    ready      in its subqueue, in memory or not
    held       popped, until it is committed or rolled back, or its lease ends; then it is ready again, or dead
    delayed    nobody holds it, and it is ready at a time

Invariants (``check_invariants``):
    I1. A message has at most one holder, and one only while its lease lasts.
    I2. If the queue is FIFO, a group has at most one message that is held or delayed, and its ready messages wait.
    I3. At most QUEUE_LEASES messages have leases and delays.  At most QUEUE_CACHED subqueues are in memory, with
        QUEUE_CACHED messages besides the first of each, and one read of REFILL_ROWS.
    I4. A ring has exactly the subqueues of its priority whose first message may be given out.

Knows nothing of rows, regions and clocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from columnar.flows.rolling_rate import RollingRate
from columnar.queues.keys import LeaseCell, Settings, Subqueue, Totals

QUEUE_CACHED: Final = 10_000
QUEUE_LEASES: Final = 120_000
SUBQUEUE_CACHED: Final = 100  # of one subqueue, so that a large subqueue leaves room to others
REFILL_ROWS: Final = 256  # messages of a subqueue that are read from the store at once
STALE_TIMERS: Final = 1_000
STATE_BYTES: Final = 8 * 1024  # of a queue without messages; these are about what Python needs
SUBQUEUE_BYTES: Final = 700
READY_BYTES: Final = 48
TOUCHED_BYTES: Final = 600  # without the error
DEAD_AT_ONCE: Final = 16  # of one call; their bodies are in memory together


class SubqueueState:
    """The ready messages of a subqueue that are in memory."""

    __slots__ = ("has_more", "in_ring", "key", "last", "ready")

    def __init__(self, key: Subqueue, has_more: bool) -> None:
        self.key = key
        self.ready: list[int] = []  # a heap
        self.last = 0  # messages up to this one are in memory, or were given out
        self.has_more = has_more  # messages above ``last`` are in the store alone
        self.in_ring = False

    def take_up_to(self, last: int) -> None:
        """Note that messages up to ``last`` are in memory."""
        self.last = last

    def note_more(self, has_more: bool) -> None:
        self.has_more = has_more

    def enter_ring(self) -> None:
        self.in_ring = True

    def leave_ring(self) -> None:
        self.in_ring = False

    @property
    def is_dry(self) -> bool:
        """Whether messages of the store come before those in memory."""
        return self.has_more and (not self.ready or self.ready[0] > self.last)


class Touched:
    """A message that was popped or delayed, until it is committed."""

    __slots__ = ("attempts", "error", "first", "is_ready", "lease", "n", "name", "subqueue", "until_ms")

    def __init__(self, n: int, cell: LeaseCell) -> None:
        self.n = n
        self.subqueue = cell.subqueue
        self.until_ms = cell.until_ms
        self.attempts = cell.attempts
        self.lease = cell.lease
        self.name = cell.name
        self.error = cell.error
        self.first = cell.first
        self.is_ready = False  # in its subqueue again

    def lease_to(self, lease: int, until_ms: int) -> None:
        """Give the message to the holder of ``lease``."""
        self.attempts += 1
        self.first = self.first or lease
        self.lease, self.until_ms, self.is_ready = lease, until_ms, False

    def delay_to(self, until_ms: int, attempts: int, error: bytes) -> None:
        """End the lease."""
        self.lease, self.until_ms, self.attempts, self.error = 0, until_ms, attempts, error

    def extend_to(self, until_ms: int) -> None:
        self.until_ms = until_ms

    def note_ready(self) -> None:
        self.is_ready = True

    def note_name(self, name: bytes) -> None:
        self.name = name

    @property
    def cell(self) -> LeaseCell:
        return LeaseCell(
            self.until_ms, self.attempts, self.lease, self.subqueue, self.name, self.error, self.first
        )  # fmt: skip


class Waits:
    """The messages that were popped or delayed, and how long those of them wait that are not ready."""

    def __init__(self) -> None:
        self.touched: dict[int, Touched] = {}
        self.in_flight = 0
        self.delayed = 0
        self._busy: dict[bytes, int] = {}  # groups with messages that are held or delayed, with their number
        self._timers: list[tuple[int, int]] = []  # a heap of until_ms and n; some are outdated

    def is_busy(self, group: bytes) -> bool:
        return group in self._busy

    def begin_wait(self, touched: Touched) -> None:
        if touched.lease:
            self.in_flight += 1
        else:
            self.delayed += 1
        group = touched.subqueue.group
        self._busy[group] = self._busy.get(group, 0) + 1
        self.set_timer(touched)

    def end_wait(self, touched: Touched) -> None:
        if touched.lease:
            self.in_flight -= 1
        else:
            self.delayed -= 1
        group = touched.subqueue.group
        left = self._busy[group] - 1
        if left:
            self._busy[group] = left
        else:
            del self._busy[group]

    def set_timer(self, touched: Touched) -> None:
        if len(self._timers) > 2 * len(self.touched) + STALE_TIMERS:
            self._timers = [(one.until_ms, n) for n, one in self.touched.items() if not one.is_ready]
            heapify(self._timers)
        heappush(self._timers, (touched.until_ms, touched.n))

    def next_expired(self, now_ms: int) -> Touched | None:
        """Return a message whose wait has ended; it may come again, if its wait was begun several times."""
        while self._timers and self._timers[0][0] <= now_ms:
            until_ms, n = heappop(self._timers)
            touched = self.touched.get(n)
            if touched is not None and not touched.is_ready and touched.until_ms == until_ms:
                return touched
        return None

    def next_ms(self) -> int | None:
        """Return when a lease or delay may end next."""
        return self._timers[0][0] if self._timers else None

    def check_invariants(self) -> None:
        waiting = [one for one in self.touched.values() if not one.is_ready]
        assert self.in_flight == sum(one.lease != 0 for one in waiting), "I1"
        assert self.delayed == sum(one.lease == 0 for one in waiting), "I1"
        assert len(self.touched) <= QUEUE_LEASES, "I3"


class QueueState:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.waits = Waits()
        self.touched = self.waits.touched
        self.subqueues: dict[Subqueue, SubqueueState] = {}
        self.is_listed = False  # every subqueue with messages is in memory
        self.cached = 0  # ready messages in memory
        self._rings: dict[int, deque[SubqueueState]] = {}  # by rank
        self._dry: dict[Subqueue, SubqueueState] = {}  # subqueues whose next message is in the store alone
        self.error_bytes = 0  # of all touched messages

    def take_settings(self, settings: Settings) -> None:
        """Obey the settings from now on; ``fifo`` changes only while there is no message."""
        self.settings = settings

    def note_listed(self) -> None:
        self.is_listed = True

    # --- what is there ---------------------------------------------------------------------------------

    def load_lease(self, n: int, cell: LeaseCell) -> None:
        """Take a lease, a delay, or the attempts of a message, as they are in the store, or as they were pushed."""
        touched = self.touched[n] = Touched(n, cell)
        self.error_bytes += len(cell.error)
        self._begin_wait(touched)

    def push(self, subqueue: Subqueue, n: int) -> None:
        """Take a message that was pushed, with a higher ``n`` than all before it."""
        state = self.subqueues.get(subqueue)
        if state is None:
            if len(self.subqueues) >= QUEUE_CACHED:
                self.is_listed = False
            if not self.is_listed:
                return
            state = self.subqueues[subqueue] = SubqueueState(subqueue, False)
        if n <= state.last:
            return
        if state.has_more or len(state.ready) >= SUBQUEUE_CACHED or (state.ready and self.cached >= QUEUE_CACHED):
            state.note_more(True)
            self._note_dry(state)
            return
        state.take_up_to(n)
        self._add_ready(state, n)

    @property
    def has_room_for_subqueues(self) -> bool:
        return len(self.subqueues) < QUEUE_CACHED // 2

    def list_subqueue(self, subqueue: Subqueue) -> SubqueueState:
        """Return the subqueue, which has messages in the store; it is read by ``refill``."""
        state = self.subqueues.get(subqueue)
        if state is None:
            state = self.subqueues[subqueue] = SubqueueState(subqueue, False)
            state.note_more(True)
            self._note_dry(state)
        return state

    def subqueues_to_refill(self) -> list[SubqueueState]:
        """Return the subqueues that may be given out, and whose next message is in the store alone."""
        return [state for state in self._dry.values() if self._is_free(state)] if self._dry else []

    def refill(self, state: SubqueueState, found: Iterable[int], *, has_more: bool) -> None:
        """Take the next messages of the subqueue behind ``last``; ``has_more``: there are others behind them."""
        for n in found:
            state.take_up_to(n)
            if n not in self.touched:
                self._add_ready(state, n)
        state.note_more(has_more)
        self._note_dry(state)
        self._forget_if_empty(state)

    # --- requests ----------------------------------------------------------------------------------------

    @property
    def has_ready(self) -> bool:
        """Whether ``pop`` returns a message of those in memory."""
        return bool(self._rings) and len(self.touched) < QUEUE_LEASES

    def pop(self, lease: int, until_ms: int) -> Touched | None:
        """Give out the next message, to the holder of ``lease`` until ``until_ms``; None if none is ready in memory."""
        for rank in sorted(self._rings):
            ring = self._rings[rank]
            for _ in range(len(ring)):
                state = ring[0]
                n = state.ready[0]
                touched = self.touched.get(n)
                if touched is None and len(self.touched) >= QUEUE_LEASES:
                    ring.rotate(-1)
                    continue
                ring.popleft()
                state.leave_ring()
                heappop(state.ready)
                self.cached -= 1
                if touched is None:
                    touched = self.touched[n] = Touched(n, LeaseCell(0, 0, 0, state.key))
                touched.lease_to(lease, until_ms)
                self._begin_wait(touched)
                self._after_taking(state)
                return touched
        return None

    def find_leased(self, n: int, lease: int, now_ms: int, *, may_have_ended: bool = False) -> Touched | None:
        """Return the message if the lease lasts, or with ``may_have_ended`` as long as nobody else has got it."""
        touched = self.touched.get(n)
        if touched is None or not lease or touched.lease != lease:
            return None
        return touched if may_have_ended or (not touched.is_ready and touched.until_ms > now_ms) else None

    def forget_message(self, touched: Touched) -> None:
        """Forget a message that was popped or is delayed: it is committed, or dead."""
        if touched.is_ready:
            state = self.subqueues[touched.subqueue]
            state.ready.remove(touched.n)
            heapify(state.ready)
            self.cached -= 1
            if state.in_ring and not state.ready:
                self._rings[state.key.rank].remove(state)
                state.leave_ring()
            self._after_taking(state)
        else:
            self.waits.end_wait(touched)
        del self.touched[touched.n]
        self.error_bytes -= len(touched.error)
        self._free(touched)

    def extend(self, touched: Touched, until_ms: int) -> None:
        touched.extend_to(until_ms)
        self.waits.set_timer(touched)

    def end_lease(self, touched: Touched, cell: LeaseCell) -> None:
        """End the lease; the message is delayed as ``cell`` says, and then ``end_waits`` makes it ready."""
        self.waits.end_wait(touched)
        self.error_bytes += len(cell.error) - len(touched.error)
        touched.delay_to(cell.until_ms, cell.attempts, cell.error)
        self._begin_wait(touched)

    def end_waits(self, now_ms: int) -> list[Touched]:
        """Make messages ready whose lease or delay has ended; return those that are dead instead, still held.

        At most DEAD_AT_ONCE are returned; the next call goes on behind them.
        """
        dead: list[Touched] = []
        while len(dead) < DEAD_AT_ONCE and (touched := self.waits.next_expired(now_ms)) is not None:
            if touched in dead:
                continue
            if 0 < self.settings.attempts <= touched.attempts:
                dead.append(touched)
                continue
            self.waits.end_wait(touched)
            touched.note_ready()
            state = self.subqueues.get(touched.subqueue)
            if state is None:
                state = self.subqueues[touched.subqueue] = SubqueueState(touched.subqueue, False)
                state.note_more(not self.is_listed)
            self._add_ready(state, touched.n)
            self._free(touched)
        return dead

    # --- subqueues -----------------------------------------------------------------------------------------------

    def _is_free(self, state: SubqueueState) -> bool:
        return not self.settings.fifo or not self.waits.is_busy(state.key.group)

    def _add_ready(self, state: SubqueueState, n: int) -> None:
        heappush(state.ready, n)
        self.cached += 1
        self._note_dry(state)
        self._enter_ring(state)

    def _note_dry(self, state: SubqueueState) -> None:
        if state.is_dry:
            self._dry[state.key] = state
        else:
            self._dry.pop(state.key, None)

    def _enter_ring(self, state: SubqueueState) -> None:
        if not state.in_ring and state.ready and self._is_free(state):
            self._rings.setdefault(state.key.rank, deque()).append(state)
            state.enter_ring()

    def _after_taking(self, state: SubqueueState) -> None:
        """Put the subqueue behind the others, unless it has nothing that may be given out."""
        self._enter_ring(state)
        if not self._rings.get(state.key.rank, True):
            del self._rings[state.key.rank]
        self._note_dry(state)
        self._forget_if_empty(state)

    def _forget_if_empty(self, state: SubqueueState) -> None:
        if not state.ready and not state.has_more:
            self.subqueues.pop(state.key, None)

    # --- waits -----------------------------------------------------------------------------------------------

    def _begin_wait(self, touched: Touched) -> None:
        self.waits.begin_wait(touched)
        if not self.settings.fifo:
            return
        for rank, ring in list(self._rings.items()):  # a FIFO queue has one priority
            state = self.subqueues.get(Subqueue(rank, touched.subqueue.group))
            if state is not None and state.in_ring:
                ring.remove(state)
                state.leave_ring()
                if not ring:
                    del self._rings[rank]

    def _free(self, touched: Touched) -> None:
        """Let the group's subqueue give out its next message."""
        if self.settings.fifo and not self.waits.is_busy(touched.subqueue.group):
            state = self.subqueues.get(touched.subqueue)
            if state is not None:
                self._enter_ring(state)

    def check_invariants(self) -> None:
        ready = [(state, n) for state in self.subqueues.values() for n in state.ready]
        assert self.cached == len(ready), "I3"
        assert self.error_bytes == sum(len(one.error) for one in self.touched.values()), "I3"
        waiting = [one for one in self.touched.values() if not one.is_ready]
        self.waits.check_invariants()
        assert not {one.n for one in waiting} & {n for _, n in ready}, "I1"
        if self.settings.fifo:
            groups = [one.subqueue.group for one in waiting]
            assert len(set(groups)) == len(groups), "I2"
        assert len(self.subqueues) <= QUEUE_CACHED + len(self.touched), "I3"
        assert self.cached <= QUEUE_CACHED + REFILL_ROWS + len(self.subqueues) + len(self.touched), "I3"
        for state in self.subqueues.values():
            assert state.in_ring == bool(state.ready and self._is_free(state)), "I4"
            assert state.in_ring == (state in self._rings.get(state.key.rank, ())), "I4"
            assert (state.key in self._dry) == state.is_dry, "I4"


def refill_rows(state_of: QueueState) -> int:
    """Return how many messages ``refill`` may take now."""
    return REFILL_ROWS if state_of.cached < QUEUE_CACHED else 1


def size_of(state_of: QueueState) -> int:
    """About how much memory the queue needs, in bytes."""
    ready, subqueues, touched = state_of.cached, len(state_of.subqueues), len(state_of.touched)
    known = ready * READY_BYTES + subqueues * SUBQUEUE_BYTES + touched * TOUCHED_BYTES
    return STATE_BYTES + known + state_of.error_bytes


class Listing(NamedTuple):
    """How far a round over all subqueues of the rows has come."""

    at: bytes  # the row where it goes on; empty: the next round begins
    is_from_first: bool  # the round began at the first subqueue


class Traffic:
    """How many messages are pushed and committed a second, from the totals of a queue as they grow.

    The rates are those of the server that owns the queue, from when it first used the queue: unlike the totals they are
    not on disk.
    """

    def __init__(self, now_ms: int) -> None:
        self._pushes = RollingRate(now_ms / 1_000)
        self._commits = RollingRate(now_ms / 1_000)

    def note_totals(self, before: Totals, after: Totals, now_ms: int) -> None:
        """Count what a step has added to the totals."""
        if after.pushed != before.pushed:
            self._pushes.add_events(after.pushed - before.pushed, now_ms / 1_000)
        if after.committed != before.committed:
            self._commits.add_events(after.committed - before.committed, now_ms / 1_000)

    def push_rate_per_s(self, now_ms: int) -> float:
        return self._pushes.per_s(now_ms / 1_000)

    def commit_rate_per_s(self, now_ms: int) -> float:
        return self._commits.per_s(now_ms / 1_000)


class BackgroundWork:
    """Work of a desk that goes on between calls: it would write totals over those of a desk that takes its place."""

    def __init__(self) -> None:
        self.running = 0
        self.moving: frozenset[int] = frozenset()  # dead messages that are on their way to another queue

    @contextmanager
    def moved(self, numbers: Iterable[int]) -> Iterator[None]:
        """Have the dead messages not come back meanwhile."""
        self.moving = frozenset(numbers)
        try:
            yield
        finally:
            self.moving = frozenset()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Have the desk not forgotten meanwhile."""
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
