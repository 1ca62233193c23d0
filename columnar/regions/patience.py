"""Wait on the loop where the engine would stall a thread, or a region is away for a moment.

RocksDB answers "incomplete" instead of stalling (design D3d); nothing was written then, so the step
can simply be taken again.  HBase makes its writers wait up to 90 s in the same place
(``hbase.regionserver`` blocking waits) and then says RegionTooBusyException; so do we, sooner.

A region that is being split or merged raises RegionAway from every opening: the step is taken again
when another stands in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from columnar.errors import RegionAway
from columnar.storage.api import StoreBusy

STALL_POLL_S: Final = 0.005  # the engine tells nobody when it has recovered
STALL_PATIENCE_S: Final = 30.0
AWAY_PATIENCE_S: Final = 10.0  # a region is away for tenths of a second; longer, and something is wrong

T = TypeVar("T")


async def patiently(step: Callable[[], T]) -> T:
    """``step()``, again and again while the engine is behind or a region away; then StoreBusy or RegionAway."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + STALL_PATIENCE_S
    while True:
        try:
            return step()
        except StoreBusy:
            if loop.time() >= deadline_s:
                raise
            await asyncio.sleep(STALL_POLL_S)
        except RegionAway as away:
            await back(away)


async def back(away: RegionAway) -> None:
    """Return when the region is there again or another in its place; ``away`` itself where that takes too long."""
    waiting = asyncio.ensure_future(away.back)
    done, _ = await asyncio.wait([waiting], timeout=AWAY_PATIENCE_S)
    if not done:
        raise away
    waiting.result()
