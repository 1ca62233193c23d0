"""Outcomes of calls: effects are written, then the changes are done, or have failed and are retried.

    done      the effects of its last slice are on disk: the change is done
    more      the effects of a slice are on disk: its checkpoint is kept, and the worker yields on
    later     the change is delivered again after a pause, without blame
    failed    an attempt is counted; after the last one the change becomes a dead letter
              of both, the effects up to the last checkpoint are written first
    blocked   the obstacle is no fault of the change (``obstacles``), for example if its effects cannot be written
              for reasons of the store: as later, and the trigger says why (``blocks``); a batch is halved first
    named     of a batch: the named changes have failed, the others are delivered again at once
    lost      the worker ended while it ran, or had to be ended because of another call: it is delivered again

A batch that fails, is over its time or was in a worker that died is halved: its changes are delivered again at once, in
smaller batches, and no attempt is counted.  So a change that is at fault ends alone, and only then counts its attempts.

An unexpected exception fails the changes of the call that met it, as one of the function does (``fault``).

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

from columnar.errors import ColumnarError, IllegalArgument, ProgramFault, TooManyHops
from columnar.flows.applier import Applier
from columnar.flows.delivery_state import Delivery, pause_s
from columnar.flows.effects import Write, size_of, writes_of
from columnar.flows.figures import Figures
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.triggers.blocks import Blocks, is_obstacle
from columnar.triggers.call_lines import CallLines
from columnar.triggers.consumer import Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.effect_places import EffectPlaces
from columnar.triggers.module_trials import ModuleTrials
from columnar.triggers.outcome import Outcome, acquit, is_error, is_state, last, letter_of, suspect
from columnar.triggers.worker_slot import Call, WorkerSlot

_log = logging.getLogger(__name__)

LOOP: Final = "the outcomes of triggers"
_DIED: Final = "the worker process went while it ran: "
LONGEST_BLOCK_PAUSE_S: Final = 5.0  # the longest pause until a change that met an obstacle is called again
_NOT_WRITTEN: Final = "its effects cannot be written: "
_NO_IMPORT: Final = "the worker process went while it imported the module: "


class Delivering(Protocol):
    """The feeder, as outcomes see it."""

    def is_there(self, consumer: Consumer) -> bool: ...

    def moved(self, consumer: Consumer) -> None:
        """Advance the consumer, whose state has changed, at the latest in the next loop iteration."""

    def advance_moved(self) -> None:
        """Now."""

    def slice_over(self, call: Call, used_s: float, cpu_s: float) -> None:
        """Note that the call is between two slices, or has left its worker slot."""

    def lost(self, call: Call, used_s: float | None = None) -> None:
        """Note that the call has left its slot, whose worker has ended; ``used_s``: how long it ran, if known."""

    def continue_call(self, call: Call) -> None:
        """Let a call that is between two slices have its next slice in its queue turn."""

    def suspend_trigger(self, name: str) -> None:
        """Schedule no slice of the trigger until ``let_go``."""

    def let_go(self, name: str) -> None: ...


class Outcomes:
    def __init__(
        self, feeder: Delivering, add_letter: Callable[[DeadLetter], Awaitable[None]], trials: ModuleTrials
    ) -> None:
        """``add_letter`` writes a dead letter and returns when it is on disk; ``trials``: of the feeder."""
        self._feeder = feeder
        self._trials = trials
        self.add_letter = add_letter
        self.applier: Applier | None = None  # set before there are workers (``write_by``)
        self._full: set[str] = set()  # triggers whose effects have no room
        self.blocks = Blocks(feeder.suspend_trigger, self._try_resume_trigger)
        self.places_of_effects: EffectPlaces | None = None  # None: cycles are not checked
        self.figures = Figures()  # the hub's
        self.applying: set[Call] = set()  # calls whose effects are being written
        self._letter_writes: set[asyncio.Task[None]] = set()
        self._lines = CallLines()
        self._closing = asyncio.Event()

    def write_by(self, applier: Applier) -> None:
        self.applier = applier
        applier.on_room = self._check_room

    @property
    def has_room(self) -> bool:
        """Return whether no trigger waits for its earlier effects to be written."""
        return not self._full

    def _check_room(self) -> None:
        if self._full and self.applier is not None:
            for name in [one for one in self._full if self.applier.has_room(one)]:
                self._full.discard(name)
                self._try_resume_trigger(name)

    def _try_resume_trigger(self, name: str) -> None:
        """Let the trigger be scheduled again, unless it is suspended for the other reason."""
        if name not in self._full and not self.blocks.is_suspended(name):
            self._feeder.let_go(name)

    def obstacle(self, name: str) -> str:
        """Return why the trigger is blocked; empty: it is not."""
        why = self.blocks.why(name) or self._trials.obstacle(name)
        if why:
            return why
        jobs = (call.job for call in self.applying if call.consumer.registration.name == name)
        found = next((job.obstacle for job in jobs if job is not None and job.obstacle), "")
        return found and _NOT_WRITTEN + found

    # --- from the workers --------------------------------------------------------------------------

    def did(self, slot: WorkerSlot, outcomes: list[Any]) -> None:
        """ValueError: one is none."""
        for outcome in outcomes:
            match outcome:
                case [int(number), str(what), list(effects), error, str(output), checkpoint,
                      int(used_us), int(cpu_us)] if is_error(what, error) and is_state(checkpoint):  # fmt: skip
                    call = slot.calls.get(number)
                    if call is not None:  # else it was given up meanwhile
                        try:
                            self._over(call, what, used_us / 1e6, cpu_us / 1e6)
                            self._take(Outcome(call, what, error, output, checkpoint), effects)
                        except UNEXPECTED as fault:
                            self.fault(call, fault, rests=what == "more")
                case _:
                    raise ValueError(f"no outcome of a call: {str(outcome)[:60]}")
        self._feeder.advance_moved()

    def _over(self, call: Call, what: str, used_s: float, cpu_s: float) -> None:
        """A slice is over: the call leaves its place."""
        call.end()
        if what != "blocked":
            call.worker_slot.imported(call.module)
        call.used_s += used_s
        if what == "more":
            call.worker_slot.rested(call)
        else:
            call.worker_slot.remove(call)
            self.figures.of(call.consumer.name, time.monotonic()).runs.observe(call.used_s)
        self._feeder.slice_over(call, used_s, cpu_s)

    def fault(self, call: Call, fault: BaseException, *, rests: bool = False) -> None:
        """End a call whose outcome met an exception: its changes have failed.

        ``rests``: the worker has ended a slice of it and waits for the next one's beginning.
        """
        FAULTS.met(LOOP, fault)
        slot, is_wanted, call.is_abandoned = call.worker_slot, not call.is_abandoned, True
        self.applying.discard(call)
        if call.job is not None and self.applier is not None:
            self.applier.give_up(call.job)
        call.job = None
        call.end()
        is_in_slot = slot.calls.get(call.number) is call
        if is_in_slot and not call.is_between_slices:
            if rests:
                slot.rested(call)
            else:
                slot.remove(call)
        if call.is_scheduled:
            self._feeder.slice_over(call, 0.0, 0.0)
        if call.is_between_slices and is_in_slot:
            self._feeder.continue_call(call)  # to its end
        elif call.is_between_slices:
            self._feeder.lost(call)
        if is_wanted:
            self.not_sent(call.consumer, call.deliveries, fault)

    def not_sent(self, consumer: Consumer, deliveries: list[Delivery], fault: BaseException) -> None:
        """Changes failed by an exception of the store; those that were reported before it have their outcome."""
        open_ones = frozenset(consumer.state.still_in_flight([one.sequence for one in deliveries]))
        found = [one for one in deliveries if one.sequence in open_ones]
        if found:
            self._failed(consumer, found, ProgramFault(fault).wire_message, "")
        self._feeder.moved(consumer)

    def _take(self, outcome: Outcome, effects: list[Any]) -> None:
        call = outcome.call
        if outcome.output:
            self._lines.printed(call.consumer.registration.name, outcome.output, asyncio.get_running_loop().time())
        if not call.is_abandoned:
            self._write(outcome, effects)
        elif call.is_between_slices:
            self._feeder.continue_call(call)

    # --- effects -----------------------------------------------------------------------------------

    def _write(self, outcome: Outcome, effects: list[Any]) -> None:
        if not effects:
            self._written(outcome, None)
            return
        assert self.applier is not None, "calls are made while there are workers"
        call = outcome.call
        try:
            writes = self._writes_of(call, effects)
        except ColumnarError as error:
            self._written(outcome, error)
            return
        self.applying.add(call)
        one = call.consumer.registration
        call.job = self.applier.apply(writes, size_of(writes), partial(self._written, outcome), one.name, one.share)
        if one.name not in self._full and not self.applier.has_room(one.name):
            self._full.add(one.name)
            self._feeder.suspend_trigger(one.name)

    def _writes_of(self, call: Call, effects: list[Any]) -> list[Write]:
        """The effects of a change bear its stamp; in a batch each names its change by the place there.

        Changes of a batch come in their order: what a later one of a row gives would have an earlier one's refused.
        """
        if not call.consumer.registration.batch:
            return self._of_one(call, 0, effects)
        by_place: list[list[Any]] = [[] for _ in call.stamps]
        for effect in effects:
            if isinstance(effect, list) and len(effect) == 2 and isinstance(effect[0], int):
                at, one = effect
                if 0 <= at < len(by_place) and isinstance(one, list):
                    by_place[at].append(one)
                    continue
            raise IllegalArgument(f"an effect of a batch that names no change of it: {str(effect)[:100]}")
        return [write for at, ones in enumerate(by_place) if ones for write in self._of_one(call, at, ones)]

    def _of_one(self, call: Call, at: int, effects: list[Any]) -> list[Write]:
        writes = writes_of(effects, call.stamps[at], call.hops[at], lambda: call.contributions_of(at))
        if self.places_of_effects is not None:
            self.places_of_effects.check(call.consumer.registration.name, writes, call.hops[at])
        return writes

    def _written(self, outcome: Outcome, error: ColumnarError | None) -> None:
        """The effects of a slice are on disk, or cannot be written."""
        try:
            self._settle(outcome, error)
        except UNEXPECTED as fault:
            self.fault(outcome.call, fault)

    def _settle(self, outcome: Outcome, error: ColumnarError | None) -> None:
        call, what, consumer = outcome.call, outcome.what, outcome.call.consumer
        self.applying.discard(call)
        call.job = None
        if call.gives is not None and (error is not None or what != "done"):
            for delivery in call.deliveries:
                consumer.state.gave(delivery.sequence)
        if error is not None:
            call.is_abandoned = True  # its further effects are not wanted
            if call.is_between_slices:
                self._feeder.continue_call(call)
            why = _NOT_WRITTEN + error.wire_message
            if is_obstacle(error):
                self._blocked(consumer, call.deliveries, why, of_some=True)
                return
            self._failed(consumer, call.deliveries, why, outcome.output, is_last=isinstance(error, TooManyHops))
            return
        if outcome.checkpoint is not None:
            state, part = outcome.checkpoint
            consumer.state.came_to(call.deliveries[0].sequence, state, part)
            consumer.dirty = True
        if what == "blocked":
            self._blocked(consumer, call.deliveries, str(outcome.error), of_some=not call.is_cold)
            return
        if consumer.registration.name in self.blocks.blocked:
            self.blocks.worked(consumer.registration.name)
        if what == "more":
            self._feeder.continue_call(call)
            self._feeder.moved(consumer)
        elif what == "done":
            self.done(consumer, call.deliveries)
        elif what == "later":
            self._put_off(consumer, call.deliveries, float(outcome.error), is_requested=True)
        elif what == "named":
            self.named(consumer, call.deliveries, dict(outcome.error), outcome.output)
        else:
            acquit(consumer, call.deliveries)
            self._failed(consumer, call.deliveries, str(outcome.error), outcome.output)

    def _blocked(self, consumer: Consumer, deliveries: list[Delivery], why: str, *, of_some: bool = False) -> None:
        """Deliver the changes again later; no attempt is counted, and the trigger's status has the reason.

        ``of_some``: perhaps only some of a batch met the obstacle.  It is halved, so that the others end.
        """
        if of_some and len(deliveries) > 1:
            acquit(consumer, deliveries)
            self._halve(consumer, deliveries, why)
            return
        name, now_s = consumer.registration.name, asyncio.get_running_loop().time()
        consumer.state.last_error = why
        self._lines.failed(name, deliveries[0].attempt, why, now_s)
        self._put_off(consumer, deliveries, self.blocks.met(name, why, LONGEST_BLOCK_PAUSE_S))

    def _put_off(
        self, consumer: Consumer, deliveries: list[Delivery], seconds: float, *, is_requested: bool = False
    ) -> None:
        """Deliver them later; no attempt is counted.  ``is_requested``: by ``Later``, which a restart keeps."""
        acquit(consumer, deliveries)
        now_s = asyncio.get_running_loop().time()
        due_ms = max(1, round((time.time() + seconds) * 1_000)) if is_requested else 0
        consumer.state.put_off([one.sequence for one in deliveries], now_s + seconds, due_ms)
        self._progress(consumer)

    def done(self, consumer: Consumer, deliveries: list[Delivery]) -> None:
        acquit(consumer, deliveries)
        consumer.failed_reads = 0
        consumer.region.deliveries += len(deliveries)
        now_s = time.monotonic()
        self.figures.of(consumer.name, now_s).delivery(now_s, len(deliveries))
        for delivery in deliveries:
            consumer.state.done(delivery.sequence)
        self._progress(consumer)

    def dropped(self, consumer: Consumer) -> None:
        """Write no more for it."""
        for call in [one for one in self.applying if one.consumer is consumer]:
            self.applying.discard(call)
            call.is_abandoned = True
            if call.job is not None and self.applier is not None:
                self.applier.give_up(call.job)

    # --- workers that went ---------------------------------------------------------------------------

    def timed_out(self, call: Call) -> None:
        slot, registration = call.worker_slot, call.consumer.registration
        assert slot.link is not None, "calls are made while there is a link"
        slot.link.kill()  # first: ``gone`` follows, even if the rest fails
        what = "importing its module took over" if call.is_cold else "it ran over its timeout of"
        limit_ms = int(1000 * call.limit_s)
        _log.warning("trigger %s ran over its %d ms: its worker is ended", registration.name, limit_ms)
        for one in slot.take_all():
            try:
                if one is call:
                    self._ended_late(call, f"the call was ended: {what} {limit_ms} ms")
                else:
                    self._lost(one)
            except UNEXPECTED as fault:
                self.fault(one, fault)
        self._feeder.advance_moved()

    def _ended_late(self, call: Call, why: str) -> None:
        self._feeder.lost(call, call.limit_s)
        if not call.is_abandoned:
            self._ended(call, why)
            suspect(call)  # should it hang again, then alone

    def _ended(self, call: Call, why: str) -> None:
        """Fail the changes of a call that ended its worker, or made it necessary to end it."""
        if call.is_cold:
            self._trials.begin(call.module, why)
            self._blocked(call.consumer, call.deliveries, why)
        else:
            self._failed(call.consumer, call.deliveries, why, "")

    def silent(self, slot: WorkerSlot, seconds: float) -> None:
        """End the worker: some call blocks all its threads, and which one is unknown."""
        _log.warning("the trigger worker has said nothing for %.0f s: it is ended", seconds)
        slot.end_worker(f"it had said nothing for {seconds:.0f} s and was ended")
        for call in slot.came_too_late():
            try:
                slot.remove(call)
                self._lost(call)
            except UNEXPECTED as fault:
                self.fault(call, fault)
        self._feeder.advance_moved()

    def gone(self, slot: WorkerSlot, how: str) -> None:
        """Handle the end of the process: with one call in it, that has failed; of several the cause is unknown."""
        if slot.calls:
            _log.warning("the trigger worker is gone (%s) with %d calls in flight", how, len(slot.calls))
        ran = [call for call in slot.calls.values() if call.is_sent and not call.is_between_slices]
        for call in ran:
            suspect(call)
        for call in slot.take_all():
            try:
                if ran == [call] and not call.is_abandoned:
                    self._feeder.lost(call)
                    self._ended(call, (_NO_IMPORT if call.is_cold else _DIED) + how)
                else:
                    self._lost(call)
            except UNEXPECTED as fault:
                self.fault(call, fault)
        self._feeder.advance_moved()

    def _lost(self, call: Call) -> None:
        self._feeder.lost(call)
        if call.is_abandoned:
            return
        if call.job is not None and self.applier is not None:
            self.applying.discard(call)
            self.applier.give_up(call.job)
        self.not_delivered(call.consumer, call.deliveries)

    def not_delivered(self, consumer: Consumer, deliveries: list[Delivery]) -> None:
        consumer.requeue_deliveries(deliveries)
        self._progress(consumer)

    # --- failures ----------------------------------------------------------------------------------

    def _failed(
        self, consumer: Consumer, deliveries: list[Delivery], error: str, output: str, *, is_last: bool = False
    ) -> None:
        """Fail the deliveries; ``is_last``: another attempt would end in the same way."""
        if len(deliveries) == 1:
            self._one_failed(consumer, deliveries[0], error, output, is_last=is_last)
            return
        self._halve(consumer, deliveries, error)

    def _halve(self, consumer: Consumer, deliveries: list[Delivery], error: str) -> None:
        name = consumer.registration.name
        _log.info(
            "trigger %s failed with %d changes: they come again in halves: %s", name, len(deliveries), last(error)
        )
        consumer.state.last_error = error
        consumer.state.halved([one.sequence for one in deliveries])
        consumer.come_again()
        self._progress(consumer)

    def named(self, consumer: Consumer, deliveries: list[Delivery], names: dict[int, str], output: str) -> None:
        """A call failed by some of its changes, which are named by their places in it."""
        acquit(consumer, deliveries)
        by_sequence = {one.sequence: one for one in deliveries}
        places = {deliveries[at].sequence: why for at, why in names.items() if 0 <= at < len(deliveries)}
        for sequence, why in consumer.state.named(list(by_sequence), places):
            self._one_failed(consumer, by_sequence[sequence], why, output)
        consumer.come_again()
        self._progress(consumer)

    def _one_failed(
        self, consumer: Consumer, delivery: Delivery, error: str, output: str, *, is_last: bool = False
    ) -> None:
        registration = consumer.registration
        self.figures.of(consumer.name, time.monotonic()).failed += 1
        now_s = asyncio.get_running_loop().time()
        self._lines.failed(registration.name, delivery.attempt, error, now_s)
        if consumer.state.failed(delivery.sequence, error, now_s, 0 if is_last else registration.attempts):
            letter = letter_of(consumer, delivery, error, output, int(time.time() * 1000))
            task = asyncio.ensure_future(self._give_up(consumer, delivery, letter))
            self._letter_writes.add(task)
            task.add_done_callback(self._letter_writes.discard)
        self._progress(consumer)

    async def _give_up(self, consumer: Consumer, delivery: Delivery, letter: DeadLetter) -> None:
        """Write the letter to disk before the row continues; until then retry, while the row waits."""
        tries = 0
        while True:
            try:
                await self.add_letter(letter)
                break
            except ColumnarError as error:
                _log.error("dead letter of trigger %s cannot be written: %s", letter.trigger, error.text)
            except Exception as fault:  # noqa: BLE001 - the row would wait for ever
                FAULTS.met(LOOP, fault)
            tries += 1
            try:
                await asyncio.wait_for(self._closing.wait(), pause_s(tries))
                return  # the change is open: the next start delivers it again
            except TimeoutError:
                if not self._feeder.is_there(consumer):
                    return
        _log.warning("trigger %s gave up row %r after %d attempts", letter.trigger, letter.row[:40], letter.attempts)
        consumer.suspects.discard(delivery.sequence)
        consumer.state.given_up(delivery.sequence)
        self._progress(consumer)

    def _progress(self, consumer: Consumer) -> None:
        consumer.dirty = True
        self._feeder.moved(consumer)

    @property
    def pending_letter_writes(self) -> int:
        return len(self._letter_writes)

    # --- the stop ----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Write nothing more; the next start delivers the rest again."""
        self._closing.set()
        self.blocks.close()
        for call in self.applying:
            call.is_abandoned = True
            if call.job is not None and self.applier is not None:
                self.applier.give_up(call.job)
        self.applying.clear()

    async def wait_for_letter_writes(self) -> None:
        if self._letter_writes:
            await asyncio.wait(self._letter_writes)
