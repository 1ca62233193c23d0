"""(pure) The pace at which the messages of one served queue begin: rate, deliveries side by side, and pauses.

    room              how many messages may begin now; the shell pops at most so many
    begin_messages    messages were popped, and are on their way to the target
    end_message       the delivery of one has ended: the answer says how its lease ends, if it does
    kept_goes_first   the message that is kept is to go next; otherwise it goes if there is no other
    take_kept_end     what becomes of the message that was kept, once that is known

A target that is down, or that asks for a pause (Retry-After), stops the whole queue until the pause is over, as all its
messages would meet the same.  Then one message goes alone, and each that succeeds lets one more go beside it, up to
``side_by_side``: a target that has just come back is not met by all at once.  A message that fails waits by itself.

A target that asks for a pause whenever it gets one certain message is not down, and the message must not stop the queue
for ever.  The message at which a pause began keeps its lease, and is the one that goes alone after it.  If it begins
PAUSES_OF_ONE pauses in a row another message goes alone next, and says who is at fault: if it is done the first one has
failed, and pauses the queue no more; if it is asked for a pause, too, the target is, and the first one is put off.  If
no other message waits the same one goes again.

Invariants (``check_invariants``):
    I1. At most ``side_by_side`` messages are under way.
    I2. In any time t at most ``rate * t + 2`` messages begin.
    I3. While the pace pauses no message begins.
    I4. A message at which the target asks for a pause fails only if another message was done since.

Knows nothing of queues, targets and clocks: ``now_s`` is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from columnar.flows.delivery_state import pause_s
from columnar.flows.scheduled_trigger import TokenBucket
from columnar.model.message_delivery import End, How
from columnar.queues.lease_ends import COMMIT, PUT_OFF, ROLL_BACK

LONGEST_PAUSE_S: Final = 3_600.0  # that a target may ask for at once
LONGEST_OBSTACLE_PAUSE_S: Final = 30.0  # between two tries of a target that is down
PAUSES_OF_ONE: Final = 3  # that a target asks for at one message, until another goes
PAUSES_ASIDE: Final = 8  # for so many further pauses at most, and LONGEST_PAUSE_S, a message then lets others go first
CULPRITS: Final = 64  # messages that have failed so; beyond it the one that was met first is tried as others
KEPT: Final = "kept"  # the lease does not end: the message goes again after the pause


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of a message's lease."""

    what: str
    delay_ms: int = 0
    error: bytes = b""


class _Kept(NamedTuple):
    """The message at which the pause began."""

    n: int
    attempt: int
    end: End
    pauses: int  # in a row that began at it


class _Culprits:
    """Messages at which the target asks for pauses, while others are done."""

    def __init__(self) -> None:
        self._culprits: dict[int, int] = {}  # by number of the message: how many were done when it was met last
        self._done = 0  # messages that were done

    def note_done(self) -> None:
        self._done += 1

    def add_culprit(self, n: int) -> None:
        self._culprits[n] = self._done
        if len(self._culprits) > CULPRITS:
            del self._culprits[next(iter(self._culprits))]

    def has(self, n: int) -> bool:
        return n in self._culprits

    def trust(self, n: int) -> None:
        self._culprits.pop(n, None)

    def is_to_blame(self, n: int) -> bool:
        """Return whether others were done since the message was met last; note that it is met."""
        before = self._culprits.pop(n)
        self.add_culprit(n)
        return before < self._done


class DeliveryPace:
    def __init__(self, side_by_side: int, rate_per_s: float | None, now_s: float) -> None:
        """``rate_per_s`` of None: the rate has no bound."""
        self.running = 0
        self.why = ""  # the obstacle that the target was met with last; empty: the last delivery met none
        self._side_by_side = side_by_side
        self._width = side_by_side  # how many may be under way now
        self._paused_to_s = 0.0
        self._obstacles = 0  # pauses in a row
        self._kept: _Kept | None = None
        self._kept_end: Settlement | None = None
        self._culprits = _Culprits()
        self._is_rated = rate_per_s is not None
        self._tokens = TokenBucket(rate_per_s, now_s)

    # --- what may begin ------------------------------------------------------------------------------

    def room(self, now_s: float) -> int:
        """Return how many messages may begin now."""
        free = self._width - self.running
        if free <= 0 or now_s < self._paused_to_s:
            return 0
        return min(free, self._granted(now_s)) if self._is_rated else free

    def _granted(self, now_s: float) -> int:
        due_s = self._tokens.due
        if due_s is not None and due_s <= now_s:
            self._tokens.get_token(now_s)
        self._tokens.fill(now_s)
        return max(0, self._tokens.count)

    def due_s(self, now_s: float) -> float | None:
        """Return when there is room by the time alone; None if only the end of a delivery makes room."""
        if self._width <= self.running:
            return None
        due_s = max(now_s, self._paused_to_s)
        if self._is_rated and not self._granted(now_s):
            self._tokens.await_token(0, is_wanted=True)
            due_s = max(due_s, self._tokens.due or 0.0)
        return due_s

    def begin_messages(self, count: int) -> None:
        """Note that messages are under way."""
        self.running += count
        self._tokens.take_tokens(count)

    # --- what becomes of messages ----------------------------------------------------------------------

    def end_message(self, end: End, n: int, attempt: int, now_s: float) -> Settlement:
        """Return what becomes of the message with the number ``n``, whose attempt this was."""
        self.running -= 1
        if end.how is How.BLOCKED:
            return self._end_blocked(end, n, attempt, now_s)
        if self._kept is not None and self._kept.n == n:
            self._kept = None
        if end.how is How.RETURNED:
            return _put_off(end, end.seconds)
        self._meet_none()
        self._culprits.trust(n)
        if end.how is How.DONE:
            self._culprits.note_done()
            self._blame_kept()
            return Settlement(COMMIT)
        return _failed(end, attempt) if end.how is How.FAILED else _put_off(end, end.seconds)

    def _meet_none(self) -> None:
        """Note that a delivery met no obstacle."""
        self.why, self._obstacles = "", 0
        self._width = min(self._side_by_side, self._width + 1)

    def _end_blocked(self, end: End, n: int, attempt: int, now_s: float) -> Settlement:
        """Pause the queue, unless the message is known to be at fault.

        Messages that were under way together meet one obstacle, which makes one pause.
        """
        is_first = now_s >= self._paused_to_s
        if is_first and end.is_requested and self._culprits.has(n):
            is_to_blame = self._culprits.is_to_blame(n)
            return _failed(end, attempt) if is_to_blame else _put_off(end, min(LONGEST_PAUSE_S, end.seconds))
        self._obstacles += is_first
        self.why, self._width = end.why, 1
        asked_s = end.seconds or min(LONGEST_OBSTACLE_PAUSE_S, pause_s(self._obstacles))
        self._paused_to_s = max(self._paused_to_s, now_s + min(LONGEST_PAUSE_S, asked_s))
        if is_first and self._keep(_Kept(n, attempt, end, 1), now_s):
            return Settlement(KEPT)
        return _put_off(end, self._paused_to_s - now_s)

    # --- the message that is kept ----------------------------------------------------------------------

    @property
    def kept_goes_first(self) -> bool:
        return self._kept is not None and self._kept.pauses < PAUSES_OF_ONE

    def take_kept_end(self) -> Settlement | None:
        """Return, once, what becomes of the message that was kept; None: it is kept still, or there was none."""
        found, self._kept_end = self._kept_end, None
        return found

    def forget_kept(self) -> None:
        self._kept = None

    def _keep(self, one: _Kept, now_s: float) -> bool:
        """Keep the message instead of the one before, which is put off; return whether it is kept."""
        before, self._kept = self._kept, one if one.end.is_requested else None
        if before is not None and before.n == one.n:
            if self._kept is not None:
                self._kept = one._replace(pauses=min(PAUSES_OF_ONE, before.pauses + 1))
        elif before is not None:
            pause_left_s = self._paused_to_s - now_s
            aside_s = min(LONGEST_PAUSE_S, pause_left_s * min(PAUSES_ASIDE, self._obstacles))
            self._kept_end = _put_off(before.end, pause_left_s + aside_s)
        return self._kept is not None

    def _blame_kept(self) -> None:
        """Have the kept message fail, as another one was done that went instead of it."""
        kept = self._kept
        if kept is not None and kept.pauses == PAUSES_OF_ONE:
            self._kept = None
            self._culprits.add_culprit(kept.n)
            self._kept_end = _failed(kept.end, kept.attempt)

    def check_invariants(self) -> None:
        """Check the invariants, for tests."""
        assert 0 <= self.running <= self._side_by_side, "I1"
        assert 1 <= self._width <= self._side_by_side


def _failed(end: End, attempt: int) -> Settlement:
    return Settlement(ROLL_BACK, round(pause_s(attempt) * 1_000), _last_line(end.why))


def _put_off(end: End, seconds: float) -> Settlement:
    return Settlement(PUT_OFF, round(seconds * 1_000), _last_line(end.why))


def _last_line(why: str) -> bytes:
    """Return the last line of a traceback, which names the error."""
    return why.rstrip().rpartition("\n")[2].encode(errors="replace")
