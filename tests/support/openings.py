"""Regions opened without waiting, for tests that cannot wait."""

from __future__ import annotations

from columnar.errors import RegionUnavailable
from columnar.model.region_info import RegionInfo
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.table_operations import TableOperations
from columnar.regions.life.region_state import State
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable


def opened_at_once(server: RegionServer, served: ServedTable, info: RegionInfo) -> Region:
    """Return the opened region.  Raises the errors of ``open_region`` and of the opening itself."""
    while True:
        try:
            return server.open_region(served, info)
        except RegionUnavailable as away:
            if server.hosting.state.state(info.region_id) is not State.OPENING:
                raise
            server.openings.open_next()
            if away.available.done():
                away.available.result()


def region_at_once(server: RegionServer, served: ServedTable, row: bytes) -> Region:
    return opened_at_once(server, served, served.holding(row))


def operations_of(server: RegionServer) -> TableOperations:
    """Return all operations over the server, as its services have them."""
    return TableOperations(server, ScannerTable(lambda: 0.0))
