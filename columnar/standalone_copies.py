"""The master's hand on the regions of the same process, for copies (``master.snapshots.RegionCopies``)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from columnar.errors import RetryLater, TableNotFound
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.patience import patiently
from columnar.regions.region import Region, spaces_of
from columnar.regions.region_copy import forget_log
from columnar.regions.server import RegionServer
from columnar.regions.spaces import options_of_spaces
from columnar.standalone_catalogue import MetaRegion
from columnar.storage.api import Engine, StoreClosed
from columnar.storage.file_copies import link_closed
from columnar.storage.rocks_errors import refused
from columnar.triggers.keeper import TriggerKeeper

CALLS_PATIENCE_S: Final = 40.0  # over the default time limit of a call
CALLS_POLL_S: Final = 0.01


class LocalCopies:
    """Owned by the loop, but for ``forget_log``."""

    def __init__(self, server: RegionServer, keeper: TriggerKeeper, meta: MetaRegion, engine: Engine) -> None:
        self._server = server
        self._keeper = keeper
        self._meta = meta
        self._engine = engine

    async def copy(self, info: RegionInfo, path: str) -> None:
        """Flushed in a thread first: what is left for the loop is linking files, some 5 ms.

        One that is closed, and has all that was acknowledged, stays so: nothing else runs while its files are linked,
        so nobody opens it meanwhile.
        """
        folder = self._server.folder_of(info)
        if not self._server.is_open(info) and self._engine.exists(folder) and not self._engine.is_stale(folder):
            try:
                link_closed(folder, path)
            except OSError as error:
                raise refused(error, f"cannot copy the files of {folder}") from error
            return
        served = self._server.tables.find(info.table.encode())
        if served is None:
            raise TableNotFound(info.table)
        region = self._server.open_region(served, info)
        while True:
            try:
                await _copied(region, path)
                break
            except StoreClosed:  # it was the least used of all; open it again
                region = self._server.open_region(served, info)
        if not served.enabled:
            await self._server.close_table(info.table)

    async def copy_catalogue(self, path: str) -> None:
        await _copied(self._meta.region, path)

    def forget_log(self, path: str, table: Table) -> None:
        store = self._engine.open(path, spaces_of(table), options_of_spaces(table))
        try:
            forget_log(store)
        finally:
            store.close()

    def watchers_of(self, table: str) -> list[str]:
        return [registration.name for registration in self._keeper.registrations() if registration.table == table]

    async def hold_triggers(self) -> None:
        """A call that runs may read what is newer than a copy, so those under way are waited for."""
        feeder = self._keeper.feeder
        feeder.upkeep.hold()
        deadline_s = asyncio.get_running_loop().time() + CALLS_PATIENCE_S
        while feeder.calls_in_flight():
            if asyncio.get_running_loop().time() > deadline_s:
                self.release_triggers()
                raise RetryLater(f"triggers are still running after {CALLS_PATIENCE_S:.0f} s; try again")
            await asyncio.sleep(CALLS_POLL_S)

    def release_triggers(self) -> None:
        self._keeper.feeder.upkeep.release()
        self._keeper.feeder.deliver()


async def _copied(region: Region, path: str) -> None:
    """What is being synced is waited for, so that the copy holds nothing that a crash of now would take back."""
    await region.aside(region.store.flush)
    waiting = region.sync_async_writes() or region.barrier_any()
    if waiting is not None:
        await asyncio.wait([waiting])
    await patiently(partial(region.store.checkpoint, path))
