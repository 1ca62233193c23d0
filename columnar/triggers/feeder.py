"""Feeds durable changes to the trigger worker and keeps account of what became of each.

The shell around ``delivery_state``: it hears from regions (``regions.hooks.ChangeListener``), from the
worker (``worker_link.Listener``) and from timers, and does what the states say.  Owned by the loop.

Fairness: consumers with work take turns, one change each; at most ``worker.THREADS`` calls are in
flight, so each begins at once and its timeout is its own.  A call over its timeout ends the worker
process: that change has failed, the others in flight are delivered again without blame.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from columnar.errors import ColumnarError
from columnar.regions.region import Region
from columnar.triggers.consumer import Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.delivery_state import Delivery
from columnar.triggers.log_brake import brake_for
from columnar.triggers.registration import Registration
from columnar.triggers.worker import THREADS
from columnar.triggers.worker_link import WorkerLink

_log = logging.getLogger(__name__)

SAVE_S: Final = 0.5  # cursors are saved and logs trimmed this often while there is work


@dataclass(slots=True)
class _Call:
    consumer: Consumer
    delivery: Delivery
    timer: asyncio.TimerHandle


class Feeder:
    def __init__(self, bury: Callable[[DeadLetter], Awaitable[None]]) -> None:
        """``bury`` writes a dead letter and returns when it is on disk."""
        self._bury = bury
        self.link: WorkerLink | None = None
        self._consumers: dict[tuple[str, int], Consumer] = {}  # by trigger and region id
        self._by_region: dict[int, list[Consumer]] = {}
        self._unsaved: dict[int, Region] = {}
        self._turns: deque[Consumer] = deque()  # those with something to deliver
        self._waiting_turn: set[int] = set()  # id() of those in ``_turns``
        self._calls: dict[int, _Call] = {}
        self._last_call = 0
        self._paused: set[str] = set()
        self._watchers: list[Callable[[], None]] = []  # called after progress
        self._save_timer: asyncio.TimerHandle | None = None
        self._burials: set[asyncio.Task[None]] = set()
        self._wake_timers: dict[int, asyncio.TimerHandle] = {}
        self._closed = False

    # --- consumers ---------------------------------------------------------------------------------

    def add(self, registration: Registration, region: Region) -> Consumer:
        key = (registration.name, region.info.region_id)
        held = self._consumers.get(key)
        if held is None:
            held = self._consumers[key] = Consumer(registration, region)
            self._by_region.setdefault(region.info.region_id, []).append(held)
            self._go_on(held)
        return held

    def consumers_of(self, trigger: str) -> list[Consumer]:
        return [held for (name, _), held in self._consumers.items() if not trigger or name == trigger]

    def consumers_in(self, region: Region) -> list[Consumer]:
        return self._by_region.get(region.info.region_id, [])

    def drop(self, consumer: Consumer) -> None:
        """Forget it; calls in flight are answered into the void."""
        region_id = consumer.region.info.region_id
        if self._consumers.pop((consumer.registration.name, region_id), None) is not None:
            self._by_region[region_id].remove(consumer)
        for call_id in [i for i, call in self._calls.items() if call.consumer is consumer]:
            self._calls.pop(call_id).timer.cancel()
        if id(consumer) in self._waiting_turn:
            self._waiting_turn.discard(id(consumer))
            self._turns.remove(consumer)
        timer = self._wake_timers.pop(id(consumer), None)
        if timer is not None:
            timer.cancel()

    def pause(self, trigger: str) -> None:
        self._paused.add(trigger)

    def resume(self, trigger: str) -> None:
        self._paused.discard(trigger)
        for consumer in self.consumers_of(trigger):
            self._go_on(consumer)

    def is_paused(self, trigger: str) -> bool:
        return trigger in self._paused

    # --- from regions ------------------------------------------------------------------------------

    def changes_durable(self, region: Region) -> None:
        for consumer in self.consumers_in(region):
            consumer.note_durable()
            self._go_on(consumer)
        self._brake(region)
        self._save_soon(region)

    def _brake(self, region: Region) -> None:
        brake = brake_for(region.log.records, region.log.size_bytes)
        if brake.alarms and not region.write_delay_s:
            _log.warning(
                "the change log of region %s of %s is %d %% full: %d changes wait for its triggers; writers are slowed",
                region.info.encoded,
                region.info.table,
                brake.share * 100,
                region.log.records,
            )
        region.write_delay_s, region.refuses_writes = brake.delay_s, brake.refuses

    # --- delivering --------------------------------------------------------------------------------

    def _go_on(self, consumer: Consumer) -> None:
        """Read what there is room for, and queue for a turn when something is ready."""
        if self._closed or consumer.registration.name in self._paused:
            return
        more = self._fill(consumer)
        state = consumer.state
        loop = asyncio.get_running_loop()
        if more and not state.has_ready:
            loop.call_soon(self._go_on_if_there, consumer)
        if state.has_ready and id(consumer) not in self._waiting_turn:
            self._waiting_turn.add(id(consumer))
            self._turns.append(consumer)
        due_s = state.next_due_s()
        if due_s is not None and id(consumer) not in self._wake_timers:
            self._wake_timers[id(consumer)] = loop.call_at(due_s, self._wake, consumer)
        self._tell_watchers()
        self._deliver()

    def _fill(self, consumer: Consumer) -> bool:
        """Read one step of the log; a trigger whose log cannot be read is stopped, loudly."""
        try:
            return consumer.fill()
        except ColumnarError as error:
            name = consumer.registration.name
            _log.error("trigger %s is paused: its log cannot be read: %s", name, error.text)
            consumer.state.last_error = error.wire_message
            self._paused.add(name)
            return False

    def _go_on_if_there(self, consumer: Consumer) -> None:
        if (consumer.registration.name, consumer.region.info.region_id) in self._consumers:
            self._go_on(consumer)

    def _wake(self, consumer: Consumer) -> None:
        """A parked row's pause is over."""
        self._wake_timers.pop(id(consumer), None)
        if id(consumer) not in self._waiting_turn:
            self._waiting_turn.add(id(consumer))
            self._turns.append(consumer)
        self._deliver()

    def _deliver(self) -> None:
        """Send changes to the worker, one of each consumer in turn, while it has threads free."""
        link = self.link
        if link is None or not self._turns:
            return
        if not link.is_up:
            link.want()
            return
        now_s = asyncio.get_running_loop().time()
        while self._turns and len(self._calls) < THREADS:
            consumer = self._turns.popleft()
            self._waiting_turn.discard(id(consumer))
            if consumer.registration.name in self._paused:
                continue
            delivery = consumer.state.take(now_s)
            if delivery is not None:
                self._call(link, consumer, delivery)
            self._requeue(consumer)

    def _requeue(self, consumer: Consumer) -> None:
        if not consumer.state.has_ready:
            if consumer.state.room > 0 and not self._fill(consumer) and not consumer.state.has_ready:
                self._arm(consumer)
                return
            if not consumer.state.has_ready:
                asyncio.get_running_loop().call_soon(self._go_on_if_there, consumer)
                return
        if id(consumer) not in self._waiting_turn:
            self._waiting_turn.add(id(consumer))
            self._turns.append(consumer)

    def _arm(self, consumer: Consumer) -> None:
        due_s = consumer.state.next_due_s()
        if due_s is not None and id(consumer) not in self._wake_timers:
            self._wake_timers[id(consumer)] = asyncio.get_running_loop().call_at(due_s, self._wake, consumer)

    def _call(self, link: WorkerLink, consumer: Consumer, delivery: Delivery) -> None:
        change = consumer.change_of(delivery)
        if change is None:  # its record is gone: only after a repair by hand
            consumer.state.done(delivery.sequence)
            return
        self._last_call += 1
        registration = consumer.registration
        loop = asyncio.get_running_loop()
        timer = loop.call_later(registration.timeout_ms / 1000, self._timed_out, self._last_call)
        self._calls[self._last_call] = _Call(consumer, delivery, timer)
        link.send("run", self._last_call, registration.name, registration.function, change)

    def _timed_out(self, call_id: int) -> None:
        call = self._calls.pop(call_id)
        limit_ms = call.consumer.registration.timeout_ms
        _log.warning("trigger %s ran over its %d ms: its worker is ended", call.consumer.registration.name, limit_ms)
        if self.link is not None:
            self.link.kill()
        self._failed(call, f"the call was ended: it ran over its timeout of {limit_ms} ms", "")
        self._take_back(None)

    # --- from the worker ---------------------------------------------------------------------------

    def ran(self, call_id: int, error: str | None, output: str) -> None:
        call = self._calls.pop(call_id, None)
        if call is None:
            return  # its trigger was removed, or it was given up meanwhile
        call.timer.cancel()
        if output:
            _log.info("trigger %s printed: %s", call.consumer.registration.name, output.rstrip())
        if error is None:
            call.consumer.state.done(call.delivery.sequence)
            call.consumer.dirty = True
            self._progress(call.consumer)
        else:
            self._failed(call, error, output)

    def _failed(self, call: _Call, error: str, output: str) -> None:
        consumer, delivery = call.consumer, call.delivery
        now_s = asyncio.get_running_loop().time()
        registration = consumer.registration
        consumer.dirty = True
        last_line = error.strip().rpartition("\n")[2]
        _log.info("trigger %s failed at attempt %d: %s", registration.name, delivery.attempt, last_line)
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
        """The letter is on disk before the row goes on; where that fails, the change stays open for a restart."""
        try:
            await self._bury(letter)
        except ColumnarError as error:
            _log.error("dead letter of trigger %s cannot be written: %s", letter.trigger, error.text)
            return
        _log.warning("trigger %s gave up row %r after %d attempts", letter.trigger, letter.row[:40], letter.attempts)
        consumer.state.given_up(delivery.sequence)
        consumer.dirty = True
        self._progress(consumer)

    def worker_ready(self) -> None:
        self._deliver()

    def worker_gone(self, how: str) -> None:
        """Every call in flight is suspect: it costs each of them one attempt."""
        if self._calls:
            _log.warning("the trigger worker is gone (%s) with %d calls in flight", how, len(self._calls))
        self._take_back(f"the worker process went while it ran: {how}")
        self._deliver()

    def _take_back(self, blame: str | None) -> None:
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.timer.cancel()
            if blame is None:
                call.consumer.state.lost(call.delivery.sequence)
                self._progress(call.consumer)
            else:
                self._failed(call, blame, "")

    # --- progress ----------------------------------------------------------------------------------

    def _progress(self, consumer: Consumer) -> None:
        self._save_soon(consumer.region)
        self._go_on_if_there(consumer)

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher`` after each progress, until the returned function is called."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def _tell_watchers(self) -> None:
        for watcher in list(self._watchers):
            watcher()

    def _save_soon(self, region: Region) -> None:
        self._unsaved[region.info.region_id] = region
        if self._save_timer is None and not self._closed:
            self._save_timer = asyncio.get_running_loop().call_later(SAVE_S, self._save_all)

    def _save_all(self) -> None:
        self._save_timer = None
        unsaved, self._unsaved = self._unsaved, {}
        for region_id, region in unsaved.items():
            if self._by_region.get(region_id):
                self.save_region(region)

    def save_region(self, region: Region) -> None:
        """Save the cursors, then trim what every consumer has passed: in this order, in one log."""
        consumers = self.consumers_in(region)
        try:
            for consumer in consumers:
                consumer.save()
            if region.table.change_log_s is None:
                needed = [consumer.needed_from() for consumer in consumers]
                if needed and None not in needed:
                    region.log.trim(min(n for n in needed if n is not None))
        except ColumnarError as error:
            _log.warning("cursors of region %s are not saved now: %s", region.info.encoded, error.text)
        self._brake(region)

    async def close(self) -> None:
        """Stop delivering; what is in flight will be delivered again at the next start."""
        self._closed = True
        if self._save_timer is not None:
            self._save_timer.cancel()
        for call in self._calls.values():
            call.timer.cancel()
        for timer in self._wake_timers.values():
            timer.cancel()
        if self.link is not None:
            await self.link.close()
        if self._burials:
            await asyncio.wait(self._burials)
        self._save_all()
        if self._save_timer is not None:
            self._save_timer.cancel()

    def answered(self, frame: list[Any]) -> None:
        kind, call_id, *rest = frame
        if kind == "ran":
            self.ran(call_id, rest[0], rest[1])
        else:
            self.on_checked(call_id, rest[0])

    on_checked: Callable[[int, str | None], None] = staticmethod(lambda _call_id, _error: None)
