"""Wait on the loop where the engine would stall a thread, or a region is away for a moment.

RocksDB answers "incomplete" instead of stalling (design D3d); nothing was written then, so the step
can simply be repeated.  HBase makes its writers wait up to 90 s in the same place
(``hbase.regionserver`` blocking waits) and then says RegionTooBusyException; so do we, sooner.  Steps that wait for
one store wait in line and only the first is repeated, so they are done in order, except for a step that comes when
the store has recovered.

A step whose client has gone meanwhile is not repeated: it has not begun.

A region that is being opened, split or merged raises RegionUnavailable: the step is repeated when the region is open,
or another is in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from columnar.errors import ClientGone, RegionUnavailable
from columnar.runtime.loop_budget import IsDisconnected, never_disconnected
from columnar.storage.api import StoreBusy

STALL_POLL_S: Final = 0.005  # the engine tells nobody when it has recovered
STALL_TIMEOUT_S: Final = 30.0
UNAVAILABLE_TIMEOUT_S: Final = 10.0  # a region is away for tenths of a second; longer, and something is wrong
OPENING_TIMEOUT_S: Final = 60.0  # in a queue of openings, some 6 ms each

T = TypeVar("T")


class _Line:
    """The steps that wait for one store: the first is repeated, the others wait for their turn."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.length = 0


_lines: Final[dict[str, _Line]] = {}  # by the store's folder, while anybody waits


async def retry_until_ready(step: Callable[[], T], has_gone: IsDisconnected = never_disconnected) -> T:
    """``step()``, again and again while the engine is behind or a region away; then StoreBusy or RegionUnavailable.

    ClientGone, and the step was not done, where nobody is there any more who wants it.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + STALL_TIMEOUT_S
    while True:
        if has_gone():
            raise ClientGone
        try:
            return step()
        except StoreBusy as busy:
            store = busy.store
            if not store and loop.time() >= deadline_s:
                raise
        except RegionUnavailable as away:
            await wait_available(away)
            continue
        if not store:
            await asyncio.sleep(STALL_POLL_S)
            continue
        try:
            return await _retry_in_line(step, has_gone, store, deadline_s)
        except RegionUnavailable as away:  # it left the line: not in the way of those behind
            await wait_available(away)


async def _retry_in_line(step: Callable[[], T], has_gone: IsDisconnected, store: str, deadline_s: float) -> T:
    """Wait for a turn, then try until the engine has caught up.  StoreBusy, RegionUnavailable, ClientGone.

    A try may cost milliseconds, as much as the write: a hundred that all tried would leave nobody else any time.
    """
    line = _lines.setdefault(store, _Line())
    line.length += 1
    try:
        async with line.lock:
            while True:
                if has_gone():
                    raise ClientGone
                try:
                    return step()
                except StoreBusy:
                    if asyncio.get_running_loop().time() >= deadline_s:
                        raise
                await asyncio.sleep(STALL_POLL_S)
    finally:
        line.length -= 1
        if not line.length:
            del _lines[store]


async def wait_available(away: RegionUnavailable) -> None:
    """Return when the region is there again or another in its place; ``away`` itself where that takes too long."""
    patience_s = OPENING_TIMEOUT_S if away.is_opening else UNAVAILABLE_TIMEOUT_S
    done, _ = await asyncio.wait([away.available], timeout=patience_s)
    if not done:
        raise away
    away.available.result()
