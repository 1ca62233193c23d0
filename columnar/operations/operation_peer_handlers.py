"""Answers to other servers' asks, by the regions of this server alone: rows, writes, scans, upkeep.

A gateway asks for rows that its copy of the routes gives to this server.  The rows of other regions are named in the
answer, and nothing is done for them.  No ask is handed on, so two servers never wait for each other's answers.

Invariant: what all answers hold while they are made is bounded by ``limits.ASKED_BYTES``, and a step that waits for
room waits for other answers only.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from time import monotonic
from typing import Any, TypeVar

from columnar.cluster import peer_requests, row_forms
from columnar.errors import RegionNotLocal
from columnar.limits import PEER_REPLY_BYTES, STEP_BYTES
from columnar.model.filters import Filter
from columnar.model.region_messages import Message
from columnar.operations.access import TableAccess
from columnar.operations.descriptions import Descriptions
from columnar.operations.loads import ingest_rows
from columnar.operations.packing import blocks_of, is_map_of_binary, packer
from columnar.operations.reads import RowQuery, RowReads
from columnar.operations.row_deletes import delete_owned
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.scanners import Scanner
from columnar.operations.scans import Scans
from columnar.operations.upkeep import Upkeep
from columnar.operations.writes import RowWrites
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.read.reply_memory import ReplyMemoryBudget
from columnar.regions.server import RegionServer
from columnar.regions.write.ingestion import IncomingRows
from columnar.storage.stored_cells import PackedRows
from columnar.wire.codec_replies import map_rows

R = TypeVar("R")


class OperationPeerHandlers:
    """``answers``: the method for each class of ask; each raises errors of ``columnar.errors``."""

    def __init__(self, server: RegionServer, now_s: Callable[[], float] = monotonic) -> None:
        """``now_s``: of the quotas."""
        self._access = TableAccess(server, now_s)
        self._access.reply_memory = ReplyMemoryBudget(PEER_REPLY_BYTES, STEP_BYTES)
        self._access.reply_memory.loop_budget = server.reply_memory.loop_budget
        self._reads = RowReads(self._access)
        self._writes = RowWrites(self._access)
        self._scans = Scans(self._access, ScannerTable(now_s))
        self._descriptions = Descriptions(server)
        self._upkeep = Upkeep(server, self._descriptions)
        self.answers: dict[type[Message[Any]], Callable[[Any], Awaitable[Any]]] = {
            peer_requests.Rows: self._rows,
            peer_requests.Apply: self._apply,
            peer_requests.Ingest: self._ingest,
            peer_requests.DeleteRows: self._delete_rows,
            peer_requests.Scan: self._scan,
            peer_requests.Tend: self._tend,
            peer_requests.RegionStates: self._states,
        }

    async def handle_request(self, message: Message[R]) -> R:
        answer: R = await self.answers[type(message)](message)
        return answer

    # --- rows ----------------------------------------------------------------------------------------

    async def _rows(self, asked: peer_requests.Rows) -> peer_requests.RowsFound:
        served = self._access.table(asked.table.encode())
        query = _query_of(asked)
        found, elsewhere = await self._reads.rows_owned(served, query, self._scans.one_row, asked.max_bytes, asked.form)
        pack = packer(asked.form)
        packed: list[bytes | None] = []
        for one in found:
            if isinstance(one, PackedRows):  # it came in pieces
                packed.append(one.data)
                continue
            row, cells = one
            packed.append(pack(row, cells) if cells else None)
        return peer_requests.RowsFound(tuple(packed), tuple(elsewhere))

    async def _apply(self, asked: peer_requests.Apply) -> peer_requests.Applied:
        served = self._access.table(asked.table.encode())
        applied, left = await self._writes.write_owned(served, asked.rows)
        sequence = applied.sequence if applied is not None else None
        if not left:
            return peer_requests.Applied((), sequence)
        numbers = {write.row: number for number, write in enumerate(asked.rows)}
        return peer_requests.Applied(tuple(sorted(numbers[write.row] for write in left)), sequence)

    async def _ingest(self, asked: peer_requests.Ingest) -> peer_requests.Ingested:
        served = self._access.table(asked.table.encode())
        incoming = IncomingRows(asked.first, asked.last, asked.highest_timestamp, asked.rows, dict(asked.files))
        try:
            return peer_requests.Ingested(await ingest_rows(self._access, served, incoming))
        except RegionNotLocal:
            return peer_requests.Ingested(False, True)

    async def _delete_rows(self, asked: peer_requests.DeleteRows) -> peer_requests.RowsDeleted:
        deleted, elsewhere = await delete_owned(self._access, asked.table.encode(), asked.start, asked.stop)
        return peer_requests.RowsDeleted(deleted.rows, deleted.next_row, elsewhere is not None)

    # --- scans ---------------------------------------------------------------------------------------

    async def _scan(self, asked: peer_requests.Scan) -> peer_requests.Scanned:
        spec, form = asked.spec, asked.form
        row_filter = None
        if spec.filter_string is not None:
            row_filter = _filter(spec.filter_string).clone()
            row_filter.set_reversed(spec.reversed)
        scanner = Scanner(self._access, asked.table.encode(), spec, row_filter)
        scanner.form = form
        found = FoundRows(map_rows if is_map_of_binary(form) else None)
        bounds = asked.max_rows, asked.max_cells, asked.max_bytes
        if asked.versions:
            scanner.read_for_filter(needs_values=asked.values)
        if asked.rows is not None:
            scanner.read_only(asked.rows)
        if not await scanner.steps_owned(asked.place, found, bounds):
            return peer_requests.Scanned(is_not_local=True)
        if form is not None:
            return peer_requests.Scanned(blocks_of(found, form), (), scanner.place, scanner.cells_read)
        rows = tuple([(row, tuple(cells)) for row, cells in found])
        return peer_requests.Scanned((), rows, scanner.place, scanner.cells_read)

    # --- upkeep --------------------------------------------------------------------------------------

    async def _tend(self, asked: peer_requests.Tend) -> bool:
        try:
            await self._upkeep.tend(asked.region, asked.work)
        except RegionNotLocal:
            return False
        return True

    async def _states(self, asked: peer_requests.RegionStates) -> tuple[row_forms.RegionState, ...]:
        tables = [
            served for served in map(self._descriptions.find, map(str.encode, asked.tables)) if served is not None
        ]
        return tuple(state for state in self._descriptions.states_of(tables) if state.is_open)


@lru_cache(maxsize=64)
def _filter(text: bytes) -> Filter:
    """A filter to be cloned: a scan asks with the same string for each of its steps, and gateways send short ones."""
    from columnar.model.filter_language import parse  # as in ``operations.scans``

    return parse(text)


def _query_of(asked: peer_requests.Rows) -> RowQuery:
    rows: list[bytes] = []
    specs, filters, cuts = [], [], []
    for group in asked.groups:
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
