"""Writes that were acknowledged without an fsync (``SKIP_WAL``, ``ASYNC_WAL``) are synced within a second.

Owned by the event loop of the region server.
"""

from __future__ import annotations

import asyncio
from typing import Final

from columnar.regions.life.hosting import Hosting
from columnar.runtime.faults import surviving

ASYNC_SYNC_S: Final = 1.0  # unsynced writes are synced within this time


class AsyncWrites:
    """A timer for all open regions of a server, set by the first such write since it last rang."""

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting
        self._timer: asyncio.TimerHandle | None = None

    def happened(self) -> None:
        """Note a write that requested no fsync: it is synced within ASYNC_SYNC_S.  Costs O(1)."""
        if self._timer is None and not self._hosting.state.is_stopping:
            self._timer = asyncio.get_running_loop().call_later(ASYNC_SYNC_S, self._sync)

    def stop(self) -> None:
        """The closing of a region syncs what is left of it."""
        if self._timer is not None:
            self._timer.cancel()

    def _sync(self) -> None:
        self._timer = None
        for region in list(self._hosting.serving.values()):  # one whose disk fails leaves them
            with surviving("syncs of ASYNC_WAL writes"):
                region.sync_async_writes()
