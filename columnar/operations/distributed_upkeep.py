"""Upkeep and status of regions of several servers: each owner handles its own, concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from columnar.cluster.fan_out import STATUS_TIMEOUT_S, gather_status
from columnar.cluster.owners import NOTHING_DONE, LinkBroke, Search, by_owner, choose_server
from columnar.cluster.peer_requests import DeleteRows, RegionStates, RowsDeleted, Tend
from columnar.cluster.row_forms import RegionState
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.operations.servers import Servers


class DistributedUpkeep:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def tend(self, regions: Sequence[RegionInfo], work: str) -> None:
        """Tend the regions, those of each server one after the other.  Raises the first error after all have ended."""
        by_server: dict[Incarnation, list[RegionInfo]] = {}
        for region in regions:
            by_server.setdefault(self._server_of(region), []).append(region)
        outcomes = await asyncio.gather(
            *(self._tend_each(of_one, work) for of_one in by_server.values()), return_exceptions=True
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _tend_each(self, regions: list[RegionInfo], work: str) -> None:
        for region in regions:
            await self._tend(region, work)

    async def _tend(self, region: RegionInfo, work: str) -> None:
        owners = self._servers.owners
        search = Search(owners, region.table)
        while True:
            search.watch_routes()
            route = owners.owner_of(region.table, region.start)
            if route is None or route.region != region:
                return  # it was split, merged or dropped meanwhile
            server = choose_server(route, search.tries)
            try:
                if await self._servers.request_server(server, Tend(region, work)):
                    return
            except NOTHING_DONE:
                pass
            except LinkBroke:  # done twice it is done as well
                search.broke(server, [region.start])
            await search.again(region.start)

    def _server_of(self, region: RegionInfo) -> Incarnation:
        return next(iter(by_owner(self._servers.owners, region.table, [(0, region.start)])))

    async def delete_rows(self, table: str, start: bytes, stop: bytes) -> RowsDeleted:
        """Delete rows up to the end of one owner's regions, or of its share of a call.  Repeating it is harmless."""
        owners = self._servers.owners
        search = Search(owners, table)
        while True:
            search.watch_routes()
            (server,) = by_owner(owners, table, [(0, start)], search.tries)
            try:
                deleted = await self._servers.request_server(server, DeleteRows(table, start, stop))
            except NOTHING_DONE:
                pass
            except LinkBroke:
                search.broke(server, [start])
            else:
                if not deleted.is_not_local or deleted.next_row != start:
                    return deleted
            await search.again(start)

    async def states(self, tables: Sequence[str]) -> tuple[dict[RegionInfo, RegionState], list[str]]:
        """Open regions as their servers say, and the servers that were silent for STATUS_TIMEOUT_S."""
        owners = self._servers.owners
        asked = sorted({route.server for table in tables for route in owners.routes_of(table)} - {owners.local_server})
        found, silent = await gather_status(asked, owners, RegionStates(tuple(tables)), STATUS_TIMEOUT_S)
        states = {state.info: state for states in found.values() for state in states}
        return states, [str(server) for server in silent]
