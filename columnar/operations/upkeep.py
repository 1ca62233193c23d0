"""Flushes and compactions that a person asks for: of a table's regions one after the other, or of one region."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from columnar.model.region_info import RegionInfo
from columnar.operations.descriptions import Descriptions
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.storage.api import StoreClosed


class Upkeep:
    """Each returns when it is done; a region that was split, merged or dropped meanwhile is passed over."""

    def __init__(self, server: RegionServer, descriptions: Descriptions) -> None:
        self._server = server
        self._descriptions = descriptions

    async def flush(self, name: bytes | None) -> None:
        """Only open regions hold anything in memory.  Errors as of ``Descriptions.regions_named``."""
        await self._each(name, Region.flush, self._server.is_open)

    async def compact(self, name: bytes | None) -> None:
        await self._each(name, self._server.upkeep.compact, _any)

    async def major_compact(self, name: bytes | None) -> None:
        """Really major: surplus versions, expired cells and old markers are gone."""
        await self._each(name, self._server.upkeep.major_compact, _any)

    async def _each(
        self, name: bytes | None, work: Callable[[Region], Awaitable[None]], wanted: Callable[[RegionInfo], bool]
    ) -> None:
        for served, info in self._descriptions.regions_named(name):
            while wanted(info):
                # The regions before took their time: the table may be disabled or dropped by now.
                current = self._descriptions.find(served.schema.name.encode())
                if current is None or not current.enabled or info not in current.regions:
                    break
                try:
                    await work(await self._server.opened(current, info))
                    break
                except StoreClosed:  # it was closed meanwhile: open it again, if it is still there
                    continue


def _any(_info: RegionInfo) -> bool:
    return True
