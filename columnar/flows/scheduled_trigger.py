"""(pure) A trigger as ``fair_share`` schedules it: its terms, its tokens, its slices' costs, and its place in a queue.

Invariant numbers are those of ``fair_share``.  Knows nothing of other triggers and of clocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple

SHARE: Final = 10
SIDE_BY_SIDE: Final = 8
QUICK_S: Final = 0.01  # half a slice of a generator: fan-outs are slow
PIPELINE_S: Final = 0.005
SLOW, NEW, QUICK = range(3)  # paces
NOWHERE: Final = 0  # serial of a trigger that is in no queue
SHORTEST_S: Final = 1e-6
_FIRST_GUESS_S: Final = 0.001  # assumed for a slice of a trigger that was never measured
_MEMORY: Final = 8  # slices that the mean of a trigger's slices remembers
_BUCKET: Final = 2.0  # tokens at most; with two a late check loses none


@dataclass(frozen=True, slots=True)
class Terms:
    """The part of the worker that a trigger may use."""

    share: int = SHARE
    side_by_side: int = SIDE_BY_SIDE
    rate_per_s: float | None = None  # of calls; None: as many as its share gives


class ScheduledSlice(NamedTuple):
    trigger: str
    key: Hashable  # the consumer whose next change is to be called, or the paused call
    begins: bool  # whether this is a new call


class TokenBucket:
    """The tokens of a rated trigger; each call takes one (I3)."""

    __slots__ = ("_filled_s", "_rate_per_s", "_tokens", "due", "due_serial")

    def __init__(self, rate_per_s: float | None, now_s: float) -> None:
        self._rate_per_s = rate_per_s  # None: the trigger is not rated
        self._tokens = 1.0  # as of ``_filled_s``
        self._filled_s = now_s
        self.due: float | None = None  # when the next token comes; set while the trigger waits for one
        self.due_serial = 0  # of the trigger's entry in ``_Tokens``

    @property
    def count(self) -> int:
        return int(self._tokens)

    @property
    def has_token(self) -> bool:
        return self._rate_per_s is None or self._tokens >= 1.0

    def change_rate(self, rate_per_s: float | None, now_s: float) -> None:
        self.fill(now_s)
        self._rate_per_s, self.due = rate_per_s, None

    def fill(self, now_s: float) -> None:
        if self._rate_per_s is not None:
            gained = max(0.0, now_s - self._filled_s) * self._rate_per_s
            self._tokens = min(_BUCKET, self._tokens + gained)
        self._filled_s = max(now_s, self._filled_s)

    def take_tokens(self, count: int) -> None:
        if self._rate_per_s is not None:
            self._tokens -= count

    def return_tokens(self, count: int) -> None:
        if self._rate_per_s is not None:
            self._tokens += count

    def await_token(self, serial: int, *, is_wanted: bool) -> float | None:
        """Wait for the next token if it is wanted; return when it comes, or None if this is no new wait."""
        if self._rate_per_s is None or not is_wanted or self._tokens >= 1.0:
            self.due = None
            return None
        if self.due is not None:
            return None
        self.due, self.due_serial = self._filled_s + (1.0 - self._tokens) / self._rate_per_s, serial
        return self.due

    def get_token(self, now_s: float) -> None:
        """Take the token that the trigger waited for into the bucket."""
        self.due = None
        self.fill(now_s)
        self._tokens = max(self._tokens, 1.0)  # the sum above may be rounded down


class SliceCosts:
    """The mean time and cost of a trigger's slices, and the charges for its running slices."""

    __slots__ = ("charged", "cost_mean_s", "cpu_charged", "cpu_mean_s", "is_measured", "mean_s")

    def __init__(self) -> None:
        self.mean_s = _FIRST_GUESS_S  # how long a slice lasts
        self.cost_mean_s = _FIRST_GUESS_S
        self.cpu_mean_s = 0.0
        self.charged = 0.0  # virtual seconds, a part of the tag: for the running slices
        self.cpu_charged = 0.0  # expected processor time of the running slices
        self.is_measured = False

    def charge(self, count: int, share: int) -> float:
        """Charge ``count`` slices that begin; return the charge in virtual seconds."""
        guess = count * self.cost_mean_s / share
        self.charged += guess
        self.cpu_charged += count * self.cpu_mean_s
        return guess

    def release(self, count: int, running: int) -> tuple[float, float]:
        """Release the charges for ``count`` of the running slices; return virtual seconds and processor time."""
        guessed, computing_s = count * self.charged / running, count * self.cpu_charged / running
        is_last = count == running
        self.charged = 0.0 if is_last else self.charged - guessed
        self.cpu_charged = 0.0 if is_last else self.cpu_charged - computing_s
        return guessed, computing_s

    def measure(self, used_s: float, cpu_s: float, cost_s: float, count: int) -> None:
        """Include ``count`` slices that are over in the means."""
        weight = 1.0
        if self.is_measured:
            weight = 1 / _MEMORY if count == 1 else 1.0 - (1.0 - 1 / _MEMORY) ** count
        self.mean_s += (used_s / count - self.mean_s) * weight
        self.cpu_mean_s += (cpu_s / count - self.cpu_mean_s) * weight
        self.cost_mean_s += (cost_s / count - self.cost_mean_s) * weight
        self.is_measured = True

    def assume_slow(self, places: int) -> None:
        """Assume that slices are slow, since the first slice already lasts longer than a quick one."""
        self.is_measured, self.mean_s = True, 2 * QUICK_S  # or more, as ``measure`` will find
        self.cost_mean_s = self.mean_s / places


class LinePlace:
    """A trigger's entry in a queue, with the number of its running slices and the pace that they count for."""

    __slots__ = ("counted", "counted_pace", "pace", "serial", "tag")

    def __init__(self) -> None:
        self.counted = 0  # running slices, as they are counted for ``counted_pace``
        self.counted_pace = NEW
        self.serial = NOWHERE  # of its entry, as are pace and tag
        self.pace = NEW
        self.tag = 0.0

    def count_running(self, pace: int, running: int) -> None:
        self.counted_pace, self.counted = pace, running

    def leave(self) -> None:
        self.serial = NOWHERE

    def enter(self, serial: int, pace: int, tag: float) -> None:
        self.serial, self.pace, self.tag = serial, pace, tag


class PausedCalls:
    """The calls of a trigger that are between two slices, and in order the calls whose next slice is ready."""

    __slots__ = ("comes_next", "continuing", "count")

    def __init__(self) -> None:
        self.count = 0
        self.continuing: OrderedDict[Hashable, None] = OrderedDict()  # with a slice ready
        self.comes_next = True  # continuing calls and new ones alternate

    def pause_call(self) -> None:
        self.count += 1

    def continue_call(self, call: Hashable) -> None:
        self.continuing[call] = None
        assert len(self.continuing) <= self.count, "only a paused call goes on"

    def drop_call(self, call: Hashable) -> None:
        self.continuing.pop(call, None)
        self.count -= 1

    def take_call(self) -> Hashable:
        """Return the call whose slice is next; it is paused no longer."""
        self.comes_next = False
        self.count -= 1
        return self.continuing.popitem(last=False)[0]

    def note_begun(self) -> None:
        """Note that a new call has had its turn."""
        self.comes_next = True


class ScheduledTrigger:
    __slots__ = (
        "bound",
        "consumers",
        "costs",
        "is_removed",
        "is_suspended",
        "most_begun",
        "name",
        "pace",
        "paused",
        "place",
        "running",
        "tag",
        "terms",
        "tokens",
    )

    def __init__(self, name: str, terms: Terms, now_s: float) -> None:
        self.name = name  # constant
        self.terms = terms
        self.bound = terms.side_by_side  # of begun calls; calls begun before the terms were lowered raise it
        self.is_removed = False
        self.is_suspended = False
        self.consumers: OrderedDict[Hashable, None] = OrderedDict()  # consumers that have a change ready
        self.running = 0
        self.paused = PausedCalls()
        self.most_begun = 1  # set by ``weigh``, as is ``pace``, which limits the places that the trigger may use
        self.pace = NEW
        self.tag = 0.0  # virtual seconds: when its next slice starts
        self.costs = SliceCosts()
        self.tokens = TokenBucket(terms.rate_per_s, now_s)
        self.place = LinePlace()

    @property
    def begun(self) -> int:
        return self.running + self.paused.count

    @property
    def wants_to_begin(self) -> bool:
        return bool(self.consumers) and self.running + self.paused.count < self.most_begun

    @property
    def may_begin(self) -> bool:
        return self.wants_to_begin and self.tokens.has_token

    @property
    def can_take(self) -> bool:
        return not self.is_suspended and (bool(self.paused.continuing) or self.may_begin)

    # --- its terms ---------------------------------------------------------------------------------

    def change_terms(self, terms: Terms, now_s: float) -> None:
        self.tokens.change_rate(terms.rate_per_s, now_s)
        self.terms, self.is_removed = terms, False
        self.weigh()

    def remove(self) -> None:
        self.is_removed = True
        self.consumers.clear()

    def suspend(self) -> None:
        self.is_suspended = True

    def let_go(self) -> None:
        self.is_suspended = False

    def weigh(self) -> None:
        """Set ``most_begun`` (I2, I6), ``pace`` (I5) and ``bound``."""
        if self.costs.is_measured:
            mean_s, most = self.costs.mean_s, self.terms.side_by_side
            self.pace = QUICK if mean_s <= QUICK_S else SLOW
            if not self.paused.count and mean_s * most < PIPELINE_S:
                # Never in addition to paused calls: calls in the worker would hold the places that paused calls need.
                most = int(PIPELINE_S / max(mean_s, SHORTEST_S))
            self.most_begun = most
        else:
            self.most_begun, self.pace = 1, NEW
        self.bound = max(self.most_begun, min(self.bound, self.running + self.paused.count))

    def catch_up(self, virtual_s: float) -> None:
        """Raise the tag to the virtual time, since the trigger may be scheduled again (I4)."""
        self.tag = max(self.tag, virtual_s)

    # --- slices ------------------------------------------------------------------------------------

    def next_slice(self) -> ScheduledSlice:
        """Return the slice that is next in the queue; its consumer moves to the end of the queue."""
        paused = self.paused
        if paused.continuing and (paused.comes_next or not self.may_begin):
            return ScheduledSlice(self.name, paused.take_call(), False)
        paused.note_begun()
        consumer = next(iter(self.consumers))
        self.consumers.move_to_end(consumer)
        return ScheduledSlice(self.name, consumer, True)

    def begin_slices(self, count: int, *, is_rated: bool) -> float:
        """Charge ``count`` slices that begin; return their expected processor time in seconds."""
        if is_rated:
            self.tokens.take_tokens(count)
        self.running += count
        self.tag += self.costs.charge(count, self.terms.share)
        return count * self.costs.cpu_mean_s

    def end_slices(self, cost_s: float, count: int, virtual_s: float) -> float:
        """Replace the charge for ``count`` slices by their cost; return the processor time expected of them before."""
        assert self.running >= count, "only a running slice is over"
        guessed, computing_s = self.costs.release(count, self.running)
        self.running -= count
        # A charge that was too high is given back, but not as credit below the virtual time (I4).
        fresh = self.tag + cost_s / self.terms.share - guessed
        self.tag = max(fresh, min(self.tag, virtual_s))
        return computing_s
