"""Wait on the loop where the engine would stall a thread.

RocksDB answers "incomplete" instead of stalling (design D3d); nothing was written then, so the step
can simply be taken again.  HBase makes its writers wait up to 90 s in the same place
(``hbase.regionserver`` blocking waits) and then says RegionTooBusyException; so do we, sooner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from columnar.storage.api import StoreBusy

STALL_POLL_S: Final = 0.005  # the engine tells nobody when it has recovered
STALL_PATIENCE_S: Final = 30.0

T = TypeVar("T")


async def patiently(step: Callable[[], T]) -> T:
    """``step()``, again and again while the engine is behind; StoreBusy after STALL_PATIENCE_S."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + STALL_PATIENCE_S
    while True:
        try:
            return step()
        except StoreBusy:
            if loop.time() >= deadline_s:
                raise
            await asyncio.sleep(STALL_POLL_S)
