"""The methods of clients that call the owners of regions directly: ``columnarRegionOwners`` and ``columnarRoute``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from columnar.model.record_codec import pack_records
from columnar.model.region_info import RegionInfo
from columnar.model.region_location import Location
from columnar.operations.descriptions import Descriptions


class RoutingMethods:
    def __init__(self, descriptions: Descriptions, locate: Callable[[RegionInfo], Location], routing: set[int]) -> None:
        """Pass ``locate``, called only during requests, and ``routing``, the ids of the connections that route."""
        self._descriptions = descriptions
        self._locate = locate
        self._routing = routing

    def columnarRegionOwners(self, _ctx: Any, table: bytes) -> bytes:
        """Return the table's regions and their owners, as this server knows them; the master is not requested."""
        return pack_records([self._locate(info) for info in self._descriptions.meant(table or b"").regions])

    def columnarRoute(self, ctx: Any, on: bool) -> None:
        if on:
            self._routing.add(ctx.connection_id)
        else:
            self._routing.discard(ctx.connection_id)
