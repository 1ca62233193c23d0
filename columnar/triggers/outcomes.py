"""Outcomes of calls: effects are written, then the change is done, or it has failed and is tried again.

    done      the effects of its last slice are on disk: the change is done
    more      the effects of a slice are on disk: its checkpoint is kept, and the worker yields on
    later     the change comes again after a pause, without blame
    failed    an attempt is counted; after the last one the change becomes a dead letter
              of both, what was yielded up to the last checkpoint is written first
    lost      the worker went while it ran, or had to be ended because of another call: it is delivered again

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from columnar.errors import ColumnarError, TooManyHops
from columnar.flows.applier import Applier
from columnar.flows.delivery_state import Delivery, pause_s
from columnar.flows.effects import size_of, writes_of
from columnar.regions import change_record
from columnar.regions.change_record import ChangeRecord
from columnar.triggers.consumer import Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.effect_places import EffectPlaces
from columnar.triggers.lane import Call, Lane
from columnar.triggers.places import Places

_log = logging.getLogger(__name__)

_DIED: Final = "the worker process went while it ran: "


class Delivering(Protocol):
    """The feeder, as outcomes see it."""

    def is_there(self, consumer: Consumer) -> bool: ...

    def moved(self, consumer: Consumer) -> None:
        """Its state has changed: go on with it, at the latest in the loop's next turn."""

    def go_on_moved(self) -> None:
        """Now."""

    def left(self, call: Call) -> None:
        """The call has left its place in the worker."""


class _Outcome(NamedTuple):
    number: int
    call: Call
    what: str
    error: Any  # the traceback's text, or seconds
    output: str
    checkpoint: bytes | None


class Outcomes:
    def __init__(self, feeder: Delivering, places: Places, bury: Callable[[DeadLetter], Awaitable[None]]) -> None:
        """``bury`` writes a dead letter and returns when it is on disk."""
        self._feeder = feeder
        self._places = places
        self.bury = bury
        self.applier: Applier | None = None  # set before there are workers
        self.places_of_effects: EffectPlaces | None = None  # None: nobody looks for cycles
        self.applying: set[Call] = set()  # whose effects are being written
        self._burials: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    @property
    def has_room(self) -> bool:
        """For the effects of more calls."""
        return self.applier is not None and self.applier.has_room

    # --- from the workers --------------------------------------------------------------------------

    def did(self, lane: Lane, outcomes: list[Any]) -> None:
        """ValueError: one is none."""
        for outcome in outcomes:
            match outcome:
                case [int(number), str(what), list(effects), None | str() | float() as error, str(output),
                      None | bytes() as checkpoint, int(used_us)]:  # fmt: skip
                    self._one(lane, number, what, effects, error, output, checkpoint, used_us)
                case _:
                    raise ValueError(f"no outcome of a call: {str(outcome)[:60]}")
        self._feeder.go_on_moved()

    def _one(
        self, lane: Lane, number: int, what: str, effects: list[Any], error: Any, output: str,
        checkpoint: bytes | None, used_us: int,
    ) -> None:  # fmt: skip
        call = lane.calls.get(number)
        if call is None:
            return  # it was given up meanwhile
        call.end()
        lane.imported(call.function)
        self._places.used(call.consumer.registration.name, used_us / 1e6)
        if output:
            _log.info("trigger %s printed: %s", call.consumer.registration.name, output.rstrip())
        if what == "more":
            call.rests = True
        else:
            lane.remove(number)
            self._feeder.left(call)
        if call.is_abandoned:
            if call.rests:
                lane.go_on(number, call)
        else:
            self._write(_Outcome(number, call, what, error, output, checkpoint), effects)

    # --- effects -----------------------------------------------------------------------------------

    def _write(self, outcome: _Outcome, effects: list[Any]) -> None:
        if not effects:
            self._written(outcome, None)
            return
        assert self.applier is not None, "calls are made while there are workers"
        call = outcome.call
        try:
            writes = writes_of(effects, call.stamp, call.hops)
            if self.places_of_effects is not None:
                self.places_of_effects.check(call.consumer.registration.name, writes, call.hops)
        except ColumnarError as error:
            self._written(outcome, error)
            return
        self.applying.add(call)
        call.job = self.applier.apply(writes, size_of(writes), partial(self._written, outcome))

    def _written(self, outcome: _Outcome, error: ColumnarError | None) -> None:
        """The effects of a slice are on disk, or cannot be written."""
        call, what = outcome.call, outcome.what
        self.applying.discard(call)
        call.job = None
        state, sequence = call.consumer.state, call.delivery.sequence
        if error is not None:
            call.is_abandoned = True  # what it would still yield is not wanted
            if call.rests:
                call.lane.go_on(outcome.number, call)
            text, is_last = f"its effects cannot be written: {error.wire_message}", isinstance(error, TooManyHops)
            self.failed(call, text, outcome.output, is_last=is_last)
            return
        if outcome.checkpoint is not None:
            state.came_to(sequence, outcome.checkpoint)
            call.consumer.dirty = True
        if what == "more":
            call.lane.go_on(outcome.number, call)
            self._feeder.moved(call.consumer)
        elif what == "done":
            self.done(call)
        else:
            call.consumer.suspects.discard(sequence)
            if what == "later":
                state.put_off(sequence, asyncio.get_running_loop().time() + float(outcome.error))
                self._progress(call.consumer)
            else:
                self.failed(call, str(outcome.error), outcome.output)

    def done(self, call: Call) -> None:
        consumer = call.consumer
        consumer.suspects.discard(call.delivery.sequence)
        consumer.failed_reads = 0
        consumer.region.deliveries += 1
        consumer.state.done(call.delivery.sequence)
        self._progress(consumer)

    def dropped(self, consumer: Consumer) -> None:
        """Write no more for it."""
        for call in [one for one in self.applying if one.consumer is consumer]:
            self.applying.discard(call)
            call.is_abandoned = True
            if call.job is not None and self.applier is not None:
                self.applier.give_up(call.job)

    # --- workers that went ---------------------------------------------------------------------------

    def timed_out(self, number: int, call: Call) -> None:
        lane, registration = call.lane, call.consumer.registration
        lane.remove(number)
        self._feeder.left(call)
        what = "importing its module took over" if call.is_cold else "it ran over its timeout of"
        limit_ms = int(1000 * call.limit_s)
        _log.warning("trigger %s ran over its %d ms: its worker is ended", registration.name, limit_ms)
        others = lane.take_all()
        assert lane.link is not None, "calls are made while there is a link"
        lane.link.kill()
        if not call.is_abandoned:
            call.consumer.suspects.add(call.delivery.sequence)  # should it hang again, then alone
            self.failed(call, f"the call was ended: {what} {limit_ms} ms", "")
        for other in others:
            self._lost(other)
        self._feeder.go_on_moved()

    def silent(self, lane: Lane, seconds: float) -> None:
        """Some call holds up all threads of the worker, and nobody knows which."""
        _log.warning("the trigger worker has said nothing for %.0f s: it is ended", seconds)
        if lane.link is not None:
            lane.link.kill()  # ``gone`` follows

    def gone(self, lane: Lane, how: str) -> None:
        """The process ended: with one call in it, that has failed; of several nobody knows which did it."""
        calls = lane.take_all()
        if calls:
            _log.warning("the trigger worker is gone (%s) with %d calls in flight", how, len(calls))
        ran = [call for call in calls if call.is_sent and not call.rests]
        for call in ran:
            call.consumer.suspects.add(call.delivery.sequence)
        for call in calls:
            if call.is_abandoned:
                self._feeder.left(call)
            elif ran == [call]:
                self._feeder.left(call)
                self.failed(call, _DIED + how, "")
            else:
                self._lost(call)
        self._feeder.go_on_moved()

    def _lost(self, call: Call) -> None:
        self._feeder.left(call)
        if call.is_abandoned:
            return
        if call.job is not None and self.applier is not None:
            self.applying.discard(call)
            self.applier.give_up(call.job)
        self.not_delivered(call.consumer, call.delivery.sequence)

    def not_delivered(self, consumer: Consumer, sequence: change_record.Sequence) -> None:
        consumer.state.lost(sequence)
        self._progress(consumer)

    # --- failures ----------------------------------------------------------------------------------

    def failed(self, call: Call, error: str, output: str, *, is_last: bool = False) -> None:
        """``is_last``: another attempt would end in the same way."""
        consumer, delivery = call.consumer, call.delivery
        registration = consumer.registration
        last_line = error.strip().rpartition("\n")[2]
        _log.info("trigger %s failed at attempt %d: %s", registration.name, delivery.attempt, last_line)
        now_s = asyncio.get_running_loop().time()
        if consumer.state.failed(delivery.sequence, error, now_s, 0 if is_last else registration.attempts):
            letter = DeadLetter(
                registration.name,
                registration.table,
                delivery.row,
                delivery.sequence.token,
                delivery.attempt,
                error,
                output,
                int(time.time() * 1000),
                _change_of(consumer, delivery),
            )
            task = asyncio.ensure_future(self._give_up(consumer, delivery, letter))
            self._burials.add(task)
            task.add_done_callback(self._burials.discard)
        self._progress(consumer)

    async def _give_up(self, consumer: Consumer, delivery: Delivery, letter: DeadLetter) -> None:
        """The letter is on disk before the row goes on; until then it is tried again, and the row waits."""
        tries = 0
        while True:
            try:
                await self.bury(letter)
                break
            except ColumnarError as error:
                _log.error("dead letter of trigger %s cannot be written: %s", letter.trigger, error.text)
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
    def burials_under_way(self) -> int:
        return len(self._burials)

    # --- the stop ----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Nothing more is written; the next start delivers it again."""
        self._closing.set()
        for call in self.applying:
            call.is_abandoned = True
            if call.job is not None and self.applier is not None:
                self.applier.give_up(call.job)
        self.applying.clear()

    async def wait_for_burials(self) -> None:
        if self._burials:
            await asyncio.wait(self._burials)


def _change_of(consumer: Consumer, delivery: Delivery) -> ChangeRecord | None:
    """The change that a letter keeps; None: its record cannot be read, or a person removed it."""
    try:
        return consumer.region.log.record_at(delivery.sequence)
    except ColumnarError as error:
        _log.warning("a dead letter of %s lacks its change: %s", consumer.name, error.text)
        return None
