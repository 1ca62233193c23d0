"""Calls on rows of several servers at their gateway: put together of reads, writes, scans and upkeep.

``connect`` is the one place where operations learn of other servers; a standalone never imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from columnar.cluster.owners import Owners
from columnar.cluster.peer_requests import RowsDeleted
from columnar.model.mutation import RowWrite
from columnar.operations.access import Caller
from columnar.operations.distributed_reads import DistributedReads
from columnar.operations.distributed_scans import DistributedScans, ReserveStep
from columnar.operations.distributed_upkeep import DistributedUpkeep
from columnar.operations.distributed_writes import DistributedWrites
from columnar.operations.operation_peer_handlers import OperationPeerHandlers
from columnar.operations.reads import RowQuery, RowsAnswer
from columnar.operations.scanners import Scanner
from columnar.operations.servers import Servers
from columnar.operations.table_operations import TableOperations
from columnar.operations.writes import Answer
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.tables import ServedTable
from columnar.regions.write.ingestion import IncomingRows
from columnar.runtime.loop_budget import IsDisconnected


class DistributedCalls:
    """Implements ``operations.access.RemoteCalls``.  Constant after construction."""

    def __init__(self, operations: TableOperations, servers: Servers) -> None:
        self._reads = DistributedReads(operations.access, servers)
        self._writes = DistributedWrites(servers)
        self._scans = DistributedScans(servers)
        self._upkeep = DistributedUpkeep(servers)

    async def rows(self, caller: Caller, served: ServedTable, query: RowQuery, answer: RowsAnswer) -> Any:
        return answer(await self._reads.rows(caller, served, query))

    async def writes(
        self, is_disconnected: IsDisconnected, writes: Sequence[tuple[ServedTable, RowWrite]], answer: Answer
    ) -> Any:
        return answer(await self._writes.write(is_disconnected, writes))

    async def scan_step(self, scanner: Scanner, found: FoundRows, count: int, reserve_step: ReserveStep) -> None:
        await self._scans.step(scanner, found, count, reserve_step)

    async def ingest(self, served: ServedTable, incoming: IncomingRows) -> bool:
        return await self._writes.ingest(served.schema.name, incoming)

    async def delete_rows(self, served: ServedTable, start: bytes, stop: bytes) -> RowsDeleted:
        return await self._upkeep.delete_rows(served.schema.name, start, stop)


def connect(operations: TableOperations, handlers: OperationPeerHandlers, owners: Owners) -> None:
    """Have ``operations`` send requests to the owners of rows; ``handlers``: those of this server for such requests."""
    servers = Servers(owners, handlers)
    operations.access.others = DistributedCalls(operations, servers)
    operations.upkeep.others = operations.descriptions.others = DistributedUpkeep(servers)
