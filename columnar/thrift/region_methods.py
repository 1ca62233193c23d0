"""Our methods on regions: split one, merge two."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from columnar.operations.descriptions import Descriptions

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.region_changes import RegionChanges

T = TypeVar("T")


class RegionMethods:
    def __init__(self, descriptions: Descriptions, changes: RegionChanges) -> None:
        self._descriptions = descriptions
        self._changes = changes

    async def columnarSplit(self, _ctx: Any, table_or_region: bytes, row: bytes) -> list[bytes]:
        name = table_or_region or b""
        served = self._descriptions.find(name)
        if served is None:
            parent = self._descriptions.given_region(name)
        elif row:
            parent = served.holding(row)
        else:
            parent = await self._descriptions.largest_region(served)
        return [info.name for info in await _undisturbed(self._changes.split(parent, row or None))]

    async def columnarMerge(self, _ctx: Any, region: bytes, other: bytes) -> bytes:
        one, two = self._descriptions.given_region(region), self._descriptions.given_region(other)
        return (await _undisturbed(self._changes.merge(one, two))).name


async def _undisturbed(work: Coroutine[Any, Any, T]) -> T:
    """Carry the change to its end, even if the caller has disconnected: half a split is none."""
    return await asyncio.shield(asyncio.ensure_future(work))
