"""Retry a step, waiting on the loop, while the engine would stall a thread or a region is briefly unavailable.

RocksDB answers "incomplete" instead of stalling (design D3d) and has written nothing then, so the step
can simply be repeated.  HBase makes its writers wait up to 90 s in the same place
(``hbase.regionserver`` blocking waits) and then raises RegionTooBusyException; this module does the same, with a
shorter wait.  Steps that wait for one store form a queue and only the first is retried, so the steps are done in order.
 A step that comes when the store has recovered does not queue.

A step whose client has disconnected meanwhile is not retried: it has changed nothing.

A region that is being opened, split or merged raises RegionUnavailable: the step is retried when the region is open
or a successor has taken its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from columnar.errors import ClientGone, RegionUnavailable
from columnar.runtime.loop_budget import IsDisconnected, never_disconnected
from columnar.storage.api import StoreBusy

STALL_POLL_S: Final = 0.005  # the engine has no notification of its recovery
STALL_TIMEOUT_S: Final = 30.0
UNAVAILABLE_TIMEOUT_S: Final = 10.0  # tenths of a second are normal; a longer wait means a fault
OPENING_TIMEOUT_S: Final = 60.0  # in a queue of openings, some 6 ms each

T = TypeVar("T")


class _Line:
    """The queue of steps that wait for one store: only the first one is retried."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._length = 0

    def join(self) -> None:
        self._length += 1

    def leave(self) -> bool:
        """Leave the queue.  Returns True if it is empty."""
        self._length -= 1
        return self._length == 0


_lines: Final[dict[str, _Line]] = {}  # by the store's folder, while anybody waits


async def retry_until_ready(step: Callable[[], T], is_disconnected: IsDisconnected = never_disconnected) -> T:
    """Call ``step`` and return its result; retry while the engine is busy or a region unavailable.

    Raises StoreBusy or RegionUnavailable after the timeout.  Raises ClientGone if the client has disconnected; the step
    was not done then.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + STALL_TIMEOUT_S
    while True:
        if is_disconnected():
            raise ClientGone
        try:
            return step()
        except StoreBusy as busy:
            store = busy.store
            if not store and loop.time() >= deadline_s:
                raise
        except RegionUnavailable as unavailable:
            await wait_available(unavailable)
            continue
        if not store:
            await asyncio.sleep(STALL_POLL_S)
            continue
        try:
            return await _retry_in_line(step, is_disconnected, store, deadline_s)
        except RegionUnavailable as unavailable:  # it left the queue, so it does not block the next steps
            await wait_available(unavailable)


async def _retry_in_line(step: Callable[[], T], is_disconnected: IsDisconnected, store: str, deadline_s: float) -> T:
    """Wait in the store's queue, then try until the engine has caught up.

    Raises StoreBusy, RegionUnavailable or ClientGone.  A try may cost milliseconds, as much as the write: a hundred
    concurrent tries would starve all other requests.
    """
    line = _lines.setdefault(store, _Line())
    line.join()
    try:
        async with line.lock:
            while True:
                if is_disconnected():
                    raise ClientGone
                try:
                    return step()
                except StoreBusy:
                    if asyncio.get_running_loop().time() >= deadline_s:
                        raise
                await asyncio.sleep(STALL_POLL_S)
    finally:
        if line.leave():
            del _lines[store]


async def wait_available(unavailable: RegionUnavailable) -> None:
    """Wait until the region or a successor is available; raise ``unavailable`` at the timeout."""
    timeout_s = OPENING_TIMEOUT_S if unavailable.is_opening else UNAVAILABLE_TIMEOUT_S
    done, _ = await asyncio.wait([unavailable.available], timeout=timeout_s)
    if not done:
        raise unavailable
    unavailable.available.result()
