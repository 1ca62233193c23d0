"""Steps of a scan in regions of other servers; the scanner and its place stay at the gateway.

The owner applies a filter that remembers no rows, and packs rows.  The gateway applies a filter that remembers rows or
has a long filter string, and cuts rows (``batch``); for these the owner sends rows as cells.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import perf_counter
from typing import Final, TypeAlias

from columnar.cluster.link_errors import LinkBroke
from columnar.cluster.peer_requests import Scan, Scanned
from columnar.cluster.row_forms import Place
from columnar.cluster.scatter_gather import Owners, Search
from columnar.limits import SHORT_FILTER_BYTES, STEP_BYTES, STEP_S
from columnar.model.bounded_search import LARGE_BYTES
from columnar.model.filter_language import remembers
from columnar.model.owner import Incarnation
from columnar.model.read import ScanSpec
from columnar.operations.scanners import Scanner
from columnar.regions.read.found_rows import FoundRows, size_of
from columnar.regions.read.row_reader import WireCell
from columnar.storage.stored_cells import PackedRows

PIECE_CELLS: Final = 16  # cells that a filter sees between two clock checks; 1 in a row of over LARGE_BYTES
REQUEST_CELLS: Final = 100_000  # cells that one request walks over: some 30 ms

ReserveStep: TypeAlias = Callable[[], Awaitable[None]]


class _Asking:
    """The constant part of a scanner's requests, and its search for the owner of the region ahead."""

    def __init__(self, scanner: Scanner) -> None:
        spec, row_filter = scanner.spec, scanner.filter
        text = spec.filter_string or b""
        self.filters_locally = row_filter is not None and (len(text) > SHORT_FILTER_BYTES or remembers(row_filter))
        self.as_cells = self.filters_locally or bool(spec.batch)
        self.sends_filter = row_filter is not None and not self.filters_locally  # False: the request has rows only
        filter_string = spec.filter_string if self.sends_filter else None
        self.spec: ScanSpec = replace(spec, batch=0, limit=0, filter_string=filter_string)
        self.search: Search | None = None
        self.sought: Place | None = None  # the place whose region ``search`` looks for

    def search_for(self, owners: Owners, table: str, place: Place | None) -> Search:
        """Return the search for the owner of the region at this place, either the present search or a new one."""
        if self.search is None or self.sought is not place:
            self.search, self.sought = Search(owners, table), place
        return self.search


async def scan_remotely(
    owners: Owners, scanner: Scanner, found: FoundRows, count: int, reserve_step: ReserveStep
) -> None:
    """Take rows from the region ahead, or wait until that region may have a new owner.

    ``reserve_step`` waits until the call may continue, because a filter of unknown cost may run locally.  Raises
    NotServingRegion or ClientGone.
    """
    if scanner.asking is None:
        scanner.asking = _Asking(scanner)
    request_parts: _Asking = scanner.asking
    table, info, place = scanner.table.decode(), scanner.region_ahead(), scanner.place
    search = request_parts.search_for(owners, table, place)
    came: list[Scanned] = []

    async def request(server: Incarnation, _numbers: list[int], _servers: int) -> Scanned:
        if server == owners.local_server:  # the caller's next step reads locally
            return Scanned(is_not_local=True)
        try:
            return await owners.request_server(server, _scan_request(scanner, request_parts, found, count), STEP_BYTES)
        except LinkBroke:  # a read is retried once; the row of the place need not be in the region ahead
            search.broke(server, [place.row or info.start] if place is not None else [])
            return Scanned(is_not_local=True)

    def take(numbers: list[int], scanned: Scanned) -> list[int]:
        if not scanned.is_not_local:
            came.append(scanned)
        return numbers if scanned.is_not_local else []

    if await search.round([(0, info.start)], request, take):
        await search.again(info.start)
    else:
        await _take(scanner, request_parts, found, count, came[0], reserve_step)


def _scan_request(scanner: Scanner, request_parts: _Asking, found: FoundRows, count: int) -> Scan:
    assert scanner.place is not None, "there is a next step"
    max_rows, limit = count - found.count, scanner.rows_left
    max_cells = min(REQUEST_CELLS, max_rows * scanner.spec.batch) if scanner.spec.batch else REQUEST_CELLS
    return Scan(
        scanner.table.decode(),
        request_parts.spec,
        scanner.place,
        max_rows if limit < 0 else min(max_rows, limit),
        max_cells,
        STEP_BYTES,
        None if request_parts.as_cells else scanner.form,
        request_parts.filters_locally,
        None if request_parts.sends_filter else scanner.rows_ahead,
        scanner.needs_values,
    )


async def _take(
    scanner: Scanner, request_parts: _Asking, found: FoundRows, count: int, scanned: Scanned, reserve_step: ReserveStep
) -> None:  # fmt: skip
    scanner.cells_read += scanned.cells_read
    filtering = _Filtering(scanner, reserve_step)
    for row, packed in scanned.rows:
        cells, ends = list(packed), False
        if request_parts.filters_locally:
            cells, ends = await filtering.row(row, cells)
        if not scanner.take_row(found, count, row, cells, ends=ends):
            return  # later rows of this answer are requested again
    scanner.place = scanned.place
    if scanned.place is None and not request_parts.sends_filter:
        scanner.place = scanner.place_after_rows  # the request had the rows of one range only
    for block in scanned.blocks:
        scanner.take_packed(found, PackedRows(block.data, block.row_count, block.cell_count, block.last_row))


class _Filtering:
    """Runs the scanner's filter over the rows of one answer, in steps that are bounded by time."""

    def __init__(self, scanner: Scanner, reserve_step: ReserveStep) -> None:
        self._scanner = scanner
        self._reserve_step = reserve_step
        self._ends_s = perf_counter() + STEP_S

    async def row(self, row: bytes, cells: list[WireCell]) -> tuple[list[WireCell], bool]:
        """Return the cells that pass, and whether no further row is wanted.  Raises FilterTooExpensive, ClientGone."""
        sink = self._scanner.filtering(row)
        if not cells:
            sink.take_nothing()
        piece = PIECE_CELLS if size_of((row, cells)) <= LARGE_BYTES else 1
        for at in range(0, len(cells), piece):
            if perf_counter() >= self._ends_s:
                await self._reserve_step()
                self._ends_s = perf_counter() + STEP_S
            if sink.take_cells(cells[at : at + piece]):
                break
        return sink.result()
