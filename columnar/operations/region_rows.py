"""The rows of one region for the server itself: system tables and the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from columnar.model.read import ReadSpec, projection
from columnar.regions.read.row_reader import Cells, RowCursor, wire_cells
from columnar.regions.region import Region
from columnar.storage.layout import range_start


def rows_of(region: Region, start: bytes = b"") -> Iterator[tuple[bytes, Cells]]:
    """(row, cells) from ``start``, rows without a visible cell left out.  Not across a write to the region."""
    spec = ReadSpec(projection(region.table, ()))
    low = range_start(start) if start else b""
    cursor = RowCursor.over(region.store, region.views, spec.projection, low, None, reverse=False)
    while (found := cursor.next_row()) is not None:
        row, raw = found
        cells = wire_cells(region.store, row, raw, spec, region.now_ms)
        if cells:
            yield row, cells
