"""Feeds durable changes to the trigger workers and tracks the outcome of each.

The shell around ``delivery_state`` and ``fair_share``: events come from consumers (``flows.hub``), from the workers
(``worker_slot``, ``outcomes``) and from timers, and the states decide what to do.  Owned by the loop.

Fairness: ``flows.fair_share`` says which trigger is next, and which of its consumers (regions).  Triggers with a label
have a pool of their own (``pool``).  A call over its timeout ends the worker: that change has failed, the others there
are delivered again without blame.  Calls of a worker that dies by itself continue in quarantine (``worker_slot``).

An unexpected exception ends the call that met it, or has its consumer tried again after AGAIN_S.
While requests come, changes are sent in the governor's steps, and the results of workers lengthen its pauses:
the backlog of a trigger leaves the loop to requests.  Without requests changes are sent at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, cast

from columnar.errors import ColumnarError, DamagedData, ProgramFault
from columnar.flows.applier import Applier
from columnar.flows.delivery_state import Delivery
from columnar.flows.fair_share import ScheduledSlice
from columnar.flows.follower_name import trigger
from columnar.flows.followers import Followers
from columnar.flows.governor import STEP_S, GovernedStep, Governor
from columnar.flows.log_upkeep import LogUpkeep
from columnar.runtime.faults import FAULTS, UNEXPECTED, surviving
from columnar.runtime.planned_step import PlannedStep
from columnar.triggers.call_changes import changes_of, deliveries_reading_row
from columnar.triggers.consumer import Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.frames import HOPS
from columnar.triggers.module_trials import ModuleTrials
from columnar.triggers.outcomes import Outcomes
from columnar.triggers.pool import Pool
from columnar.triggers.rereads import Rereads
from columnar.triggers.worker_slot import Call, MakeLink, WorkerSlot

_log = logging.getLogger(__name__)
_NEVER: Final = float("inf")
LOOP: Final = "the feeder of triggers"
AGAIN_S: Final = 0.1  # after an unexpected exception


class Feeder:
    def __init__(self, followers: Followers, upkeep: LogUpkeep, add: Callable[[DeadLetter], Awaitable[None]]) -> None:
        """``add`` writes a dead letter and returns when it is on disk."""
        self._followers = followers
        self.upkeep = upkeep
        self.trials = ModuleTrials(lambda: self.consumers_of(""), self._advance_if_present)
        self.outcomes = Outcomes(self, add, self.trials)
        self.common = Pool(self, "", self.deliver)
        self._pools = {"": self.common}  # by label
        self._make_link: MakeLink | None = None
        self._governor: Governor | None = None  # None: there are no workers yet
        self._steps: GovernedStep | None = None  # sends changes, with the governor
        self._again = PlannedStep(LOOP, self.deliver)  # after an exception
        self._paused: set[str] = set()
        self._moved: dict[Consumer, None] = {}  # consumers to advance in the next loop iteration
        self._moved_step = PlannedStep(LOOP, self.advance_moved)
        self._wakes: dict[int, tuple[float, asyncio.Handle]] = {}  # by id() of the consumer: when, and the timer
        self._unreadable = Rereads(self._advance_if_present)
        self._closing = False
        self.on_checked: Callable[[int, str | None], None] = lambda _call_id, _problem: None
        self.on_worker_gone: Callable[[WorkerSlot, str], None] = lambda _lane, _how: None

    def attach(self, make_link: MakeLink, applier: Applier, governor: Governor) -> None:
        """Deliver to workers from now on; ``applier`` writes their effects."""
        self._governor = governor
        self._steps = GovernedStep(governor, LOOP, lambda: self._deliver_until(perf_counter() + STEP_S))
        self.outcomes.write_by(applier)
        self._make_link = make_link
        self.trials.attach(make_link)
        for pool in self._pools.values():
            pool.attach(make_link)
        self.deliver()

    def pool_of(self, label: str) -> Pool:
        pool = self._pools.get(label)
        if pool is None:
            pool = self._pools[label] = Pool(self, label, self.deliver)
            if self._make_link is not None:
                pool.attach(self._make_link)
        return pool

    def worker_slots(self) -> list[WorkerSlot]:
        """All of them, those without a process among them."""
        return [slot for pool in self._pools.values() for slot in pool.worker_slots]

    # --- consumers ---------------------------------------------------------------------------------

    def consumers_of(self, name: str) -> list[Consumer]:
        """The consumers of a trigger on open regions; those of all triggers for an empty name."""
        return [one for one in self._followers.of(trigger(name)) if isinstance(one, Consumer)]

    def dropped(self, consumer: Consumer) -> None:
        """Forget it.  Calls in the worker keep their place and their timeout, and their answers change nothing."""
        pool = self.pool_of(consumer.registration.process)
        for call in [one for slot in pool.worker_slots for one in slot.calls.values()]:
            if call.consumer is consumer and not call.is_abandoned:
                call.is_abandoned = True
                if call.is_between_slices:
                    self.continue_call(call)
        self.outcomes.dropped(consumer)
        self._moved.pop(consumer, None)
        pool.without_suspects_of(consumer)
        pool.rest(consumer)
        self._wake_no_more(consumer)
        self._unreadable.forget(consumer)

    def pause(self, name: str) -> None:
        self._paused.add(name)

    def resume(self, name: str) -> None:
        self._paused.discard(name)
        for consumer in self.consumers_of(name):
            self.advance_consumer(consumer)

    def forget(self, name: str) -> None:
        """The trigger is removed: the next of that name begins running."""
        self.resume(name)
        self.outcomes.blocks.forget(name)
        for pool in self._pools.values():
            pool.forget(name)

    def is_paused(self, name: str) -> bool:
        return name in self._paused

    def pause_consumer_intake(self, consumer: Consumer) -> None:
        """Take up nothing more of it; what is in flight ends as it would."""
        for deliveries in self.pool_of(consumer.registration.process).without_suspects_of(consumer):
            self.outcomes.not_delivered(consumer, deliveries)

    def _is_intake_paused(self, consumer: Consumer) -> bool:
        if consumer.registration.name in self._paused or consumer in self._unreadable:
            return True
        return consumer.registration.module in self.trials or self._followers.is_paused(consumer.region.info.region_id)

    def calls_in_flight(self) -> int:
        """The number of calls in workers, and of calls whose effects are being written."""
        return sum(len(slot.calls) for slot in self.worker_slots()) + len(self.outcomes.applying)

    # --- reading -----------------------------------------------------------------------------------

    def advance_consumer(self, consumer: Consumer) -> None:
        """Read what there is room for, and queue the consumer when a change is ready."""
        if self._take_up(consumer):
            self._followers.notify(consumer.key)
            self.deliver()

    def _take_up(self, consumer: Consumer) -> bool:
        if self._closing or self._is_intake_paused(consumer):
            return False
        if self._fill(consumer) and not consumer.state.has_ready:
            asyncio.get_running_loop().call_soon(self._advance_if_present, consumer)
        self._queue(consumer, asyncio.get_running_loop().time())
        return True

    def _fill(self, consumer: Consumer) -> bool:
        """Read one step of the log; a trigger whose log is damaged is stopped, loudly."""
        try:
            return consumer.fill()
        except DamagedData as error:
            name = consumer.registration.name
            _log.error("trigger %s is paused: its log cannot be read: %s", name, error.text)
            consumer.state.last_error = error.wire_message
            self._paused.add(name)
        except ColumnarError as error:
            self._unreadable.read_later(consumer, error)
        return False

    def _advance_if_present(self, consumer: Consumer) -> None:
        try:
            if self.is_there(consumer):
                self.advance_consumer(consumer)
        except UNEXPECTED as fault:
            self._retry_after_fault(consumer, fault)

    def _retry_after_fault(self, consumer: Consumer, fault: BaseException) -> None:
        """Advance the consumer again after a pause, because it met an exception; other consumers do not wait."""
        FAULTS.met(LOOP, fault)
        consumer.state.last_error = ProgramFault(fault).wire_message
        asyncio.get_running_loop().call_later(AGAIN_S, self._advance_if_present, consumer)

    def _queue(self, consumer: Consumer, now_s: float) -> None:
        """Put it into the line of its trigger if it has something to deliver, or plan that for when it will have.

        ``now_s``: the caller's, by which it takes slices: by a later one a row is due that the caller cannot take.
        """
        if consumer.is_due(now_s):
            self.pool_of(consumer.registration.process).queue(consumer, now_s)
            return
        due_s = consumer.due_s()
        if due_s is None:
            return
        planned = self._wakes.get(id(consumer))
        if planned is not None:
            if planned[0] <= due_s:
                return
            planned[1].cancel()
        # uvloop's handle of what is due within a millisecond does not say when that is.
        self._wakes[id(consumer)] = due_s, asyncio.get_running_loop().call_at(due_s, self._wake, consumer)

    def _wake_no_more(self, consumer: Consumer) -> None:
        planned = self._wakes.pop(id(consumer), None)
        if planned is not None:
            planned[1].cancel()

    def _wake(self, consumer: Consumer) -> None:
        """A parked row's pause is over, or a batch has waited long enough."""
        self._wakes.pop(id(consumer), None)
        try:
            self._queue(consumer, asyncio.get_running_loop().time())
            self.deliver()
        except UNEXPECTED as fault:
            self._retry_after_fault(consumer, fault)

    # --- delivering --------------------------------------------------------------------------------

    def deliver(self) -> None:
        """Send changes to the workers, in queue order, while there is room for them; requests have priority."""
        if self._closing:
            return
        try:
            if self._steps is None or self._governor is None or not self._governor.requests_come():
                self._deliver_until(_NEVER)
            else:
                self._steps.soon()
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            self._again.after(AGAIN_S)

    def _deliver_until(self, ends_s: float) -> bool:
        """Deliver from each pool at least once; return whether there is more."""
        if self._closing or self.upkeep.is_saving_paused:
            return False
        more = False
        for pool in list(self._pools.values()):
            try:
                more |= self._deliver_of(pool, ends_s)
            except UNEXPECTED as fault:  # the other pools deliver
                FAULTS.met(LOOP, fault)
                self._again.after(AGAIN_S)
        return more

    def _deliver_of(self, pool: Pool, ends_s: float) -> bool:
        more = False
        self._deliver_suspect(pool)
        now_s = asyncio.get_running_loop().time()
        if pool.is_wanted(now_s):
            try:
                while pool.main.has_room and (scheduled := pool.fair.take(now_s)) is not None:
                    try:
                        self._have(pool, scheduled, now_s)
                    except UNEXPECTED:
                        self._cancel_slice(pool, scheduled)
                        raise
                    if scheduled.begins:
                        self._line_up_again(pool, cast(Consumer, scheduled.key), now_s)
                    if perf_counter() >= ends_s:
                        more = True
                        break
            finally:  # the worker has what was admitted, whatever came next
                pool.main.flush()
        for slot in pool.worker_slots:
            slot.flush()  # of a step that met an exception
        pool.plan_timers()
        return more

    def _have(self, pool: Pool, scheduled: ScheduledSlice, now_s: float) -> None:
        if not scheduled.begins:
            call = cast(Call, scheduled.key)
            call.is_scheduled = True
            pool.main.send_next_slice(call)
            return
        consumer, deliveries, is_returned = cast(Consumer, scheduled.key), list[Delivery](), False
        try:
            deliveries = [] if self._is_intake_paused(consumer) else consumer.take(now_s)
            if consumer.suspects and any(one.sequence in consumer.suspects for one in deliveries):
                pool.suspects.append((consumer, deliveries))
                deliveries = []
                asyncio.get_running_loop().call_soon(self.deliver)
            if not deliveries or not self._call(pool.main, consumer, deliveries):
                pool.fair.returned(scheduled)
                is_returned = True
        except UNEXPECTED as fault:
            if not is_returned:
                pool.fair.returned(scheduled)
            self._call_failed(consumer, deliveries, fault)

    def _cancel_slice(self, pool: Pool, scheduled: ScheduledSlice) -> None:
        """Cancel a slice that found nothing to run."""
        if scheduled.begins:
            pool.fair.returned(scheduled)
        else:  # the worker waits for its word: its calls come again
            call = cast(Call, scheduled.key)
            call.is_scheduled, call.is_between_slices = True, False
            pool.main.end_worker("the store could not go on with a call")

    def _call_failed(self, consumer: Consumer, deliveries: list[Delivery], fault: BaseException) -> None:
        """Fail the changes that could not be sent, if they were taken; the consumer continues."""
        self._retry_after_fault(consumer, fault)
        self.outcomes.not_sent(consumer, deliveries, fault)

    def _line_up_again(self, pool: Pool, consumer: Consumer, now_s: float) -> None:
        """Keep the consumer in line while it has something to deliver; else read more of its log."""
        if consumer.is_due(now_s) and not self._is_intake_paused(consumer):
            return
        pool.rest(consumer)
        if not self._is_intake_paused(consumer):
            if consumer.state.room > 0 and self._fill(consumer) and not consumer.state.has_ready:
                asyncio.get_running_loop().call_soon(self._advance_if_present, consumer)
            self._queue(consumer, now_s)

    def _deliver_suspect(self, pool: Pool) -> None:
        while pool.suspects and self._is_intake_paused(pool.suspects[0][0]):
            consumer, deliveries = pool.suspects.popleft()
            consumer.requeue_deliveries(deliveries)
        if pool.suspects and not pool.quarantine.calls and pool.quarantine.wanted():
            consumer, deliveries = pool.suspects.popleft()
            try:
                self._call(pool.quarantine, consumer, deliveries)
            except UNEXPECTED as fault:
                self._call_failed(consumer, deliveries, fault)
            pool.quarantine.flush()

    def _call(self, slot: WorkerSlot, consumer: Consumer, deliveries: list[Delivery]) -> bool:
        """Send the deliveries as a call; return whether the call is in the worker slot now."""
        changes = self._changes(consumer, deliveries)
        if not changes:
            return False
        call = Call(slot, consumer, deliveries)
        call.stamps, call.hops = [change[2] for change in changes], [change[HOPS] for change in changes]
        slot.admit(call, changes)
        try:
            self._send(call, changes)
        except UNEXPECTED as fault:
            if not call.is_sent:
                slot.remove(call)
                raise
            FAULTS.met(LOOP, fault)  # the worker answers
        call.is_scheduled = not slot.is_quarantine
        return True

    def _send(self, call: Call, changes: list[Any]) -> None:
        consumer = call.consumer
        reading = deliveries_reading_row(consumer, call.deliveries, changes)
        barriers = consumer.barriers(reading) if reading else []
        if barriers:  # the row as it is now holds what a crash could take back: nothing may be derived from that
            durable = barriers[0] if len(barriers) == 1 else asyncio.gather(*barriers, return_exceptions=True)
            durable.add_done_callback(partial(self._when_durable, call, changes, barriers))
        else:
            call.worker_slot.send(call, changes)

    def _changes(self, consumer: Consumer, deliveries: list[Delivery]) -> list[Any]:
        """The changes as a frame carries them; what is left of ``deliveries`` belongs to them.  Empty: no call."""
        try:
            changes = changes_of(consumer, deliveries)
        except ColumnarError as error:
            self._unreadable.read_later(consumer, error)
            consumer.requeue_deliveries(deliveries)
            return []
        loop, outcomes = asyncio.get_running_loop(), self.outcomes
        if changes.damaged:
            report = partial(outcomes.named, consumer, deliveries, changes.damaged, "")
            loop.call_soon(self._reported, consumer, deliveries, report)
            return []
        if changes.gone:
            report = partial(outcomes.done, consumer, changes.gone)
            loop.call_soon(self._reported, consumer, changes.gone, report)
        return changes.found

    def _reported(self, consumer: Consumer, deliveries: list[Delivery], report: Callable[[], None]) -> None:
        try:
            report()
        except UNEXPECTED as fault:
            self._call_failed(consumer, deliveries, fault)

    def _when_durable(self, call: Call, changes: list[Any], barriers: list[asyncio.Future[None]], _done: Any) -> None:
        try:
            self._send_durable(call, changes, barriers)
        except UNEXPECTED as fault:
            if not call.is_sent:
                self.outcomes.fault(call, fault)
                self.deliver()
            else:
                FAULTS.met(LOOP, fault)

    def _send_durable(self, call: Call, changes: list[Any], barriers: list[asyncio.Future[None]]) -> None:
        slot = call.worker_slot
        if slot.calls.get(call.number) is not call or self._closing:
            return
        if call.is_abandoned or any(one.exception() is not None for one in barriers):  # then the region is closed too
            slot.remove(call)
            self.pool_of(slot.label).lost(call)
            self.deliver()
        elif slot.link is not None and slot.link.is_up:
            slot.send(call, changes)
            slot.flush()

    # --- worker_slot.WorkerEvents ------------------------------------------------------------------------

    def answered(self, slot: WorkerSlot, frame: list[Any]) -> None:
        match frame:
            case ["did", list(outcomes)]:
                begun_s = perf_counter()
                self.outcomes.did(slot, outcomes)
                if self._governor is not None:
                    self._governor.spend(perf_counter() - begun_s)
                if slot.is_quarantine:
                    self.pool_of(slot.label).end_idle_quarantine()
            case ["began", list(numbers)] if all(isinstance(number, int) for number in numbers):
                for number in numbers:
                    slot.began(number)
            case ["checked", int(call_id), problem] if problem is None or isinstance(problem, str):
                self.on_checked(call_id, problem)
            case ["alive", 0]:
                pass
            case _:
                raise ValueError(f"no answer of a worker: {str(frame)[:60]}")

    def worker_ready(self) -> None:
        self.deliver()

    def worker_exited(self, slot: WorkerSlot, how: str) -> None:
        with surviving(LOOP):
            self.on_worker_gone(slot, how)
        self.outcomes.gone(slot, how)

    def timed_out(self, call: Call) -> None:
        self.outcomes.timed_out(call)

    def silent(self, slot: WorkerSlot, seconds: float) -> None:
        self.outcomes.silent(slot, seconds)

    # --- outcomes.Delivering -----------------------------------------------------------------------

    def is_there(self, consumer: Consumer) -> bool:
        return self._followers.has(consumer)

    def slice_over(self, call: Call, used_s: float, cpu_s: float) -> None:
        self.pool_of(call.worker_slot.label).slice_over(call, used_s, cpu_s)

    def lost(self, call: Call, used_s: float | None = None) -> None:
        self.pool_of(call.worker_slot.label).lost(call, used_s)

    def continue_call(self, call: Call) -> None:
        self.pool_of(call.worker_slot.label).continue_call(call)
        self._plan_moved_step()

    def suspend_trigger(self, name: str) -> None:
        for pool in self._pools.values():
            pool.fair.suspend_trigger(name)

    def let_go(self, name: str) -> None:
        for pool in self._pools.values():
            pool.fair.let_go(name)
        self._plan_moved_step()

    def moved(self, consumer: Consumer) -> None:
        self._moved[consumer] = None
        self._plan_moved_step()

    def _plan_moved_step(self) -> None:
        if not self._closing:
            self._moved_step.soon()

    def advance_moved(self) -> None:
        self._moved_step.cancel()
        moved, self._moved = self._moved, {}
        for consumer in moved:
            try:
                if self.is_there(consumer):
                    self.upkeep.soon(consumer.region)
                    self._take_up(consumer)
                    self._followers.notify(consumer.key)  # of paused ones too
            except UNEXPECTED as fault:
                self._retry_after_fault(consumer, fault)
        self.deliver()

    async def close(self) -> None:
        """Stop delivering; what is in flight will be delivered again at the next start."""
        self._closing = True
        self._again.cancel()
        self._moved_step.cancel()
        self.outcomes.stop()
        for slot in self.worker_slots():
            slot.take_all()
        self._unreadable.close()
        await self.trials.close()
        for _, timer in self._wakes.values():
            timer.cancel()
        for pool in self._pools.values():
            await pool.close()
        await self.outcomes.wait_for_letter_writes()
