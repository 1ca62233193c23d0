"""(pure) Instructions of the dispatcher's state to its shell, outcomes whose effects are being written, and timers.

Knows nothing of how instructions are carried out.
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
        """``error`` is a traceback, the seconds of ``Later``, or texts by place; ``checkpoint`` is state and part."""
        self.call = call
        self.source = call.source
        self.deliveries = deliveries
        self.what = what
        self.error = error
        self.output = output
        self.checkpoint = checkpoint
        self.gave = False  # its effects contribute to totals
        self.job: Any = None  # of the shell, to write the effects

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
        self.moved: dict[DeliverySource, int] = {}  # to advance and to save, with their numbers of delivered changes
        self.is_schedule_changed = False  # a trigger may be scheduled that could not be before
        self.imports: list[tuple[str, str]] = []  # modules to try in a process of their own, and why
        self.lines: list[tuple[int, str]] = []  # of the log, with their levels
        self.failures: list[tuple[str, int, str]] = []  # trigger, attempt, error; the log leaves some out
        self.subject: tuple[DeliverySource, list[Delivery]] | None = None  # changes that an exception now would fail

    def take_moved(self) -> list[tuple[DeliverySource, int]]:
        """Return and remove the sources that have moved.  The shell delivers next."""
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
        """Return whether this subject is still to be checked at ``at_s``."""


class Timers:
    """The times at which subjects are to be checked, in one heap, so that one timer of the loop serves all."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timed]] = []
        self._serial = 0

    def plan(self, at_s: float, subject: Timed) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (at_s, self._serial, subject))

    def next_s(self) -> float:
        """Return the next time at which a subject is to be checked, or NEVER."""
        while self._heap and not self._heap[0][2].is_planned_at(self._heap[0][0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER

    def take_due(self, now_s: float) -> tuple[float, Timed] | None:
        """Return the next subject that is due, with its time; None if none is due."""
        if self.next_s() > now_s:
            return None
        at_s, _, subject = heapq.heappop(self._heap)
        return at_s, subject
