"""Feeds durable changes to the trigger workers and keeps account of what became of each.

The shell around ``delivery_state``: events come from consumers (``flows.hub``), from the workers (``lane``) and from
timers, and the states say what to do.  Owned by the loop.

Fairness: consumers with work take turns, one change each; at most ``frames.WORKER_THREADS`` calls are in
flight, so each begins at once and its timeout is its own.  A call over its timeout ends the worker
process: that change has failed, the others in flight are delivered again without blame.  A worker
that dies by itself makes suspects of the calls it had: they go on in the ward (see ``lane``).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from columnar.errors import ColumnarError, DamagedData
from columnar.flows.delivery_state import Delivery, pause_s
from columnar.flows.follower_name import trigger
from columnar.flows.followers import Followers
from columnar.flows.log_upkeep import LogUpkeep
from columnar.regions import change_record
from columnar.triggers.consumer import Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.frames import WORKER_THREADS
from columnar.triggers.lane import Call, Lane, MakeLink

_log = logging.getLogger(__name__)

_DIED: Final = "the worker process went while it ran: "


class Feeder:
    def __init__(self, followers: Followers, upkeep: LogUpkeep, bury: Callable[[DeadLetter], Awaitable[None]]) -> None:
        """``bury`` writes a dead letter and returns when it is on disk."""
        self._followers = followers
        self.upkeep = upkeep
        self._bury = bury
        self.main = Lane(self, WORKER_THREADS)
        self.ward = Lane(self, 1)
        self._turns: deque[Consumer] = deque()  # those with something to deliver
        self._waiting_turn: set[int] = set()  # id() of those in ``_turns``
        self._suspects: deque[tuple[Consumer, Delivery]] = deque()  # taken, waiting for the ward
        self._last_call = 0
        self._paused: set[str] = set()
        self._burials: set[asyncio.Task[None]] = set()
        self._wake_timers: dict[int, asyncio.TimerHandle] = {}  # by id() of the consumer
        self._unreadable: dict[int, asyncio.TimerHandle] = {}  # by id() of the consumer: when to read its region again
        self._closing: asyncio.Event = asyncio.Event()
        self.on_checked: Callable[[int, str | None], None] = lambda _call_id, _problem: None
        self.on_worker_gone: Callable[[str], None] = lambda _how: None

    def attach(self, make_link: MakeLink) -> None:
        """From now on there are workers to deliver to."""
        self.main.link, self.ward.link = make_link(self.main), make_link(self.ward)
        self.deliver()

    # --- consumers ---------------------------------------------------------------------------------

    def consumers_of(self, name: str) -> list[Consumer]:
        """The consumers of a trigger on open regions; those of all triggers for an empty name."""
        return [one for one in self._followers.of(trigger(name)) if isinstance(one, Consumer)]

    def dropped(self, consumer: Consumer) -> None:
        """Forget it.  Calls in flight keep their thread and their timeout, and their answers change nothing."""
        for lane in (self.main, self.ward):
            for call in lane.calls.values():
                call.is_abandoned = call.is_abandoned or call.consumer is consumer
        self._suspects = deque(held for held in self._suspects if held[0] is not consumer)
        if id(consumer) in self._waiting_turn:
            self._waiting_turn.discard(id(consumer))
            self._turns.remove(consumer)
        for timers in (self._wake_timers, self._unreadable):
            timer = timers.pop(id(consumer), None)
            if timer is not None:
                timer.cancel()

    def _is_there(self, consumer: Consumer) -> bool:
        return self._followers.has(consumer)

    def pause(self, name: str) -> None:
        self._paused.add(name)

    def resume(self, name: str) -> None:
        self._paused.discard(name)
        for consumer in self.consumers_of(name):
            self.go_on(consumer)

    def is_paused(self, name: str) -> bool:
        return name in self._paused

    def held(self, consumer: Consumer) -> None:
        """Take up nothing more of it; what is in flight ends as it would."""
        waiting = [delivery for held, delivery in self._suspects if held is consumer]
        self._suspects = deque(held for held in self._suspects if held[0] is not consumer)
        for delivery in waiting:
            self._not_delivered(consumer, delivery.sequence)

    def _rests(self, consumer: Consumer) -> bool:
        is_kept = consumer.registration.name in self._paused
        is_held = self._followers.is_held(consumer.region.info.region_id)
        return is_kept or is_held or id(consumer) in self._unreadable

    def calls_in_flight(self) -> int:
        return len(self.main.calls) + len(self.ward.calls)

    # --- delivering --------------------------------------------------------------------------------

    def go_on(self, consumer: Consumer) -> None:
        """Read what there is room for, and queue for a turn when something is ready."""
        if self._closing.is_set() or self._rests(consumer):
            return
        more = self._fill(consumer)
        if more and not consumer.state.has_ready:
            asyncio.get_running_loop().call_soon(self._go_on_if_there, consumer)
        if consumer.state.has_ready:
            self._queue(consumer)
        self._arm(consumer)
        self._followers.notify(consumer.key)
        self.deliver()

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
            self._read_later(consumer, error)
        return False

    def _read_later(self, consumer: Consumer, error: ColumnarError) -> None:
        """The region cannot be read now, as on a disk that failed: again after a growing pause.

        A region whose store is broken closes meanwhile, and the consumer of its next opening goes on.
        """
        consumer.failed_reads += 1
        after_s = pause_s(consumer.failed_reads)
        name, region = consumer.registration.name, consumer.region.info.encoded
        _log.warning("trigger %s reads region %s again in %.1f s: %s", name, region, after_s, error.text)
        consumer.state.last_error = error.wire_message
        if id(consumer) not in self._unreadable:
            again = asyncio.get_running_loop().call_later(after_s, self._read_again, consumer)
            self._unreadable[id(consumer)] = again

    def _read_again(self, consumer: Consumer) -> None:
        del self._unreadable[id(consumer)]
        self.go_on(consumer)

    def _go_on_if_there(self, consumer: Consumer) -> None:
        if self._is_there(consumer):
            self.go_on(consumer)

    def _queue(self, consumer: Consumer) -> None:
        if id(consumer) not in self._waiting_turn:
            self._waiting_turn.add(id(consumer))
            self._turns.append(consumer)

    def _arm(self, consumer: Consumer) -> None:
        due_s = consumer.state.next_due_s()
        if due_s is not None and id(consumer) not in self._wake_timers:
            self._wake_timers[id(consumer)] = asyncio.get_running_loop().call_at(due_s, self._wake, consumer)

    def _wake(self, consumer: Consumer) -> None:
        """A parked row's pause is over."""
        self._wake_timers.pop(id(consumer), None)
        self._queue(consumer)
        self.deliver()

    def deliver(self) -> None:
        """Send changes to the workers, one of each consumer in turn, while they have threads free."""
        if self._closing.is_set() or self.upkeep.is_held:
            return
        self._deliver_suspect()
        if not self._turns or not self.main.wanted():
            return
        now_s = asyncio.get_running_loop().time()
        while self._turns and self.main.has_room:
            consumer = self._turns.popleft()
            self._waiting_turn.discard(id(consumer))
            if self._rests(consumer):
                continue
            delivery = consumer.state.take(now_s)
            if delivery is not None and delivery.sequence in consumer.suspects:
                self._suspects.append((consumer, delivery))
                asyncio.get_running_loop().call_soon(self.deliver)
            elif delivery is not None:
                self._call(self.main, consumer, delivery)
            self._requeue(consumer)

    def _deliver_suspect(self) -> None:
        while self._suspects and self._rests(self._suspects[0][0]):
            consumer, delivery = self._suspects.popleft()
            consumer.state.lost(delivery.sequence)
        if self._suspects and self.ward.wanted() and self.ward.has_room:
            self._call(self.ward, *self._suspects.popleft())

    def _requeue(self, consumer: Consumer) -> None:
        if not self._is_there(consumer):
            return
        if not consumer.state.has_ready:
            if consumer.state.room > 0 and not self._fill(consumer) and not consumer.state.has_ready:
                self._arm(consumer)
                return
            if not consumer.state.has_ready:
                asyncio.get_running_loop().call_soon(self._go_on_if_there, consumer)
                return
        self._queue(consumer)

    def _call(self, lane: Lane, consumer: Consumer, delivery: Delivery) -> None:
        call = Call(lane, consumer, delivery)
        try:
            change = consumer.change_of(delivery)
        except DamagedData as error:
            asyncio.get_running_loop().call_soon(
                self._failed, call, f"its change cannot be read: {error.wire_message}", ""
            )
            return
        except ColumnarError as error:
            self._read_later(consumer, error)
            consumer.state.lost(delivery.sequence)
            return
        if change is None:  # its record is gone: only after a repair by hand
            asyncio.get_running_loop().call_soon(self._done, call)
            return
        self._last_call += 1
        lane.calls[self._last_call] = call
        barrier = consumer.region.barrier(delivery.row)
        if barrier is None:
            lane.send(self._last_call, call, change)
        else:  # the row as it is now holds what a crash could take back: nothing may be derived from that
            barrier.add_done_callback(partial(self._when_durable, self._last_call, call, change))

    def _when_durable(self, call_id: int, call: Call, change: list[Any], barrier: asyncio.Future[None]) -> None:
        lane = call.lane
        if lane.calls.get(call_id) is not call or self._closing.is_set():
            return
        if call.is_abandoned or barrier.exception() is not None:  # then the region is closed too
            del lane.calls[call_id]
            self.deliver()
        elif lane.link is not None and lane.link.is_up:
            lane.send(call_id, call, change)

    # --- from the workers --------------------------------------------------------------------------

    def answered(self, lane: Lane, frame: list[Any]) -> None:
        match frame:
            case ["ran", int(call_id), None | str() as error, str(output)]:
                self._ran(lane, call_id, error, output)
            case ["began", int(call_id)]:
                if call_id in lane.calls:
                    lane.imported(lane.calls[call_id].function)
            case ["checked", int(call_id), None | str() as problem]:
                self.on_checked(call_id, problem)
            case _:
                raise ValueError(f"no answer of a worker: {str(frame)[:60]}")

    def _ran(self, lane: Lane, call_id: int, error: str | None, output: str) -> None:
        call = lane.calls.pop(call_id, None)
        if call is None:
            return  # it was given up meanwhile
        call.end()
        lane.imported(call.function)
        if lane is self.ward and not self._suspects and lane.link is not None:
            lane.link.kill()  # a second process stays no longer than there is need of it
        if output:
            _log.info("trigger %s printed: %s", call.consumer.registration.name, output.rstrip())
        if call.is_abandoned:
            self.deliver()
        elif error is None:
            self._done(call)
        else:
            call.consumer.suspects.discard(call.delivery.sequence)
            self._failed(call, error, output)

    def _done(self, call: Call) -> None:
        call.consumer.suspects.discard(call.delivery.sequence)
        call.consumer.failed_reads = 0
        call.consumer.region.deliveries += 1
        call.consumer.state.done(call.delivery.sequence)
        self._progress(call.consumer)

    def timed_out(self, call_id: int, call: Call) -> None:
        lane, registration = call.lane, call.consumer.registration
        del lane.calls[call_id]
        what = "importing its module took over" if call.is_cold else "it ran over its timeout of"
        limit_ms = int(1000 * call.limit_s)
        _log.warning("trigger %s ran over its %d ms: its worker is ended", registration.name, limit_ms)
        others = lane.take_all()
        assert lane.link is not None, "calls are made while there is a link"
        lane.link.kill()
        if not call.is_abandoned:
            call.consumer.suspects.add(call.delivery.sequence)  # should it hang again, then alone
            self._failed(call, f"the call was ended: {what} {limit_ms} ms", "")
        for other in others:
            self._lost(other)

    def _lost(self, call: Call) -> None:
        if not call.is_abandoned:
            self._not_delivered(call.consumer, call.delivery.sequence)

    def _not_delivered(self, consumer: Consumer, sequence: change_record.Sequence) -> None:
        consumer.state.lost(sequence)
        self._progress(consumer)

    def lane_gone(self, lane: Lane, how: str) -> None:
        """The process ended: with one call in it, that has failed; of several nobody knows which did it."""
        calls = lane.take_all()
        if lane is self.main:
            self.on_worker_gone(how)
        if calls:
            _log.warning("the trigger worker is gone (%s) with %d calls in flight", how, len(calls))
        for call in calls:
            call.consumer.suspects.add(call.delivery.sequence)
            if len(calls) > 1:
                self._lost(call)
            elif not call.is_abandoned:
                self._failed(call, _DIED + how, "")
        self.deliver()

    # --- failures ----------------------------------------------------------------------------------

    def _failed(self, call: Call, error: str, output: str) -> None:
        consumer, delivery = call.consumer, call.delivery
        registration = consumer.registration
        last_line = error.strip().rpartition("\n")[2]
        _log.info("trigger %s failed at attempt %d: %s", registration.name, delivery.attempt, last_line)
        now_s = asyncio.get_running_loop().time()
        if consumer.state.failed(delivery.sequence, error, now_s, registration.attempts):
            letter = DeadLetter(
                registration.name,
                registration.table,
                delivery.row,
                delivery.sequence.token,
                delivery.attempt,
                error,
                output,
                int(time.time() * 1000),
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
                await self._bury(letter)
                break
            except ColumnarError as error:
                _log.error("dead letter of trigger %s cannot be written: %s", letter.trigger, error.text)
            tries += 1
            try:
                await asyncio.wait_for(self._closing.wait(), pause_s(tries))
                return  # the change is open: the next start delivers it again
            except TimeoutError:
                if not self._is_there(consumer):
                    return
        _log.warning("trigger %s gave up row %r after %d attempts", letter.trigger, letter.row[:40], letter.attempts)
        consumer.suspects.discard(delivery.sequence)
        consumer.state.given_up(delivery.sequence)
        self._progress(consumer)

    # --- progress ----------------------------------------------------------------------------------

    def _progress(self, consumer: Consumer) -> None:
        consumer.dirty = True
        if self._is_there(consumer):
            self.upkeep.soon(consumer.region)
            self.go_on(consumer)
            self._followers.notify(consumer.key)  # of paused ones too
        self.deliver()

    async def close(self) -> None:
        """Stop delivering; what is in flight will be delivered again at the next start."""
        self._closing.set()
        for lane in (self.main, self.ward):
            lane.take_all()
        for timer in (*self._wake_timers.values(), *self._unreadable.values()):
            timer.cancel()
        for lane in (self.main, self.ward):
            if lane.link is not None:
                await lane.link.close()
        if self._burials:
            await asyncio.wait(self._burials)
