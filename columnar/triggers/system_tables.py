"""Rows of the system's own tables, read and written inside the server.  Owned by the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from columnar.model.mutation import RowMutation
from columnar.operations.access import TableAccess
from columnar.operations.region_rows import rows_of
from columnar.regions.patience import patiently
from columnar.regions.region import Region
from columnar.regions.server import RegionServer


class SystemTables:
    def __init__(self, server: RegionServer) -> None:
        self._server = server
        self.access = TableAccess(server)

    async def write(self, table: str, mutation: RowMutation) -> None:
        """Returns after the fsync."""
        served = self.access.table(table.encode())
        applied = await patiently(lambda: self.access.region_for(served, mutation.row).apply(mutation))
        assert applied.durable is not None, "tables of the system are synced"
        await asyncio.shield(applied.durable)

    async def rows(self, table: str, start: bytes = b"") -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        """(row, {column: value}) from ``start``, to be read before the caller waits for anything else.

        A table of the system has one region.  A region that was never written is not opened: most servers have no
        triggers, and a store is 50 ms and half a megabyte.
        """
        served = self.access.table(table.encode())
        if all(self._server.is_untouched(info) for info in served.regions):
            return iter(())
        return _by_column(await self.access.opened(served, served.holding(start)), start)

    async def has(self, table: str, row: bytes) -> bool:
        found = next(await self.rows(table, row), None)
        return found is not None and found[0] == row


def _by_column(region: Region, start: bytes) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
    for row, cells in rows_of(region, start):
        yield row, {column: value for column, value, _ in cells}
