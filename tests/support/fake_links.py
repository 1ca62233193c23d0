"""Links to no worker: what was sent is kept, what comes back is the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from columnar.triggers.worker_link import Listener


class FakeLink:
    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.is_up = True
        self.wanted = 0
        self.kills = 0
        self.sent: list[tuple[Any, ...]] = []
        self._used = asyncio.Event()

    def want(self) -> None:
        self.wanted += 1

    def send(self, *parts: Any) -> None:
        assert self.is_up
        self.sent.append(parts)
        self._used.set()

    def kill(self) -> None:
        self.kills += 1
        self.is_up = False
        self._used.set()

    async def close(self) -> None:
        self.is_up = False

    async def until(self, condition: Callable[[], object]) -> None:
        """Looks again at each use of the link."""
        while not condition():
            self._used.clear()
            await self._used.wait()

    # --- what the process would do -----------------------------------------------------------------

    def start(self) -> None:
        self.is_up = True
        self.listener.worker_ready()

    def die(self, how: str = "ended by SIGKILL") -> None:
        self.is_up = False
        self.listener.worker_gone(how)

    def take(self) -> list[tuple[int, str, bytes]]:
        """The calls sent since the last look: number, trigger, row."""
        calls = [(parts[1], parts[2], parts[4][1]) for parts in self.sent if parts[0] == "run"]
        self.sent.clear()
        return calls

    def answer(self, call_id: int, error: str | None = None) -> None:
        self.listener.answered(["ran", call_id, error, ""])
