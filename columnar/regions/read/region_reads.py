"""Reads of single rows of a region, as they are now.

A caller waits for ``SyncGroups.barrier`` before it returns what it read: until then a crash could lose the writes
that it read.

Cost: a seek for each requested family of the row; for one column with one version a get.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from columnar.limits import STEP_BYTES, STEP_CELLS
from columnar.model.read import ReadSpec, projection
from columnar.regions.read.row_reader import (
    STEP_COST,
    Cells,
    RawRow,
    RowCursor,
    RowIsWide,
    WireCell,
    column_versions,
    fetch_row,
    newest_seen,
    read_column,
    visible_cells,
    wire_cells,
)
from columnar.regions.region import Region
from columnar.storage.layout import cell_key, range_start, row_end, row_prefix, split_cell_key, unescape
from columnar.storage.overlay import NO_BOUND


def fetch(region: Region, row: bytes, spec: ReadSpec, cost: int = NO_BOUND) -> RawRow:
    """Return the row as it is stored.  Raises RowIsWide if the row costs more than ``cost``."""
    found = fetch_row(region.store, region.views, row, spec.projection, cost)
    region.count_read()
    return found


def get_row(region: Region, row: bytes, spec: ReadSpec) -> Cells:
    """Return the visible cells of one row, columns ascending; maybe empty.  Raises RowIsWide above one step's cost."""
    return visible_cells(region.store, row, fetch(region, row, spec, STEP_COST), spec, region.now_ms, STEP_CELLS)


def get_whole_row(region: Region, row: bytes, spec: ReadSpec) -> Cells:
    """Read any row as ``get_row`` does, in one step: for callers that cannot wait.  Blocks the loop meanwhile."""
    return visible_cells(region.store, row, fetch(region, row, spec), spec, region.now_ms)


def get_column(region: Region, row: bytes, family: bytes, qualifier: bytes, spec: ReadSpec) -> list[tuple[bytes, int]]:
    """Return (value, timestamp) of each version of one column, newest first.  Raises RowIsWide as ``get_row`` does."""
    found = read_column(region.store, region.views[family], row, qualifier, spec, region.now_ms, STEP_CELLS)
    region.count_read()
    return found


def get_family(region: Region, row: bytes, family: bytes, spec: ReadSpec) -> list[tuple[bytes, int]]:
    """Return (value, timestamp) of every version of every column of a family, columns ascending, newest first.

    Raises RowIsWide as ``get_row`` does.
    """
    view, now_ms, found = region.views[family], region.now_ms, []
    for _, group in fetch(region, row, spec, STEP_COST):
        for qualifier, raw in group:
            versions = column_versions(region.store, view, row, unescape(qualifier), raw, spec, now_ms)
            found += [(cell.value, cell.timestamp) for cell in islice(versions, min(spec.max_versions, STEP_CELLS + 1))]
            if len(found) > STEP_CELLS:
                raise RowIsWide(row)
    return found


def get_slice(
    region: Region, row: bytes, family: bytes, start: bytes, stop: bytes, limit: int, *, reverse: bool
) -> list[WireCell]:
    """Return the newest visible cells with ``start <= qualifier < stop`` (empty: no bound), at most ``limit``.

    Stops early when the cells exceed STEP_BYTES.  O(returned cells), plus deleted cells not yet cleaned up.
    """
    region.count_read()
    view, now_ms = region.views[family], region.now_ms
    low = cell_key(row, start) if start else row_prefix(row)
    high = cell_key(row, stop) if stop else row_end(row)
    scan = region.store.scan_reverse if reverse else region.store.scan
    found: list[WireCell] = []
    size_bytes = 0
    for key, raw in scan(view.space, low, high):
        qualifier = split_cell_key(key)[1]
        seen = newest_seen(region.store, view, row, qualifier, raw, now_ms)
        if seen is not None:
            found.append((view.column_prefix + qualifier, *seen))
            size_bytes += len(key) + len(raw)
            if len(found) >= limit or size_bytes > STEP_BYTES:
                break
    return found


def rows_of(region: Region, start: bytes = b"") -> Iterator[tuple[bytes, Cells]]:
    """Yield (row, cells) from ``start`` on, without rows that have no visible cell.

    No write to the region may come between two rows.
    """
    spec = ReadSpec(projection(region.table, ()))
    low = range_start(start) if start else b""
    cursor = RowCursor.over(region.store, region.views, spec.projection, low, None, reverse=False)
    while (found := cursor.next_row()) is not None:
        row, raw = found
        cells = wire_cells(region.store, row, raw, spec, region.now_ms)
        if cells:
            yield row, cells
