"""Retries of asynchronous work, with growing pauses, until the work is done or no longer wanted.

If the work raises, the exception is reported and the work retried, because no other task would do it.  A cancellation
ends the retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


def _always() -> bool:
    return True


async def retry_work(
    work: Callable[[], Awaitable[bool]],
    report: Callable[[Exception], None],
    pause_after: Callable[[int], float],
    *,
    is_wanted: Callable[[], bool] = _always,
    pauses_first: bool = False,
) -> None:
    """Try ``work`` until it returns True; it returns False if it is not done yet.

    ``report`` is called with an exception that ``work`` raised.  ``pause_after`` returns the pause in seconds for a
    number of failed tries.  ``is_wanted`` is called before each try.  Pass ``pauses_first`` if the caller's own try has
    just failed.
    """
    failures = int(pauses_first)
    while True:
        if failures:
            await asyncio.sleep(pause_after(failures))
        if not is_wanted():
            return
        try:
            if await work():
                return
        except Exception as fault:  # noqa: BLE001 - whatever it is: the caller reports it
            report(fault)
        failures += 1
