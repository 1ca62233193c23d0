"""Rows of several servers for one reply: requested concurrently, and put together in the order of the call.

Each round requests the rows that are still missing from their owners.  Each owner may send a share of a step's bytes,
so that a call buffers no more between two rounds than ``regions.read.reply_memory`` allows.  Most calls take one round.
The rows come packed in the form of the reply.

Invariant: a reply has at most ``limits.ROWS_BYTES``.
"""

from __future__ import annotations

from columnar.cluster.peer_requests import RowGroup, Rows, RowsFound
from columnar.cluster.scatter_gather import Owners, scatter_gather
from columnar.errors import RequestTooBig
from columnar.limits import ROWS_BYTES, STEP_BYTES
from columnar.model.owner import Incarnation
from columnar.model.read import ReadSpec
from columnar.operations.access import Caller, TableAccess
from columnar.operations.packing import reply_form
from columnar.operations.reads import FoundRow, RowQuery
from columnar.regions.tables import ServedTable
from columnar.storage.stored_cells import PackedRows


async def read_rows(
    access: TableAccess, owners: Owners, caller: Caller, served: ServedTable, query: RowQuery
) -> list[FoundRow]:
    """Return the rows in the order of the query.  Raises RequestTooBig, and the errors of ``scatter_gather``."""
    packed: list[bytes | None] = [None] * len(query.rows)
    size_bytes = 0
    table, form, reply_memory = served.schema.name, reply_form(query.service, caller.protocol), access.reply_memory
    ticket = reply_memory.begin_call(0, caller.has_gone)

    async def before_round() -> None:
        await reply_memory.reserve_step(ticket, size_bytes)
        access.again(served)

    async def request(server: Incarnation, numbers: list[int], servers: int) -> RowsFound:
        message = Rows(table, form, _groups(query, numbers), STEP_BYTES // servers)
        return await owners.request_server(server, message)

    def take(numbers: list[int], answer: RowsFound) -> list[int]:
        nonlocal size_bytes
        left = numbers[len(answer.rows) :]
        for at, (number, row) in enumerate(zip(numbers, answer.rows, strict=False)):
            if at in answer.not_local_rows:
                left.append(number)
            elif row is not None:
                packed[number] = row
                size_bytes += len(row)
        if size_bytes > ROWS_BYTES:
            raise RequestTooBig(f"the rows asked for have over {ROWS_BYTES} bytes; ask for fewer, or scan")
        return left

    try:
        await scatter_gather(owners, table, query.rows, request, take, before_round=before_round)
    finally:
        reply_memory.end(ticket)
    rows: list[FoundRow] = []
    for name, row in zip(query.rows, packed, strict=True):
        if row is not None:
            rows.append(PackedRows(row, 1, 0, name))  # its cells are not counted
        elif query.keeps_absent:
            rows.append((name, []))
    return rows


def _groups(query: RowQuery, numbers: list[int]) -> tuple[RowGroup, ...]:
    """Return the rows in their order, with successive rows of the same specification in one group."""
    groups: list[RowGroup] = []
    rows: list[bytes] = []
    wanted = None
    for number in numbers:
        filter_string = query.filters[number] if query.filters else None
        cut = query.cuts[number] if query.cuts is not None else None
        this = (query.specs[number], filter_string, cut)
        if wanted is not None and this != wanted:
            groups.append(_group(query, rows, *wanted))
            rows = []
        wanted = this
        rows.append(query.rows[number])
    if wanted is not None:
        groups.append(_group(query, rows, *wanted))
    return tuple(groups)


def _group(
    query: RowQuery, rows: list[bytes], read: ReadSpec, filter_string: bytes | None, cut: tuple[int, int] | None
) -> RowGroup:
    offset, limit = cut if cut is not None else (0, -1)
    if query.wanted >= 0:
        limit = query.wanted if limit < 0 else min(limit, query.wanted)
    return RowGroup(tuple(rows), read, filter_string, offset, limit)
