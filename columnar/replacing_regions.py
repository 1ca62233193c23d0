"""The master's hand on splits and merges of the server in the same process (``master.region_changes.RegionHost``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from columnar.errors import NotServingRegion
from columnar.master.replacements import Load
from columnar.model.region_info import RegionInfo
from columnar.regions.hosting_state import State
from columnar.regions.merging import Merging
from columnar.regions.server import RegionServer
from columnar.regions.splitting import Splitting, clean_up
from columnar.regions.tables import ServedTable


class ReplacingRegions:
    def __init__(self, server: RegionServer, region_bytes: int, free_bytes: Callable[[], int]) -> None:
        self._server = server
        self.free_bytes = free_bytes
        self._region_bytes = region_bytes

    def begin(self, infos: Sequence[RegionInfo]) -> Splitting | Merging:
        served = self._served(infos[0].table)
        kind = Splitting if len(infos) == 1 else Merging
        return kind(self._server, served, infos)

    def _served(self, table: str) -> ServedTable:
        served = self._server.tables.find(table.encode())
        if served is None:
            raise NotServingRegion(f"table {table} was dropped meanwhile")
        return served

    def changing_triggers(self) -> AbstractAsyncContextManager[None]:
        return self._server.listener.changing()

    async def clean_up(self, info: RegionInfo) -> None:
        await clean_up(self._server.open_region(self._served(info.table), info))

    def loads(self) -> list[Load]:
        """Of the open regions of users' tables: one that is closed does not grow.  Some 10 us each."""
        return [
            Load(region.info, region.store.size_bytes(), region.table.max_filesize or self._region_bytes)
            for region in self._server.all_open()
            if not region.table.is_system and self._server.hosting.state_of(region) is State.OPEN
        ]
