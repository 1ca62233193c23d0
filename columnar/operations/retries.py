"""Retries of a call whose region is briefly unavailable: it begins again when the region or its successors are ready.

A call finds all its regions before it changes anything, in one loop iteration, so a call that raises RegionUnavailable
immediately had no effect.  Operations that wait in between retry by themselves (``regions.life.retry``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from columnar.errors import ClientGone, RegionUnavailable
from columnar.regions.life.retry import wait_available
from columnar.runtime.loop_budget import IsDisconnected
from columnar.wire.service import Later


async def retried(call: Callable[[], Any], unavailable: RegionUnavailable, is_disconnected: IsDisconnected) -> Any:
    """Return the result of ``call``, retried until all its regions are available.  ClientGone: it was not retried."""
    while True:
        await wait_available(unavailable)
        if is_disconnected():
            raise ClientGone
        try:
            result = call()
        except RegionUnavailable as another:
            unavailable = another
            continue
        if type(result) is Later:
            await asyncio.shield(result.future)
            return result.result
        return await result if hasattr(result, "__await__") else result
