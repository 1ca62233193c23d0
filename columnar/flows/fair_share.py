"""(pure) Schedules many triggers on the places of one worker process: events in, scheduled slices out.

Start-time fair queueing (Goyal, Vin and Cheng 1996) over triggers, by the cost of their slices divided by their share;
the trigger with the lowest tag is next.  Within a trigger its consumers (regions) take queue turns, and so do
the calls that continue with another slice.  Rows within a region are the business of its ``DeliveryState``.

    consumer    resting <-- ready / resting --> in line
    call        begins (``take``) --> running --ended--> over
                                      | ^                 ^
                             paused   v | ``take``        | dropped
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
        """Add a trigger, or change the terms of one.  Calls that are begun go on."""
        assert min(terms.share, terms.side_by_side) > 0, "checked where it is registered"
        held = self._triggers.get(trigger)
        if held is None:
            self._triggers[trigger] = _Trigger(trigger, terms, now_s)
            return
        held.fill(now_s)
        held.terms, held.is_removed, held.due = terms, False, None
        held.weigh()
        held.bound = max(held.most_begun, held.begun)
        self._settle(held)

    def remove(self, trigger: str) -> None:
        """No call of it begins any more; those that are begun go on to their end."""
        held = self._triggers[trigger]
        held.is_removed = True
        held.consumers.clear()
        self._settle(held)

    def suspend_trigger(self, trigger: str) -> None:
        """Schedule no slice of the trigger until ``let_go``; a running slice continues to its end."""
        held = self._triggers.get(trigger)
        if held is not None:
            held.is_suspended = True
            self._settle(held)

    def let_go(self, trigger: str) -> None:
        held = self._triggers.get(trigger)
        if held is not None:
            held.is_suspended = False
            self._settle(held)

    # --- events ------------------------------------------------------------------------------------

    def ready(self, trigger: str, consumer: Hashable) -> None:
        """Note that the consumer has a change to deliver.  It stays in line until ``resting``."""
        held = self._triggers[trigger]
        if not held.is_removed:
            held.consumers.setdefault(consumer)
            self._settle(held)

    def resting(self, trigger: str, consumer: Hashable) -> None:
        """The consumer has nothing to deliver, or is gone."""
        held = self._triggers.get(trigger)
        if held is not None:
            held.consumers.pop(consumer, None)
            self._settle(held)

    def paused(self, trigger: str, used_s: float, cpu_s: float = 0.0) -> None:
        """A slice is over, its call is not: the place is free, and the call still counts (I2)."""
        held = self._triggers[trigger]
        held.paused += 1
        self._slice_over(held, used_s, cpu_s)

    def continue_call(self, trigger: str, call: Hashable) -> None:
        """A paused call is ready for its next slice."""
        held = self._triggers[trigger]
        held.continuing[call] = None
        assert len(held.continuing) <= held.paused, "only a paused call goes on"
        self._settle(held)

    def dropped(self, trigger: str, call: Hashable) -> None:
        """A paused call is over without another slice."""
        held = self._triggers[trigger]
        held.continuing.pop(call, None)
        held.paused -= 1
        self._settle(held)

    def ended(self, trigger: str, used_s: float, cpu_s: float = 0.0) -> None:
        """A running call is over: done, failed or lost."""
        self._slice_over(self._triggers[trigger], used_s, cpu_s)

    def returned(self, turn: ScheduledSlice) -> None:
        """Undo a scheduled slice that found nothing to run.  A paused call is over."""
        held = self._triggers[turn.trigger]
        if turn.begins and held.terms.rate_per_s is not None:
            held.tokens += 1.0
        self._charge(held, 0.0)
        self._settle(held)

    # --- instructions ------------------------------------------------------------------------------

    def take(self, now_s: float) -> ScheduledSlice | None:
        """The next slice to run; it holds a place until ``paused`` or ``ended``."""
        self._wake(now_s)
        held = self._first()
        if held is None:
            return None
        self._virtual_s = max(self._virtual_s, held.tag)
        held.fill(now_s)
        turn = held.next_slice()
        if turn.begins and held.terms.rate_per_s is not None:
            held.tokens -= 1.0
        held.running += 1
        if not held.is_measured:
            self._trials.append((now_s, held))
        guess = held.cost_mean_s / held.terms.share
        held.charged += guess
        held.tag += guess
        held.cpu_charged += held.cpu_mean_s
        self._computing_s += held.cpu_mean_s
        self._settle(held)
        return turn

    def waits(self, now_s: float) -> bool:
        """Return whether a trigger waits for its queue turn."""
        self._wake(now_s)
        return self._in_line > 0

    def next_due_s(self) -> float | None:
        """When a trigger may begin a call that it may not begin now: ``take`` then, if no event comes before."""
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
        held = self._triggers.get(trigger)
        return held.begun if held is not None else 0

    def mean_slice_s(self, trigger: str) -> float:
        return self._triggers[trigger].mean_s

    # --- tags and lines ----------------------------------------------------------------------------

    def _slice_over(self, held: _Trigger, used_s: float, cpu_s: float) -> None:
        weight = 1 / _MEMORY if held.is_measured else 1.0
        held.mean_s += (used_s - held.mean_s) * weight
        held.cpu_mean_s += (cpu_s - held.cpu_mean_s) * weight
        held.is_measured = True
        cost_s = max(cpu_s, used_s / self.places)
        held.cost_mean_s += (cost_s - held.cost_mean_s) * weight
        self._charge(held, cost_s)
        self._settle(held)

    def _charge(self, held: _Trigger, cost_s: float) -> None:
        """Free a place, and replace the guess for one slice by what it cost."""
        assert held.running > 0, "only a running slice is over"
        guessed = held.charged / held.running
        computing = held.cpu_charged / held.running
        held.running -= 1
        held.charged = held.charged - guessed if held.running else 0.0
        held.cpu_charged = held.cpu_charged - computing if held.running else 0.0
        self._computing_s = self._computing_s - computing if self.running_count > 1 else 0.0
        # A guess that was too high is given back, but not as credit below the virtual time (I4).
        fresh = held.tag + cost_s / held.terms.share - guessed
        held.tag = max(fresh, min(held.tag, self._virtual_s))

    def _settle(self, held: _Trigger) -> None:
        """Bring the lines up to date after any change of a trigger."""
        held.weigh()
        begun, pace = held.running + held.paused, held.pace
        held.bound = max(held.most_begun, min(held.bound, begun))
        self._running_at[held.counted_pace] -= held.counted
        self._running_at[pace] += held.running
        held.counted_pace, held.counted = pace, held.running
        wants = begun < held.most_begun and bool(held.consumers)
        if held.terms.rate_per_s is not None:
            self._await_token(held)
            wants = wants and held.tokens >= 1.0
        if held.is_suspended or not (wants or held.continuing):
            self._in_line -= held.serial != _NOWHERE
            held.serial = _NOWHERE
            if held.is_removed and not begun:
                self._triggers.pop(held.name, None)
            return
        if held.serial == _NOWHERE:
            held.tag = max(held.tag, self._virtual_s)  # I4
            self._in_line += 1
        elif held.line_pace == pace and held.line_tag == held.tag:
            return
        self._serial += 1
        held.serial, held.line_pace, held.line_tag = self._serial, pace, held.tag
        line = self._lines[pace]
        heapq.heappush(line, (held.tag, self._serial, held))
        if len(line) > 2 * len(self._triggers) + 64:  # most of it has been overtaken
            line[:] = [entry for entry in line if entry[2].serial == entry[1]]
            heapq.heapify(line)

    def _await_token(self, held: _Trigger) -> None:
        if not held.wants_to_begin or held.may_begin:
            held.due = None
        elif held.due is None:
            assert held.terms.rate_per_s is not None
            self._serial += 1
            held.due = held.filled_s + (1.0 - held.tokens) / held.terms.rate_per_s
            held.due_serial = self._serial
            heapq.heappush(self._due, (held.due, self._serial, held))

    def _wake(self, now_s: float) -> None:
        """Put triggers into the line whose next token is there, or whose first slice is known to be long."""
        while (due_s := self._next_token_s()) is not None and due_s <= now_s:
            held = heapq.heappop(self._due)[2]
            held.due = None
            held.fill(now_s)
            held.tokens = max(held.tokens, 1.0)  # whatever the rounding of the sum above
            self._settle(held)
        while self._trials and (self._trials[0][0] + QUICK_S <= now_s or self._trials[0][1].is_measured):
            held = self._trials.popleft()[1]
            if not held.is_measured and held.running:
                held.is_measured, held.mean_s = True, 2 * QUICK_S  # or more: ``_slice_over`` will know
                held.cost_mean_s = held.mean_s / self.places
                self._settle(held)

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

    def check(self) -> None:
        """The invariants of the fields, for tests."""
        assert 0 <= self.running_count <= self.places
        assert abs(self._computing_s - sum(held.cpu_charged for held in self._triggers.values())) < 1e-6
        assert self._in_line == sum(held.serial != _NOWHERE for held in self._triggers.values())
        for pace in (_SLOW, _NEW, _QUICK):
            assert self._running_at[pace] == sum(one.running for one in self._triggers.values() if one.pace == pace)
        entries = [(at, entry) for at, line in enumerate(self._lines) for entry in line]
        live = {entry[2].name: (at, entry) for at, entry in entries if entry[2].serial == entry[1]}
        for held in self._triggers.values():
            assert held.begun <= held.bound
            assert len(held.continuing) <= held.paused
            assert (held.serial != _NOWHERE) == held.can_take == (held.name in live)
            if held.name in live:
                at, entry = live[held.name]
                assert (at, entry[0]) == (held.pace, held.tag)
            assert (held.due is not None) == (held.wants_to_begin and not held.may_begin)
            assert held.charged >= -1e-9
            assert held.cpu_charged >= -1e-9
            assert held.running or held.charged == 0.0
            assert not held.is_removed or held.begun
