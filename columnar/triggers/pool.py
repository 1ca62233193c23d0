"""A pool: the worker processes of one label, and the scheduling of their triggers.

The triggers without a label share the pool of the empty label, whose process stays once it was started.  The process of
another pool is started when it is first needed and ended when it had no calls for IDLE_S.  A call
that dies, hangs or keeps the interpreter's lock in the process of a pool blocks no trigger of another pool.

Invariants:
    I1. A call in the first worker slot holds a place of ``fair``, unless it is between two slices.
    I2. Suspects are taken from their states and in neither slot; one call at a time is in quarantine.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from columnar.flows.delivery_state import Delivery
from columnar.flows.fair_share import FairShare, ScheduledSlice, Terms
from columnar.model.trigger_registration import Registration, rate_per_s
from columnar.triggers.consumer import Consumer
from columnar.triggers.frames import PLACES
from columnar.triggers.worker_slot import Call, MakeLink, WorkerEvents, WorkerSlot

IDLE_S: Final = 60.0


class Pool:
    def __init__(self, events: WorkerEvents, label: str, deliver: Callable[[], None]) -> None:
        """``deliver`` is called when a trigger may begin a call that it could not begin before."""
        self.label = label  # constant
        self.fair = FairShare(PLACES)
        self.main = WorkerSlot(events, label)
        self.quarantine = WorkerSlot(events, label, is_quarantine=True)
        self.suspects: deque[tuple[Consumer, list[Delivery]]] = deque()  # taken, waiting for the quarantine
        self._deliver = deliver
        self._terms: dict[str, Registration] = {}  # of the triggers that ``fair`` knows
        self._due: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self._idle: asyncio.TimerHandle | None = None

    @property
    def worker_slots(self) -> tuple[WorkerSlot, WorkerSlot]:
        return self.main, self.quarantine

    def attach(self, make_link: MakeLink) -> None:
        self.main.link, self.quarantine.link = make_link(self.main), make_link(self.quarantine)

    # --- triggers and their consumers ----------------------------------------------------------------

    def queue(self, consumer: Consumer, now_s: float) -> None:
        """Queue the consumer, which has something to deliver, until ``rest``."""
        self.know(consumer.registration, now_s)
        self.fair.ready(consumer.registration.name, consumer)

    def know(self, one: Registration, now_s: float) -> None:
        if self._terms.get(one.name) is not one:
            self._terms[one.name] = one
            rate = rate_per_s(one.rate) if one.rate else None
            self.fair.allow(one.name, Terms(one.share, one.side_by_side, rate), now_s)

    def rest(self, consumer: Consumer) -> None:
        if consumer.registration.name in self._terms:
            self.fair.resting(consumer.registration.name, consumer)

    def forget(self, name: str) -> None:
        """Forget a removed trigger; calls of it may still be here."""
        if self._terms.pop(name, None) is not None:
            self.fair.remove(name)

    # --- calls ---------------------------------------------------------------------------------------

    def slice_over(self, call: Call, used_s: float, cpu_s: float) -> None:
        """Account for a slice that the worker has answered: the call is between slices, or has left its slot (I1)."""
        if not call.worker_slot.is_quarantine:
            name = call.consumer.registration.name
            if call.is_between_slices:
                self.fair.paused(name, used_s, cpu_s)
            else:
                self.fair.ended(name, used_s, cpu_s)
            call.is_scheduled = False

    def lost(self, call: Call, used_s: float | None = None) -> None:
        """Account for a call whose worker has ended; ``used_s``: how long the call ran, if known."""
        if call.worker_slot.is_quarantine or not call.number:
            return
        name = call.consumer.registration.name
        if call.is_between_slices:
            self.fair.dropped(name, call)
            call.is_between_slices = False  # once
        elif call.is_scheduled:
            self.fair.ended(name, self.fair.mean_slice_s(name) if used_s is None else used_s)
            call.is_scheduled = False

    def continue_call(self, call: Call) -> None:
        """The effects of a resting call are written, or it is abandoned: it waits for its next slice."""
        if call.worker_slot.is_quarantine:
            call.worker_slot.send_next_slice(call)
        else:
            self.fair.continue_call(call.consumer.registration.name, call)

    def without_suspects_of(self, consumer: Consumer) -> list[list[Delivery]]:
        """The suspects of the consumer, which wait no longer."""
        found = [deliveries for suspect, deliveries in self.suspects if suspect is consumer]
        if found:
            self.suspects = deque(suspect for suspect in self.suspects if suspect[0] is not consumer)
        return found

    def take(self, now_s: float) -> ScheduledSlice | None:
        return self.fair.take(now_s)

    def is_wanted(self, now_s: float) -> bool:
        """Return whether a trigger waits to be scheduled, and there is a process; a missing process is started."""
        return self.fair.waits(now_s) and self.main.wanted()

    # --- time ----------------------------------------------------------------------------------------

    def plan_timers(self) -> None:
        """Plan the next check, or the end of the process, after all slices that could be scheduled."""
        self._plan_due()
        if self.label and self.main.link is not None and self.main.link.is_up:
            is_idle = not self.main.calls
            if is_idle and self._idle is None:
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end)
            elif not is_idle and self._idle is not None:
                self._idle.cancel()
                self._idle = None

    def _plan_due(self) -> None:
        due_s = self.fair.next_due_s()
        if self._due is not None:
            if due_s is not None and self._due_s <= due_s:
                return  # it checks, and plans again
            self._due.cancel()
            self._due = None
        if due_s is not None:
            self._due_s = due_s
            self._due = asyncio.get_running_loop().call_at(due_s, self._deliver_due)

    def _deliver_due(self) -> None:
        self._due = None
        self._deliver()

    def _end(self) -> None:
        self._idle = None
        if not self.main.calls and self.main.link is not None:
            self.main.link.kill()

    def end_idle_quarantine(self) -> None:
        """A second process stays no longer than there is need of it."""
        if not self.quarantine.calls and not self.suspects and self.quarantine.link is not None:
            self.quarantine.link.kill()

    async def close(self) -> None:
        for timer in (self._due, self._idle):
            if timer is not None:
                timer.cancel()
        for slot in self.worker_slots:
            if slot.link is not None:
                await slot.link.close()
