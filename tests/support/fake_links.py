"""Links without workers: they keep the sent frames, and the test supplies the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from columnar.triggers.module_checks import SourceTrial
from columnar.triggers.worker_process import Listener

USED_US = 5_000  # of each call: so slow that no more of a trigger are sent than run side by side


def runs(*frames: tuple[Any, ...]) -> list[list[Any]]:
    """Return the calls in "run" frames."""
    return [call for parts in frames if parts[0] == "run" for call in parts[1]]


class FakeLink:
    trials_end_well = True  # of modules that held up or ended a worker: each is answered at once

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
        if isinstance(self.listener, SourceTrial) and self.trials_end_well:
            asyncio.get_running_loop().call_soon(self.listener.take_frame, ["checked", parts[1], None])

    def kill(self) -> None:
        self.kills += 1
        self.is_up = False
        self._used.set()

    async def close(self) -> None:
        self.is_up = False

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds; checks it at each use of the link."""
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
        """Return number, trigger and first row of each call since the last ``take``; of a run each change's row."""
        calls = []
        for number, name, _, _, changes, _, is_batch, _ in runs(*self.sent):
            count = 1 if is_batch else len(changes)
            calls += [(number + at, name, changes[at][1]) for at in range(count)]
        self.sent.clear()
        return calls

    def answer(self, call_id: int, error: str | None = None) -> None:
        what = "done" if error is None else "failed"
        self.listener.take_frame(["did", [[call_id, what, [], error, "", None, USED_US, 0]]])
