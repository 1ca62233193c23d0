"""A blocking call in a thread of its own, for calls that no other call may hold up.

The loop's executor has a few threads.  All of them may wait for a file system that stands still, and a stop of the loop
waits for each.  The thread here is a daemon, so that nothing waits for it, not even the end of the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def call_in_own_thread(call: Callable[[], T], name: str) -> T:
    """Return the result of the call, or raise its exception.  ``name`` is the thread's.

    A cancellation leaves the thread alone: the call continues, and nobody gets its result.  Costs some 0.1 ms.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        outcome: list[T] = []
        error: Exception | None = None
        try:
            outcome.append(call())
        except Exception as raised:  # noqa: BLE001 - it is raised on the loop
            error = raised
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(report, outcome, error)

    def report(outcome: list[T], error: Exception | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(outcome[0])

    threading.Thread(target=work, name=name, daemon=True).start()
    return await result
