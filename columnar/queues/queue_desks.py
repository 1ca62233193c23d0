"""The desks of this server's queues, by name, and the pops that wait for messages.  Owned by the loop.

A waiting pop is woken by a push, by the end of a lease or delay, also of one that began after it, and by the end of its
region.  A region that closed and stays this server's is opened again for waiting pops only after REOPENING_S: it was
closed to make room for others.  A pop whose client has gone takes no message when it is woken, and wakes the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import islice
from math import inf
from typing import Any, Final

from columnar.errors import IllegalArgument, RegionNotLocal, RegionTooBusy, RegionUnavailable
from columnar.model.queue_place import QUEUES_TABLE, checked_queue, first_row
from columnar.operations.access import Caller, TableAccess
from columnar.operations.row_desks import RowDesks
from columnar.queues.desk import Desk
from columnar.queues.queue_rows import Found
from columnar.queues.sweep import Sweep
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.region import Region
from columnar.runtime.faults import FAULTS
from columnar.runtime.loop_budget import IsDisconnected

_log = logging.getLogger(__name__)

GONE_CHECKED: Final = 16  # waiting pops of which one that finds no room looks whether their clients have gone
QUEUE_WAITERS: Final = 10_000  # pops that wait for messages of one queue
MOST_WAIT_MS: Final = 20_000
REOPENING_S: Final = 1.0
LONGEST_SWEEP_PAUSE_S: Final = 60.0  # between two sweeps for the retention of a queue that is used

_TABLE: Final = QUEUES_TABLE.encode()
Step = Callable[[Desk], Any]
Waiter = tuple[asyncio.Future[None], IsDisconnected]


class _Alarms:
    """For each queue for which pops wait: wakes one of them when a lease or delay ends."""

    def __init__(self, waiters: Mapping[bytes, Collection[Waiter]], wake: Callable[[bytes, int], None]) -> None:
        self._waiters = waiters
        self._wake = wake
        # When each is due, beside its handle: that of uvloop has no time if none is left when it is set.
        self._timers: dict[bytes, tuple[float, asyncio.Handle]] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def set_alarm(self, desk: Desk) -> None:
        """Note that a step of the desk was done: it may have begun a lease that ends before all others."""
        name = desk.queue
        if name not in self._waiters or (next_ms := desk.next_wait_ms()) is None:
            return
        loop = asyncio.get_running_loop()
        due_s, timer = loop.time() + next_ms / 1_000 + 0.001, self._timers.get(name)
        if timer is None or timer[0] > due_s:
            self.cancel_alarm(name)
            self._timers[name] = due_s, loop.call_at(due_s, self._ring, name)

    def _ring(self, name: bytes) -> None:
        del self._timers[name]
        self._wake(name, 1)

    def cancel_alarm(self, name: bytes) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer[1].cancel()


class QueueDesks:
    def __init__(self, access: TableAccess) -> None:
        self._access = access
        self._waits = access.waits
        self._waits.on_end(self._end_waits)
        self._desks: RowDesks[Desk] = RowDesks(
            access, _TABLE, self._make, row_of=first_row, opened=self._opened, forgotten=self._forgotten
        )
        self._waiters: dict[bytes, deque[Waiter]] = {}
        self._alarms = _Alarms(self._waiters, self.wake)
        self._sweeps: dict[bytes, asyncio.Task[None]] = {}
        self._begin_moves: Callable[[Desk], None] = _leave_dead
        self._swept_s: dict[bytes, float] = {}  # when the last sweep for the retention began, of desks in memory

    # --- what methods call -----------------------------------------------------------------------------------

    def run(self, caller: Caller, queue: bytes | None, step: Step) -> Any:
        """Return ``step`` of the queue's desk; its result may be Later.  Raises RegionNotLocal."""
        return self._desks.run(caller, checked_queue(queue), partial(self._use, step))

    def _use(self, step: Step, desk: Desk) -> Any:
        """Return ``step`` of the desk; it may have begun a lease, and the desk may be due for a sweep."""
        if desk.state.settings.retention_s:
            self._sweep_if_due(desk)
        result = step(desk)
        self._alarms.set_alarm(desk)
        return result

    def pop(self, caller: Caller, queue: bytes | None, count: int, wait_ms: int, lease_ms: int) -> Any:
        """Return messages; wait up to ``wait_ms`` for the first one."""
        name = checked_queue(queue)
        if not 0 <= wait_ms <= MOST_WAIT_MS:
            raise IllegalArgument(f"waitMs {wait_ms}: a pop waits between 0 and {MOST_WAIT_MS} ms; call again after it")
        return self.run(caller, name, partial(self._pop_now, caller, name, count, wait_ms, lease_ms))

    def _pop_now(self, caller: Caller, name: bytes, count: int, wait_ms: int, lease_ms: int, desk: Desk) -> Any:
        found = desk.pop(count, lease_ms)
        if found or not wait_ms:
            return found
        return self._pop_later(caller, name, count, wait_ms, lease_ms)

    async def _pop_later(self, caller: Caller, name: bytes, count: int, wait_ms: int, lease_ms: int) -> list[Found]:
        loop, was_ending = asyncio.get_running_loop(), self._waits.is_ending
        end_s = loop.time() + self._waits.bounded_s(wait_ms / 1_000)
        while True:
            left_s = end_s - loop.time()
            if left_s <= 0 or self._waits.is_ending > was_ending:
                return []
            was_woken = await self.wait_ready(caller, name, left_s)
            if was_woken and self._longest_wait_s(name) == REOPENING_S:
                continue  # the region has closed; if nobody needs it before, the next wait ends by its time
            try:
                step = partial(self._use, lambda desk: desk.pop(count, lease_ms))
                found: list[Found] = await self._desks.step_when_ready(caller.has_gone, name, step)
            except BaseException:
                if was_woken:
                    self.wake(name, 1)
                raise
            if found:
                return found

    def _end_waits(self) -> None:
        """Answer the pops that wait: the server leaves or stops."""
        for name in list(self._waiters):
            self.wake(name, QUEUE_WAITERS)

    def _longest_wait_s(self, name: bytes) -> float:
        """Return after how many seconds a pop looks for messages though nothing has woken it."""
        desk = self._desks.in_memory(name)
        if desk is None:
            return REOPENING_S
        if desk.is_usable:
            next_ms = desk.next_wait_ms()
            return inf if next_ms is None else next_ms / 1_000 + 0.001
        row = first_row(name)
        return 0.0 if self._access.has_moved(self._access.table(_TABLE), row, desk.region) else REOPENING_S

    async def wait_ready(self, caller: Caller, name: bytes, timeout_s: float = inf) -> bool:
        """Wait until the queue may have a message, or for the time; return whether it was woken.

        A pop that was woken and takes no message wakes another one.
        """
        waiters = self._waiters.setdefault(name, deque())
        if len(waiters) >= QUEUE_WAITERS:
            _wake_gone(waiters)
        if len(waiters) >= QUEUE_WAITERS:
            raise RegionTooBusy(f"{QUEUE_WAITERS} pops wait for messages of queue {name.decode('latin-1')}; try later")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (future, caller.has_gone)
        waiters.append(waiter)
        try:
            longest_s = min(timeout_s, self._longest_wait_s(name))
            await asyncio.wait((future,), timeout=None if longest_s == inf else longest_s)
        except asyncio.CancelledError:
            if future.done():
                self.wake(name, 1)
            raise
        finally:
            if not future.done():
                waiters.remove(waiter)
            if not waiters and self._waiters.get(name) is waiters:
                del self._waiters[name]
                self._alarms.cancel_alarm(name)
        return future.done()

    def wake(self, name: bytes, count: int) -> None:
        waiters = self._waiters.get(name)
        while waiters and count > 0:
            waiters.popleft()[0].set_result(None)
            count -= 1

    def _wake_closed(self) -> None:
        """Wake all pops that wait for queues of closed regions."""
        for name in list(self._waiters):
            desk = self._desks.in_memory(name)
            if desk is not None and not desk.region.is_open:
                self.wake(name, QUEUE_WAITERS)

    # --- dead messages for other queues ----------------------------------------------------------------------

    def move_dead_to(self, begin_moves: Callable[[Desk], None]) -> None:
        """Take the function that begins to move a desk's dead messages to another queue."""
        self._begin_moves = begin_moves

    def usable_desks(self) -> list[Desk]:
        """Return the desks in memory of queues that are this server's."""
        return self._desks.usable_desks()

    # --- sweeps --------------------------------------------------------------------------------------------

    async def sweep(self, caller: Caller, name: bytes) -> None:
        """Remove the rows of purged messages; return when all are removed.  A second sweep of a queue waits."""
        desk = await self._desks.open_desk(caller.has_gone, name)
        while (running := self._sweeps.get(name)) is not None:
            await asyncio.wait((running,))
        self.begin_sweep(desk)
        await asyncio.shield(self._sweeps[name])

    def begin_sweep(self, desk: Desk) -> None:
        """Remove rows in the background, unless a sweep of the queue runs already: then it goes on with the rest."""
        if desk.queue not in self._sweeps:
            self._sweeps[desk.queue] = asyncio.ensure_future(self._sweep(desk))

    def _sweep_if_due(self, desk: Desk) -> None:
        interval_s = min(LONGEST_SWEEP_PAUSE_S, desk.state.settings.retention_s / 10)
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._swept_s.get(desk.queue, 0.0) + interval_s:
            self._swept_s[desk.queue] = now_s
            self.begin_sweep(desk)

    async def _sweep(self, desk: Desk) -> None:
        budget = self._access.reply_memory.loop_budget
        try:
            sweep = Sweep(desk)
            with desk.background.counted():
                while desk.is_usable:
                    await budget.wait_for_budget()
                    if await retry_until_ready(sweep.remove_rows):
                        if not desk.purged:
                            break
                        sweep = Sweep(desk)  # there was another purge meanwhile
        except (RegionNotLocal, RegionUnavailable) as error:  # the next owner's desk goes on
            _log.info("the sweep of queue %s ends: %s", desk.queue.decode("latin-1"), error.text)
        except Exception as fault:  # noqa: BLE001 - rows stay, and are swept with the next purge or retention
            FAULTS.met("the sweep of a queue", fault)
        finally:
            del self._sweeps[desk.queue]
            follower = self._desks.in_memory(desk.queue)
            if follower is not None and follower.is_usable and follower.purged:  # it found this sweep under way
                self.begin_sweep(follower)

    # --- desks ---------------------------------------------------------------------------------------------

    def _make(self, region: Region, name: bytes) -> Desk:
        region.on_leave.add(self._wake_closed)
        acknowledge, wake = self._access.acknowledgement, partial(self.wake, name)
        return Desk(region, name, acknowledge, wake, lambda desk: self._begin_moves(desk))

    def _opened(self, desk: Desk) -> None:
        if desk.purged and desk.is_usable:
            self.begin_sweep(desk)

    def _forgotten(self, desk: Desk) -> None:
        desk.note_broken()  # work in the background must not write totals beside the desk that follows
        self._swept_s.pop(desk.queue, None)


def _leave_dead(_desk: Desk) -> None:
    """Leave dead messages where they are: nothing moves them so far."""


def _wake_gone(waiters: deque[Waiter]) -> None:
    """Wake those of the first waiters whose clients have gone."""
    for waiter in [one for one in islice(waiters, GONE_CHECKED) if one[1]()]:
        waiters.remove(waiter)
        waiter[0].set_result(None)
