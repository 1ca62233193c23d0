"""Background openings of the regions that a master assigned, one after the other.

Regions with unreplayed logs come first.  A request opens its region through ``opening_queue``, so it waits for at most
one background opening.  If threads prepare the folders (``shared_folders``), as many are begun as may be prepared at
the same time.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Final, cast

from columnar.errors import ColumnarError, RegionUnavailable
from columnar.model.region_info import RegionInfo
from columnar.regions.life.region_state import State
from columnar.regions.life.shared_folders import AT_ONCE
from columnar.regions.log.lacking_logs import LackingLogs
from columnar.regions.server import RegionServer
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS, surviving

_log = logging.getLogger(__name__)

LOOP: Final = "openings of the owner's regions"


class AssignedOpenings:
    def __init__(
        self,
        server: RegionServer,
        lacking: LackingLogs,
        infos: Mapping[int, RegionInfo],
        work: Background,
        not_opened: Callable[[int, Exception], None],
    ) -> None:
        """``infos`` has every assigned region, by id.  ``not_opened`` is called with a region that fails before its
        opening begins.  ``OpeningQueue.on_settled`` reports the end of an opening that began.
        """
        self._server = server
        self._lacking = lacking
        self._infos = infos
        self._work = work
        self._not_opened = not_opened
        self._to_open: list[tuple[bool, int, int]] = []  # a heap of (may serve, order, region id)
        self._order = itertools.count()
        self.running: set[asyncio.Task[None]] = set()  # each opens one region after the other

    def open_soon(self, region_id: int) -> None:
        heappush(self._to_open, (region_id not in self._lacking, next(self._order), region_id))
        if len(self.running) < (1 if self._server.openings.shared_folders is None else AT_ONCE):
            self.running.add(self._work.spawn(self._open_all()))

    async def _open_all(self) -> None:
        try:
            await asyncio.sleep(0)  # requests of the same loop iteration keep their order
            while self._to_open:
                may_serve, _, region_id = heappop(self._to_open)
                try:
                    await self._open_one(region_id, may_serve=may_serve)
                except Exception as fault:  # noqa: BLE001 - this region is reported, and the next regions are opened
                    FAULTS.met(LOOP, fault)
                    with surviving(LOOP):
                        self._not_opened(region_id, fault)
                    await asyncio.sleep(0)
        finally:
            self.running.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _open_one(self, region_id: int, *, may_serve: bool) -> None:
        if not may_serve and region_id in self._lacking:
            await self._open_with_logs(region_id)
        elif may_serve and self._is_worth_opening(region_id):
            await self._open(region_id)
        else:
            await asyncio.sleep(0)

    async def _open_with_logs(self, region_id: int) -> None:
        """Open the region with its logs.

        Closes the region again if its table is disabled, as no request would close it.
        """
        info = self._infos[region_id]
        try:
            await self._lacking.load(region_id)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is reported, and the next regions are opened
            _log.error("logs that region %s lacks cannot be read", info.encoded, exc_info=fault)
            if region_id in self._lacking and self._server.hosting.state.state(region_id) is State.NONE:
                self._not_opened(region_id, fault)  # else a request is opening it, and that ends with a report
            return
        if region_id in self._lacking:  # else a request has opened it meanwhile
            await self._open(region_id)
            region = self._server.hosting.find_region(region_id)
            if region is not None and self._server.serving(info) is None:
                await self._server.hosting.close(region)

    def _is_worth_opening(self, region_id: int) -> bool:
        """Tell whether to open the region before its first request.

        Returns False if as many regions are open as the bound allows, unless a follower reads the region's changes.
        Always returns False if the region's store would be new.
        """
        info = self._infos.get(region_id)
        if info is None or not self._server.hosting.state.find(region_id).may_serve:
            return False
        if self._server.hosting.state.state(region_id) is not State.NONE or self._server.serving(info) is None:
            return False
        has_room = self._server.eviction.has_room or self._server.policy_of(info.table) is not None
        return has_room and not self._server.is_untouched(info)

    async def _open(self, region_id: int) -> None:
        """Open the region and wait until its opening has succeeded or failed; ``on_settled`` was called by then."""
        try:
            unavailable = self._server.openings.want(self._infos[region_id])
        except RegionUnavailable as waiting:
            unavailable = waiting
        except ColumnarError as refused:  # a close was requested meanwhile, or no table has the region
            self._not_opened(region_id, refused)
            return
        await asyncio.wait([unavailable.available])

    def stop(self) -> None:
        """Stop opening regions in the background."""
        self._to_open.clear()
        for task in list(self.running):
            task.cancel()
