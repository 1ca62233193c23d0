"""The long waits of a server's clients, for messages, changes, leases and deliveries: none holds up a server that ends.

    waiting --end_waits--> ending

When the server leaves or stops, each wait is answered at once, as after its time, and a wait that comes later lasts
ENDING_WAIT_S at most: its client calls again, and not at once.  A kind of wait with callers in memory of its own takes
part by ``on_end``; a wait that may end between any two of its steps, because it changes nothing, runs in ``run``.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

ENDING_WAIT_S: Final = 0.5


class LongWaits:
    def __init__(self) -> None:
        self.is_ending = False
        self._ends: list[Callable[[], None]] = []
        self._running: set[asyncio.Future[Any]] = set()

    @property
    def running_count(self) -> int:
        return len(self._running)

    def on_end(self, end: Callable[[], None]) -> None:
        """Call ``end``, which answers callers that wait, when the server leaves or stops."""
        self._ends.append(end)

    def end_waits(self) -> None:
        """Answer all callers that wait: the server leaves or stops.  The second call does nothing."""
        if self.is_ending:
            return
        self.is_ending = True
        for end in self._ends:
            end()
        for running in self._running:
            running.cancel()

    def bounded_s(self, wait_s: float) -> float:
        """Return how long a caller that comes now waits at most."""
        return min(wait_s, ENDING_WAIT_S) if self.is_ending else wait_s

    async def run(self, wait: Coroutine[Any, Any, T], in_vain: T) -> T:
        """Return what ``wait`` returns, or ``in_vain`` once the server leaves or stops."""
        running = asyncio.ensure_future(wait)
        if not self.is_ending:
            self._running.add(running)
        try:
            await asyncio.wait((running,))
        finally:
            self._running.discard(running)
            running.cancel()  # its caller is gone, if it has not ended
        return in_vain if running.cancelled() else running.result()
