"""Reads the first cells of looked-up rows, to be sent with a change, if this server has the rows at hand.

The first LOOKUP_CELLS are read when a change is sent to the worker, if the row's region is open on this server and the
row has no write that waits for an fsync.  Otherwise the function's client reads them, as it reads all further cells
(``lookup_client``).  Reading never waits, and costs in proportion to the cells read.  Owned by the loop.
"""

from __future__ import annotations

from typing import Any, Final

from columnar.errors import CallerError, RetryLater
from columnar.limits import STEP_BYTES
from columnar.model.extract import Image
from columnar.model.trigger_scope import LOOKUP_CELLS, Lookup
from columnar.operations.access import TableAccess
from columnar.regions.read.region_reads import get_slice
from columnar.regions.read.row_reader import WireCell
from columnar.regions.region import Region
from columnar.triggers.retry_state import is_obstacle

_CELL_BYTES: Final = 64  # of a cell beside key and value: at least as many as ``get_slice`` counts


class LookupPrefetch:
    def __init__(self, access: TableAccess) -> None:
        self._access = access

    def prefetch_row(self, lookup: Lookup, row: bytes, image: Image) -> list[Any]:
        """Return the row for a frame: table, key, families with more cells, cells, problem, whether it is temporary."""
        key = lookup.row(row, image)
        if not key:
            return [lookup.table, b"", [], [], "", False]
        try:
            served = self._access.table(lookup.table)
        except CallerError as error:
            return [lookup.table, key, [], [], error.text, is_obstacle(error)]
        families = sorted(family.bytes_name for family in served.schema.families)
        try:
            region = self._access.region_for(served, key)
        except (RetryLater, CallerError):  # the region is opening, or not local: the client waits for it
            return [lookup.table, key, families, [], "", False]
        if region.syncs.barrier(key) is not None:
            return [lookup.table, key, families, [], "", False]
        return [lookup.table, key, *_first_cells(region, key, families), "", False]


def _first_cells(region: Region, key: bytes, families: list[bytes]) -> tuple[list[bytes], list[list[bytes]]]:
    cells: list[list[bytes]] = []
    for at, family in enumerate(families):
        left = LOOKUP_CELLS - len(cells)
        found = get_slice(region, key, family, b"", b"", left, reverse=False)
        cells += [[column, value] for column, value, _ in found]
        if len(found) == left or _may_be_cut(key, found):
            return families[at:], cells
    return [], cells


def _may_be_cut(key: bytes, found: list[WireCell]) -> bool:
    """Return whether ``get_slice`` may have ended at STEP_BYTES of stored keys and values.

    Stored keys are escaped, which at most doubles their length.
    """
    return sum(2 * (len(key) + len(column)) + len(value) + _CELL_BYTES for column, value, _ in found) > STEP_BYTES
