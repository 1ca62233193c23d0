"""Delivers durable changes to the trigger workers: the shell around ``dispatcher_state``, which decides everything.

Events come from consumers (``flows.hub``), from workers (``worker_process``), from the applier of effects and from one
timer.  After each event the instructions of the state are carried out.  Owned by the loop.

After an unexpected exception in an event, the pool of the event's worker begins anew (``DispatcherState.recover``): the
changes that the event handled fail, other changes in flight are delivered again.  If effects cannot be decoded, only
their change fails.  While requests arrive, changes are sent in the governor's steps, and the handling of results
lengthens the governor's pauses, so that a trigger's backlog leaves the loop to requests.  Without requests changes are
sent at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final

from columnar.errors import ProgramFault
from columnar.flows.applier import Applier
from columnar.flows.figures import Figures
from columnar.flows.followers import Followers
from columnar.flows.governor import STEP_S, GovernedStep, Governor
from columnar.flows.log_upkeep import LogUpkeep
from columnar.runtime.faults import FAULTS, UNEXPECTED, surviving
from columnar.runtime.log_lines import levels_of_loggers
from columnar.runtime.planned_step import PlannedStep
from columnar.triggers.call_effects import AddLetter, CallEffects, LetterWriter
from columnar.triggers.call_sender import CallSender
from columnar.triggers.consumer import Consumer
from columnar.triggers.delivery_source import NEVER
from columnar.triggers.dispatcher_state import DispatcherState
from columnar.triggers.effect_places import EffectPlaces
from columnar.triggers.frames import RUN_PARTS, check_outcome
from columnar.triggers.instructions import Instructions, Outcome
from columnar.triggers.intake import AnyConsumer, Intake
from columnar.triggers.module_checks import FunctionChecks, ModuleTrials
from columnar.triggers.owner_rights import OwnerRights
from columnar.triggers.worker_process import MakeLink, Worker
from columnar.triggers.worker_state import WorkerSlot

_log = logging.getLogger(__name__)

LOOP: Final = "the dispatcher of triggers"
AGAIN_S: Final = 0.1  # after an unexpected exception

LOG_INTERVAL_S: Final = 1.0  # between two lines of the log about failures of one trigger
PRINTED_BYTES: Final = 64 * 1024  # of one trigger's output logged in LOG_INTERVAL_S; the last call's may exceed it
_ALWAYS: Final = float("inf")


class CallLines:
    """Logs failures and output of the triggers' calls, at most one line a second for the failures of a trigger.

    Thousands of changes that fail together are due together, and a line for each would take longer than the calls.
    Output is bounded, too: a function that prints for each change would fill the disk.
    """

    def __init__(self) -> None:
        self._untold: dict[str, tuple[float, int]] = {}  # by trigger: when its last line was, and failures since
        self._printed: dict[str, tuple[float, int, int]] = {}  # by trigger: since when, bytes, calls left out

    def printed(self, name: str, output: str, now_s: float) -> None:
        """Log the output of a call."""
        since_s, size, left_out = self._printed.get(name, (now_s, 0, 0))
        if now_s - since_s >= LOG_INTERVAL_S:
            since_s, size = now_s, 0
        if size >= PRINTED_BYTES:
            self._printed[name] = since_s, size, left_out + 1
            return
        self._printed[name] = since_s, size + len(output), 0
        suffix = f" ({left_out} other calls printed since the last line)" if left_out else ""
        _log.info("trigger %s printed%s: %s", name, suffix, output.rstrip())

    def failed(self, name: str, attempt: int, error: str, now_s: float) -> None:
        """Log the failure of a call."""
        logged_s, untold = self._untold.get(name, (now_s - LOG_INTERVAL_S, 0))
        if now_s - logged_s < LOG_INTERVAL_S:
            self._untold[name] = logged_s, untold + 1
            return
        self._untold[name] = now_s, 0
        suffix = f" ({untold} other calls failed since the last line)" if untold else ""
        last = error.strip().rpartition("\n")[2]
        _log.info("trigger %s failed at attempt %d: %s%s", name, attempt, last, suffix)

    def log(self, todo: Instructions, now_s: float) -> None:
        """Log the lines and failures in ``todo``, and remove them."""
        while todo.lines:
            level, text = todo.lines.pop(0)
            _log.log(level, "%s", text)
        while todo.failures:
            name, attempt, error = todo.failures.pop(0)
            self.failed(name, attempt, error, now_s)


class Dispatcher:
    def __init__(
        self,
        followers: Followers,
        upkeep: LogUpkeep,
        add_letter: AddLetter,
        figures: Figures | None = None,
        places: EffectPlaces | None = None,
        owners: OwnerRights | None = None,
    ) -> None:
        """``add_letter`` writes a dead letter and returns when it is on disk; ``owners`` is None if rights are off."""
        owners = owners or OwnerRights(None)
        self.state = DispatcherState(figures or Figures())
        self.intake = Intake(self.state, followers, upkeep, self.deliver)
        self.sender = CallSender(self.state, self.intake, self, self._run_event, owners)
        self.effects = CallEffects(self.state, places, self._run_event, owners)
        self.letters = LetterWriter(self.state, self.intake, add_letter, self._run_event)
        self.trials = ModuleTrials(self.state.pauses.untrusted, self.intake.functions_of, self.intake.advance_module)
        self.checks = FunctionChecks(self.workers)
        self.common = self.state.pool_of("")  # of the triggers without a label
        self._governor: Governor | None = None  # None: there are no workers yet
        self._steps: GovernedStep | None = None  # sends changes, with the governor
        self._timer: tuple[float, asyncio.Handle | None] = (NEVER, None)  # when it is due
        self._lines = CallLines()
        self._is_closing = False
        self._again = PlannedStep(LOOP, self.deliver)  # after an exception
        self._broken: dict[str, str] = {}  # pools that begin anew, by label: the exception that they met

    def attach(self, make_link: MakeLink, applier: Applier, governor: Governor) -> None:
        """Deliver to workers from now on; ``applier`` writes their effects."""
        self._governor = governor
        self._steps = GovernedStep(governor, LOOP, lambda: self._deliver_until(perf_counter() + STEP_S))
        self.effects.attach(applier)
        self.trials.attach(make_link)
        self.checks.attach(make_link)
        self.sender.attach(make_link, governor)
        self.deliver()

    # --- triggers ------------------------------------------------------------------------------------

    def workers(self) -> list[Worker]:
        """Return all workers, also those without a process; the first runs the triggers without a label."""
        return self.sender.workers()

    def pause(self, name: str) -> None:
        self.state.pauses.triggers.add(name)

    def resume(self, name: str) -> None:
        self.state.pauses.triggers.discard(name)
        for consumer in self.intake.consumers_of(name):
            self.intake.advance_consumer(consumer)

    def forget_trigger(self, name: str) -> None:
        """Forget a removed trigger: the next trigger of that name is not paused."""
        self.resume(name)
        self.state.forget_trigger(name)

    def is_paused(self, name: str) -> bool:
        return name in self.state.pauses.triggers

    def obstacle(self, name: str) -> str:
        """Return why the trigger is blocked; an empty text if it is not."""
        return self.state.obstacle(name) or self.effects.obstacle(name)

    def calls_in_flight(self) -> int:
        """Return the number of calls in workers, plus those whose effects are being written."""
        in_workers = sum([len(slot.calls) for pool in self.state.pools.values() for slot in pool.slots])
        return in_workers + len(self.state.retries.applying)

    # --- consumers -----------------------------------------------------------------------------------

    def advance_consumer(self, consumer: AnyConsumer) -> None:
        self.sender.pool_of(consumer.registration.process)
        self.intake.advance_consumer(consumer)

    def pause_consumer_intake(self, consumer: Consumer) -> None:
        """Begin no more calls of the consumer; calls in flight end as usual."""
        self.state.withdraw(consumer.source)
        self._carry_out()

    def drop_consumer(self, consumer: AnyConsumer) -> None:
        self.intake.drop_consumer(consumer)
        self._carry_out()

    # --- delivering ----------------------------------------------------------------------------------

    def deliver(self) -> None:
        """Send changes to the workers, in queue order, while there is room for them; requests have priority."""
        if self._is_closing:
            return
        try:
            if self._broken:
                self._recover()
            if self._steps is None or self._governor is None or self._governor.may_work_at_once():
                self._deliver_until(_ALWAYS)
            else:
                self._steps.soon()
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            self._again.after(AGAIN_S)

    def _deliver_until(self, ends_s: float) -> bool:
        """Deliver from each pool at least once; return whether more calls are ready."""
        if self._is_closing or self.intake.upkeep.is_saving_paused or not self.sender.is_attached:
            return False
        more = False
        for pool in list(self.state.pools.values()):
            try:
                more |= self.sender.deliver_pool(pool, ends_s)
            except UNEXPECTED as fault:  # the other pools deliver
                self._begin_anew(pool.label, fault)
        self._carry_out()
        return more

    # --- worker_process.WorkerEvents -----------------------------------------------------------------

    def frame_came(self, worker: Worker, frame: list[Any]) -> None:
        now_s = asyncio.get_running_loop().time()
        worker.slot.heard(now_s)
        match frame:
            case ["did", list(outcomes)]:
                for outcome in outcomes:
                    check_outcome(outcome)
                begun_s = perf_counter()
                self._run_event(worker.slot.label, partial(self._take_outcomes, worker.slot, outcomes, now_s))
                self.intake.advance_moved()
                if self._governor is not None:
                    self._governor.spend(perf_counter() - begun_s)
            case ["began", list(numbers)] if all(isinstance(number, int) for number in numbers):
                self._run_event(worker.slot.label, partial(self.state.began, worker.slot, numbers, now_s))
            case ["checked", int(call_id), problem] if problem is None or isinstance(problem, str):
                self.checks.checked(call_id, problem)
            case ["alive", 0]:
                pass
            case _:
                raise ValueError(f"no answer of a worker: {str(frame)[:60]}")

    def _take_outcomes(self, slot: WorkerSlot, outcomes: list[list[Any]], now_s: float) -> None:
        for outcome in outcomes:
            if len(outcome) == RUN_PARTS:
                number, effects, used_us, cpu_us = outcome
                over = self.state.run_over(slot, number, len(effects), used_us / 1e6, cpu_us / 1e6, now_s)
                for call, first, count, at in over:
                    self.effects.write_run(call, first, effects[at : at + count])
                continue
            number, what, effects, error, output, checkpoint, used_us, cpu_us = outcome
            ended = self.state.slice_over(slot, number, what, used_us / 1e6, cpu_us / 1e6, now_s)
            if ended is not None:
                if output:
                    self._lines.printed(ended.source.registration.name, output, now_s)
                self.effects.write_slice(
                    Outcome(ended, ended.open_deliveries, what, error, output, checkpoint), effects
                )
        if slot.is_quarantine:
            self.state.pools[slot.label].end_quarantine()

    def worker_ready(self) -> None:
        if levels_of_loggers():
            self.sender.send_levels()
        self.deliver()

    def worker_exited(self, worker: Worker, how: str) -> None:
        with surviving(LOOP):
            self.checks.worker_gone(worker, how)
        now_s = asyncio.get_running_loop().time()
        self._run_event(worker.slot.label, partial(self.state.worker_gone, worker.slot, how, now_s))
        self.intake.advance_moved()

    # --- events and instructions ---------------------------------------------------------------------

    def _run_event(self, label: str, event: Callable[[], None]) -> None:
        """Run an event of a pool, and carry out the instructions that follow."""
        try:
            event()
            self._carry_out()
        except UNEXPECTED as fault:
            self._begin_anew(label, fault)

    def _begin_anew(self, label: str, fault: BaseException) -> None:
        FAULTS.met(LOOP, fault)
        self._broken[label] = ProgramFault(fault).wire_message
        try:
            self._recover()
        except UNEXPECTED as another:
            FAULTS.met(LOOP, another)
            self._again.after(AGAIN_S)

    def _recover(self) -> None:
        for label, error in list(self._broken.items()):
            self.state.recover(self.state.pool_of(label), error, asyncio.get_running_loop().time())
            del self._broken[label]
        self._carry_out()

    def _carry_out(self) -> None:
        """Carry out the state's instructions.  After an exception the next call carries out the rest."""
        todo = self.state.instructions
        while todo.slices:
            slot, kind, number = todo.slices[0]
            self.sender.worker_of(slot).send_frame(kind, number)
            del todo.slices[0]
        while todo.ending:
            slot, why = todo.ending[0]
            self.sender.worker_of(slot).end_process(why)
            del todo.ending[0]
        while todo.given_up:
            self.effects.give_up(todo.given_up.pop())  # removed first: it may free room, which is a further event
        while todo.imports:
            self.trials.begin_trial(*todo.imports[0])
            del todo.imports[0]
        while todo.letters:
            self.letters.write_letter(todo.letters[0])
            del todo.letters[0]
        if todo.failures or todo.lines:
            self._lines.log(todo, asyncio.get_running_loop().time())
        if todo.moved or todo.is_schedule_changed:
            self.intake.plan_advance()
        due_s = self.state.timers.next_s()
        if due_s != self._timer[0]:
            self._plan_timer(due_s)

    def _plan_timer(self, due_s: float) -> None:
        if self._timer[1] is not None:
            self._timer[1].cancel()
        self._timer = (NEVER, None)
        if due_s != NEVER and not self._is_closing:
            self._timer = (due_s, asyncio.get_running_loop().call_at(due_s, self._pass_time))

    def _pass_time(self) -> None:
        self._timer = (NEVER, None)
        try:
            now_s = asyncio.get_running_loop().time()
            while (due := self.state.take_due(now_s)) is not None:
                self._run_event(*due)
            self._carry_out()
            self.intake.advance_moved()
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            self._again.after(AGAIN_S)

    async def close(self) -> None:
        """Stop delivering; changes in flight will be delivered again at the next start."""
        self._is_closing = True
        self._again.cancel()
        self.intake.close()
        self._plan_timer(NEVER)
        for outcome in list(self.state.retries.applying):
            self.state.retries.give_up(outcome)
        for call in [one for pool in self.state.pools.values() for one in pool.begin_anew()]:
            call.end()
        self._carry_out()
        await self.trials.close()
        await self.sender.close()
        await self.letters.close()
