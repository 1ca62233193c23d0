"""(pure) Open loop: calls that are due independently of the answers, and the time of each since it was due.

    due            waits: no connection is free      sent            answered
     |--------------------------------------------------|-----------------|
     |<------------------------- its latency --------------------------->|

Invariants:
    I1. Calls begin in the order in which they are due, each once.
    I2. A call that is due begins at once if a connection is free.  The generator's own lateness is reported only for
        such calls, because the endpoint causes all other waiting.
    I3. Each call that was due in the counted time gives one latency, also if it was never answered:
        then it is the time it had waited when the run was given up.

Knows nothing of sockets and clocks: the time comes in as nanoseconds.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

C = TypeVar("C")  # a connection


class Uniform(Protocol):
    """A source of chance, uniform in [0, 1); ``random.Random`` is one."""

    def random(self) -> float: ...


def poisson(rng: Uniform, rate: float, duration_s: float) -> array[int]:
    """Return the times at which calls are due, in nanoseconds from the start: ``rate`` calls per second, independent.

    The arrivals are a Poisson process, because calls of many independent clients arrive so, in bursts too. An even beat
    could keep step with the endpoint's own (an fsync, a flush). The calls of several generator processes together are
    again a Poisson process.
    """
    due: array[int] = array("q")
    if rate <= 0.0:
        return due  # a closed loop without one answer has no rate to take a share of
    at = 0.0
    for gap in gaps(rng):
        at += gap / rate
        if at >= duration_s:
            break
        due.append(int(at * 1e9))
    return due


def gaps(rng: Uniform) -> Iterator[float]:
    """Yield the gaps between independent arrivals without an end, as multiples of their mean."""
    while True:
        yield -math.log(1.0 - rng.random())


def in_order(rng: Uniform, count: int, span: float) -> Iterator[float]:
    """Yield ``count`` moments of [0, span), each anywhere in it, in ascending order: Poisson arrivals of that number.

    They are drawn one by one, so that memory does not depend on ``count``.
    """
    at = 0.0
    for left in range(count, 0, -1):
        at += (span - at) * (1.0 - (1.0 - rng.random()) ** (1.0 / left))
        yield at


class Arrivals(Generic[C]):
    """The calls that are due, the free connections, and the times of answered calls."""

    __slots__ = ("_at", "_counted_ns", "_due", "_due_of", "_free", "late_ns", "latencies_ns")

    def __init__(self, due_ns: array[int], connections: Iterable[C], counted_ns: int) -> None:
        """Take ``due_ns`` in ascending order; calls that are due before ``counted_ns`` warm up and are not counted."""
        self._due = due_ns
        self._at = 0  # of the next call to begin
        self._free = deque(connections)
        self._due_of: dict[C, int] = {}  # of the calls under way
        self._counted_ns = counted_ns
        self.latencies_ns: array[int] = array("q")
        self.late_ns: array[int] = array("q")  # from due to begun, of calls that found a free connection

    def begin(self, now_ns: int) -> C | None:
        """Return a free connection for the next due call; None if no call is due or no connection is free."""
        if not self._free or self._at == len(self._due) or (due := self._due[self._at]) > now_ns:
            return None
        connection = self._free.popleft()
        self._at += 1
        self._due_of[connection] = due
        if due >= self._counted_ns:
            self.late_ns.append(now_ns - due)
        return connection

    def answered(self, connection: C, now_ns: int) -> bool:
        """Note that the connection's call was answered; return whether to send a waiting call on the connection now."""
        self._take(self._due_of.pop(connection), now_ns)
        if self._at < len(self._due) and (due := self._due[self._at]) <= now_ns:
            self._at += 1
            self._due_of[connection] = due
            return True
        self._free.append(connection)
        return False

    def wait_ns(self, now_ns: int) -> int | None:
        """Return the time until the next call can begin; None if no call can begin before an answer comes."""
        if not self._free or self._at == len(self._due):
            return None
        return max(self._due[self._at] - now_ns, 0)

    def waiting(self, now_ns: int) -> int:
        """Return the number of calls that are due and have not begun."""
        at = self._at
        while at < len(self._due) and self._due[at] <= now_ns:
            at += 1
        return at - self._at

    def stop(self) -> None:
        """Begin no more calls; calls under way may still be answered."""
        del self._due[self._at :]

    def in_flight_count(self) -> int:
        return len(self._due_of)

    def done(self) -> bool:
        return self._at == len(self._due) and not self._due_of

    def give_up(self, now_ns: int) -> int:
        """Return the number of calls without an answer, and count the time that they have waited (I3)."""
        left = [*self._due_of.values(), *(due for due in self._due[self._at :] if due <= now_ns)]
        for due in left:
            self._take(due, now_ns)
        self._due_of.clear()
        self._at = len(self._due)
        return len(left)

    def _take(self, due_ns: int, now_ns: int) -> None:
        if due_ns >= self._counted_ns:
            self.latencies_ns.append(now_ns - due_ns)
