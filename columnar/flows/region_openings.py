"""Opens regions with followers in the background: at the start, and again if a region could not be opened.

Without reads and writes a region may still have changes to deliver.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from typing import Final

from columnar.errors import ColumnarError, RegionNotLocal
from columnar.flows.delivery_state import pause_s
from columnar.model.region_info import RegionInfo
from columnar.regions.server import RegionServer
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS
from columnar.runtime.retry_work import retry_work

_log = logging.getLogger(__name__)

LOOP: Final = "the opener of regions with followers"


class RegionOpenings:
    def __init__(self, server: RegionServer, is_followed: Callable[[str], bool], background: Background) -> None:
        self._server = server
        self._is_followed = is_followed
        self._background = background
        self._is_on = False
        self._tables: set[asyncio.Task[None]] = set()
        self._again: dict[int, asyncio.Task[None]] = {}  # by region id

    def start(self, tables: Iterable[str]) -> None:
        self._is_on = True
        for table in tables:
            self.open_soon(table)

    def stop(self) -> None:
        self._is_on = False

    def open_soon(self, table: str) -> None:
        """Open all regions of the table, one after the other, if it is followed."""
        served = self._server.tables.find(table.encode())
        if self._is_on and served is not None and served.enabled and self._is_followed(table):
            task = self._background.spawn(self._open_all(served.regions))
            self._tables.add(task)
            task.add_done_callback(self._tables.discard)

    async def _open_all(self, regions: list[RegionInfo]) -> None:
        for info in regions:
            try:
                await self._open(info)
            except ColumnarError as error:  # the other regions open
                _log.error("region %s of %s cannot be opened: %s", info.encoded, info.table, error.text)
                self.open_later(info)
            except Exception as fault:  # noqa: BLE001 - as above
                FAULTS.met(LOOP, fault)
                self.open_later(info)
            await asyncio.sleep(0)

    async def _open(self, info: RegionInfo) -> None:
        served = self._server.serving(info)
        if served is not None and self._is_on and self._is_followed(info.table):
            with suppress(RegionNotLocal):  # its owner opens it
                await self._server.opened(served, info)

    def open_later(self, info: RegionInfo) -> None:
        """Open the region after a growing pause; retry until it is open or no subscription follows its table."""
        served = self._server.tables.find(info.table.encode())
        if self._is_on and served is not None and served.enabled:
            self._background.spawn_as(self._again, info.region_id, self._try_to_open(info))

    async def _try_to_open(self, info: RegionInfo) -> None:
        async def open_once() -> bool:
            await self._open(info)
            return True

        def report(fault: Exception) -> None:
            if isinstance(fault, ColumnarError):
                _log.info("region %s still cannot be opened: %s", info.encoded, fault.text)
            else:
                FAULTS.met(LOOP, fault)

        await retry_work(open_once, report, pause_s, pauses_first=True)

    async def settled(self, timeout_s: float, region_ids: Container[int] | None = None) -> bool:
        """Wait until the regions that are being opened here are open; return False on timeout.

        With ``region_ids``, retries of other regions are not waited for.
        """
        tasks = [
            *self._tables,
            *(task for one, task in self._again.items() if region_ids is None or one in region_ids),
        ]
        if not tasks:
            return True
        _, missing = await asyncio.wait(tasks, timeout=max(0.0, timeout_s))
        return not missing
