"""Flushes and compactions on request: of a table's regions one after the other, or of one region."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from columnar.errors import IllegalArgument
from columnar.model.region_info import RegionInfo
from columnar.operations.descriptions import Descriptions
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.storage.api import StoreClosed

FLUSH: Final = "flush"
COMPACT: Final = "compact"
MAJOR_COMPACT: Final = "major_compact"


class Others(Protocol):
    """Upkeep by the servers that own regions; a standalone has none (``operations.distributed_upkeep``)."""

    def tend(self, regions: Sequence[RegionInfo], work: str) -> Awaitable[None]: ...


class Upkeep:
    """Each returns when it is done; a region that was split, merged or dropped meanwhile is passed over."""

    def __init__(self, server: RegionServer, descriptions: Descriptions) -> None:
        self._server = server
        self._descriptions = descriptions
        self.others: Others | None = None

    async def flush(self, name: bytes | None) -> None:
        """Flush the open regions; closed ones have no memtable.  Errors as of ``Descriptions.regions_named``."""
        await self._each(name, FLUSH)

    async def compact(self, name: bytes | None) -> None:
        await self._each(name, COMPACT)

    async def major_compact(self, name: bytes | None) -> None:
        """Really major: surplus versions, expired cells and old markers are gone."""
        await self._each(name, MAJOR_COMPACT)

    async def _each(self, name: bytes | None, work: str) -> None:
        regions = [info for _, info in self._descriptions.regions_named(name)]
        if self.others is not None:
            await self.others.tend(regions, work)
            return
        for info in regions:
            await self.tend(info, work)

    async def tend(self, info: RegionInfo, work: str) -> None:
        """Work on a region of this server.  RegionNotLocal; IllegalArgument: a newer version knows such work."""
        upkeep = self._server.upkeep
        work_methods = {FLUSH: Region.flush, COMPACT: upkeep.compact, MAJOR_COMPACT: upkeep.major_compact}
        done: Callable[[Region], Awaitable[None]] | None = work_methods.get(work)
        if done is None:
            raise IllegalArgument(f"a region cannot '{work}'")
        while work != FLUSH or self._server.is_open(info) or not self._server.owns(info):
            # The regions before took their time: the table may be disabled or dropped by now.
            current = self._descriptions.find(info.table.encode())
            if current is None or not current.enabled or info not in current.regions:
                break
            try:
                await done(await self._server.opened(current, info))
                break
            except StoreClosed:  # it was closed meanwhile: open it again, if it is still there
                continue
