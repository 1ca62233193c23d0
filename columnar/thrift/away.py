"""A request for a region that is away for a moment: asked again when it, or others in its place, may be opened.

A handler looks for all its regions before it changes anything, in one turn of the loop, so a RegionAway
that leaves it at once has left nothing behind.  Handlers that wait in between look after themselves
(``regions.patience``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from columnar.errors import ClientGone, RegionAway
from columnar.regions.patience import back
from columnar.wire.service import CallContext, Handler, Later


async def asked_again(handler: Handler, ctx: CallContext, args: Sequence[Any], away: RegionAway) -> Any:
    """The handler's result, once no region that it wants is away any more.  ClientGone: it was not asked again."""
    while True:
        await back(away)
        if ctx.has_gone():
            raise ClientGone
        try:
            result = handler(ctx, *args)
        except RegionAway as another:
            away = another
            continue
        if type(result) is Later:
            await result.future
            return result.result
        return await result if hasattr(result, "__await__") else result
