"""Waits until consumers have passed given points.  Costs what its own consumers do, whatever others do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from columnar.triggers.consumer import Consumer
from columnar.triggers.feeder import Feeder, Key

HasPassed = Callable[[Consumer], bool]


async def until_passed(
    feeder: Feeder, targets: Mapping[Key, HasPassed], is_known: Callable[[str], bool], timeout_s: float
) -> bool:
    """True: each consumer has passed its target, or its trigger is removed; False: not in time.

    A consumer whose region is closed for the moment has not passed: it will be back.
    """

    def has_passed(key: Key) -> bool:
        consumer = feeder.find(key)
        return targets[key](consumer) if consumer is not None else not is_known(key[0])

    missing = {key for key in targets if not has_passed(key)}
    if not missing:
        return True
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def look(key: Key) -> None:
        if key in missing and has_passed(key):
            missing.discard(key)
            if not missing and not done.done():
                done.set_result(None)

    unwatch = feeder.watch(tuple(missing), look)
    try:
        await asyncio.wait_for(done, timeout_s)
        return True
    except TimeoutError:
        return False
    finally:
        unwatch()
