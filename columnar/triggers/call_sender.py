"""Sends calls to the workers: reads the changes of a call, and sends the call when all that was read is durable.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, cast

from columnar.errors import ColumnarError
from columnar.flows.governor import Governor
from columnar.flows.scheduled_trigger import ScheduledSlice
from columnar.runtime.faults import UNEXPECTED
from columnar.runtime.log_lines import levels_of_loggers
from columnar.triggers.delivery_source import DeliverySource
from columnar.triggers.dispatcher_state import DispatcherState
from columnar.triggers.intake import Intake
from columnar.triggers.owner_rights import OwnerRights
from columnar.triggers.pool_state import Pool
from columnar.triggers.worker_process import MakeLink, Worker, WorkerEvents
from columnar.triggers.worker_state import WAITING, Call, WorkerSlot


class CallSender:
    def __init__(
        self,
        state: DispatcherState,
        intake: Intake,
        events: WorkerEvents,
        run_event: Callable[[str, Callable[[], None]], None],
        owners: OwnerRights,
    ) -> None:
        """``events`` receives the workers' events; ``run_event`` runs a pool's event and carries out what follows."""
        self._state = state
        self._intake = intake
        self._events = events
        self._run_event = run_event
        self._owners = owners
        self._make_link: MakeLink | None = None  # None: there are no workers yet
        self._governor = Governor()  # until ``attach``
        self._workers: dict[WorkerSlot, Worker] = {}

    # --- workers -------------------------------------------------------------------------------------

    def attach(self, make_link: MakeLink, governor: Governor) -> None:
        """Deliver to workers from now on; ``governor`` knows whether the lease of this process holds."""
        self._make_link, self._governor = make_link, governor
        for pool in self._state.pools.values():
            self._make_workers(pool)

    @property
    def is_attached(self) -> bool:
        return self._make_link is not None

    def pool_of(self, label: str) -> Pool:
        pool = self._state.pools.get(label)
        if pool is None:
            pool = self._state.pool_of(label)
            self._make_workers(pool)
        return pool

    def _make_workers(self, pool: Pool) -> None:
        if self._make_link is not None:
            for slot in pool.slots:
                self._workers[slot] = Worker(slot, self._events, self._make_link)

    def workers(self) -> list[Worker]:
        return list(self._workers.values())

    def send_levels(self) -> None:
        """Have the workers take the levels of the loggers of this process that have one of their own."""
        for worker in self.workers():
            worker.send_frame("levels", levels_of_loggers())

    def worker_of(self, slot: WorkerSlot) -> Worker:
        return self._workers[slot]

    # --- calls ---------------------------------------------------------------------------------------

    def deliver_pool(self, pool: Pool, ends_s: float) -> bool:
        """Send calls of the pool until ``ends_s``, at least one; return whether more calls are ready."""
        more, main = False, self._workers[pool.main]
        now_s = asyncio.get_running_loop().time()
        if pool.fair.waits(now_s) and main.wanted():
            while pool.main.has_room and (scheduled := pool.fair.take_slice(now_s)) is not None:
                self._carry_out_slice(pool, scheduled, now_s)
                if perf_counter() >= ends_s:
                    more = True
                    break
            main.flush()
        if pool.suspects and not pool.quarantine.calls and self._workers[pool.quarantine].wanted():
            call = pool.begin_suspect()
            if call is not None:
                self._begin_call(call, now_s)
                self._workers[pool.quarantine].flush()
        pool.plan_timers(now_s)
        return more

    def _carry_out_slice(self, pool: Pool, scheduled: ScheduledSlice, now_s: float) -> None:
        if not scheduled.begins:
            pool.begin_slice(cast(Call, scheduled.key), now_s)
            return
        call = pool.begin_call(scheduled, now_s)
        if call is not None:
            self._begin_call(call, now_s)
        source = cast(DeliverySource, scheduled.key)
        try:
            self._intake.line_up_again(source, now_s)
        except UNEXPECTED as fault:
            pool.rest(source)
            self._intake.retry_after_fault(self._intake.consumer_of(source), fault)

    def _begin_call(self, call: Call, now_s: float) -> None:
        """Read the changes of the call, and send the call once all that was read is durable."""
        consumer = self._intake.consumer_of(call.source)
        try:
            self._owners.check_reads(call.source.registration)
            frames, changes = consumer.read_changes(call.open_deliveries)
        except ColumnarError as error:
            self._state.refuse_call(call, error.wire_message, now_s)
            consumer.log_failed_read(error)
            return
        admitted = self._state.admit_call(call, changes, now_s)
        if admitted is None:
            return
        barriers = consumer.barriers(changes.kept, frames)
        if barriers:  # the row as it is now has unsynced writes: nothing may be derived from what a crash could undo
            durable = barriers[0] if len(barriers) == 1 else asyncio.gather(*barriers, return_exceptions=True)
            durable.add_done_callback(partial(self._when_durable, admitted, frames, barriers))
        else:
            self._send_call(admitted, frames, now_s)

    def _send_call(self, call: Call, frames: list[Any], now_s: float) -> None:
        worker, registration, first = self._workers[call.slot], call.source.registration, call.deliveries[0]
        self.pool_of(call.slot.label).send_call(call, now_s)
        progress = [first.progress, first.part] if first is not None and first.progress else None
        is_batch = registration.batch > 0
        parts = [call.number, registration.name, registration.function, registration.side_by_side, frames]
        worker.send_call([*parts, progress, is_batch, self._owners.acting_user(registration)], call.size_bytes)

    def _when_durable(self, call: Call, frames: list[Any], barriers: list[asyncio.Future[None]], _done: Any) -> None:
        send = partial(self._run_event, call.slot.label, partial(self._send_durable, call, frames, barriers))
        _DelayedCall(self._governor, send).gate_opened()

    def _send_durable(self, call: Call, frames: list[Any], barriers: list[asyncio.Future[None]]) -> None:
        if call.stage != WAITING:
            return
        worker = self._workers[call.slot]
        if call.is_abandoned or any(one.exception() is not None for one in barriers):  # the region is closed, too
            self._state.lose_calls([call], are_in_slot=True)
            self._intake.plan_advance()
        elif worker.is_up:
            self._send_call(call, frames, asyncio.get_running_loop().time())
            worker.flush()

    async def close(self) -> None:
        for worker in self.workers():
            await worker.link.close()


class _DelayedCall:
    """A call that waits for the lease, which ended while the call waited for an fsync."""

    def __init__(self, governor: Governor, send: Callable[[], None]) -> None:
        self._governor = governor
        self._send = send

    def gate_opened(self) -> None:
        self.gate_expired()

    def gate_expired(self) -> None:
        """Send the call if the lease holds by now; otherwise wait on, because no client waits for the call."""
        if not self._governor.wait_at_gate(self):
            self._send()
