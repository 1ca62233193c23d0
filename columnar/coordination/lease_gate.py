"""The gate at the flush: bytes leave a process only while the process holds its lease.

    open         the lease holds: whoever has bytes to send asks ``is_open`` and sends them
    withheld     the lease does not hold: the bytes wait, and their owner waits at the gate (``wait``)
    opened       the lease holds again: each waiting owner is notified, and asks ``is_open`` before each write as before
    given up     an owner has waited for ``limits.LEASE_WAIT_S``: it closes its connection or link

``is_open`` is asked after the work for an answer and just before its bytes go to the transport.  A pause of the process
before the question withholds the answer; a pause after it is harmless, because what the answer says was read or synced
while the lease held.

The gate has one timer for all waiting owners, and none while nothing waits.  A process without a lease (a
standalone) has no gate.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from columnar.limits import LEASE_WAIT_S
from columnar.runtime.faults import surviving

RETRY_S: Final = 0.02
OPENED_AT_ONCE: Final = 64  # owners in one loop iteration; each may write 256 KB


class Withheld(Protocol):
    """An owner of withheld bytes: a connection, a link, or held background work."""

    def gate_opened(self) -> None:
        """Send the bytes, asking the gate again, or wait at the gate again."""

    def gate_expired(self) -> None:
        """Close: the lease has not held for so long that the client gets no answer."""


class LeaseGate:
    def __init__(self, is_open: Callable[[], bool], wait_s: float = LEASE_WAIT_S) -> None:
        """Pass ``is_open``, which tells whether the lease holds now (``LeasePage.is_valid``)."""
        self.is_open = is_open  # constant
        self._wait_s = wait_s
        self._waiting: dict[Withheld, float] = {}  # since when by the loop's clock, in this order
        self._timer: asyncio.Handle | None = None  # not None exactly if some wait

    @property
    def waiting_count(self) -> int:
        """Return how many owners wait."""
        return len(self._waiting)

    def wait(self, owner: Withheld) -> None:
        """Notify ``owner`` when the lease holds, or when it has waited for too long.  An owner waits once."""
        loop = asyncio.get_running_loop()
        self._waiting.setdefault(owner, loop.time())
        if self._timer is None:
            self._timer = loop.call_later(RETRY_S, self._retry)

    def forget(self, owner: Withheld) -> None:
        """Notify ``owner`` no more.  Does nothing if it does not wait."""
        self._waiting.pop(owner, None)

    def _retry(self) -> None:
        self._timer = None
        holds = False
        with surviving("the gate of the lease"):
            holds = self.is_open()
        due = self._due(holds, asyncio.get_running_loop().time())
        for owner in due:
            if self._waiting.pop(owner, None) is None:
                continue  # the end of an earlier owner was its end, too
            with surviving("the gate of the lease"):
                if holds:
                    owner.gate_opened()
                else:
                    owner.gate_expired()
        if self._waiting:
            self._plan(has_more=len(due) == OPENED_AT_ONCE)

    def _plan(self, *, has_more: bool) -> None:
        """Plan the next look, unless an owner that waits again has done so.

        This is a method of its own, because compiled code takes the timer to be None throughout ``_retry``, which has
        set it to None.
        """
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_soon(self._retry) if has_more else loop.call_later(RETRY_S, self._retry)

    def _due(self, is_open: bool, now_s: float) -> list[Withheld]:
        first = islice(self._waiting.items(), OPENED_AT_ONCE)
        return [owner for owner, since_s in first if is_open or now_s - since_s >= self._wait_s]
