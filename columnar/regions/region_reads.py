"""Reads of single rows of a region, as they are now.

A caller waits for ``Region.barrier`` before it shows what it read: a crash could take it back until then.

Cost: a seek for each family of the row that is asked for; of one column with one version a get.
"""

from __future__ import annotations

from itertools import islice

from columnar.model.read import ReadSpec
from columnar.regions.region import Region
from columnar.regions.row_reader import Cells, RawRow, column_versions, fetch_row, read_column, visible_cells
from columnar.storage.layout import unescape


def fetch(region: Region, row: bytes, spec: ReadSpec) -> RawRow:
    """The row as it is stored."""
    region.reads += 1
    return fetch_row(region.store, region.views, row, spec.projection)


def get_row(region: Region, row: bytes, spec: ReadSpec) -> Cells:
    """The visible cells of one row, column ascending; empty where there are none."""
    return visible_cells(region.store, row, fetch(region, row, spec), spec, region.now_ms)


def get_column(region: Region, row: bytes, family: bytes, qualifier: bytes, spec: ReadSpec) -> list[tuple[bytes, int]]:
    """(value, timestamp) of one column, newest first."""
    region.reads += 1
    return read_column(region.store, region.views[family], row, qualifier, spec, region.now_ms)


def get_family(region: Region, row: bytes, family: bytes, spec: ReadSpec) -> list[tuple[bytes, int]]:
    """(value, timestamp) of every version of every column of a family, column ascending, newest first."""
    view, now_ms, found = region.views[family], region.now_ms, []
    for _, group in fetch(region, row, spec):
        for qualifier, raw in group:
            versions = column_versions(region.store, view, row, unescape(qualifier), raw, spec, now_ms)
            found += [(cell.value, cell.timestamp) for cell in islice(versions, spec.max_versions)]
    return found
