"""(pure) The delivery of triggers: events in, instructions out.

    change  --read--> source --its queue turn--> call --slice over--> outcome --effects written--> done, or again
                        ^                          |                     |
                        +---- worker gone, timeout, obstacle, failure ---+

    ``delivery_source``   the changes of a trigger on one region: which may be called now
    ``pool_state``        which source is next (``flows.fair_share``), and in which worker process
    ``worker_state``      the calls of a process: what may run, for how long, and when it is silent for too long
    ``retry_state``       what becomes of changes after their call: attempts, pauses, obstacles, dead letters
    ``instructions``      what the shell does next: ``dispatcher``

A call begins in two steps: ``Pool.begin_call`` makes it for a slice that ``fair`` schedules, and ``admit_call`` admits
it to its worker slot with those of its changes that could be read.  A call is lost if its worker ended, or had to be
ended because of a different call; the changes of a lost call are delivered again.

Invariants:
    I1. A change that a call took is in a worker slot, among the outcomes whose effects are written, on its way to the
        dead letters, or a suspect.
    I2. ``recover`` needs nothing but the sources, so an exception in the middle of an event loses no change.

Knows nothing of regions, processes, frames and clocks: ``now_s`` is the loop's time, ``now_ms`` since 1970.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from columnar.errors import ColumnarError, TooManyHops
from columnar.flows.delivery_state import Delivery
from columnar.flows.figures import Figures
from columnar.flows.follower_name import trigger
from columnar.triggers.delivery_source import NEVER, DeliverySource, IntakePauses
from columnar.triggers.instructions import Instructions, Outcome, Timers
from columnar.triggers.pool_state import Pool
from columnar.triggers.retry_state import Block, RetryState, is_obstacle
from columnar.triggers.worker_state import RESTING, RUNNING, Call, CallChanges, WorkerSlot

DONE: Final = "done"
MORE: Final = "more"
_DIED: Final = "the worker process went while it ran: "
_NOT_WRITTEN: Final = "its effects cannot be written: "
_NO_IMPORT: Final = "the worker process went while it imported the module: "


class DispatcherState:
    def __init__(self, figures: Figures) -> None:
        self.pools: dict[str, Pool] = {}  # by label
        self.sources: dict[DeliverySource, None] = {}
        self.pauses = IntakePauses()
        self.instructions = Instructions()
        self.timers = Timers()
        self.retries = RetryState(self.pools, self.instructions, figures, self.timers)
        self._figures = figures

    # --- sources and triggers ------------------------------------------------------------------------

    def pool_of(self, label: str) -> Pool:
        pool = self.pools.get(label)
        if pool is None:
            pool = self.pools[label] = Pool(label, self.pauses, self.instructions, self.timers)
        return pool

    def queue(self, source: DeliverySource, now_s: float) -> None:
        """Queue the source at its trigger if it has something to deliver; otherwise plan a timer for when it will.

        ``now_s`` must be the time by which the caller takes slices: by a later time the source could be queued for a
        row that is not due yet for the caller.
        """
        self.sources.setdefault(source)
        if source.is_due(now_s):
            self.pool_of(source.registration.process).queue(source, now_s)
            return
        due_s = source.due_s()
        if due_s is not None and due_s < source.wakes_s:
            source.plan_wake(due_s)
            self.timers.plan(due_s, source)

    def line_up_again(self, source: DeliverySource, now_s: float) -> bool:
        """Keep the source queued while it has something to deliver; return False if no change that was read is left."""
        if source.is_due(now_s) and not self.pauses.cover(source):
            return True
        self.pool_of(source.registration.process).rest(source)
        return False

    def fail_read(self, source: DeliverySource, error: str, now_s: float) -> None:
        """Plan to read the source's region again after a growing pause, as it cannot be read now."""
        pause = source.fail_read(error)
        source.plan_wake(now_s + pause)
        self.timers.plan(now_s + pause, source)

    def withdraw(self, source: DeliverySource) -> None:
        """Begin no more calls of the source; calls in flight end as usual."""
        source.pause_region()
        suspects = self.pool_of(source.registration.process).withdraw_suspects(source)
        if suspects:
            self.retries.requeue_deliveries(source, suspects)

    def drop_source(self, source: DeliverySource, now_s: float) -> None:
        """Forget the source.  Its calls in the worker keep their place and timeout, but their answers are ignored."""
        source.note_dropped()
        self.sources.pop(source, None)
        pool = self.pool_of(source.registration.process)
        for call in [one for slot in pool.slots for one in slot.calls.values() if one.source is source]:
            self._abandon(call, now_s)
        for outcome in [one for one in self.retries.applying if one.source is source]:
            self.retries.give_up(outcome)
        pool.withdraw_suspects(source)
        pool.rest(source)

    def _abandon(self, call: Call, now_s: float) -> None:
        """Note that further effects of the call are not wanted; a resting call is scheduled, to be dropped."""
        if not call.is_abandoned:
            call.abandon()
            if call.stage == RESTING:
                self.pools[call.slot.label].continue_call(call, now_s)

    def forget_trigger(self, name: str) -> None:
        """Forget a removed trigger: the next trigger of that name is not paused."""
        self.pauses.triggers.discard(name)
        self.retries.forget_trigger(name)
        for pool in self.pools.values():
            pool.forget_trigger(name)

    def obstacle(self, name: str) -> str:
        """Return why the trigger is blocked; an empty text if it is not."""
        why = self.retries.why_blocked(name)
        if why or not self.pauses.untrusted:
            return why
        modules = (one.registration.module for one in self.sources if one.registration.name == name)
        return next((self.pauses.untrusted[one] for one in modules if one in self.pauses.untrusted), "")

    # --- calls ---------------------------------------------------------------------------------------

    def admit_call(self, call: Call, changes: CallChanges, now_s: float) -> Call | None:
        """Admit the call to its slot, with those of its changes that can be sent; return None if there are none."""
        source, count, pool = call.source, len(call.deliveries), self.pools[call.slot.label]
        is_batch = source.registration.batch > 0
        if changes.damaged and is_batch:
            self.retries.name_failed(source, call.open_deliveries, changes.damaged, "", now_s)
            pool.return_places(call, 1)
            return None
        if changes.rest:
            source.requeue(changes.rest, at_once=True)
        if changes.gone:
            self.retries.finish(source, changes.gone, now_s)
        for delivery, why in changes.damaged:
            self.retries.fail_one(source, delivery, why, "", now_s)
        kept = len(changes.kept)
        if not is_batch or not kept:
            pool.return_places(call, 1 if is_batch else count - kept)
        if not kept:
            return None
        if kept < count:
            call = Call(call.slot, source, changes.kept)
        call.slot.admit(call, changes.size_bytes, changes.origins)
        return call

    def refuse_call(self, call: Call, error: str, now_s: float) -> None:
        """Requeue the changes of a new call, since they cannot be read now, and do as ``fail_read``."""
        call.source.requeue(call.open_deliveries)
        self.pools[call.slot.label].return_places(call, call.places)
        self.fail_read(call.source, error, now_s)

    def began(self, slot: WorkerSlot, numbers: list[int], now_s: float) -> None:
        """Plan timeouts for the calls that the worker has reported as running for longer than a moment."""
        for number in numbers:
            call = slot.began(number, now_s)
            if call is not None:
                self.timers.plan(call.ends_s, call)

    # --- outcomes ------------------------------------------------------------------------------------

    def slice_over(
        self, slot: WorkerSlot, number: int, what: str, used_s: float, cpu_s: float, now_s: float
    ) -> Call | None:
        """Note that the worker has ended a slice; return the slice's call if its outcome is wanted."""
        call = slot.find(number)
        if call is None or call.stage == RESTING:
            return None  # it was given up meanwhile
        self.instructions.note_subject(call.source, [] if call.is_abandoned else call.open_deliveries)
        pool = self.pools[slot.label]
        call.add_time(used_s)
        if what != "blocked":
            slot.imported(call.module)
        if what == MORE:
            slot.rest(call)
            pool.account_rested(call, used_s, cpu_s)
        else:
            slot.remove_call(call)
            pool.account_ended(call, used_s, cpu_s)
            self._figures.of(trigger(call.source.registration.name), now_s).runs.observe(call.used_s)
        if not call.is_abandoned:
            return call
        if what == MORE:
            pool.continue_call(call, now_s)
        return None

    def run_over(
        self, slot: WorkerSlot, number: int, count: int, used_s: float, cpu_s: float, now_s: float
    ) -> list[tuple[Call, int, int, int]]:
        """Note that ``count`` successive changes of a run are done, from the change ``number`` on.

        Returns (call, place of its first done change, number of its done changes, place of their effects in the
        outcome) for each call whose effects are wanted.  Usually this is the run; a change of the run that became a
        call of its own has its own tuple.
        """
        call = slot.calls.get(number)
        if call is not None and call.is_run:
            first, deliveries = call.first, call.deliveries[call.first : call.first + count]
            if len(deliveries) == count and None not in deliveries:
                self.instructions.note_subject(
                    call.source, [] if call.is_abandoned else cast(list[Delivery], deliveries)
                )
                slot.end_changes(call, count)
                self.pools[slot.label].account_ended(call, used_s, cpu_s, count)
                name = trigger(call.source.registration.name)
                self._figures.of(name, now_s).runs.observe(used_s / count, count)
                return [] if call.is_abandoned else [(call, first, count, 0)]
        share_s, share_cpu_s = used_s / count, cpu_s / count
        found = [self.slice_over(slot, number + at, DONE, share_s, share_cpu_s, now_s) for at in range(count)]
        return [(one, 0, 1, at) for at, one in enumerate(found) if one is not None]

    def settle(self, outcome: Outcome, error: ColumnarError | None, now_s: float, now_ms: float) -> None:
        """Note that the effects of a slice are on disk, or with ``error`` that they cannot be written."""
        source, call, deliveries, what = outcome.source, outcome.call, outcome.deliveries, outcome.what
        retries = self.retries
        retries.applying.pop(outcome, None)
        self.instructions.note_subject(source, deliveries)
        if outcome.gave and (error is not None or what != DONE):
            for delivery in deliveries:
                source.state.gave(delivery.sequence)
        if error is not None:
            if what == MORE:
                self._abandon(call, now_s)
            why = _NOT_WRITTEN + error.wire_message
            if is_obstacle(error):
                retries.block(source, deliveries, why, now_s, of_some=True)
            else:
                retries.fail(source, deliveries, why, outcome.output, now_s, is_last=isinstance(error, TooManyHops))
            return
        if outcome.checkpoint is not None:
            state, part = outcome.checkpoint
            source.state.came_to(deliveries[0].sequence, state, part)
        if what == "blocked":
            retries.block(source, deliveries, str(outcome.error), now_s, of_some=not call.is_cold)
            return
        retries.note_working(source.registration.name)
        if what == DONE:
            retries.finish(source, deliveries, now_s)
        elif what == MORE:
            self.pools[call.slot.label].continue_call(call, now_s)
            retries.note_moved(source)
        else:
            retries.settle_unfinished(outcome, now_s, now_ms)

    # --- workers that end ----------------------------------------------------------------------------

    def worker_gone(self, slot: WorkerSlot, how: str, now_s: float) -> None:
        """Handle the end of a worker process.  If it ran one change, that change failed; if more, none is blamed."""
        if slot.calls:
            count = sum(len(one.open_deliveries) for one in slot.calls.values())
            self.retries.log_line(logging.WARNING, f"the trigger worker is gone ({how}) with {count} changes in flight")
        ran = [call for call in slot.calls.values() if call.stage == RUNNING]
        for call in ran:
            call.source.suspect(call.open_deliveries)
        calls = slot.take_all()
        if len(ran) == 1 and ran[0].places == 1 and not ran[0].is_abandoned:
            (call,) = ran
            calls.remove(call)
            self._lose(call)
            self._fail_ending(call, (_NO_IMPORT if call.is_cold else _DIED) + how, now_s)
        self.lose_calls(calls, are_in_slot=False)

    def _lose(self, call: Call, used_s: float | None = None) -> list[Delivery]:
        """Account for a call that will have no outcome and is not ended yet; return its changes that are wanted."""
        for outcome in [one for one in self.retries.applying if one.call is call and one.what == MORE]:
            self.retries.give_up(outcome)
        self.pools[call.slot.label].account_lost(call, used_s)
        return [] if call.is_abandoned else call.open_deliveries

    def lose_calls(self, calls: list[Call], *, are_in_slot: bool) -> None:
        """End the calls and requeue their changes, with no attempt counted.

        ``are_in_slot`` says that the calls are still in their slots, and that none of them rests.
        """
        for call in calls:
            deliveries = self._lose(call)
            if are_in_slot:
                call.slot.remove_call(call)
            call.end()
            self.retries.requeue_deliveries(call.source, deliveries)

    def _time_out(self, call: Call, now_s: float) -> None:
        slot, limit_ms = call.slot, int(1000 * call.limit_s)
        what = "importing its module took over" if call.is_cold else "it ran over its timeout of"
        name = call.source.registration.name
        self.retries.log_line(logging.WARNING, f"trigger {name} ran over its {limit_ms} ms: its worker is ended")
        self.instructions.ending.append((slot, ""))
        calls = slot.take_all()
        calls.remove(call)
        deliveries = self._lose(call, call.limit_s)
        if deliveries:
            self._fail_ending(call, f"the call was ended: {what} {limit_ms} ms", now_s)
            call.source.suspect(deliveries)  # if it hangs again, it is alone in the quarantine
        else:
            call.end()
        self.lose_calls(calls, are_in_slot=False)

    def _fail_ending(self, call: Call, why: str, now_s: float) -> None:
        """Fail the changes of a call that ended its worker, or for which the worker had to be ended."""
        deliveries = call.open_deliveries
        call.end()
        self.instructions.note_subject(call.source, deliveries)
        if call.is_cold:
            if call.module not in self.pauses.untrusted:
                self.instructions.imports.append((call.module, why))
            self.retries.block(call.source, deliveries, why, now_s)
        else:
            self.retries.fail(call.source, deliveries, why, "", now_s)

    def _listen(self, slot: WorkerSlot, now_s: float) -> None:
        """End a worker that is silent for too long: some unknown call blocks all its threads."""
        silent_s = slot.silence_s(now_s)
        if silent_s is None:
            if slot.listens_s != NEVER:
                self.timers.plan(slot.listens_s, slot)
            return
        text = f"the trigger worker has said nothing for {silent_s:.0f} s: it is ended"
        self.retries.log_line(logging.WARNING, text)
        self.instructions.ending.append((slot, f"it had said nothing for {silent_s:.0f} s and was ended"))
        self.lose_calls(slot.latecomers(), are_in_slot=True)

    def take_due(self, now_s: float) -> tuple[str, Callable[[], None]] | None:
        """Take the next timer that is due; return its pool's label and its event, or None if no timer is due."""
        entry = self.timers.take_due(now_s)
        if entry is None:
            return None
        at_s, subject = entry
        if isinstance(subject, DeliverySource):
            return subject.registration.process, partial(self.retries.wake_source, subject)
        if isinstance(subject, Call):
            return subject.slot.label, partial(self._time_out, subject, now_s)
        if isinstance(subject, WorkerSlot):
            return subject.label, partial(self._listen, subject, now_s)
        if isinstance(subject, Pool):
            return subject.label, partial(subject.pass_time, at_s)
        block = cast(Block, subject)
        labels = (one.registration.process for one in self.sources if one.registration.name == block.name)
        return next(labels, ""), partial(self.retries.end_suspension, block)

    # --- exceptions ----------------------------------------------------------------------------------

    def recover(self, pool: Pool, error: str, now_s: float) -> None:
        """Begin anew with a pool after an exception in one of its events (I2).

        The pool's workers are ended.  The changes of the event have failed; other changes that were in flight are
        delivered again, with no attempt counted.
        """
        subject = self.instructions.take_subject()
        for call in pool.begin_anew():
            call.end()
        self.instructions.ending.extend([(slot, "the store could not go on with a call") for slot in pool.slots])
        for outcome in [one for one in self.retries.applying if one.source.registration.process == pool.label]:
            self.retries.give_up(outcome)
        for source in [one for one in self.sources if one.registration.process == pool.label]:
            pool.know(source.registration, now_s)
            if self.retries.is_suspended(source.registration.name):
                pool.fair.suspend_trigger(source.registration.name)
            if subject is not None and subject[0] is source:
                in_flight = frozenset(source.in_flight())
                failed = [one for one in subject[1] if one.sequence in in_flight]
                for deliveries in [failed] if source.registration.batch and failed else [[one] for one in failed]:
                    self.retries.fail(source, deliveries, error, "", now_s)
            source.state.requeue_changes(source.in_flight())
            source.make_due()
            self.retries.note_moved(source)

    def check_invariants(self) -> None:
        """Check the invariants, for tests."""
        for pool in self.pools.values():
            pool.check_invariants()
        for source in self.sources:
            source.state.check_invariants()
            pool = self.pool_of(source.registration.process)
            calls = [call for slot in pool.slots for call in slot.calls.values() if not call.is_abandoned]
            known = {one.sequence for call in calls if call.source is source for one in call.open_deliveries}
            for outcome in self.retries.applying:
                known |= {one.sequence for one in outcome.deliveries if outcome.source is source}
            known |= {one.sequence for suspect, deliveries in pool.suspects if suspect is source for one in deliveries}
            assert set(source.in_flight()) == known, "I1"
