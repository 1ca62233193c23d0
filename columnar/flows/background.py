"""Background work of followers: tasks that are cancelled at the stop and whose failures are logged."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from columnar.runtime.faults import FAULTS

_Key = TypeVar("_Key")


class Background:
    """Owned by the loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def spawn_as(self, tasks: dict[_Key, asyncio.Task[None]], key: _Key, work: Coroutine[Any, Any, None]) -> None:
        """The task is ``tasks[key]`` until it ends, or another task has taken its place."""
        task = tasks[key] = self.spawn(work)
        task.add_done_callback(lambda done: tasks.pop(key) if tasks.get(key) is done else None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            FAULTS.met("background work of followers", error)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
