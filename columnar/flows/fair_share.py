"""(pure) Schedules many triggers on the places of one worker process: events in, scheduled slices out.

Start-time fair queueing (Goyal, Vin and Cheng 1996) over triggers, by the cost of their slices divided by their share;
the trigger with the lowest tag is next.  Within a trigger its consumers (regions) take queue turns, and so do
the calls that continue with another slice.  Rows within a region are the business of its ``DeliveryState``.

    consumer    resting <-- ready / resting --> in line
    call        begins (``take_slice``) --> running --ended--> over
                                            | ^                 ^
                                   paused   v | ``take_slice``  | dropped
                                           paused --``continue_call``--> in line

A worker has two things to share: one interpreter, and its places.  A slice costs its use of the scarcer one for
it: the time that it computed, or its part of the places while it lasted (dominant resource fairness: Ghodsi and others
2011).  Its whole length is no cost: if a slice waits for the interpreter, its length is mostly the computing of others.

A slice is charged the mean cost of its trigger's slices when it begins, and the difference when it is over: its cost is
not known before, and without a charge at the beginning the trigger that is first would take all free places.

Invariants:
    I1. At most ``places`` slices run.  A running slice holds one place; a paused call holds none.
    I2. At most ``side_by_side`` calls of a trigger are begun, running and paused together.  While none is paused,
        more of a trigger with quick calls may be begun, as many as take PIPELINE_S together: the worker, which runs
        ``side_by_side`` of them, need not wait for the next ones.
    I3. In any time t at most ``rate * t + 2`` calls of a rated trigger begin; further slices of a call are free.
    I4. A trigger saves up no credit while it cannot be scheduled, be it idle, at its ``side_by_side``, over its rate
        or suspended: its tag is at least the virtual time when it can again.
    I5. Slow triggers, whose mean slice is over ``QUICK_S``, together hold seven eighths of the places at most, and with
        new ones half of the rest: a quick trigger waits for slices of its own kind, never for calls of seconds.
    I6. A new trigger, whose slices were never measured, runs one slice until that is over or has lasted ``QUICK_S``:
        a start with many slow triggers leaves places to the other triggers.
    I7. No slice begins while those that run are expected to compute WINDOW_S or more: slices that compute share one
        interpreter, and the next trigger that comes waits for them.
    I8. A trigger pays nothing for the computing of others, however long its slices wait for the interpreter.

``widen`` adds slices to one that was just taken: a run of quick calls, which the worker gets together.  Each slice of
a run counts, costs and is bounded as one that was taken alone, but for the order: others wait for a run of RUN_S.

Cost: O(log triggers) for an event or a scheduled slice.

Knows nothing of processes, frames and clocks: ``now_s``, ``used_s`` (how long a slice lasted) and ``cpu_s`` (how long
it computed) are arguments.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple

SHARE: Final = 10
SIDE_BY_SIDE: Final = 8
QUICK_S: Final = 0.01  # half a slice of a generator: fan-outs are slow
RESERVED_PART: Final = 8  # of the places
PIPELINE_S: Final = 0.005
WINDOW_S: Final = 0.005
RUN_S: Final = 0.002
_SLOW, _NEW, _QUICK = range(3)  # places of the lines in ``_lines``
_NOWHERE: Final = 0  # serial of a trigger that is in no line
_SHORTEST_S: Final = 1e-6
_FIRST_GUESS_S: Final = 0.001  # a slice of a trigger that was never measured
_MEMORY: Final = 8  # slices, in the mean of a trigger's slices
_TOKENS: Final = 2.0  # a bucket's size: a late check loses nothing


@dataclass(frozen=True, slots=True)
class Terms:
    """The part of the worker that a trigger may use."""

    share: int = SHARE
    side_by_side: int = SIDE_BY_SIDE
    rate_per_s: float | None = None  # of calls; None: as many as its share gives


class ScheduledSlice(NamedTuple):
    trigger: str
    key: Hashable  # the consumer whose next change is to be called, or the paused call
    begins: bool  # a new call


class _Trigger:
    __slots__ = (
        "bound",
        "charged",
        "consumers",
        "continues_next",
        "continuing",
        "cost_mean_s",
        "counted",
        "counted_pace",
        "cpu_charged",
        "cpu_mean_s",
        "due",
        "due_serial",
        "filled_s",
        "is_measured",
        "is_removed",
        "is_suspended",
        "line_pace",
        "line_tag",
        "mean_s",
        "most_begun",
        "name",
        "pace",
        "paused",
        "running",
        "serial",
        "tag",
        "terms",
        "tokens",
    )

    def __init__(self, name: str, terms: Terms, now_s: float) -> None:
        self.name = name  # constant
        self.terms = terms
        self.bound = terms.side_by_side  # above it only by calls begun before it was lowered
        self.is_removed = False
        self.is_suspended = False
        self.consumers: OrderedDict[Hashable, None] = OrderedDict()  # that have a change ready
        self.continuing: OrderedDict[Hashable, None] = OrderedDict()  # paused calls with a slice ready
        self.continues_next = True  # continuing calls and new ones alternate
        self.running = 0
        self.counted = 0  # running slices, as they are in ``_running_at`` of ``counted_pace``
        self.counted_pace = _NEW
        self.most_begun = 1  # this and ``pace``, which limits the places that it may use: set by ``weigh``
        self.pace = _NEW
        self.paused = 0
        self.tag = 0.0  # virtual seconds: when its next slice starts
        self.charged = 0.0  # virtual seconds, a part of the tag: for the slices that run
        self.mean_s = _FIRST_GUESS_S  # how long a slice lasts
        self.cost_mean_s = _FIRST_GUESS_S
        self.cpu_mean_s = 0.0
        self.cpu_charged = 0.0  # seconds: what the slices that run are expected to compute
        self.is_measured = False
        self.tokens = 1.0  # as of ``filled_s``
        self.filled_s = now_s
        self.due: float | None = None  # when its next token is there; set while it waits for one
        self.due_serial = 0  # of its entry in the heap of due triggers
        self.serial = _NOWHERE  # of its entry in a line; with pace and tag there
        self.line_pace = _NEW
        self.line_tag = 0.0

    @property
    def begun(self) -> int:
        return self.running + self.paused

    @property
    def wants_to_begin(self) -> bool:
        return bool(self.consumers) and self.running + self.paused < self.most_begun

    @property
    def may_begin(self) -> bool:
        return self.wants_to_begin and (self.terms.rate_per_s is None or self.tokens >= 1.0)

    @property
    def can_take(self) -> bool:
        return not self.is_suspended and (bool(self.continuing) or self.may_begin)

    def weigh(self) -> None:
        """Set ``most_begun`` (I2, I6) and ``pace`` (I5)."""
        if not self.is_measured:
            self.most_begun, self.pace = 1, _NEW
            return
        mean_s, most = self.mean_s, self.terms.side_by_side
        self.pace = _QUICK if mean_s <= QUICK_S else _SLOW
        if not self.paused and mean_s * most < PIPELINE_S:
            # Never in addition to paused calls: those in the worker would hold the places that paused ones need.
            most = int(PIPELINE_S / max(mean_s, _SHORTEST_S))
        self.most_begun = most

    def fill(self, now_s: float) -> None:
        if self.terms.rate_per_s is not None:
            gained = max(0.0, now_s - self.filled_s) * self.terms.rate_per_s
            self.tokens = min(_TOKENS, self.tokens + gained)
        self.filled_s = max(now_s, self.filled_s)

    def next_slice(self) -> ScheduledSlice:
        """Return the slice that is next in the queue; its consumer moves to the end of the queue."""
        if self.continuing and (self.continues_next or not self.may_begin):
            self.continues_next = False
            self.paused -= 1
            return ScheduledSlice(self.name, self.continuing.popitem(last=False)[0], False)
        self.continues_next = True
        consumer = next(iter(self.consumers))
        self.consumers.move_to_end(consumer)
        return ScheduledSlice(self.name, consumer, True)


class FairShare:
    def __init__(self, places: int) -> None:
        self.places = places  # constant
        reserved = places // RESERVED_PART
        self._bounds = (places - reserved, places - reserved // 2, places)  # constant; for each pace and all below it
        self._running_at = [0, 0, 0]  # slices, by the pace of their triggers
        self._virtual_s = 0.0  # the highest tag of a slice that began
        self._triggers: dict[str, _Trigger] = {}
        # Triggers that can be scheduled, by their pace; an entry counts while its trigger names it.
        self._lines: tuple[list[tuple[float, int, _Trigger]], ...] = ([], [], [])
        self._due: list[tuple[float, int, _Trigger]] = []  # triggers that wait for a token
        self._trials: deque[tuple[float, _Trigger]] = deque()  # when the first slice of a trigger began
        self._serial = 0
        self._in_line = 0  # triggers that can be scheduled
        self._computing_s = 0.0  # what the slices that run are expected to compute

    # --- triggers ----------------------------------------------------------------------------------

    def allow(self, trigger: str, terms: Terms, now_s: float) -> None:
        """Add a trigger, or change the terms of one.  Calls that are begun continue."""
        assert min(terms.share, terms.side_by_side) > 0, "checked where it is registered"
        entry = self._triggers.get(trigger)
        if entry is None:
            self._triggers[trigger] = _Trigger(trigger, terms, now_s)
            return
        entry.fill(now_s)
        entry.terms, entry.is_removed, entry.due = terms, False, None
        entry.weigh()
        entry.bound = max(entry.most_begun, entry.begun)
        self._settle(entry)

    def remove_trigger(self, trigger: str) -> None:
        """Begin no more calls of the trigger; those that are begun continue to their end."""
        entry = self._triggers[trigger]
        entry.is_removed = True
        entry.consumers.clear()
        self._settle(entry)

    def suspend_trigger(self, trigger: str) -> None:
        """Schedule no slice of the trigger until ``let_go``; a running slice continues to its end."""
        entry = self._triggers.get(trigger)
        if entry is not None:
            entry.is_suspended = True
            self._settle(entry)

    def let_go(self, trigger: str) -> None:
        entry = self._triggers.get(trigger)
        if entry is not None:
            entry.is_suspended = False
            self._settle(entry)

    # --- events ------------------------------------------------------------------------------------

    def ready(self, trigger: str, consumer: Hashable) -> None:
        """Note that the consumer has a change to deliver.  It stays in line until ``resting``."""
        entry = self._triggers[trigger]
        if not entry.is_removed:
            entry.consumers.setdefault(consumer)
            self._settle(entry)

    def resting(self, trigger: str, consumer: Hashable) -> None:
        """The consumer has nothing to deliver, or is gone."""
        entry = self._triggers.get(trigger)
        if entry is not None:
            entry.consumers.pop(consumer, None)
            self._settle(entry)

    def paused(self, trigger: str, used_s: float, cpu_s: float = 0.0) -> None:
        """A slice is over, its call is not: the place is free, and the call still counts (I2)."""
        entry = self._triggers[trigger]
        entry.paused += 1
        self._slices_over(entry, used_s, cpu_s, 1)

    def continue_call(self, trigger: str, call: Hashable) -> None:
        """A paused call is ready for its next slice."""
        entry = self._triggers[trigger]
        entry.continuing[call] = None
        assert len(entry.continuing) <= entry.paused, "only a paused call goes on"
        self._settle(entry)

    def dropped(self, trigger: str, call: Hashable) -> None:
        """A paused call is over without another slice."""
        entry = self._triggers[trigger]
        entry.continuing.pop(call, None)
        entry.paused -= 1
        self._settle(entry)

    def ended(self, trigger: str, used_s: float, cpu_s: float = 0.0, count: int = 1) -> None:
        """``count`` running calls are over, done, failed or lost, which took ``used_s`` and ``cpu_s`` together."""
        self._slices_over(self._triggers[trigger], used_s, cpu_s, count)

    def returned(self, scheduled: ScheduledSlice, count: int = 1) -> None:
        """Undo ``count`` slices, scheduled or added to it, that found nothing to run.  A paused call is over."""
        entry = self._triggers[scheduled.trigger]
        if scheduled.begins and entry.terms.rate_per_s is not None:
            entry.tokens += count
        self._charge(entry, 0.0, count)
        self._settle(entry)

    # --- instructions ------------------------------------------------------------------------------

    def take_slice(self, now_s: float) -> ScheduledSlice | None:
        """The next slice to run; it holds a place until ``paused`` or ``ended``."""
        self._wake(now_s)
        entry = self._first()
        if entry is None:
            return None
        self._virtual_s = max(self._virtual_s, entry.tag)
        entry.fill(now_s)
        scheduled = entry.next_slice()
        if not entry.is_measured:
            self._trials.append((now_s, entry))
        self._begin(entry, 1, is_rated=scheduled.begins)
        return scheduled

    def widen(self, scheduled: ScheduledSlice, most: int) -> int:
        """Add up to ``most`` slices to a call that was just begun, for a run; return how many run in addition."""
        entry = self._triggers[scheduled.trigger]
        if entry.pace != _QUICK or not entry.is_measured:
            return 0
        free = self._bounds[_QUICK] - self.running_count
        if self._in_line > 1:
            free //= self._in_line
        count = min(most, free, entry.most_begun - entry.begun, int(RUN_S / max(entry.mean_s, _SHORTEST_S)) - 1)
        if entry.terms.rate_per_s is not None:
            count = min(count, int(entry.tokens))
        if entry.cpu_mean_s:
            count = min(count, int((WINDOW_S - self._computing_s) / entry.cpu_mean_s))
        if count <= 0:
            return 0
        self._begin(entry, count, is_rated=True)
        return count

    def _begin(self, entry: _Trigger, count: int, *, is_rated: bool) -> None:
        if is_rated and entry.terms.rate_per_s is not None:
            entry.tokens -= count
        entry.running += count
        guess = count * entry.cost_mean_s / entry.terms.share
        entry.charged += guess
        entry.tag += guess
        entry.cpu_charged += count * entry.cpu_mean_s
        self._computing_s += count * entry.cpu_mean_s
        self._settle(entry)

    def waits(self, now_s: float) -> bool:
        """Return whether a trigger waits for its queue turn."""
        self._wake(now_s)
        return self._in_line > 0

    def next_due_s(self) -> float | None:
        """Return when a trigger may begin a call that it may not begin now; ``take_slice`` then, if no event comes."""
        token_s = self._next_token_s()
        while self._trials and self._trials[0][1].is_measured:
            self._trials.popleft()
        if not self._trials:
            return token_s
        trial_s = self._trials[0][0] + QUICK_S
        return trial_s if token_s is None else min(token_s, trial_s)

    # --- status ------------------------------------------------------------------------------------

    @property
    def running_count(self) -> int:
        at = self._running_at
        return at[_SLOW] + at[_NEW] + at[_QUICK]

    def begun_count(self, trigger: str) -> int:
        """Calls of it that run or are paused."""
        entry = self._triggers.get(trigger)
        return entry.begun if entry is not None else 0

    def mean_slice_s(self, trigger: str) -> float:
        return self._triggers[trigger].mean_s

    # --- tags and lines ----------------------------------------------------------------------------

    def _slices_over(self, entry: _Trigger, used_s: float, cpu_s: float, count: int) -> None:
        weight = 1.0
        if entry.is_measured:
            weight = 1 / _MEMORY if count == 1 else 1.0 - (1.0 - 1 / _MEMORY) ** count
        entry.mean_s += (used_s / count - entry.mean_s) * weight
        entry.cpu_mean_s += (cpu_s / count - entry.cpu_mean_s) * weight
        entry.is_measured = True
        cost_s = max(cpu_s, used_s / self.places)
        entry.cost_mean_s += (cost_s / count - entry.cost_mean_s) * weight
        self._charge(entry, cost_s, count)
        self._settle(entry)

    def _charge(self, entry: _Trigger, cost_s: float, count: int) -> None:
        """Free ``count`` places, and replace the guess for their slices by what those cost."""
        assert entry.running >= count, "only a running slice is over"
        guessed = count * entry.charged / entry.running
        computing = count * entry.cpu_charged / entry.running
        entry.running -= count
        entry.charged = entry.charged - guessed if entry.running else 0.0
        entry.cpu_charged = entry.cpu_charged - computing if entry.running else 0.0
        self._computing_s = self._computing_s - computing if self.running_count > count else 0.0
        # A guess that was too high is given back, but not as credit below the virtual time (I4).
        fresh = entry.tag + cost_s / entry.terms.share - guessed
        entry.tag = max(fresh, min(entry.tag, self._virtual_s))

    def _settle(self, known: _Trigger) -> None:
        """Bring the lines up to date after any change of a trigger."""
        known.weigh()
        begun, pace = known.running + known.paused, known.pace
        known.bound = max(known.most_begun, min(known.bound, begun))
        self._running_at[known.counted_pace] -= known.counted
        self._running_at[pace] += known.running
        known.counted_pace, known.counted = pace, known.running
        wants = begun < known.most_begun and bool(known.consumers)
        if known.terms.rate_per_s is not None:
            self._await_token(known)
            wants = wants and known.tokens >= 1.0
        if known.is_suspended or not (wants or known.continuing):
            self._in_line -= known.serial != _NOWHERE
            known.serial = _NOWHERE
            if known.is_removed and not begun:
                self._triggers.pop(known.name, None)
            return
        if known.serial == _NOWHERE:
            known.tag = max(known.tag, self._virtual_s)  # I4
            self._in_line += 1
        elif known.line_pace == pace and known.line_tag == known.tag:
            return
        self._serial += 1
        known.serial, known.line_pace, known.line_tag = self._serial, pace, known.tag
        line = self._lines[pace]
        heapq.heappush(line, (known.tag, self._serial, known))
        if len(line) > 2 * len(self._triggers) + 64:  # most of it has been overtaken
            line[:] = [entry for entry in line if entry[2].serial == entry[1]]
            heapq.heapify(line)

    def _await_token(self, entry: _Trigger) -> None:
        if not entry.wants_to_begin or entry.may_begin:
            entry.due = None
        elif entry.due is None:
            assert entry.terms.rate_per_s is not None
            self._serial += 1
            entry.due = entry.filled_s + (1.0 - entry.tokens) / entry.terms.rate_per_s
            entry.due_serial = self._serial
            heapq.heappush(self._due, (entry.due, self._serial, entry))

    def _wake(self, now_s: float) -> None:
        """Put triggers into the line whose next token is there, or whose first slice is known to be long."""
        while (due_s := self._next_token_s()) is not None and due_s <= now_s:
            entry = heapq.heappop(self._due)[2]
            entry.due = None
            entry.fill(now_s)
            entry.tokens = max(entry.tokens, 1.0)  # whatever the rounding of the sum above
            self._settle(entry)
        while self._trials and (self._trials[0][0] + QUICK_S <= now_s or self._trials[0][1].is_measured):
            entry = self._trials.popleft()[1]
            if not entry.is_measured and entry.running:
                entry.is_measured, entry.mean_s = True, 2 * QUICK_S  # or more: ``_slices_over`` will know
                entry.cost_mean_s = entry.mean_s / self.places
                self._settle(entry)

    def _next_token_s(self) -> float | None:
        while self._due and (self._due[0][2].due is None or self._due[0][1] != self._due[0][2].due_serial):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def _first(self) -> _Trigger | None:
        """The lowest tag among the triggers that may use a place."""
        if self.running_count >= self.places or self._computing_s >= WINDOW_S:
            return None
        first: tuple[float, int, _Trigger] | None = None
        running = 0
        for pace in (_SLOW, _NEW, _QUICK):
            running += self._running_at[pace]
            line = self._lines[pace]
            while line and line[0][2].serial != line[0][1]:
                heapq.heappop(line)
            if line and running < self._bounds[pace] and (first is None or line[0] < first):
                first = line[0]
        return None if first is None else first[2]

    def check_invariants(self) -> None:
        """The invariants of the fields, for tests."""
        assert 0 <= self.running_count <= self.places
        assert abs(self._computing_s - sum(known.cpu_charged for known in self._triggers.values())) < 1e-6
        assert self._in_line == sum(known.serial != _NOWHERE for known in self._triggers.values())
        for pace in (_SLOW, _NEW, _QUICK):
            assert self._running_at[pace] == sum(one.running for one in self._triggers.values() if one.pace == pace)
        entries = [(at, entry) for at, line in enumerate(self._lines) for entry in line]
        live = {entry[2].name: (at, entry) for at, entry in entries if entry[2].serial == entry[1]}
        for known in self._triggers.values():
            assert known.begun <= known.bound
            assert len(known.continuing) <= known.paused
            assert (known.serial != _NOWHERE) == known.can_take == (known.name in live)
            if known.name in live:
                at, entry = live[known.name]
                assert (at, entry[0]) == (known.pace, known.tag)
            assert (known.due is not None) == (known.wants_to_begin and not known.may_begin)
            assert known.charged >= -1e-9
            assert known.cpu_charged >= -1e-9
            assert known.running or known.charged == 0.0
            assert not known.is_removed or known.begun
