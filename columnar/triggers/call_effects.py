"""Writes the effects of calls and the dead letters of changes, and reports the results to the dispatcher's state.

The effects of several changes of a run are one job of the applier.  If the job meets an error, each change continues as
a job of its own: then only a change that writes to an unavailable region waits, and an error is reported for the change
that caused it.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from columnar.errors import ColumnarError, IllegalArgument, ProgramFault
from columnar.flows.applier import Applier
from columnar.flows.delivery_state import Delivery, pause_s
from columnar.flows.effects import Write, size_of, writes_of
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.dispatcher_state import DONE, DispatcherState
from columnar.triggers.effect_places import EffectPlaces
from columnar.triggers.instructions import Letter, Outcome
from columnar.triggers.intake import Intake
from columnar.triggers.owner_rights import OwnerRights
from columnar.triggers.worker_state import Call

_log = logging.getLogger(__name__)

LOOP: Final = "the effects of triggers"
_WAITING: Final = "its effects cannot be written: "

ERROR_CHARACTERS: Final = 300  # of an error in a line of the log; ``columnar trigger dead`` shows the whole

AddLetter = Callable[[DeadLetter], Awaitable[None]]
RunEvent = Callable[[str, Callable[[], None]], None]  # label of a pool, an event of it


class CallEffects:
    def __init__(
        self, state: DispatcherState, places: EffectPlaces | None, run_event: RunEvent, owners: OwnerRights
    ) -> None:
        """If ``places`` is None, cycles are not checked; ``run_event`` runs an event and carries out what follows."""
        self._state = state
        self._retries = state.retries
        self._places = places
        self._owners = owners
        self._run_event = run_event
        self._applier: Applier | None = None  # set before there are workers

    def attach(self, applier: Applier) -> None:
        self._applier = applier
        applier.notify_room(self._check_room)

    def obstacle(self, name: str) -> str:
        """Return why effects of the trigger have waited long; an empty text if no effects have."""
        jobs = (one.job for one in self._retries.applying if one.source.registration.name == name)
        found = next((job.obstacle for job in jobs if job is not None and job.obstacle), "")
        return found and _WAITING + found

    def give_up(self, outcome: Outcome) -> None:
        if outcome.job is not None and self._applier is not None:
            self._applier.give_up(outcome.job)

    # --- outcomes ------------------------------------------------------------------------------------

    def write_slice(self, outcome: Outcome, effects: list[Any]) -> None:
        """Write the effects of a slice of one change, or of a batch."""
        try:
            writes = self._writes_of(outcome.call, effects) if effects else []
        except ColumnarError as error:
            self._settle(outcome, error)
        except UNEXPECTED as fault:
            self._fail(outcome, fault)
        else:
            if writes:
                self._apply(outcome, writes)
            else:
                self._settle(outcome, None)

    def write_run(self, call: Call, first: int, effects: list[list[Any]]) -> None:
        """Write the effects of successive changes of a run; ``first`` is the place of the first of these changes."""
        done: list[Delivery] = []
        by_change: list[list[Write]] = []
        together: list[Write] = []
        for at, ones in enumerate(effects, first):
            delivery = call.deliveries[at]
            assert delivery is not None, "it is part of the run"
            try:
                writes = self._writes_of_change(call, at, ones) if ones else []
            except ColumnarError as error:
                self._settle(Outcome(call, [delivery], DONE, None, "", None), error)
            except UNEXPECTED as fault:
                self._fail(Outcome(call, [delivery], DONE, None, "", None), fault)
            else:
                done.append(delivery)
                by_change.append(writes)
                together += writes
        outcome = Outcome(call, done, DONE, None, "", None)
        if together:
            self._apply(outcome, together, partial(self._divide, outcome, by_change) if len(done) > 1 else None)
        elif done:
            self._settle(outcome, None)

    def _divide(self, outcome: Outcome, by_change: list[list[Write]]) -> None:
        """Continue with each change of a run by itself, since the effects of the run have met an error."""
        self._run_event(outcome.source.registration.process, partial(self._apply_parts, outcome, by_change))

    def _apply_parts(self, outcome: Outcome, by_change: list[list[Write]]) -> None:
        if outcome not in self._retries.applying:
            return  # it was given up
        self._retries.applying.pop(outcome)
        for part, writes in zip(outcome.parts(), by_change, strict=True):
            if writes:
                self._apply(part, writes)
            else:
                self._settle(part, None)

    def _apply(self, outcome: Outcome, writes: list[Write], on_trouble: Callable[[], None] | None = None) -> None:
        assert self._applier is not None, "calls are made while there are workers"
        one = outcome.source.registration
        self._retries.apply_effects(outcome)
        job = self._applier.apply(
            writes, size_of(writes), partial(self._written, outcome), one.name, one.share, on_trouble=on_trouble
        )
        outcome.note_job(job, gave=outcome.call.contributions is not None)
        if not self._applier.has_room(one.name):
            self._retries.fill_effects(one.name)

    def _writes_of(self, call: Call, effects: list[Any]) -> list[Write]:
        """Return the writes for the effects, each stamped by its change; an effect of a batch names its change's place.

        The writes keep the order of changes: once a later change of a row has contributed, an earlier change of the row
        is refused.
        """
        if not call.source.registration.batch:
            return self._writes_of_change(call, 0, effects)
        by_place: list[list[Any]] = [[] for _ in call.origins]
        for effect in effects:
            if isinstance(effect, list) and len(effect) == 2 and isinstance(effect[0], int):
                at, one = effect
                if 0 <= at < len(by_place) and isinstance(one, list):
                    by_place[at].append(one)
                    continue
            raise IllegalArgument(f"an effect of a batch that names no change of it: {str(effect)[:100]}")
        return [write for at, ones in enumerate(by_place) if ones for write in self._writes_of_change(call, at, ones)]

    def _writes_of_change(self, call: Call, at: int, effects: list[Any]) -> list[Write]:
        origin = call.origins[at]
        writes = writes_of(
            effects, origin.stamp, origin.hops, partial(call.contributions_of, at), partial(_sender_of, call, at)
        )
        self._owners.check_writes(call.source.registration, writes)
        if self._places is not None:
            self._places.check(call.source.registration.name, writes, origin.hops)
        return writes

    # --- reports -------------------------------------------------------------------------------------

    def _written(self, outcome: Outcome, error: ColumnarError | None) -> None:
        """Report that the effects are on disk, or cannot be written.  An outcome that was given up is ignored."""
        if outcome not in self._retries.applying:
            return
        self._run_event(outcome.source.registration.process, partial(self._settle, outcome, error))

    def _settle(self, outcome: Outcome, error: ColumnarError | None) -> None:
        self._state.settle(outcome, error, asyncio.get_running_loop().time(), time.time() * 1_000)

    def _fail(self, outcome: Outcome, fault: BaseException) -> None:
        """Settle an outcome whose effects cannot be read because of a fault of the program."""
        FAULTS.met(LOOP, fault)
        self._settle(outcome, IllegalArgument(ProgramFault(fault).text))

    def _check_room(self) -> None:
        if self._retries.full:
            self._run_event("", self._free_room)

    def _free_room(self) -> None:
        for name in [one for one in self._retries.full if self._applier is not None and self._applier.has_room(one)]:
            self._retries.free_effects(name)


def _sender_of(call: Call, at: int) -> bytes:
    """Return the name of a call's change, which is the same each time that the function runs for the change."""
    delivery = call.deliveries[at]
    assert delivery is not None, "its effects are written"
    return f"{call.source.registration.name} {delivery.sequence.token}".encode()


def last_line(error: str) -> str:
    """Return the last line of an error, which names it; the lines before it are those of a traceback."""
    return error.rstrip().rpartition("\n")[2][:ERROR_CHARACTERS]


class LetterWriter:
    """Writes dead letters; later changes of a row wait until its letter is on disk."""

    def __init__(self, state: DispatcherState, intake: Intake, add: AddLetter, run_event: RunEvent) -> None:
        """``add`` writes a dead letter and returns when it is on disk."""
        self.add = add
        self._state = state
        self._intake = intake
        self._run_event = run_event
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def write_letter(self, letter: Letter) -> None:
        task = asyncio.ensure_future(self._write(letter))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self, letter: Letter) -> None:
        """Write the letter; retry after growing pauses, because no other task would."""
        tries, name = 0, letter.source.registration.name
        while not letter.source.is_dropped:
            try:
                consumer = self._intake.consumer_of(letter.source)
                await self.add(consumer.letter_of(letter.delivery, letter.error, letter.output))
            except ColumnarError as error:
                _log.error("dead letter of trigger %s cannot be written: %s", name, error.text)
            except Exception as fault:  # noqa: BLE001 - the row would wait for ever
                FAULTS.met(LOOP, fault)
            else:
                row, attempt = letter.delivery.row[:40], letter.delivery.attempt
                why = last_line(letter.error)
                _log.warning("trigger %s gave up row %r after %d attempts: %s", name, row, attempt, why)
                self._run_event(letter.source.registration.process, partial(self._state.retries.end_letter, letter))
                return
            tries += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause_s(tries))
                return  # the change is open: the next start delivers it again

    async def close(self) -> None:
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks)
