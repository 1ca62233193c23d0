"""The governor: runs background work of flows in short steps, so that foreground requests have priority.

A step takes at most STEP_S of the loop.  While requests are answered, each step is followed by a pause that is PAUSE
times as long, even if the next step is queued later; without requests the next step follows at once.  Work that cannot
be cut into steps, such as the results of a worker, lengthens the next pause (``spend``).

The pause ends early once FOREGROUND_S have passed without an answer and no request waits for an fsync: while puts wait
for a shared fsync, flows do not take the loop.  If fewer than BUSY_PER_S requests are answered, the pause is shorter in
proportion: a few hundred a second leave most of the loop idle, which a backfill of a view needs.  A step counts as at
most LONGEST_S: a step that was preempted for 50 ms has not used the loop for that time, and otherwise flows on a busy
machine would stall.

A ``GovernedStep`` begins only while the lease of the process holds; otherwise it waits at the gate
(``coordination.lease_gate``).  So a server whose lease is over begins no calls of triggers and writes no effects.

A step that raises is reported and runs again after AGAIN_S; other steps get their queue turns.  ``GovernedStep`` is a
step that plans its next run itself; its pauses after exceptions grow.

The obvious rule, one step in every loop iteration, halved the rate of gets.  With the pause gets keep four fifths, and
flows have a quarter of the loop.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

from columnar.coordination.lease_gate import LeaseGate, Withheld
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.runtime.planned_step import PlannedStep, pause_after

STEP_S: Final = 0.0005
PAUSE: Final = 8
LONGEST_S: Final = 4 * STEP_S  # a longer step counts as this long
FOREGROUND_S: Final = 0.001  # within this time after an answer the next request of its client is expected
BUSY_PER_S: Final = 5_000.0  # answers a second: a sixth of the loop or more
RATED_S: Final = 0.05  # over which answers are counted
AGAIN_S: Final = 0.1
TICK_S: Final = 0.001  # resolution of the loop's timers: for a shorter remaining pause the loop would spin

_NAME: Final = "the governor of background work"

Step = Callable[[], bool]  # works for STEP_S at most; returns whether there is more to do


def zero_requests() -> int:
    return 0


def nobody_waits() -> bool:
    return False


class Governor:
    def __init__(
        self, answered: Callable[[], int] = zero_requests, has_waiting: Callable[[], bool] = nobody_waits
    ) -> None:
        """``answered`` returns how many requests were answered so far, ``has_waiting`` whether some wait for disks."""
        self.answered = answered
        self.has_waiting = has_waiting
        self.gate: LeaseGate | None = None  # None: the process has no lease; set before the first step
        self._seen = 0
        self._rate_per_s = BUSY_PER_S  # of answers
        self._rated_from = (perf_counter(), 0)  # beginning of the count, and ``answered`` then
        self._foreground_s = float("-inf")
        self._steps: deque[Step] = deque()
        self._next: asyncio.Handle | None = None
        self._is_in_step = False  # further work is planned when the step is over
        self._spent_s = 0.0  # background work outside of steps since the last step
        self._free_s = float("-inf")  # when the pause after the last step is over
        self._is_closed = False

    def soon(self, step: Step) -> None:
        """Run the step in its queue turn, and again while it returns that there is more to do."""
        if self._is_closed:
            return
        self._steps.append(step)
        if self._next is None and not self._is_in_step:
            self._plan(perf_counter())

    def requests_come(self) -> bool:
        """Return whether requests come, so that pauses follow steps; if not, work may be done at once."""
        return self._check_foreground(perf_counter())

    def may_work_at_once(self) -> bool:
        """Return whether work may be done outside of steps: no requests come, and the lease holds."""
        return not self.requests_come() and (self.gate is None or self.gate.is_open())

    def wait_at_gate(self, owner: Withheld) -> bool:
        """If the lease does not hold, have ``owner`` wait at the gate until it does, and return True."""
        if self.gate is None or self._is_closed or self.gate.is_open():
            return False
        self.gate.wait(owner)
        return True

    def _check_foreground(self, now_s: float) -> bool:
        try:
            answered, waits = self.answered(), self.has_waiting()
        except UNEXPECTED as error:  # a loop of the server: all background work would wait for its end
            FAULTS.met(_NAME, error)
            return True  # requests have priority if their state is unknown
        if answered != self._seen or waits:
            self._seen, self._foreground_s = answered, now_s
        from_s, before = self._rated_from
        if now_s - from_s >= RATED_S:
            self._rate_per_s = (answered - before) / (now_s - from_s)
            self._rated_from = (now_s, answered)
        return now_s - self._foreground_s < FOREGROUND_S

    def spend(self, seconds: float) -> None:
        """Lengthen the next pause for background work outside of steps, of which at most STEP_S counts."""
        self._spent_s = min(STEP_S, self._spent_s + seconds)

    def pause_after_work(self, seconds: float) -> float:
        """Return how long work outside of steps, which took so much processor time, is to pause; 0 without requests."""
        return self._pause_for(seconds) if self.requests_come() else 0.0

    def _pause_for(self, seconds: float) -> float:
        return PAUSE * min(1.0, self._rate_per_s / BUSY_PER_S) * seconds

    def _step(self) -> None:
        self._next = None
        step = self._steps.popleft()
        begun_s = perf_counter()
        self._is_in_step = True
        try:
            if step():
                self._steps.append(step)
        except UNEXPECTED as error:  # a loop of the server: other steps get their queue turns
            asyncio.get_running_loop().call_later(AGAIN_S, self.soon, step)
            FAULTS.met(_NAME, error)
        self._is_in_step = False
        now_s = perf_counter()
        try:
            if self._check_foreground(now_s):
                pause = self._pause_for(min(now_s - begun_s, LONGEST_S) + self._spent_s)
                self._free_s = now_s + pause
            self._spent_s = 0.0
            if self._steps:
                self._plan(now_s)
        except UNEXPECTED as error:  # as above
            FAULTS.met(_NAME, error)
            self._plan_again()

    def _plan_again(self) -> None:
        """Plan the next step after a fault, unless it is planned.

        This is a method of its own, because compiled code takes ``_next`` to be None throughout ``_step``, which has
        set it to None.
        """
        if self._steps and self._next is None:
            self._next = asyncio.get_running_loop().call_later(FOREGROUND_S, self._replan)

    def _plan(self, now_s: float) -> None:
        loop = asyncio.get_running_loop()
        if self._free_s - now_s > TICK_S / 2 and self._check_foreground(now_s):
            self._next = loop.call_later(min(FOREGROUND_S, self._free_s - now_s), self._replan)
        else:
            self._next = loop.call_soon(self._step)

    def _replan(self) -> None:
        """Run the next step if the pause is over or no requests come; otherwise extend the pause."""
        try:
            self._plan(perf_counter())
        except UNEXPECTED as error:  # as in ``_step``
            FAULTS.met(_NAME, error)
            self._next = asyncio.get_running_loop().call_later(FOREGROUND_S, self._replan)

    def close(self) -> None:
        """Begin no more steps."""
        self._is_closed = True
        self._steps.clear()
        if self._next is not None:
            self._next.cancel()
            self._next = None


class GovernedStep:
    """A ``PlannedStep`` in the governor's queue turns: it plans its next run itself."""

    def __init__(self, governor: Governor, name: str, work: Step) -> None:
        """``name`` is as for ``Faults.met``."""
        self._governor = governor
        self._name = name
        self._work = work
        self._failures = 0  # in a row
        self._retry = PlannedStep(name, self._again)
        self.is_planned = False

    def soon(self) -> None:
        """Plan a step in its queue turn, unless it is planned."""
        if not self.is_planned:
            self._governor.soon(self._run)
            self.is_planned = True

    def _run(self) -> bool:
        if self._governor.wait_at_gate(self):
            return False  # it stays planned
        self.is_planned = False  # before the work, whose own call of ``soon`` would have no effect otherwise
        try:
            more = self._work()
        except UNEXPECTED as error:  # a loop of the server: it retries after a pause
            self._failures += 1
            if not self.is_planned:
                self._retry.after(pause_after(self._failures))
                self.is_planned = True  # until then
            FAULTS.met(self._name, error)
            return False
        if self._failures:
            self._failures = 0
            FAULTS.went_well(self._name)
        if self.is_planned:
            return False  # the governor has the next step already
        self.is_planned = more
        return more

    def _again(self) -> None:
        self.is_planned = False
        self.soon()

    # --- lease_gate.Withheld -------------------------------------------------------------------------

    def gate_opened(self) -> None:
        self._again()

    def gate_expired(self) -> None:
        self._again()  # background work has no client that waits: it waits at the gate again
