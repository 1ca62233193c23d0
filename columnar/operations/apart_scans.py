"""Steps of a scan in regions of other servers; the scanner and its place stay at the gateway.

A filter without memory, and the packing of rows, are the owner's work.  A filter that remembers rows, or whose string
is long, and the cutting of rows (``batch``) are done here, over rows that come as cells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from columnar.limits import SHORT_FILTER_BYTES, STEP_BYTES
from columnar.model.filter_memory import remembers
from columnar.model.read import ScanSpec
from columnar.operations.scanners import Scanner
from columnar.operations.servers import Servers
from columnar.regions.found_rows import FoundRows
from columnar.routing.asks import Scan, Scanned
from columnar.routing.owners import NOTHING_DONE, LinkBroke, Search, server_to_ask
from columnar.routing.row_forms import Place
from columnar.storage.stored_cells import PackedRows

ASKED_CELLS: Final = 100_000  # that one ask walks over: some 30 ms


class _Asking:
    """The constant part of a scanner's asks, and its search for the owner of the region ahead."""

    def __init__(self, scanner: Scanner) -> None:
        spec, row_filter = scanner.spec, scanner.filter
        text = spec.filter_string or b""
        self.filters_here = row_filter is not None and (len(text) > SHORT_FILTER_BYTES or remembers(row_filter))
        self.as_cells = self.filters_here or bool(spec.batch)
        self.sends_filter = row_filter is not None and not self.filters_here  # else the owner is told of rows alone
        filter_string = spec.filter_string if self.sends_filter else None
        self.spec: ScanSpec = replace(spec, batch=0, limit=0, filter_string=filter_string)
        self.search: Search | None = None
        self.sought: Place | None = None  # for which ``search`` goes on


class ScansApart:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def step(self, scanner: Scanner, found: FoundRows, count: int) -> None:
        """Rows from the region ahead, or a wait until it may have another owner.  NotServingRegion."""
        if scanner.asking is None:
            scanner.asking = _Asking(scanner)
        asking: _Asking = scanner.asking
        owners, table, info = self._servers.owners, scanner.table.decode(), scanner.region_ahead()
        if asking.search is None or asking.sought is not scanner.place:
            asking.search, asking.sought = Search(owners, table), scanner.place
        search = asking.search
        search.look()
        route = owners.owner_of(table, info.start)
        server = owners.here if route is None else server_to_ask(route, search.tries)
        if server != owners.here:  # else the caller's next step looks here
            try:
                scanned = await self._servers.ask(server, _ask(scanner, asking, found, count), STEP_BYTES)
            except NOTHING_DONE:
                pass
            except LinkBroke:  # a read is asked for again, once
                search.broke(server, [scanner.place.row or info.start] if scanner.place is not None else [])
            else:
                if not scanned.elsewhere:
                    _take(scanner, asking, found, count, scanned)
                    return
        await search.again(info.start)


def _ask(scanner: Scanner, asking: _Asking, found: FoundRows, count: int) -> Scan:
    assert scanner.place is not None, "there is a next step"
    max_rows, limit = count - found.count, scanner.rows_wanted
    max_cells = min(ASKED_CELLS, max_rows * scanner.spec.batch) if scanner.spec.batch else ASKED_CELLS
    return Scan(
        scanner.table.decode(),
        asking.spec,
        scanner.place,
        max_rows if limit < 0 else min(max_rows, limit),
        max_cells,
        STEP_BYTES,
        None if asking.as_cells else scanner.form,
        asking.filters_here,
        None if asking.sends_filter else scanner.rows_ahead,
        scanner.needs_values,
    )


def _take(scanner: Scanner, asking: _Asking, found: FoundRows, count: int, scanned: Scanned) -> None:
    scanner.cells_read += scanned.cells_read
    for row, cells in scanned.rows:
        if not scanner.take_row(found, count, row, list(cells), filters=asking.filters_here):
            return  # rows behind it are asked for again
    scanner.place = scanned.place
    if scanned.place is None and not asking.sends_filter:
        scanner.place = scanner.place_past  # the owner was told of the rows of one range alone
    for block in scanned.blocks:
        scanner.take_packed(found, PackedRows(block.data, block.row_count, block.cell_count, block.last_row))
