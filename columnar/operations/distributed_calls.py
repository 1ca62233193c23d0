"""Calls over rows of several servers, at their gateway: reads, writes and scans, upkeep and status of regions.

``connect`` is the one place where operations get access to other servers; a standalone never imports this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from columnar.cluster.peer_requests import DeleteRows, RegionStates, ReplaceCell, RowsDeleted, Tend
from columnar.cluster.row_forms import RegionState
from columnar.cluster.scatter_gather import (
    STATUS_TIMEOUT_S,
    Owners,
    by_owner,
    gather_status,
    request_owner,
    scatter_gather,
)
from columnar.model.mutation import RowWrite
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.operations.access import Caller, TableAccess
from columnar.operations.distributed_reads import read_rows
from columnar.operations.distributed_scans import ReserveStep, scan_remotely
from columnar.operations.distributed_writes import ingest_files, replace_cell, write_rows
from columnar.operations.reads import RowQuery, RowsAnswer
from columnar.operations.scanners import Scanner
from columnar.operations.table_operations import TableOperations
from columnar.operations.writes import Answer
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.tables import ServedTable
from columnar.regions.write.ingestion import IncomingRows
from columnar.runtime.loop_budget import IsDisconnected


class DistributedCalls:
    """Implements ``operations.access.RemoteCalls``.  Constant."""

    def __init__(self, access: TableAccess, owners: Owners) -> None:
        self._access = access
        self._owners = owners

    async def rows(self, caller: Caller, served: ServedTable, query: RowQuery, answer: RowsAnswer) -> Any:
        return answer(await read_rows(self._access, self._owners, caller, served, query))

    async def writes(
        self, is_disconnected: IsDisconnected, writes: Sequence[tuple[ServedTable, RowWrite]], answer: Answer
    ) -> Any:
        return answer(await write_rows(self._owners, is_disconnected, writes))

    async def replace_cell(self, request: ReplaceCell) -> bool:
        return await replace_cell(self._owners, request)

    async def scan_step(self, scanner: Scanner, found: FoundRows, count: int, reserve_step: ReserveStep) -> None:
        await scan_remotely(self._owners, scanner, found, count, reserve_step)

    async def ingest(self, served: ServedTable, incoming: IncomingRows) -> bool:
        return await ingest_files(self._owners, served.schema.name, incoming)

    async def delete_rows(self, served: ServedTable, start: bytes, stop: bytes) -> RowsDeleted:
        """Delete rows up to the end of one owner's regions, or as many as one call may.  A repetition is harmless."""
        table = served.schema.name

        def is_not_local(answer: RowsDeleted) -> bool:
            return answer.is_not_local and answer.next_row == start

        return await request_owner(self._owners, table, start, DeleteRows(table, start, stop), is_not_local)


class DistributedUpkeep:
    """Upkeep and status of regions of several servers: owners handle their regions concurrently.  Constant."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    async def tend(self, regions: Sequence[RegionInfo], work: str) -> None:
        """Do ``work`` on the regions, on all servers concurrently, on each server one region after the other.

        Raises the first error after all have ended.
        """
        by_server: dict[Incarnation, list[RegionInfo]] = {}
        for region in regions:
            (server,) = by_owner(self._owners, region.table, [(0, region.start)])
            by_server.setdefault(server, []).append(region)
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
        """Do ``work`` on one region, which may be repeated: doing it twice is harmless."""

        async def request(server: Incarnation, _numbers: list[int], _servers: int) -> bool:
            route = self._owners.owner_of(region.table, region.start)
            if route is None or route.region != region:
                return True  # it was split, merged or dropped meanwhile
            return await self._owners.request_server(server, Tend(region, work))

        def take(numbers: list[int], is_done: bool) -> list[int]:
            return [] if is_done else numbers

        await scatter_gather(self._owners, region.table, [region.start], request, take)

    async def states(self, tables: Sequence[str]) -> tuple[dict[RegionInfo, RegionState], list[str]]:
        """Return the states of open regions from their servers, and the servers silent for STATUS_TIMEOUT_S."""
        owners = self._owners
        asked = sorted({route.server for table in tables for route in owners.routes_of(table)} - {owners.local_server})
        found, silent = await gather_status(asked, owners, RegionStates(tuple(tables)), STATUS_TIMEOUT_S)
        states = {state.info: state for states in found.values() for state in states}
        return states, [str(server) for server in silent]


def connect(operations: TableOperations, owners: Owners) -> None:
    """Make ``operations`` send requests to the owners of rows."""
    operations.access.connect_others(DistributedCalls(operations.access, owners))
    upkeep = DistributedUpkeep(owners)
    operations.upkeep.connect_others(upkeep)
    operations.descriptions.connect_others(upkeep)
