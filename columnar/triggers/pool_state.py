"""(pure) A pool: the worker slots of one label, and the scheduling of their triggers.

The triggers without a label share the pool of the empty label, whose process stays once it was started.  The process of
a pool with a label is started when it is first needed, and ended when it has had no calls for IDLE_S.  A call that
dies, hangs or keeps the interpreter's lock in the process of a pool blocks no trigger of a different pool.

A pool has two slots.  The first slot runs calls in parallel.  When its process dies, it is unknown which call was the
cause.  So the calls that ran then, and only these, run again one at a time in the second slot, the quarantine, where a
death has a single suspect.  Other calls continue in the first slot meanwhile.

Changes of a trigger with quick calls are called in runs of up to RUN_CHANGES changes of one source.

Invariants:
    I1. Unless it rests, a call in the first slot holds a place of ``fair`` for each of its open changes; a batch holds
        one place.
    I2. Suspects are taken from their delivery states and are in neither slot; at most one call is in quarantine.

Knows nothing of processes, frames, effects and clocks.
"""

from __future__ import annotations

from collections import deque
from typing import Final, cast

from columnar.flows.delivery_state import Delivery
from columnar.flows.fair_share import FairShare
from columnar.flows.scheduled_trigger import ScheduledSlice, Terms
from columnar.model.trigger_registration import Registration, rate_per_s
from columnar.triggers.delivery_source import NEVER, DeliverySource, IntakePauses
from columnar.triggers.frames import PLACES
from columnar.triggers.instructions import Instructions, Timers
from columnar.triggers.worker_state import RESTING, Call, WorkerSlot

RUN_CHANGES: Final = 64
IDLE_S: Final = 60.0  # the process of a label ends when it had no calls for so long


class Pool:
    def __init__(self, label: str, pauses: IntakePauses, instructions: Instructions, timers: Timers) -> None:
        self.label = label  # constant
        self.fair = FairShare(PLACES)
        self.main = WorkerSlot(label)
        self.quarantine = WorkerSlot(label, is_quarantine=True)
        self.suspects: deque[tuple[DeliverySource, list[Delivery]]] = deque()  # taken, waiting for the quarantine
        self._due_s = NEVER  # when ``fair`` may schedule a trigger that it must not schedule now
        self._idle_s = NEVER  # when the pool's process ends, if no call comes before
        self._terms: dict[str, Registration] = {}  # of the triggers that ``fair`` knows
        self._pauses = pauses
        self._instructions = instructions
        self._timers = timers

    @property
    def slots(self) -> tuple[WorkerSlot, WorkerSlot]:
        return self.main, self.quarantine

    # --- triggers ------------------------------------------------------------------------------------

    def queue(self, source: DeliverySource, now_s: float) -> None:
        """Queue a source that has something to deliver; ``rest`` removes it."""
        self.know(source.registration, now_s)
        self.fair.ready(source.registration.name, source)

    def know(self, one: Registration, now_s: float) -> None:
        if self._terms.get(one.name) is not one:
            self._terms[one.name] = one
            rate = rate_per_s(one.rate) if one.rate else None
            self.fair.allow(one.name, Terms(one.share, one.side_by_side, rate), now_s)

    def rest(self, source: DeliverySource) -> None:
        if source.registration.name in self._terms:
            self.fair.resting(source.registration.name, source)

    def forget_trigger(self, name: str) -> None:
        """Forget a removed trigger; calls of the trigger may still be in the slots."""
        if self._terms.pop(name, None) is not None:
            self.fair.remove_trigger(name)

    def begin_anew(self) -> list[Call]:
        """Forget calls, suspects and the schedule; return the calls."""
        self.fair = FairShare(self.fair.places)
        self._terms.clear()
        self.suspects.clear()
        return [*self.main.take_all(), *self.quarantine.take_all()]

    # --- calls ---------------------------------------------------------------------------------------

    def begin_call(self, scheduled: ScheduledSlice, now_s: float) -> Call | None:
        """Return a call of the scheduled source, for ``admit_call``; None if the source has nothing to deliver now."""
        source = cast(DeliverySource, scheduled.key)
        deliveries = [] if self._pauses.cover(source) else source.take_call(now_s)
        self._instructions.note_subject(source, deliveries)
        if deliveries and source.is_suspicious(deliveries):
            self.suspects.append((source, deliveries))
            deliveries = []
        if not deliveries:
            self.fair.returned(scheduled)
            return None
        may_run = not source.registration.batch and not deliveries[0].progress and source.state.has_ready
        if may_run and self.main.has(source.registration.module):
            self._make_run(scheduled, source, deliveries, now_s)
        return Call(self.main, source, deliveries)

    def _make_run(
        self, scheduled: ScheduledSlice, source: DeliverySource, deliveries: list[Delivery], now_s: float
    ) -> None:
        """Add further changes to ``deliveries``; a change with a checkpoint stays in the queue: it is called alone."""
        most = min(RUN_CHANGES - 1, source.state.ready_count)
        found, count = 0, self.fair.widen(scheduled, most)
        while found < count and (delivery := source.state.take(now_s)) is not None:
            if delivery.sequence in source.suspects:
                self.suspects.append((source, [delivery]))
            elif delivery.progress:
                source.requeue([delivery], at_once=True)
                break
            else:
                deliveries.append(delivery)
                found += 1
        if found < count:
            self.fair.returned(scheduled, count - found)

    def begin_suspect(self) -> Call | None:
        """Return a call for the quarantine, which must be empty and have a worker; None if there are no suspects."""
        while self.suspects:
            source, deliveries = self.suspects.popleft()
            self._instructions.note_subject(source, deliveries)
            if not self._pauses.cover(source):
                return Call(self.quarantine, source, deliveries)
            source.requeue(deliveries)
        return None

    def return_places(self, call: Call, count: int) -> None:
        """Return the places of ``count`` changes of a new call that are not sent."""
        if count and not call.slot.is_quarantine:
            self.fair.returned(ScheduledSlice(call.source.registration.name, call.source, True), count)

    def send_call(self, call: Call, now_s: float) -> None:
        """Note that the call is sent to the worker, and plan its timeout."""
        listens_s = call.slot.listens_s
        call.slot.send(call, now_s)
        if call.ends_s != NEVER:
            self._timers.plan(call.ends_s, call)
        self._plan_listening(call.slot, listens_s)

    def _plan_listening(self, slot: WorkerSlot, planned_s: float) -> None:
        if slot.listens_s != planned_s:
            self._timers.plan(slot.listens_s, slot)

    def begin_slice(self, call: Call, now_s: float) -> None:
        """Begin the next slice of a resting call, whose queue turn it is."""
        listens_s = call.slot.listens_s
        call.slot.resume(call, now_s)
        self._plan_listening(call.slot, listens_s)
        self._instructions.slices.append((call.slot, "drop" if call.is_abandoned else "go", call.number))

    def continue_call(self, call: Call, now_s: float) -> None:
        """Queue a resting call for its next slice, since its effects are written or it is abandoned."""
        if call.slot.is_quarantine:
            self.begin_slice(call, now_s)
        else:
            self.fair.continue_call(call.source.registration.name, call)
            self._instructions.note_schedule()

    def account_ended(self, call: Call, used_s: float, cpu_s: float, count: int = 1) -> None:
        """Account for changes whose last slice is over (I1)."""
        if not call.slot.is_quarantine:
            self.fair.ended(call.source.registration.name, used_s, cpu_s, count)

    def account_rested(self, call: Call, used_s: float, cpu_s: float) -> None:
        if not call.slot.is_quarantine:
            self.fair.paused(call.source.registration.name, used_s, cpu_s)

    def account_lost(self, call: Call, used_s: float | None = None) -> None:
        """Account for a call whose worker ends before the call; ``used_s`` is the call's time so far, if known."""
        if call.slot.is_quarantine:
            return
        name = call.source.registration.name
        if call.stage == RESTING:
            self.fair.dropped(name, call)
        else:
            count = call.places
            self.fair.ended(name, self.fair.mean_slice_s(name) * count if used_s is None else used_s, 0.0, count)

    def withdraw_suspects(self, source: DeliverySource) -> list[Delivery]:
        """Remove the source's suspects from those that wait for the quarantine; return them."""
        found = [one for suspect, deliveries in self.suspects if suspect is source for one in deliveries]
        if found:
            self.suspects = deque([suspect for suspect in self.suspects if suspect[0] is not source])
        return found

    # --- time ----------------------------------------------------------------------------------------

    def plan_timers(self, now_s: float) -> None:
        """Plan the next scheduling, and the end of an idle process.  Call this when no slice can be scheduled now."""
        due_s = self.fair.next_due_s()
        if due_s is not None and due_s < self._due_s:
            self._due_s = due_s
            self._timers.plan(due_s, self)
        if self.label and bool(self.main.calls) == (self._idle_s != NEVER):
            self._idle_s = NEVER if self.main.calls else now_s + IDLE_S
            if self._idle_s != NEVER:
                self._timers.plan(self._idle_s, self)

    def is_planned_at(self, at_s: float) -> bool:
        return at_s in (self._due_s, self._idle_s)

    def pass_time(self, at_s: float) -> None:
        if self._due_s == at_s:
            self._due_s = NEVER
        if self._idle_s == at_s:
            self._idle_s = NEVER
            if not self.main.calls:
                self._instructions.ending.append((self.main, ""))

    def end_quarantine(self) -> None:
        """End the process of the quarantine if it has no call and no suspect waits."""
        if not self.quarantine.calls and not self.suspects:
            self._instructions.ending.append((self.quarantine, ""))

    def check_invariants(self) -> None:
        """Check the invariants, for tests."""
        self.fair.check_invariants()
        self.main.check_invariants()
        self.quarantine.check_invariants()
        assert len(self.quarantine.calls) <= 1, "I2"
        held = sum(one.places for one in self.main.calls.values() if one.stage != RESTING)
        assert self.fair.running_count == held, "I1"
