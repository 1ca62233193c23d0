"""All operations over one region server, as the services share them."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from columnar.operations.access import TableAccess
from columnar.operations.descriptions import Descriptions, Upkeep
from columnar.operations.group_calls import GroupCalls
from columnar.operations.reads import RowReads
from columnar.operations.scanner_table import ScannerTable, Scans
from columnar.operations.writes import RowWrites
from columnar.regions.server import RegionServer


class TableOperations:
    """Constant after construction."""

    def __init__(self, server: RegionServer, scanners: ScannerTable, now_s: Callable[[], float] = monotonic) -> None:
        """``now_s`` is the clock of the quotas."""
        self.access = TableAccess(server, now_s)
        self.reads = RowReads(self.access)
        self.writes = RowWrites(self.access)
        self.groups = GroupCalls(self.access)
        self.scanners = scanners
        self.scans = Scans(self.access, scanners)
        self.descriptions = Descriptions(server)
        self.upkeep = Upkeep(server, self.descriptions)
