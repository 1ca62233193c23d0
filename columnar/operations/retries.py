"""A call whose region is unavailable for a moment begins anew when the region, or others in its place, may be opened.

A call looks for all its regions before it changes anything, in one iteration of the loop, so a RegionUnavailable that
leaves it at once has left nothing behind.  Operations that wait in between retry by themselves (``regions.patience``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from columnar.errors import ClientGone, RegionUnavailable
from columnar.regions.life.retry import wait_available
from columnar.runtime.loop_budget import IsDisconnected
from columnar.wire.service import Later


async def retried(call: Callable[[], Any], away: RegionUnavailable, has_gone: IsDisconnected) -> Any:
    """The result of ``call``, begun anew until all its regions are there.  ClientGone: it was not begun anew."""
    while True:
        await wait_available(away)
        if has_gone():
            raise ClientGone
        try:
            result = call()
        except RegionUnavailable as another:
            away = another
            continue
        if type(result) is Later:
            await asyncio.shield(result.future)
            return result.result
        return await result if hasattr(result, "__await__") else result
