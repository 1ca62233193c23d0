"""Background work: tasks that are cancelled at the stop, and whose unexpected exceptions are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from columnar.runtime.faults import FAULTS

_Key = TypeVar("_Key")


class Background:
    """The background tasks of one owner.  Owned by the loop."""

    def __init__(self, name: str) -> None:
        """Pass ``name``, under which exceptions are reported (``Faults.met``)."""
        self._name = name
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def spawn_as(self, tasks: dict[_Key, asyncio.Task[None]], key: _Key, work: Coroutine[Any, Any, None]) -> None:
        """Start a task and keep it as ``tasks[key]`` until it ends or a newer task replaces it."""
        task = tasks[key] = self.spawn(work)
        task.add_done_callback(lambda done: tasks.pop(key) if tasks.get(key) is done else None)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            FAULTS.met(self._name, error)

    async def ended(self) -> None:
        """Wait until all tasks that are running now have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
