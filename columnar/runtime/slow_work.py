"""Work that may take long without a fault: it is reported to people when it has taken longer than a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def report_if_slow(work: Coroutine[Any, Any, T], limit_s: float, on_slow: Callable[[], None]) -> T:
    """Return the result of the work; call ``on_slow`` once if it is not there after ``limit_s``.

    A cancellation cancels the work too, and waits for its end: what the caller has opened before is closed after what
    the work has opened.  Work in a thread (``asyncio.to_thread``) ends at once, without its thread.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=limit_s)
        if not task.done():
            on_slow()
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
