"""(pure) What the state of the dispatcher wants done: instructions, the outcomes whose effects are written, and times.

Knows nothing of how it is done.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple, Protocol

from columnar.flows.delivery_state import Delivery
from columnar.triggers.delivery_source import NEVER, DeliverySource
from columnar.triggers.worker_state import Call, WorkerSlot


class Outcome:
    """The outcome of a slice of a call, or of successive changes of a run, until its effects are written."""

    def __init__(
        self, call: Call, deliveries: list[Delivery], what: str, error: Any, output: str, checkpoint: list[Any] | None
    ) -> None:
        """``error``: the traceback's text, seconds, or texts by place in the batch; ``checkpoint``: state and part."""
        self.call = call
        self.source = call.source
        self.deliveries = deliveries
        self.what = what
        self.error = error
        self.output = output
        self.checkpoint = checkpoint
        self.gave = False  # it contributes to totals
        self.job: Any = None  # that writes its effects; the shell's

    def note_job(self, job: Any, *, gave: bool) -> None:
        self.job, self.gave = job, gave

    def parts(self) -> list[Outcome]:
        """Return an outcome for each change of a run."""
        return [Outcome(self.call, [one], self.what, None, "", None) for one in self.deliveries]


class Letter(NamedTuple):
    source: DeliverySource
    delivery: Delivery
    error: str
    output: str


class Instructions:
    """The next steps of the shell."""

    def __init__(self) -> None:
        self.slices: list[tuple[WorkerSlot, str, int]] = []  # "go" or "drop", and the number of a call
        self.ending: list[tuple[WorkerSlot, str]] = []  # workers to end, and why
        self.letters: list[Letter] = []
        self.given_up: list[Outcome] = []  # whose effects are not wanted any more
        self.moved: dict[DeliverySource, int] = {}  # to advance and to save; how many changes were delivered
        self.is_schedule_changed = False  # a trigger may be scheduled that could not be before
        self.imports: list[tuple[str, str]] = []  # modules to try in a process of their own, and why
        self.lines: list[tuple[int, str]] = []  # of the log, with their levels
        self.failures: list[tuple[str, int, str]] = []  # trigger, attempt, error: of the log, which leaves some out
        self.subject: tuple[DeliverySource, list[Delivery]] | None = None  # whom an exception in the event fails

    def take_moved(self) -> list[tuple[DeliverySource, int]]:
        """Take the sources that have moved; the shell delivers next."""
        moved, self.moved, self.is_schedule_changed = self.moved, {}, False
        return list(moved.items())

    def note_schedule(self) -> None:
        self.is_schedule_changed = True

    def take_subject(self) -> tuple[DeliverySource, list[Delivery]] | None:
        subject, self.subject = self.subject, None
        return subject

    def note_subject(self, source: DeliverySource, deliveries: list[Delivery]) -> None:
        self.subject = source, deliveries


class Timed(Protocol):
    def is_planned_at(self, at_s: float) -> bool:
        """Return whether it still is to be checked at this time."""


class Timers:
    """Times at which something is to be checked, in one heap, for one timer of the loop."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timed]] = []
        self._serial = 0

    def plan(self, at_s: float, subject: Timed) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (at_s, self._serial, subject))

    def next_s(self) -> float:
        """Return the next time that counts; NEVER: there is none."""
        while self._heap and not self._heap[0][2].is_planned_at(self._heap[0][0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER

    def take_due(self, now_s: float) -> tuple[float, Timed] | None:
        """Return the next subject that is due, with its time; None: none is."""
        if self.next_s() > now_s:
            return None
        at_s, _, subject = heapq.heappop(self._heap)
        return at_s, subject
