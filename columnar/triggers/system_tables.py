"""Rows of the system's own tables, read and written inside the server.  Owned by the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from columnar.model.mutation import RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.operations.access import TableAccess
from columnar.regions.patience import patiently
from columnar.regions.row_reader import RowCursor, wire_cells
from columnar.regions.server import RegionServer
from columnar.storage.layout import range_start


class SystemTables:
    def __init__(self, server: RegionServer) -> None:
        self._server = server
        self._access = TableAccess(server)

    async def write(self, table: str, mutation: RowMutation) -> None:
        """Returns after the fsync."""
        served = self._access.table(table.encode())
        applied = await patiently(lambda: self._access.region_for(served, mutation.row).apply(mutation))
        assert applied.durable is not None, "tables of the system are synced"
        await asyncio.shield(applied.durable)

    def rows(self, table: str, start: bytes = b"") -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        """(row, {column: value}) from ``start``; a table of the system has one region.

        Where nothing was ever written no store is made for the looking: most servers have no triggers, and a
        store is 50 ms and half a megabyte.
        """
        served = self._access.table(table.encode())
        if all(self._server.is_untouched(info) for info in served.regions):
            return
        region = self._access.region_for(served, start)
        spec = ReadSpec(projection(served.schema, ()))
        cursor = RowCursor(region.store, region.views, spec.projection, range_start(start), None, reverse=False)
        while (found := cursor.next_row()) is not None:
            row, raw = found
            cells = wire_cells(region.store, row, raw, spec, region.now_ms)
            if cells:
                yield row, {column: value for column, value, _ in cells}

    def has(self, table: str, row: bytes) -> bool:
        found = next(self.rows(table, row), None)
        return found is not None and found[0] == row
