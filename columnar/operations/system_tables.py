"""Reads and writes rows of the system's own tables by the operations that clients use.  Owned by the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from columnar.cluster.peer_requests import ReplaceCell
from columnar.errors import RegionNotLocal, RegionUnavailable
from columnar.model.mutation import RowMutation, cell_replacement
from columnar.model.read import ReadSpec, ScanSpec, projection
from columnar.operations.access import TableAccess, retried
from columnar.operations.reads import RowReads
from columnar.operations.scanners import Scanner
from columnar.operations.writes import RowWrites
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.server import RegionServer
from columnar.runtime.loop_budget import IsDisconnected, never_disconnected
from columnar.wire.detect import Protocol
from columnar.wire.service import Later

SCANNED_ROWS: Final = 100  # read at once by ``rows``; a dead letter's traceback may be long

Found = tuple[bytes, dict[bytes, bytes]]  # row, column -> value


class _Itself:
    """The server, as the caller of an operation: it never disconnects."""

    connection_id: int = 0
    protocol: Protocol = Protocol.BINARY
    user: str = ""
    has_gone: IsDisconnected = staticmethod(never_disconnected)


class SystemTables:
    """The system's own tables, read and written by this server.

    Each method raises RegionNotLocal, with nothing written, if a different server owns a region and ``access.others``
    cannot reach that server.
    """

    def __init__(self, server: RegionServer) -> None:
        self._server = server
        self.access = TableAccess(server)
        self._reads = RowReads(self.access)
        self._writes = RowWrites(self.access)

    async def write_mutation(self, table: str, mutation: RowMutation) -> None:
        """Write the mutation; return after the fsync."""
        served = self.access.table(table.encode())

        def write() -> Any:
            return self._writes.write_row(_Itself(), served, mutation, lambda _applied: None)

        try:
            await _answered(write)
        except RegionNotLocal as error:
            await self.access.remote(error).writes(never_disconnected, [(served, mutation)], lambda _applied: None)

    async def replace_cell(self, request: ReplaceCell) -> bool:
        """Replace the cell if it is as expected; return whether it was, after the fsync.

        Raises OutcomeUnknown if the owner did not answer.
        """
        served = self.access.table(request.table.encode())
        mutation = cell_replacement(request.row, request.family, request.qualifier, request.expected, request.value)

        def write() -> Any:
            return self._writes.write_row(_Itself(), served, mutation, lambda applied: applied)

        try:
            applied = await _answered(write)
        except RegionNotLocal as error:
            return await self.access.remote(error).replace_cell(request)
        return bool(applied.failed_condition is None)

    async def rows(
        self, table: str, start: bytes = b"", stop: bytes = b"", limit: int = 0, columns: Sequence[bytes] = ()
    ) -> AsyncIterator[Found]:
        """Yield at most ``limit`` rows (0: all) from ``start`` to before ``stop`` (empty: to the end of the table).

        If ``columns`` is empty, rows have all their columns.  A table that was never written is not opened: most
        servers have no dead letters, and to open a store costs 50 ms and half a megabyte.
        """
        served = self.access.table(table.encode())
        if all(self._server.is_untouched(info) for info in served.regions):
            return
        spec = ScanSpec(start, stop, ReadSpec(projection(served.schema, columns)), limit=limit)
        scanner = Scanner(self.access, table.encode(), spec, None)
        while True:
            step = scanner.next_rows(SCANNED_ROWS)
            rows = step if isinstance(step, FoundRows) else await step
            if not rows.count:
                return
            for row, cells in rows:
                yield row, {column: value for column, value, _ in cells}

    async def has(self, table: str, row: bytes) -> bool:
        """Return whether the row has any cell."""

        def read() -> Any:
            served = self.access.table(table.encode())
            spec = ReadSpec(projection(served.schema, ()))
            return self._reads.has_cells(served, row, spec)

        try:
            return bool(await _answered(read))
        except RegionNotLocal:
            async for _ in self.rows(table, row, row + b"\x00", 1):
                return True
            return False


async def _answered(call: Callable[[], Any]) -> Any:
    """Wait for the answer of an operation, which is retried while its region is unavailable."""
    try:
        result = call()
    except RegionUnavailable as away:
        return await retried(call, away, never_disconnected)
    if type(result) is Later:
        await asyncio.shield(result.future)
        return result.result
    return await result if hasattr(result, "__await__") else result
