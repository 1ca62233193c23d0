"""A budget of the loop: expensive work gets a share of each iteration, in arrival order; cheap work does not wait.

``call_soon`` runs all waiting work in the next loop iteration.  With two hundred callbacks of 2 ms an iteration takes
0.4 s, and a get of one cell waits as long.  With the budget all expensive work together gets SHARE_S of an iteration,
and the loop polls its sockets after each iteration.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

IsDisconnected = Callable[
    [], bool
]  # returns whether the client has disconnected; waiting work checks it before each step, and then ends
SHARE_S: Final = 0.001  # of one iteration; exceeded by at most one step of one callback


def never_disconnected() -> bool:
    """Return False: the ``IsDisconnected`` of work that no connection requested."""
    return False


class LoopBudget:
    def __init__(self, share_s: float = SHARE_S) -> None:
        self._share_s = share_s
        self._waiting: deque[Callable[[], object]] = deque()
        self._is_planned = False
        self._spent_s = 0.0  # in this iteration, outside ``_round``

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether expensive work may run immediately: none waits, and this iteration's share is not used up."""
        return not self._waiting and self._spent_s < self._share_s

    def spend(self, seconds: float) -> None:
        """Deduct the time of work that ran immediately from this iteration's share."""
        self._spent_s += seconds
        self._plan()

    def soon(self, work: Callable[[], object], *, ahead: bool = False) -> None:
        """Queue the work; pass ``ahead`` to queue it before all waiting work, if it is most likely cheap."""
        if ahead:
            self._waiting.appendleft(work)
        else:
            self._waiting.append(work)
        self._plan()

    async def wait_for_budget(self) -> None:
        """Wait for the caller's turn in the queue."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.soon(partial(_resolve, future))
        await future

    def _plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        self._is_planned = False
        self._spent_s = 0.0
        begun = perf_counter()
        try:
            while self._waiting:
                self._waiting.popleft()()
                if perf_counter() - begun >= self._share_s:
                    break
        finally:  # the other work runs even if one callback fails
            if self._waiting:
                self._plan()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
