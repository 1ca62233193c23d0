"""Our methods on regions: split one, merge two."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from columnar.errors import IllegalArgument, TableNotFound, shown
from columnar.master.region_changes import RegionChanges
from columnar.model.region_info import RegionInfo
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.folders import size_of

T = TypeVar("T")


class RegionMethods:
    def __init__(self, server: RegionServer, changes: RegionChanges) -> None:
        self._server = server
        self._changes = changes

    async def columnarSplit(self, _ctx: Any, table_or_region: bytes, row: bytes) -> list[bytes]:
        name = table_or_region or b""
        served = self._server.tables.find(name)
        if served is None:
            parent = self._region_named(name)
        elif row:
            parent = served.holding(row)
        else:
            parent = await self._largest_of(served)
        return [info.name for info in await _undisturbed(self._changes.split(parent, row or None))]

    async def columnarMerge(self, _ctx: Any, region: bytes, other: bytes) -> bytes:
        one, two = self._region_named(region or b""), self._region_named(other or b"")
        return (await _undisturbed(self._changes.merge(one, two))).name

    def _region_named(self, name: bytes) -> RegionInfo:
        """By its full name or its encoded one."""
        if not name:
            raise IllegalArgument("say which region, by its name or its encoded name")
        for served in self._server.tables.all():
            for info in served.regions:
                if name in (info.name, info.encoded.encode()):
                    return info
        raise TableNotFound(f"{shown(name)}; neither a table nor a region has this name")

    async def _largest_of(self, served: ServedTable) -> RegionInfo:
        """As the disk sees them, and what is in memory of those that are open."""
        folders = [self._server.folder_of(info) for info in served.regions]
        sizes = await asyncio.get_running_loop().run_in_executor(None, lambda: [size_of(folder) for folder in folders])
        by_folder = dict(zip(folders, sizes, strict=True))
        for region in self._server.open_regions_of(served.schema.name):
            by_folder[self._server.folder_of(region.info)] = region.store.size_bytes()
        return max(served.regions, key=lambda info: by_folder.get(self._server.folder_of(info), 0))


async def _undisturbed(work: Coroutine[Any, Any, T]) -> T:
    """To its end, even where whoever asked has gone: half a split is none."""
    return await asyncio.shield(asyncio.ensure_future(work))
