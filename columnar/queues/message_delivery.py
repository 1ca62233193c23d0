"""The delivery of one served queue at the server that owns it: pops messages, gives them to the target, ends leases.

    waits for room (``delivery_pace``) -> pops -> the target works -> the lease ends
                                             leases are extended meanwhile

While another server owns the queue, its delivery there has the messages, and this one waits for a change of owners.
Messages that are out when the queue goes to another server stay with this target; their leases end at the new owner.

A message is committed when its target has reported the work as durable.  If this process ends before, or if a lease
cannot be ended in time, the message comes again when its lease is over: LEASE_MS after the last extension.

An empty queue is not polled: the queue's desk wakes the delivery.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from columnar.errors import ColumnarError, RegionNotLocal
from columnar.flows.delivery_state import pause_s
from columnar.flows.governor import Governor
from columnar.flows.logged_failure import LoggedFailure
from columnar.model.message_delivery import End, ServedMessage
from columnar.queues import keys
from columnar.queues.delivery_pace import KEPT, DeliveryPace, Settlement
from columnar.queues.lease_ends import PUT_OFF, ROLL_BACK
from columnar.queues.lease_settling import STORE, LeaseSettling
from columnar.queues.message_leases import LEASE_MS, MessageLeases
from columnar.queues.queue_desks import QUEUE_WAITERS, QueueDesks
from columnar.queues.queue_rows import Found
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

LOOP: Final = "the delivery of served queues"
LONGEST_PAUSE_S: Final = 5.0  # after an error of the store
CLOSING_S: Final = 2.0  # until what is left comes again after its leases

Ended = Callable[[End], int]  # returns how many messages have failed by it
# Returns a shared future that ends when the regions of this server change, or None if this process has all regions.
RegionsChange = Callable[[], asyncio.Future[None] | None]


class Target(Protocol):
    """A function or URL that gets messages; it reports the end of each once, unless it is closed before."""

    def deliver(self, message: ServedMessage, ended: Ended) -> None:
        """Begin to work on the message."""

    def withdraw(self) -> None:
        """Begin no more work: messages on which no work has begun end as returned."""

    def close(self) -> None:
        """Give up all work; no end is reported any more."""


class MessageDelivery:
    def __init__(
        self,
        queue: bytes,
        pace: DeliveryPace,
        target: Target,
        desks: QueueDesks,
        settling: LeaseSettling,
        governor: Governor,
        regions_change: RegionsChange,
    ) -> None:
        self.queue = queue
        self.pace = pace
        self.error = ""  # of the store, which the delivery waits for; empty: none
        self._target = target
        self._desks = desks
        self._governor = governor
        self._regions_change = regions_change
        self.leases = MessageLeases(queue, settling)
        self._task: asyncio.Task[None] | None = None
        self._after: asyncio.Task[None] | None = None
        self._kept: _Leased | None = None  # its lease goes on, and it goes again (``delivery_pace``)
        self._is_idle = False  # it waits, and may be cancelled
        self._is_ending = False
        self._ended_one = asyncio.Event()  # room may have come, or an empty hand
        self._failure = LoggedFailure()

    def start(self, after: asyncio.Task[None] | None = None) -> None:
        """Begin to deliver, once ``after`` has ended."""
        self._after = after
        self._task = asyncio.ensure_future(self._run(after))

    # --- its end -------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Begin no more messages; return when the target has ended those that it has, and is closed."""
        self._is_ending = True
        if self._is_idle:
            self._cancel()
        if self._after is not None:  # the drain of the target before: the next one waits for both
            await asyncio.wait((self._after,))
        await self._loop_ended()
        self._target.withdraw()
        self._return_kept()
        while self.leases.attempts:
            self._ended_one.clear()
            await self._ended_one.wait()
        self._target.close()
        await self.leases.settled()

    async def close(self) -> None:
        """Put off what the target has, as the process ends; return after CLOSING_S at the latest."""
        self._is_ending = True
        self._cancel()
        await self._loop_ended()
        self._return_kept()
        for receipt in list(self.leases.attempts):
            self.leases.end_lease(receipt, Settlement(PUT_OFF))
        self._target.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                await self.leases.settled()
        self.leases.close()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _loop_ended(self) -> None:
        if self._task is not None:
            await asyncio.wait((self._task,))

    # --- popping -------------------------------------------------------------------------------------

    async def _run(self, after: asyncio.Task[None] | None) -> None:
        failures = 0
        try:
            if after is not None:
                await self._idle(asyncio.wait((after,)))
            while not self._is_ending:
                try:
                    await self._deliver_some()
                    failures, self.error = 0, ""
                    if self._failure.has_ended():
                        _log.info("queue %s is delivered again", self.queue.decode())
                except RegionNotLocal:
                    self._return_kept()
                    await self._idle(self._owners_changed())
                except Exception as fault:  # noqa: BLE001 - it is tried again
                    failures += 1
                    self._report(fault)
                    await self._idle(asyncio.sleep(min(LONGEST_PAUSE_S, pause_s(failures))))
        except asyncio.CancelledError:
            if not self._is_ending:
                raise

    def _report(self, fault: Exception) -> None:
        if not isinstance(fault, ColumnarError):
            FAULTS.met(LOOP, fault)
        self.error = fault.text if isinstance(fault, ColumnarError) else f"{type(fault).__name__}: {fault}"
        if self._failure.is_news(self.error):
            _log.warning("queue %s cannot be delivered now: %s", self.queue.decode(), self.error)

    async def _idle(self, waiting: Awaitable[Any]) -> Any:
        """Wait for something that may be given up at the end of the delivery."""
        self._is_idle = True
        try:
            return await waiting
        finally:
            self._is_idle = False

    async def _owners_changed(self) -> None:
        change = self._regions_change()
        if change is None:  # the table is disabled, or being restored
            await asyncio.sleep(LONGEST_PAUSE_S)
            return
        await asyncio.wait((change,))

    async def _deliver_some(self) -> None:
        now_s = asyncio.get_running_loop().time()
        room = self.pace.room(now_s)
        if not room:
            due_s = self.pace.due_s(now_s)
            await self._idle(self._wait_room(None if due_s is None else max(0.0, due_s - now_s)))
            return
        if self._kept is not None and self.pace.kept_goes_first:
            await self._begin_kept(self._kept)
            return
        found = self._desks.run(STORE, self.queue, lambda desk: desk.pop(room, LEASE_MS))
        if hasattr(found, "__await__"):
            found = await found
        if found:
            await self._begin(found)
            return
        if self._kept is not None:
            await self._begin_kept(self._kept)
            return
        is_woken = await self._idle(self._desks.wait_ready(STORE, self.queue))
        if is_woken and not self.pace.room(asyncio.get_running_loop().time()):
            self._desks.wake(self.queue, 1)

    async def _wait_room(self, timeout_s: float | None) -> None:
        self._ended_one.clear()
        try:
            await asyncio.wait_for(self._ended_one.wait(), timeout_s)
        except TimeoutError:
            return

    async def _begin(self, found: list[Found]) -> None:
        leased = [_Leased(keys.pack_receipt(one.n, one.lease), message_of(self.queue, one)) for one in found]
        for receipt, message in leased:
            self.leases.add_lease(receipt, message.attempt)
        await self._deliver(leased)

    async def _begin_kept(self, kept: _Leased) -> None:
        self._kept = None
        await self._deliver([kept])

    def _return_kept(self) -> None:
        """Leave the message that is kept to other deliveries of the queue."""
        if self._kept is not None:
            self.leases.end_lease(self._kept.receipt, Settlement(PUT_OFF))
            self._kept = None
            self.pace.forget_kept()

    async def _deliver(self, leased: list[_Leased]) -> None:
        self.pace.begin_messages(len(leased))
        gate = _Gate(self._governor)
        if self._governor.wait_at_gate(gate):
            await gate.opened
        for one in leased:
            if self.leases.has(one.receipt):
                self._target.deliver(one.message, partial(self._end, one))

    def _end(self, leased: _Leased, end: End) -> int:
        """Take the end of a message's delivery; return how many messages have failed by it."""
        if not self.leases.has(leased.receipt):  # it was put off, as the process ends
            return 0
        message = leased.message
        settlement = self.pace.end_message(end, message.n, message.attempt, asyncio.get_running_loop().time())
        failed = int(self._end_lease(leased, settlement))
        kept, kept_end = self._kept, self.pace.take_kept_end()
        if kept is not None and kept_end is not None:
            self._kept = None
            failed += self._end_lease(kept, kept_end)
        if settlement.what == KEPT:
            self._kept = leased
            self._desks.wake(self.queue, QUEUE_WAITERS)  # this delivery may be among them
            if self._is_ending:
                self._return_kept()
        self._ended_one.set()
        return failed

    def _end_lease(self, leased: _Leased, settlement: Settlement) -> bool:
        """End the lease, unless the message is kept; return whether the message has failed."""
        if settlement.what != KEPT:
            self.leases.end_lease(leased.receipt, settlement)
        return settlement.what == ROLL_BACK


class _Leased(NamedTuple):
    """A message whose lease this delivery has."""

    receipt: bytes
    message: ServedMessage


class _Gate:
    """A wait for the lease of this process: without it, another server may have the messages."""

    def __init__(self, governor: Governor) -> None:
        self._governor = governor
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def gate_opened(self) -> None:
        self.gate_expired()

    def gate_expired(self) -> None:
        if not self._governor.wait_at_gate(self) and not self.opened.done():
            self.opened.set_result(None)


def message_of(queue: bytes, found: Found) -> ServedMessage:
    message, subqueue = found.message, found.subqueue
    return ServedMessage(
        queue,
        found.n,
        message.body,
        message.name,
        subqueue.group,
        keys.HIGHEST_PRIORITY - subqueue.rank,
        found.attempts,
        found.n // 1_000,
        message.headers,
        found.error,
    )
