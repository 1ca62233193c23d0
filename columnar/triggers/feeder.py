"""Feeds durable changes to the trigger workers and keeps account of what became of each.

The shell around ``delivery_state``: events come from consumers (``flows.hub``), from the workers (``lane``,
``outcomes``) and from timers, and the states say what to do.  Owned by the loop.

Fairness: consumers with work take turns, one change each; a trigger has as many calls in the worker as ``places``
says, and all triggers together PLACES.  A call over its timeout ends the worker process: that change has failed, the
others in the worker are delivered again without blame.  A worker that dies by itself makes suspects of the calls it
had: they go on in the ward (see ``lane``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from columnar.errors import ColumnarError, DamagedData
from columnar.flows.applier import Applier
from columnar.flows.delivery_state import Delivery, pause_s
from columnar.flows.follower_name import trigger
from columnar.flows.followers import Followers
from columnar.flows.log_upkeep import LogUpkeep
from columnar.triggers.consumer import Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.frames import IS_BACKFILL, PLACES
from columnar.triggers.lane import Call, Lane, MakeLink
from columnar.triggers.outcomes import Outcomes
from columnar.triggers.places import Places

_log = logging.getLogger(__name__)


class Feeder:
    def __init__(self, followers: Followers, upkeep: LogUpkeep, bury: Callable[[DeadLetter], Awaitable[None]]) -> None:
        """``bury`` writes a dead letter and returns when it is on disk."""
        self._followers = followers
        self.upkeep = upkeep
        self._places = Places()
        self.outcomes = Outcomes(self, self._places, bury)
        self.main = Lane(self, PLACES)
        self.ward = Lane(self, 1)
        self._turns: deque[Consumer] = deque()  # those with something to deliver
        self._waiting_turn: set[int] = set()  # id() of those in ``_turns`` or ``_stalled``
        self._stalled: dict[str, list[Consumer]] = {}  # by trigger: it has as many calls in the worker as it may
        self._suspects: deque[tuple[Consumer, Delivery]] = deque()  # taken, waiting for the ward
        self._last_call = 0
        self._paused: set[str] = set()
        self._moved: dict[Consumer, None] = {}  # what to go on with in the loop's next turn
        self._going_on: asyncio.Handle | None = None
        self._wake_timers: dict[int, asyncio.TimerHandle] = {}  # by id() of the consumer
        self._unreadable: dict[int, asyncio.TimerHandle] = {}  # by id() of the consumer: when to read its region again
        self._closing = False
        self.on_checked: Callable[[int, str | None], None] = lambda _call_id, _problem: None
        self.on_worker_gone: Callable[[str], None] = lambda _how: None

    def attach(self, make_link: MakeLink, applier: Applier) -> None:
        """From now on there are workers to deliver to; ``applier`` writes their effects."""
        self.outcomes.applier = applier
        self.main.link, self.ward.link = make_link(self.main), make_link(self.ward)
        self.deliver()

    # --- consumers ---------------------------------------------------------------------------------

    def consumers_of(self, name: str) -> list[Consumer]:
        """The consumers of a trigger on open regions; those of all triggers for an empty name."""
        return [one for one in self._followers.of(trigger(name)) if isinstance(one, Consumer)]

    def dropped(self, consumer: Consumer) -> None:
        """Forget it.  Calls in the worker keep their place and their timeout, and their answers change nothing."""
        for lane in (self.main, self.ward):
            for number, call in lane.calls.items():
                if call.consumer is consumer and not call.is_abandoned:
                    call.is_abandoned = True
                    if call.rests:
                        lane.go_on(number, call)
        self.outcomes.dropped(consumer)
        self._moved.pop(consumer, None)
        self._suspects = deque(held for held in self._suspects if held[0] is not consumer)
        if id(consumer) in self._waiting_turn:
            self._waiting_turn.discard(id(consumer))
            waiting = self._stalled.get(consumer.registration.name, [])
            (waiting if consumer in waiting else self._turns).remove(consumer)
        for timers in (self._wake_timers, self._unreadable):
            timer = timers.pop(id(consumer), None)
            if timer is not None:
                timer.cancel()

    def pause(self, name: str) -> None:
        self._paused.add(name)

    def resume(self, name: str) -> None:
        self._paused.discard(name)
        for consumer in self.consumers_of(name):
            self.go_on(consumer)

    def forget(self, name: str) -> None:
        """The trigger is removed: the next of that name begins running."""
        self.resume(name)
        self._places.forget(name)

    def is_paused(self, name: str) -> bool:
        return name in self._paused

    def held(self, consumer: Consumer) -> None:
        """Take up nothing more of it; what is in flight ends as it would."""
        waiting = [delivery for held, delivery in self._suspects if held is consumer]
        self._suspects = deque(held for held in self._suspects if held[0] is not consumer)
        for delivery in waiting:
            self.outcomes.not_delivered(consumer, delivery.sequence)

    def _rests(self, consumer: Consumer) -> bool:
        is_kept = consumer.registration.name in self._paused
        is_held = self._followers.is_held(consumer.region.info.region_id)
        return is_kept or is_held or id(consumer) in self._unreadable

    def calls_in_flight(self) -> int:
        """The number of calls in workers, and of calls whose effects are being written."""
        return len(self.main.calls) + len(self.ward.calls) + len(self.outcomes.applying)

    # --- delivering --------------------------------------------------------------------------------

    def go_on(self, consumer: Consumer) -> None:
        """Read what there is room for, and queue for a turn when something is ready."""
        if self._take_up(consumer):
            self._followers.notify(consumer.key)
            self.deliver()

    def _take_up(self, consumer: Consumer) -> bool:
        if self._closing or self._rests(consumer):
            return False
        more = self._fill(consumer)
        if more and not consumer.state.has_ready:
            asyncio.get_running_loop().call_soon(self._go_on_if_there, consumer)
        if consumer.state.has_ready:
            self._queue(consumer)
        self._arm(consumer)
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
        if self.is_there(consumer):
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
        """Send changes to the workers, one of each consumer in turn, while there is room for them."""
        if self._closing or self.upkeep.is_held:
            return
        self._deliver_suspect()
        if not self._turns or not self.main.wanted():
            return
        now_s = asyncio.get_running_loop().time()
        while self._turns and self.main.has_room and self.outcomes.has_room:
            consumer = self._turns.popleft()
            registration = consumer.registration
            if not self._places.has_room(registration.name, registration.side_by_side):
                self._stalled.setdefault(registration.name, []).append(consumer)
                continue
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
        self.main.flush()

    def _deliver_suspect(self) -> None:
        while self._suspects and self._rests(self._suspects[0][0]):
            consumer, delivery = self._suspects.popleft()
            consumer.state.lost(delivery.sequence)
        if self._suspects and self.ward.wanted() and self.ward.has_room:
            self._call(self.ward, *self._suspects.popleft())
            self.ward.flush()

    def _requeue(self, consumer: Consumer) -> None:
        if not self.is_there(consumer):
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
        loop, outcomes = asyncio.get_running_loop(), self.outcomes
        try:
            change = consumer.change_of(delivery)
        except DamagedData as error:
            loop.call_soon(outcomes.failed, call, f"its change cannot be read: {error.wire_message}", "")
            return
        except ColumnarError as error:
            self._read_later(consumer, error)
            consumer.state.lost(delivery.sequence)
            return
        if change is None:  # its record is gone: only after a repair by hand
            loop.call_soon(outcomes.done, call)
            return
        call.stamp, call.hops = change[2], change[10]
        self._last_call += 1
        lane.calls[self._last_call] = call
        self._places.take(consumer.registration.name)
        sees_now = consumer.registration.row or change[IS_BACKFILL]
        barrier = consumer.region.barrier(delivery.row) if sees_now else None
        if barrier is None:
            lane.send(self._last_call, call, change)
        else:  # the row as it is now holds what a crash could take back: nothing may be derived from that
            barrier.add_done_callback(partial(self._when_durable, self._last_call, call, change))

    def _when_durable(self, call_id: int, call: Call, change: list[Any], barrier: asyncio.Future[None]) -> None:
        lane = call.lane
        if lane.calls.get(call_id) is not call or self._closing:
            return
        if call.is_abandoned or barrier.exception() is not None:  # then the region is closed too
            lane.remove(call_id)
            self.left(call)
            self.deliver()
        elif lane.link is not None and lane.link.is_up:
            lane.send(call_id, call, change)
            lane.flush()

    # --- lane.LaneKeeper ---------------------------------------------------------------------------

    def answered(self, lane: Lane, frame: list[Any]) -> None:
        match frame:
            case ["did", list(outcomes)]:
                self.outcomes.did(lane, outcomes)
                self._rest_the_ward(lane)
            case ["began", list(numbers)] if all(isinstance(number, int) for number in numbers):
                for number in numbers:
                    lane.began(number)
            case ["checked", int(call_id), None | str() as problem]:
                self.on_checked(call_id, problem)
            case ["alive", 0]:
                pass
            case _:
                raise ValueError(f"no answer of a worker: {str(frame)[:60]}")

    def _rest_the_ward(self, lane: Lane) -> None:
        if lane is self.ward and not lane.calls and not self._suspects and lane.link is not None:
            lane.link.kill()  # a second process stays no longer than there is need of it

    def worker_ready(self) -> None:
        self.deliver()

    def lane_gone(self, lane: Lane, how: str) -> None:
        if lane is self.main:
            self.on_worker_gone(how)
        self.outcomes.gone(lane, how)

    def timed_out(self, call_id: int, call: Call) -> None:
        self.outcomes.timed_out(call_id, call)

    def silent(self, lane: Lane, seconds: float) -> None:
        self.outcomes.silent(lane, seconds)

    # --- outcomes.Delivering -----------------------------------------------------------------------

    def is_there(self, consumer: Consumer) -> bool:
        return self._followers.has(consumer)

    def left(self, call: Call) -> None:
        name = call.consumer.registration.name
        self._places.give_back(name)
        for consumer in self._stalled.pop(name, ()):
            self._turns.append(consumer)

    def moved(self, consumer: Consumer) -> None:
        self._moved[consumer] = None
        if self._going_on is None and not self._closing:
            self._going_on = asyncio.get_running_loop().call_soon(self.go_on_moved)

    def go_on_moved(self) -> None:
        if self._going_on is not None:
            self._going_on.cancel()
            self._going_on = None
        moved, self._moved = self._moved, {}
        for consumer in moved:
            if self.is_there(consumer):
                self.upkeep.soon(consumer.region)
                self._take_up(consumer)
                self._followers.notify(consumer.key)  # of paused ones too
        self.deliver()

    async def close(self) -> None:
        """Stop delivering; what is in flight will be delivered again at the next start."""
        self._closing = True
        self.outcomes.stop()
        for lane in (self.main, self.ward):
            lane.take_all()
        for timer in (*self._wake_timers.values(), *self._unreadable.values()):
            timer.cancel()
        for lane in (self.main, self.ward):
            if lane.link is not None:
                await lane.link.close()
        await self.outcomes.wait_for_burials()
