"""Reads the change logs that triggers follow, as far as there is room, and has the delivery progress saved.

After an unexpected exception a consumer is tried again after AGAIN_S; other consumers do not wait.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from columnar.errors import ColumnarError, DamagedData, ProgramFault
from columnar.flows.follower_name import trigger
from columnar.flows.followers import Followers
from columnar.flows.log_upkeep import LogUpkeep
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.runtime.planned_step import PlannedStep
from columnar.triggers.consumer import Consumer
from columnar.triggers.delivery_source import DeliverySource
from columnar.triggers.dispatcher_state import DispatcherState
from columnar.triggers.message_consumer import MessageConsumer

_log = logging.getLogger(__name__)

AnyConsumer = Consumer | MessageConsumer

LOOP: Final = "the reader of triggers' logs"
AGAIN_S: Final = 0.1  # after an unexpected exception


class Intake:
    def __init__(
        self, state: DispatcherState, followers: Followers, upkeep: LogUpkeep, deliver: Callable[[], None]
    ) -> None:
        """``deliver`` is called when a source may have something to deliver."""
        self.upkeep = upkeep
        self._state = state
        self._followers = followers
        self._deliver = deliver
        self._consumers: dict[DeliverySource, AnyConsumer] = {}
        self._moved_step = PlannedStep(LOOP, self.advance_moved)
        self._closing = False

    def consumers_of(self, name: str) -> list[Consumer]:
        """Return the consumers of a trigger on open regions, or of all triggers if ``name`` is empty."""
        return [one for one in self._followers.of(trigger(name)) if isinstance(one, Consumer)]

    def consumer_of(self, source: DeliverySource) -> AnyConsumer:
        """Return the consumer of a source that is not dropped."""
        return self._consumers[source]

    def functions_of(self, module: str) -> list[str]:
        """Return the functions of a module that triggers on this server name."""
        registrations = [source.registration for source in self._consumers]
        return sorted({one.function for one in registrations if one.module == module})

    def advance_module(self, module: str) -> None:
        """Advance the triggers of the module, which may be called again."""
        for source in self._consumers:
            if source.registration.module == module:
                self._state.retries.note_moved(source)
        self.plan_advance()

    def drop_consumer(self, consumer: AnyConsumer) -> None:
        self._state.drop_source(consumer.source, asyncio.get_running_loop().time())
        self._consumers.pop(consumer.source, None)

    # --- reading -------------------------------------------------------------------------------------

    def advance_consumer(self, consumer: AnyConsumer) -> None:
        """Read as many changes as there is room for, and queue the consumer when a change is ready."""
        if self._take_up(consumer):
            self._notify(consumer)
            self._deliver()

    def _notify(self, consumer: AnyConsumer) -> None:
        if isinstance(consumer, Consumer):
            self._followers.notify(consumer.key)

    def _is_present(self, consumer: AnyConsumer) -> bool:
        return self._followers.has(consumer) if isinstance(consumer, Consumer) else consumer.is_present

    def _take_up(self, consumer: AnyConsumer) -> bool:
        source = consumer.source
        self._consumers[source] = consumer
        if self._closing or self._state.pauses.cover(source):
            return False
        self._read_on(consumer)
        self._state.queue(source, asyncio.get_running_loop().time())
        return True

    def _read_on(self, consumer: AnyConsumer) -> None:
        if self._fill(consumer) and not consumer.state.has_ready:
            asyncio.get_running_loop().call_soon(self._advance_if_present, consumer)

    def _fill(self, consumer: AnyConsumer) -> bool:
        """Read the log for one step; return whether more is left.  Pauses the trigger and logs an error on damage."""
        try:
            return consumer.fill()
        except DamagedData as error:
            name = consumer.registration.name
            _log.error("trigger %s is paused: its log cannot be read: %s", name, error.text)
            consumer.state.note_error(error.wire_message)
            self._state.pauses.triggers.add(name)
        except ColumnarError as error:
            self._state.fail_read(consumer.source, error.wire_message, asyncio.get_running_loop().time())
            consumer.log_failed_read(error)
        return False

    def _advance_if_present(self, consumer: AnyConsumer) -> None:
        try:
            if self._is_present(consumer):
                self.advance_consumer(consumer)
        except UNEXPECTED as fault:
            self.retry_after_fault(consumer, fault)

    def retry_after_fault(self, consumer: AnyConsumer, fault: BaseException) -> None:
        """Advance the consumer again after a pause, because it met an exception."""
        FAULTS.met(LOOP, fault)
        consumer.state.note_error(ProgramFault(fault).wire_message)
        asyncio.get_running_loop().call_later(AGAIN_S, self._advance_if_present, consumer)

    def line_up_again(self, source: DeliverySource, now_s: float) -> None:
        """Keep the source queued while it has something to deliver; otherwise read more of its log."""
        if self._state.line_up_again(source, now_s) or self._state.pauses.cover(source):
            return
        if source.state.room > 0:
            self._read_on(self._consumers[source])
        self._state.queue(source, now_s)

    # --- progress ------------------------------------------------------------------------------------

    def plan_advance(self) -> None:
        """Advance the sources that have moved, in the next loop iteration."""
        if not self._closing:
            self._moved_step.soon()

    def advance_moved(self) -> None:
        """Advance the sources that have moved now, and deliver."""
        self._moved_step.cancel()
        for source, delivered in self._state.instructions.take_moved():
            consumer = self._consumers.get(source)
            if consumer is None:
                continue
            try:
                consumer.note_delivered(delivered)
                if self._is_present(consumer):
                    if isinstance(consumer, Consumer):
                        self.upkeep.soon(consumer.region)
                    self._take_up(consumer)
                    self._notify(consumer)  # also if it is paused
            except UNEXPECTED as fault:
                self.retry_after_fault(consumer, fault)
        self._deliver()

    def close(self) -> None:
        self._closing = True
        self._moved_step.cancel()
