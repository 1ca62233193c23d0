"""Long work on the loop in the governor's steps: a generator, which yields wherever it may be interrupted.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import perf_counter

from columnar.flows.governor import STEP_S, Governor


async def in_steps(governor: Governor, work: Iterator[None]) -> None:
    """Return when ``work`` is at its end; raise what it raises.  A caller that is cancelled ends it."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def step() -> bool:
        if ended.done():  # cancelled
            return False
        ends_s = perf_counter() + STEP_S
        try:
            for _ in work:
                if perf_counter() >= ends_s:
                    return True
        except Exception as error:  # noqa: BLE001 - raised again in the caller's task
            ended.set_exception(error)
            return False
        ended.set_result(None)
        return False

    governor.soon(step)
    await ended
