"""The outbox of one open region: the follower that carries out the sends of the region's changes (``model.send``).

    log -> changes with sends -> lines by target (``outbox_state``) -> batches -> carrier -> stored there -> done

Its cursor passes a change only when all of the change's messages are on disk at their targets, so a crash makes
messages go again, never away.  Names of messages and sequences of records keep a repeat from being stored a second time
(``outbox_state``).  A cursor has the progress of changes some of whose messages are stored, so a region that takes the
place of this one sends only the others.

A table takes sends if its attribute SENDS says so.  Each of its regions has this follower, which all tables share by
name.  Changes without sends are not logged for it, and it is not woken for them (``Region``).

Owned by the loop.
"""

from __future__ import annotations

import logging
from asyncio import get_running_loop
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import ClassVar, Final

from columnar.errors import CallerError, ColumnarError, ProgramFault, TableNotEnabled, TableNotFound
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.figures import Figures
from columnar.flows.follower import Follower
from columnar.flows.follower_name import OUTBOX_NAME
from columnar.flows.outbox_state import OutboxState, Outgoing, Stored, outgoing
from columnar.regions.log.change_record import ChangeRecord, Sequence
from columnar.regions.region import Region

_log = logging.getLogger(__name__)

TAKEN_CHANGES: Final = 256  # in one step, some 2 ms

# Begins to carry a batch of a region, by its id, to a target, and calls back with None or the error when it has ended.
Carry = Callable[[int, bytes, list[Outgoing], Callable[[BaseException | None], None]], None]


@dataclass(frozen=True, slots=True)
class OutboxServices:
    """Parts that all outboxes of a server share.  Constant."""

    carry: Carry
    is_intake_paused: Callable[[Follower], bool]
    step_follower: Callable[[Follower], None]
    progressed: Callable[[Follower], None]
    refused: Callable[[], None]  # counts a message that its target refused
    figures: Figures


class OutboxFollower(Follower):
    in_order: ClassVar[bool] = False  # the lines of its targets are

    def __init__(self, region: Region, state: DeliveryState, services: OutboxServices) -> None:
        super().__init__(OUTBOX_NAME, region, frozenset(), state)
        self._services = services
        self._outbox = OutboxState()
        self._is_there = True

    def wants(self, record: ChangeRecord) -> bool:
        return bool(record.sends) and record.only_for is None and self.region.info.contains_row(record.row)

    # --- flows.follower.Follower ---------------------------------------------------------------------

    def step(self) -> float | None:
        if not self._is_there or self._services.is_intake_paused(self):
            return None
        more = self._take_changes()
        self._send_batches()
        if more:
            return 0.0
        due_s = self._outbox.next_due_s()
        return None if due_s is None else max(0.0, due_s - get_running_loop().time())

    def pause_intake(self) -> None:
        """Leave all changes of which no message is under way to the region's successors."""
        self._release()

    def _release(self) -> None:
        self.state.requeue_changes(self._outbox.release(), at_once=True)

    def dropped(self) -> None:
        self._is_there = False

    def obstacle(self) -> str:
        waiting = self._outbox.obstacles
        if not waiting:
            return f"the messages that its changes send wait{self.failure}; columnar flows shows how many"
        target, error = waiting[0]
        others = f", and those to {len(waiting) - 1} other targets" if len(waiting) > 1 else ""
        name = target.decode("latin-1")
        return f"the messages that its changes send to {name} wait ({error}){others}; columnar flows shows how many"

    # --- steps ---------------------------------------------------------------------------------------

    def _take_changes(self) -> bool:
        """Take changes while there is room; return whether there are more."""
        state, now_s = self.state, get_running_loop().time()
        for _ in range(TAKEN_CHANGES):
            if not self._outbox.has_room:
                return False  # the end of a batch makes room
            delivery = state.take(now_s)
            if delivery is None:
                more = self.fill()
                delivery = state.take(now_s)
                if delivery is None:
                    return more
            try:
                record = self.record_at(delivery.sequence)
            except BaseException:  # no later change goes before it
                state.requeue_changes([delivery.sequence], at_once=True)
                raise
            sends = record.sends if record is not None else ()  # deleted, which only a repair by hand does
            stamp_ms = record.stamp if record is not None else 0
            if not self._outbox.take_sends(delivery.sequence, sends, delivery.progress, stamp_ms):
                state.done(delivery.sequence)
                self.dirty = True
        return True

    def _send_batches(self) -> None:
        region_id, outbox = self.region.info.region_id, self._outbox
        for target in outbox.due_targets(get_running_loop().time()):
            try:
                batch, gone = outbox.begin_batch(target, self._read_messages)
            except ColumnarError as error:
                self._failed(target, error)
                continue
            if gone.out or gone.partly:
                self._note(gone)
                self._services.progressed(self)
            if batch:
                self._services.carry(region_id, target, batch, partial(self._batch_ended, target, len(batch)))

    def _read_messages(self, sequence: Sequence) -> list[Outgoing] | None:
        record = self.region.log.record_at(sequence)
        return None if record is None else outgoing(sequence, record.sends, record.stamp)

    def _batch_ended(self, target: bytes, count: int, fault: BaseException | None) -> None:
        """Handle the end of a batch; a region that has closed meanwhile leaves it to the next opening."""
        if not self._is_there:
            return
        if fault is None:
            self._stored(self._outbox.end_batch(target), count)
        elif isinstance(fault, CallerError) and not isinstance(fault, TableNotFound | TableNotEnabled):
            self._refused(target, fault)
        else:
            self._failed(target, fault)
        if self._outbox.is_releasing or self._services.is_intake_paused(self):
            self._release()
        self._services.progressed(self)
        self._services.step_follower(self)

    def _note(self, stored: Stored) -> None:
        for sequence in stored.out:
            self.state.done(sequence)
        for sequence, progress in stored.partly:
            self.state.came_to(sequence, progress)
        self.dirty = True

    def _stored(self, stored: Stored, count: int) -> None:
        self._note(stored)
        self.state.end_failures()
        now_s = monotonic()
        self._services.figures.of(self.name, now_s).delivery(now_s, count)
        if self.logged_failure.has_ended():
            _log.info("sends of region %s go on", self.region.info.encoded)

    def _failed(self, target: bytes, fault: BaseException) -> None:
        error = fault if isinstance(fault, ColumnarError) else ProgramFault(fault)
        self._outbox.fail_batch(target, get_running_loop().time(), error.text)
        self.state.note_error(error.wire_message)
        self._services.figures.of(self.name, monotonic()).note_failed()
        if self.logged_failure.is_news(error.text):
            place = self.region.info.encoded
            _log.warning("sends of region %s to %s wait: %s", place, target.decode("latin-1"), error.text)

    def _refused(self, target: bytes, error: ColumnarError) -> None:
        message = self._outbox.refuse_batch(target, error.text)
        if message is None:
            return
        self._services.refused()
        token, there = message.sequence.token, message.send.target.decode("latin-1")
        if not message.is_bare:
            _log.warning("%s refuses message %s: %s", there, token, error.text)
        else:
            _log.error("the message %s of %s is lost: %s", token, self.region.info.table, error.text)
            self._note(self._outbox.give_up(message))
