"""Handlers of other servers' requests over the regions of this server only: rows, writes, scans, upkeep.

A gateway requests rows that its copy of the routes assigns to this server.  The answer names the rows whose regions
this server does not own, which are skipped.  No request is forwarded, so two servers never wait for each other's
answers.

Invariant: the memory of all unfinished answers is bounded by ``reply_bytes``, and a step that waits for
room waits for other answers only.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from time import monotonic
from typing import Any

from columnar.cluster import peer_requests, row_forms
from columnar.errors import RegionNotLocal
from columnar.limits import PEER_REPLY_BYTES, STEP_BYTES
from columnar.model.filters import Filter
from columnar.model.mutation import cell_replacement
from columnar.model.region_messages import Message
from columnar.operations.access import TableAccess
from columnar.operations.descriptions import Descriptions, Upkeep
from columnar.operations.packing import blocks_of, is_map_of_binary, packer
from columnar.operations.reads import RowQuery, RowReads
from columnar.operations.row_deletes import delete_owned
from columnar.operations.scanner_table import ScannerTable, Scans
from columnar.operations.scanners import Scanner
from columnar.operations.writes import RowWrites
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.read.reply_memory import ReplyMemoryBudget
from columnar.regions.server import RegionServer
from columnar.regions.write.ingestion import IncomingRows
from columnar.storage.stored_cells import PackedRows
from columnar.wire.codec_replies import map_rows
from columnar.wire.service import Later


class OperationPeerHandlers:
    """Handlers by class of request, in ``answers``; each raises errors of ``columnar.errors``."""

    def __init__(
        self, server: RegionServer, now_s: Callable[[], float] = monotonic, reply_bytes: int = PEER_REPLY_BYTES
    ) -> None:
        """``now_s`` is the clock of the quotas; ``reply_bytes`` bounds the memory of all unfinished answers."""
        reply_memory = ReplyMemoryBudget(reply_bytes, STEP_BYTES, server.reply_memory.loop_budget)
        self.reply_memory = reply_memory
        self._access = TableAccess(server, now_s, reply_memory)
        self._reads = RowReads(self._access)
        self._writes = RowWrites(self._access)
        self._scans = Scans(self._access, ScannerTable(now_s))
        self._descriptions = Descriptions(server)
        self._upkeep = Upkeep(server, self._descriptions)
        self.answers: dict[type[Message[Any]], Callable[[Any], Awaitable[Any]]] = {
            peer_requests.Rows: self._rows,
            peer_requests.Apply: self._apply,
            peer_requests.ReplaceCell: self._replace_cell,
            peer_requests.Ingest: self._ingest,
            peer_requests.DeleteRows: self._delete_rows,
            peer_requests.Scan: self._scan,
            peer_requests.Tend: self._tend,
            peer_requests.RegionStates: self._states,
        }

    # --- rows ----------------------------------------------------------------------------------------

    async def _rows(self, request: peer_requests.Rows) -> peer_requests.RowsFound:
        served = self._access.table(request.table.encode())
        query = _query_of(request)
        found, not_local = await self._reads.rows_owned(
            served, query, self._scans.one_row, request.max_bytes, request.form
        )
        pack = packer(request.form)
        packed: list[bytes | None] = []
        for one in found:
            if isinstance(one, PackedRows):  # a wide row, which was read in pieces
                packed.append(one.data)
                continue
            row, cells = one
            packed.append(pack(row, cells) if cells else None)
        return peer_requests.RowsFound(tuple(packed), tuple(not_local))

    async def _apply(self, request: peer_requests.Apply) -> peer_requests.Applied:
        served = self._access.table(request.table.encode())
        applied, left = await self._writes.write_owned(served, request.rows)
        numbers = {write.row: number for number, write in enumerate(request.rows)} if left else {}
        not_local = tuple(sorted(numbers[write.row] for write in left))
        if applied is None:
            return peer_requests.Applied(not_local)
        return peer_requests.Applied(not_local, applied.sequence, applied.earlier)

    async def _replace_cell(self, request: peer_requests.ReplaceCell) -> peer_requests.CellReplaced:
        served = self._access.table(request.table.encode())
        mutation = cell_replacement(request.row, request.family, request.qualifier, request.expected, request.value)
        done = self._writes.write_checked(served, [mutation], lambda outcomes: outcomes[0])
        if type(done) is Later:
            await asyncio.shield(done.future)
            done = done.result
        if done is None:
            return peer_requests.CellReplaced(is_not_local=True)
        return peer_requests.CellReplaced(done.failed_condition is None)

    async def _ingest(self, request: peer_requests.Ingest) -> peer_requests.Ingested:
        served = self._access.table(request.table.encode())
        incoming = IncomingRows(
            request.first, request.last, request.highest_timestamp, request.rows, dict(request.files)
        )
        try:
            return peer_requests.Ingested(await self._writes.ingest(served, incoming))
        except RegionNotLocal:
            return peer_requests.Ingested(False, True)

    async def _delete_rows(self, request: peer_requests.DeleteRows) -> peer_requests.RowsDeleted:
        deleted, not_local = await delete_owned(self._access, request.table.encode(), request.start, request.stop)
        return peer_requests.RowsDeleted(deleted.rows, deleted.next_row, not_local is not None)

    # --- scans ---------------------------------------------------------------------------------------

    async def _scan(self, request: peer_requests.Scan) -> peer_requests.Scanned:
        spec, form = request.spec, request.form
        row_filter = None
        if spec.filter_string is not None:
            row_filter = _filter(spec.filter_string).clone()
            row_filter.set_reversed(spec.reversed)
        scanner = Scanner(self._access, request.table.encode(), spec, row_filter)
        scanner.form = form
        found = FoundRows(map_rows if is_map_of_binary(form) else None)
        bounds = request.max_rows, request.max_cells, request.max_bytes
        if request.versions:
            scanner.read_for_filter(needs_values=request.values)
        if request.rows is not None:
            scanner.read_only(request.rows)
        if not await scanner.steps_owned(request.place, found, bounds):
            return peer_requests.Scanned(is_not_local=True)
        if form is not None:
            return peer_requests.Scanned(blocks_of(found, form), (), scanner.place, scanner.cells_read)
        rows = tuple([(row, tuple(cells)) for row, cells in found])
        return peer_requests.Scanned((), rows, scanner.place, scanner.cells_read)

    # --- upkeep --------------------------------------------------------------------------------------

    async def _tend(self, request: peer_requests.Tend) -> bool:
        try:
            await self._upkeep.tend(request.region, request.work)
        except RegionNotLocal:
            return False
        return True

    async def _states(self, request: peer_requests.RegionStates) -> tuple[row_forms.RegionState, ...]:
        tables = [
            served for served in map(self._descriptions.find, map(str.encode, request.tables)) if served is not None
        ]
        return tuple(state for state in self._descriptions.states_of(tables) if state.is_open)


@lru_cache(maxsize=64)
def _filter(text: bytes) -> Filter:
    """Parse a filter, which callers clone.

    Results are cached, because each step of a scan sends the same string; gateways send short strings only.
    """
    from columnar.model.filter_language import parse  # as in ``operations.scanner_table``

    return parse(text)


def _query_of(request: peer_requests.Rows) -> RowQuery:
    rows: list[bytes] = []
    specs, filters, cuts = [], [], []
    for group in request.groups:
        count = len(group.rows)
        rows += group.rows
        specs += [group.read] * count
        filters += [group.filter_string] * count
        cuts += [(group.offset, group.limit) if group.offset or group.limit >= 0 else None] * count
    return RowQuery(
        rows,
        specs,
        keeps_absent=True,
        filters=filters if any(one is not None for one in filters) else None,
        cuts=cuts if any(cuts) else None,
    )
