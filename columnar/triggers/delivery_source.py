"""(pure) A trigger on one region, as the dispatcher sees it: decides which changes a call may take, and when.

A trigger with a batch waits until the batch is full or its first change has waited long enough (``BatchTimer``).

Knows nothing of logs, regions and clocks.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from columnar.flows.delivery_state import Delivery, DeliveryState
from columnar.model.trigger_registration import Registration
from columnar.regions.log.change_record import Sequence

NEVER: Final = float("inf")


class BatchTimer:
    """Decides when a batch is due.

    Changes are counted as they are read from the log, with the time of the read, and leave in the order of their
    arrival.  A change that is delivered again (after a failure, or a pause) is not counted: it makes the batch due at
    once, and later changes may go with it.  So no change waits longer than ``within_s``, but a batch may be smaller
    than possible.
    """

    def __init__(self, most: int, within_s: float) -> None:
        self._most = most  # changes of a full batch
        self._within_s = within_s
        self._came: deque[tuple[float, int]] = deque()  # time of a read, its changes that still wait; oldest first
        self._is_urgent = False

    def came(self, count: int, now_s: float) -> None:
        """Count changes that were read."""
        self._came.append((now_s, count))

    def came_again(self) -> None:
        self._is_urgent = True

    def took(self, count: int) -> None:
        """Remove ``count`` changes that were taken for a call."""
        self._is_urgent = False
        while count and self._came:
            came_s, waiting = self._came.popleft()
            gone = min(count, waiting)
            count -= gone
            if gone < waiting:
                self._came.appendleft((came_s, waiting - gone))

    def is_due(self, waiting: int, now_s: float) -> bool:
        """Return whether the batch is due; ``waiting`` is the number of changes that it could have now."""
        due_s = self.due_s()
        return self._is_urgent or waiting >= self._most or due_s is None or due_s <= now_s

    def due_s(self) -> float | None:
        """Return when the batch is due at the latest; None if no counted change waits."""
        return self._came[0][0] + self._within_s if self._came else None


class IntakePauses:
    """The triggers and modules whose changes may not be taken for calls now."""

    def __init__(self) -> None:
        self.triggers: set[str] = set()  # paused by a person, or because their log is damaged
        self.untrusted: dict[str, str] = {}  # modules on trial, and why

    def cover(self, source: DeliverySource) -> bool:
        if source.is_region_paused or source.is_unreadable or source.is_dropped:
            return True
        return source.registration.name in self.triggers or source.registration.module in self.untrusted


class DeliverySource:
    def __init__(self, registration: Registration, state: DeliveryState) -> None:
        self.registration = registration
        self.state = state
        self.suspects: set[Sequence] = set()  # changes that ran when their worker died or had to be ended
        self.in_letters: set[Sequence] = set()  # changes that are being written to the dead letters
        self.is_dropped = False  # its region is closed, or its trigger removed
        self.is_region_paused = False  # its region is being replaced
        self.is_unreadable = False  # until its region is read again
        self.wakes_s = NEVER  # when it is planned to have something to deliver
        self.batch_timer = (
            BatchTimer(registration.batch, registration.within_ms / 1_000) if registration.batch else None
        )

    # --- what a call may take ------------------------------------------------------------------------

    def note_read(self, count: int, now_s: float) -> None:
        """Note that ``count`` changes were read from the log."""
        if self.batch_timer is not None and count:
            self.batch_timer.came(count, now_s)

    def is_due(self, now_s: float) -> bool:
        """Return whether there is something to deliver now."""
        state, batch_timer = self.state, self.batch_timer
        parked_to_s = state.next_due_s()
        if parked_to_s is not None and parked_to_s <= now_s:
            return True
        return state.has_ready and (batch_timer is None or batch_timer.is_due(state.waiting_count, now_s))

    def due_s(self) -> float | None:
        """Return when the next parked change or batch is due, or None.  A new change may be due earlier."""
        parked_to_s = self.state.next_due_s()
        batch_due_s = self.batch_timer.due_s() if self.batch_timer is not None and self.state.has_ready else None
        if parked_to_s is None or batch_due_s is None:
            return parked_to_s if batch_due_s is None else batch_due_s
        return min(parked_to_s, batch_due_s)

    def take_call(self, now_s: float) -> list[Delivery]:
        """Return the changes of the next call; an empty list if nothing is ready."""
        if self.batch_timer is None:
            delivery = self.state.take(now_s)
            return [] if delivery is None else [delivery]
        found = self.state.take_batch(now_s, self.registration.batch)
        self.batch_timer.took(len(found))
        return found

    def is_suspicious(self, deliveries: list[Delivery]) -> bool:
        return bool(self.suspects) and any(one.sequence in self.suspects for one in deliveries)

    # --- what became of changes ------------------------------------------------------------------------

    def requeue(self, deliveries: list[Delivery], *, at_once: bool = False) -> None:
        """Requeue the deliveries, with no attempt counted; ``at_once``: before other changes."""
        self.state.requeue_changes([one.sequence for one in deliveries], at_once=at_once)
        self.make_due()

    def make_due(self) -> None:
        """Make the batch due: requeued changes do not wait until the batch is full."""
        if self.batch_timer is not None:
            self.batch_timer.came_again()

    def suspect(self, deliveries: list[Delivery]) -> None:
        self.suspects.update([one.sequence for one in deliveries])

    def acquit(self, deliveries: list[Delivery]) -> None:
        """Clear the suspicion of deliveries whose call the worker survived."""
        if self.suspects:
            self.suspects.difference_update([one.sequence for one in deliveries])

    def note_delivered(self, deliveries: list[Delivery]) -> None:
        self.acquit(deliveries)
        self.state.end_failures()
        for delivery in deliveries:
            self.state.done(delivery.sequence)

    def begin_letter(self, sequence: Sequence) -> None:
        """Note that the change is being written to the dead letters; its row waits meanwhile."""
        self.in_letters.add(sequence)

    def end_letter(self, sequence: Sequence) -> None:
        """Note that the change is in the dead letters."""
        self.in_letters.discard(sequence)
        self.suspects.discard(sequence)
        self.state.given_up(sequence)

    def fail_read(self, error: str) -> float:
        """Note that the region cannot be read now; return the pause until it is read again."""
        self.is_unreadable = True
        return self.state.fail_follower(error)

    def pause_region(self) -> None:
        self.is_region_paused = True

    def resume_region(self) -> None:
        self.is_region_paused = False

    def plan_wake(self, at_s: float) -> None:
        self.wakes_s = at_s

    def is_planned_at(self, at_s: float) -> bool:
        return self.wakes_s == at_s

    def wake(self) -> None:
        """Wake up at the planned time: parked changes may be due, and the region is read again."""
        self.wakes_s, self.is_unreadable = NEVER, False

    def note_dropped(self) -> None:
        self.is_dropped, self.is_unreadable = True, False
        self.wakes_s = NEVER

    def in_flight(self) -> list[Sequence]:
        """Return the changes that were taken and are neither reported nor on their way to the dead letters."""
        return [one for one in self.state.in_flight() if one not in self.in_letters]
