"""Retries of asynchronous work, after pauses that grow, until the work is done or not wanted any more.

Work that raises is reported and tried again: no other task would do it.  A cancellation ends it.
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
    """Try ``work`` until it returns True: done; False: not done yet.

    ``report``: called with an exception of a try.  ``pause_after``: seconds after so many tries that failed.
    ``is_wanted``: asked before each try.  ``pauses_first``: a try elsewhere failed just now.
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
