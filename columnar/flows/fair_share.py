"""(pure) Schedules many triggers on the places of one worker process: events in, scheduled slices out.

Start-time fair queueing (Goyal, Vin and Cheng 1996) over triggers, by the cost of their slices divided by their share;
the trigger with the lowest tag is next.  Within a trigger its consumers (regions) take queue turns, and so do
the calls that continue with a next slice.  Rows within a region are scheduled by the region's ``DeliveryState``.

    consumer    resting <-- ready / resting --> in line
    call        begins (``take_slice``) --> running --ended--> over
                                            | ^                 ^
                                   paused   v | ``take_slice``  | dropped
                                           paused --``continue_call``--> in line

A worker has two resources to share: one interpreter, and its places.  A slice costs its use of the resource of which it
takes the larger part: its processor time, or its time divided by the number of places (dominant resource fairness:
Ghodsi and others 2011).  Its full time is not the cost, because a slice that waits for the interpreter mostly waits for
other slices that compute.

A slice is charged its trigger's mean cost when it begins, and the difference to its own cost when it is over.  Its cost
is not known before, and without a charge at the beginning the first trigger would take all free places.

Invariants:
    I1. At most ``places`` slices run.  A running slice holds one place; a paused call holds none.
    I2. At most ``side_by_side`` calls of a trigger are begun, that is run or are paused.  While none is paused, more
        calls of a trigger with quick calls may be begun, as many as take PIPELINE_S together.  The worker runs
        ``side_by_side`` of them, and has the next ones without waiting.
    I3. In any time t at most ``rate * t + 2`` calls of a rated trigger begin; further slices of a call are free.
    I4. A trigger saves up no credit while it cannot be scheduled because it is idle, at its ``side_by_side``, over its
        rate or suspended: when it can be scheduled again, its tag is at least the virtual time.
    I5. Slow triggers, whose mean slice is over ``QUICK_S``, together hold at most seven eighths of the places, and new
        ones can add at most half of the rest.  So a quick trigger waits only for slices of quick triggers, never for
        calls of seconds.
    I6. A new trigger, whose slices were never measured, gets no second slice until its first one is over or has lasted
        ``QUICK_S``.  So at a start with many slow triggers places are left to the other triggers.
    I7. No slice begins while the running slices are expected to compute WINDOW_S or more in all: they share one
        interpreter, and the next trigger that arrives would wait for them.
    I8. A trigger is charged nothing for the computing of other triggers, however long its slices wait for the
        interpreter.

``widen`` adds slices to one that was just taken: a run of quick calls, which the worker gets together.  Each slice of
a run is counted, charged and limited as if it had been taken alone.  Only the order differs: other triggers wait for a
run of up to RUN_S.

Cost: O(log triggers) for an event or a scheduled slice.

Knows nothing of processes, frames and clocks: ``now_s``, ``used_s`` (how long a slice lasted) and ``cpu_s`` (how long
it computed) are arguments.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable
from typing import Final

from columnar.flows.scheduled_trigger import (
    NEW,
    NOWHERE,
    QUICK,
    QUICK_S,
    SHORTEST_S,
    SLOW,
    ScheduledSlice,
    ScheduledTrigger,
    Terms,
)

RESERVED_PART: Final = 8  # of the places
WINDOW_S: Final = 0.005
RUN_S: Final = 0.002
_LINES: Final = (SLOW, NEW, QUICK)  # a bound on places covers its pace and those before it in this order


class _Tokens:
    """The rated triggers that wait for their next token, ordered by when they get it."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, ScheduledTrigger]] = []  # a heap; an entry counts while its trigger names it
        self._serial = 0

    def follow(self, entry: ScheduledTrigger) -> None:
        """Follow a change of the trigger, which may wait for a token now, or wait no longer."""
        due_s = entry.tokens.await_token(self._serial + 1, is_wanted=entry.wants_to_begin)
        if due_s is not None:
            self._serial += 1
            heapq.heappush(self._due, (due_s, self._serial, entry))

    def next_s(self) -> float | None:
        while self._due:
            tokens = self._due[0][2].tokens
            if tokens.due is not None and self._due[0][1] == tokens.due_serial:
                break
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def take_due(self, now_s: float) -> ScheduledTrigger | None:
        """Give the next token that is due to its trigger; return that trigger, or None if no token is due."""
        due_s = self.next_s()
        if due_s is None or due_s > now_s:
            return None
        entry = heapq.heappop(self._due)[2]
        entry.tokens.get_token(now_s)
        return entry


class FairShare:
    def __init__(self, places: int) -> None:
        self.places = places  # constant
        reserved = places // RESERVED_PART
        self._bounds = (places - reserved, places - reserved // 2, places)  # constant; for a pace with those before it
        self._running_at = [0, 0, 0]  # slices, by the pace of their triggers
        self._virtual_s = 0.0  # the highest tag of a slice that began
        self._triggers: dict[str, ScheduledTrigger] = {}
        # Triggers that can be scheduled, by their pace; an entry counts while it has its trigger's ``place.serial``.
        self._lines: tuple[list[tuple[float, int, ScheduledTrigger]], ...] = ([], [], [])
        self._tokens = _Tokens()
        self._trials: deque[tuple[float, ScheduledTrigger]] = deque()  # when the first slice of a trigger began
        self._serial = 0
        self._in_line = 0  # triggers that can be scheduled
        self._computing_s = 0.0  # expected processor time of the running slices

    # --- triggers ----------------------------------------------------------------------------------

    def allow(self, trigger: str, terms: Terms, now_s: float) -> None:
        """Add a trigger, or change a trigger's terms.  Calls that are begun continue."""
        assert min(terms.share, terms.side_by_side) > 0, "checked where it is registered"
        entry = self._triggers.get(trigger)
        if entry is None:
            self._triggers[trigger] = ScheduledTrigger(trigger, terms, now_s)
            return
        entry.change_terms(terms, now_s)
        self._settle(entry)

    def remove_trigger(self, trigger: str) -> None:
        """Begin no more calls of the trigger; calls that are begun continue to their end."""
        entry = self._triggers[trigger]
        entry.remove()
        self._settle(entry)

    def suspend_trigger(self, trigger: str) -> None:
        """Schedule no slice of the trigger until ``let_go``; a running slice continues to its end."""
        entry = self._triggers.get(trigger)
        if entry is not None:
            entry.suspend()
            self._settle(entry)

    def let_go(self, trigger: str) -> None:
        entry = self._triggers.get(trigger)
        if entry is not None:
            entry.let_go()
            self._settle(entry)

    # --- events ------------------------------------------------------------------------------------

    def ready(self, trigger: str, consumer: Hashable) -> None:
        """Queue the consumer, which has a change to deliver, until ``resting``."""
        entry = self._triggers[trigger]
        if not entry.is_removed:
            entry.consumers.setdefault(consumer)
            self._settle(entry)

    def resting(self, trigger: str, consumer: Hashable) -> None:
        """Remove the consumer from the queue: it has nothing to deliver, or is closed."""
        entry = self._triggers.get(trigger)
        if entry is not None:
            entry.consumers.pop(consumer, None)
            self._settle(entry)

    def paused(self, trigger: str, used_s: float, cpu_s: float = 0.0) -> None:
        """Note that a slice is over, but not its call: the place is free, and the call still counts (I2)."""
        entry = self._triggers[trigger]
        entry.paused.pause_call()
        self._slices_over(entry, used_s, cpu_s, 1)

    def continue_call(self, trigger: str, call: Hashable) -> None:
        """Note that a paused call is ready for its next slice."""
        entry = self._triggers[trigger]
        entry.paused.continue_call(call)
        self._settle(entry)

    def dropped(self, trigger: str, call: Hashable) -> None:
        """Note that a paused call is over without a further slice."""
        entry = self._triggers[trigger]
        entry.paused.drop_call(call)
        self._settle(entry)

    def ended(self, trigger: str, used_s: float, cpu_s: float = 0.0, count: int = 1) -> None:
        """Note that ``count`` running calls are over: done, failed or lost; ``used_s`` and ``cpu_s`` are their sums."""
        self._slices_over(self._triggers[trigger], used_s, cpu_s, count)

    def returned(self, scheduled: ScheduledSlice, count: int = 1) -> None:
        """Undo ``count`` slices that were scheduled or added but found nothing to run; a paused call is then over."""
        entry = self._triggers[scheduled.trigger]
        if scheduled.begins:
            entry.tokens.return_tokens(count)
        self._charge(entry, 0.0, count)
        self._settle(entry)

    # --- instructions ------------------------------------------------------------------------------

    def take_slice(self, now_s: float) -> ScheduledSlice | None:
        """Return the next slice to run, which holds a place until ``paused`` or ``ended``; None if none may begin."""
        self._wake(now_s)
        entry = self._first()
        if entry is None:
            return None
        self._virtual_s = max(self._virtual_s, entry.tag)
        entry.tokens.fill(now_s)
        scheduled = entry.next_slice()
        if not entry.costs.is_measured:
            self._trials.append((now_s, entry))
        self._computing_s += entry.begin_slices(1, is_rated=scheduled.begins)
        self._settle(entry)
        return scheduled

    def widen(self, scheduled: ScheduledSlice, most: int) -> int:
        """Add up to ``most`` slices to a call that was just begun, for a run; return how many were added."""
        entry = self._triggers[scheduled.trigger]
        if entry.pace != QUICK or not entry.costs.is_measured:
            return 0
        free = self._bounds[QUICK] - self.running_count
        if self._in_line > 1:
            free //= self._in_line
        count = min(most, free, entry.most_begun - entry.begun, int(RUN_S / max(entry.costs.mean_s, SHORTEST_S)) - 1)
        if entry.terms.rate_per_s is not None:
            count = min(count, entry.tokens.count)
        if entry.costs.cpu_mean_s:
            count = min(count, int((WINDOW_S - self._computing_s) / entry.costs.cpu_mean_s))
        if count <= 0:
            return 0
        self._computing_s += entry.begin_slices(count, is_rated=True)
        self._settle(entry)
        return count

    def waits(self, now_s: float) -> bool:
        """Return whether a trigger waits for its queue turn."""
        self._wake(now_s)
        return self._in_line > 0

    def next_due_s(self) -> float | None:
        """Return when a waiting trigger may begin a call, or None; call ``take_slice`` at that time at the latest."""
        token_s = self._tokens.next_s()
        while self._trials and self._trials[0][1].costs.is_measured:
            self._trials.popleft()
        if not self._trials:
            return token_s
        trial_s = self._trials[0][0] + QUICK_S
        return trial_s if token_s is None else min(token_s, trial_s)

    # --- status ------------------------------------------------------------------------------------

    @property
    def running_count(self) -> int:
        at = self._running_at
        return at[SLOW] + at[NEW] + at[QUICK]

    def begun_count(self, trigger: str) -> int:
        """Return the number of the trigger's calls that run or are paused."""
        entry = self._triggers.get(trigger)
        return entry.begun if entry is not None else 0

    def mean_slice_s(self, trigger: str) -> float:
        return self._triggers[trigger].costs.mean_s

    # --- tags and lines ----------------------------------------------------------------------------

    def _slices_over(self, entry: ScheduledTrigger, used_s: float, cpu_s: float, count: int) -> None:
        cost_s = max(cpu_s, used_s / self.places)
        entry.costs.measure(used_s, cpu_s, cost_s, count)
        self._charge(entry, cost_s, count)
        self._settle(entry)

    def _charge(self, entry: ScheduledTrigger, cost_s: float, count: int) -> None:
        """Free ``count`` places, and replace the charge for their slices by the slices' cost."""
        computing_s = entry.end_slices(cost_s, count, self._virtual_s)
        self._computing_s = self._computing_s - computing_s if self.running_count > count else 0.0

    def _settle(self, known: ScheduledTrigger) -> None:
        """Bring the queues up to date after any change of a trigger."""
        known.weigh()
        begun, pace = known.begun, known.pace
        self._running_at[known.place.counted_pace] -= known.place.counted
        self._running_at[pace] += known.running
        known.place.count_running(pace, known.running)
        wants = begun < known.most_begun and bool(known.consumers)
        if known.terms.rate_per_s is not None:
            self._tokens.follow(known)
            wants = wants and known.tokens.has_token
        if known.is_suspended or not (wants or known.paused.continuing):
            self._in_line -= known.place.serial != NOWHERE
            known.place.leave()
            if known.is_removed and not begun:
                self._triggers.pop(known.name, None)
            return
        if known.place.serial == NOWHERE:
            known.catch_up(self._virtual_s)
            self._in_line += 1
        elif known.place.pace == pace and known.place.tag == known.tag:
            return
        self._serial += 1
        known.place.enter(self._serial, pace, known.tag)
        line = self._lines[pace]
        heapq.heappush(line, (known.tag, self._serial, known))
        if len(line) > 2 * len(self._triggers) + 64:  # most entries are outdated
            line[:] = [entry for entry in line if entry[2].place.serial == entry[1]]
            heapq.heapify(line)

    def _wake(self, now_s: float) -> None:
        """Queue the triggers whose next token is due, or whose first slice is known to be long."""
        while (woken := self._tokens.take_due(now_s)) is not None:
            self._settle(woken)
        while self._trials and (self._trials[0][0] + QUICK_S <= now_s or self._trials[0][1].costs.is_measured):
            entry = self._trials.popleft()[1]
            if not entry.costs.is_measured and entry.running:
                entry.costs.assume_slow(self.places)
                self._settle(entry)

    def _first(self) -> ScheduledTrigger | None:
        """Return the trigger with the lowest tag among those that may use a place; None if none may."""
        if self.running_count >= self.places or self._computing_s >= WINDOW_S:
            return None
        first: tuple[float, int, ScheduledTrigger] | None = None
        running = 0
        for pace in _LINES:
            running += self._running_at[pace]
            line = self._lines[pace]
            while line and line[0][2].place.serial != line[0][1]:
                heapq.heappop(line)
            if line and running < self._bounds[pace] and (first is None or line[0] < first):
                first = line[0]
        return None if first is None else first[2]

    def check_invariants(self) -> None:
        """Check the invariants of the fields, for tests."""
        assert 0 <= self.running_count <= self.places
        assert abs(self._computing_s - sum(known.costs.cpu_charged for known in self._triggers.values())) < 1e-6
        assert self._in_line == sum(known.place.serial != NOWHERE for known in self._triggers.values())
        for pace in _LINES:
            assert self._running_at[pace] == sum(one.running for one in self._triggers.values() if one.pace == pace)
        entries = [(at, entry) for at, line in enumerate(self._lines) for entry in line]
        live = {entry[2].name: (at, entry) for at, entry in entries if entry[2].place.serial == entry[1]}
        for known in self._triggers.values():
            assert known.begun <= known.bound
            assert len(known.paused.continuing) <= known.paused.count
            assert (known.place.serial != NOWHERE) == known.can_take == (known.name in live)
            if known.name in live:
                at, entry = live[known.name]
                assert (at, entry[0]) == (known.pace, known.tag)
            assert (known.tokens.due is not None) == (known.wants_to_begin and not known.may_begin)
            assert known.costs.charged >= -1e-9
            assert known.costs.cpu_charged >= -1e-9
            assert known.running or known.costs.charged == 0.0
            assert not known.is_removed or known.begun
