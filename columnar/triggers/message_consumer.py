"""The function that serves a queue, as the dispatcher's source of calls: messages instead of the changes of a region.

The queue's delivery gives messages and holds their leases.  The end of each is reported to it after the call's effects
are on disk.  There is no log to read, and no cursor to save.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from columnar.errors import ColumnarError
from columnar.flows.delivery_state import Delivery, DeliveryState
from columnar.model.message_delivery import RETURNED, End, How, ServedMessage
from columnar.model.trigger_registration import Registration
from columnar.regions.log.change_record import Sequence
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.delivery_source import DeliverySource
from columnar.triggers.frames import BATCH_BYTES
from columnar.triggers.worker_state import CallChanges, Origin

_log = logging.getLogger(__name__)

SUSPECTS: Final = 1_000  # messages known to have ended a worker; beyond it all are trusted again
_UNBOUNDED: Final = ""  # the rate: the queue's delivery has counted the messages already


def sequence_of(n: int) -> Sequence:
    """Return the sequence of the message with the number ``n``, by which its contributions to totals are known."""
    return Sequence(0, 0, n)


class MessageState(DeliveryState):
    """(pure) The messages that the function has, and how each ended.

    Nothing is parked here, as it is for changes: a message that failed or was put off leaves, as its queue says when it
    comes again.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self._ended: list[tuple[Sequence, How, float, str]] = []  # with the time at which it is to come again, and why

    def take_ended(self, now_s: float) -> list[tuple[Sequence, End]]:
        """Return and forget the messages that have ended since the last call."""
        ended, self._ended = self._ended, []
        return [(sequence, End(how, max(0.0, until_s - now_s), why)) for sequence, how, until_s, why in ended]

    def read_message(self, sequence: Sequence, attempt: int) -> None:
        """Take a message, which is delivered for the ``attempt``-th time; messages are in no order."""
        self.read_change(sequence, b"%d" % sequence.n, attempt - 1)

    def withdraw(self) -> None:
        """End the messages as returned that no call has."""
        while (delivery := self.take(0.0)) is not None:
            self._leave(delivery.sequence, How.RETURNED)

    def _leave(self, sequence: Sequence, how: How, until_s: float = 0.0, why: str = "") -> None:
        DeliveryState.done(self, sequence)
        self._ended.append((sequence, how, until_s, why))

    # --- DeliveryState -------------------------------------------------------------------------------

    def done(self, sequence: Sequence) -> None:
        self._leave(sequence, How.DONE)

    def fail_change(self, sequence: Sequence, error: str, now_s: float, attempts_allowed: int) -> bool:
        self.last_error = error
        self._leave(sequence, How.FAILED, why=error)
        return False

    def put_off(self, sequences: list[Sequence], until_s: float, due_ms: int = 0) -> None:
        """Put the messages off: ``due_ms`` is 0 if they met an obstacle, whose text is ``last_error``."""
        for sequence in sequences:
            if due_ms:
                self._leave(sequence, How.LATER, until_s)
            else:
                self._leave(sequence, How.BLOCKED, until_s, self.last_error)


class MessageCalls(Protocol):
    """The dispatcher, as the consumer of messages sees it."""

    def advance_consumer(self, consumer: MessageConsumer) -> None: ...

    def drop_consumer(self, consumer: MessageConsumer) -> None: ...

    def forget_trigger(self, name: str) -> None: ...


class _Begun(NamedTuple):
    message: ServedMessage
    ended: Callable[[End], int]


class MessageConsumer:
    def __init__(self, registration: Registration, dispatcher: MessageCalls) -> None:
        self.registration = replace(registration, rate=_UNBOUNDED)
        self.state = MessageState()
        self.source = DeliverySource(self.registration, self.state)
        self._dispatcher = dispatcher
        self._messages: dict[Sequence, _Begun] = {}

    @property
    def is_present(self) -> bool:
        return not self.source.is_dropped

    # --- queues.message_delivery.Target --------------------------------------------------------------

    def deliver(self, message: ServedMessage, ended: Callable[[End], int]) -> None:
        """Begin with a message.  If it is here already, as its lease was over, its run goes on for the new lease."""
        sequence = sequence_of(message.n)
        before, self._messages[sequence] = self._messages.get(sequence), _Begun(message, ended)
        if before is not None:
            before.ended(RETURNED)
            return
        self.state.read_message(sequence, message.attempt)
        self._dispatcher.advance_consumer(self)

    def withdraw(self) -> None:
        self.state.withdraw()
        self.note_delivered(0)

    def close(self) -> None:
        self._messages.clear()
        self._dispatcher.drop_consumer(self)
        self._dispatcher.forget_trigger(self.registration.name)

    # --- the intake ----------------------------------------------------------------------------------

    def fill(self) -> bool:
        """Read nothing: the queue's delivery brings the messages."""
        return False

    def note_delivered(self, _count: int) -> None:
        """Report the messages that have ended."""
        for sequence, end in self.state.take_ended(asyncio.get_running_loop().time()):
            begun = self._messages.pop(sequence, None)
            if begun is not None:
                begun.ended(end)
        if len(self.source.suspects) > SUSPECTS:
            self.source.suspects.clear()

    def log_failed_read(self, error: ColumnarError) -> None:
        _log.warning("queue %s waits with the messages that it has begun: %s", self.registration.queue, error.text)

    def barriers(self, _deliveries: list[Delivery], _messages: list[Any]) -> list[Future[None]]:
        """Return nothing: a message is given out after the fsync of its push."""
        return []

    def read_changes(self, deliveries: list[Delivery]) -> tuple[list[Any], CallChanges]:
        """Return a call's messages as a frame carries them."""
        messages: list[Any] = []
        found = CallChanges([], [], [], [], 0, [])
        size_bytes = 0
        for at, delivery in enumerate(deliveries):
            message = self._messages[delivery.sequence].message
            messages.append(_frame_of(message))
            found.kept.append(delivery)
            found.origins.append(Origin(message.pushed_ms, 0))
            size_bytes += message.size_bytes
            if size_bytes >= BATCH_BYTES:
                found.rest.extend(deliveries[at + 1 :])
                break
        return messages, found._replace(size_bytes=size_bytes)

    def letter_of(self, delivery: Delivery, error: str, output: str) -> DeadLetter:
        raise AssertionError("a message that failed goes back to its queue")


def _frame_of(message: ServedMessage) -> list[Any]:
    return [
        message.queue,
        message.n,
        message.body,
        message.name,
        message.group,
        message.priority,
        message.attempt,
        message.pushed_ms,
        dict(message.headers),
        message.error,
    ]
