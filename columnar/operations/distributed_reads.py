"""Rows of several servers for one reply: requested concurrently, put together in the order of the call.

Each round requests from every owner its rows that are still missing, for a share of a step's bytes, so that a call
buffers no more between two rounds than ``regions.read.reply_memory`` allows.  Most calls take one round.  The rows
come packed in the form of the reply.

Invariant: a reply has at most ``limits.ROWS_BYTES``.
"""

from __future__ import annotations

import asyncio

from columnar.cluster.owners import NOTHING_DONE, LinkBroke, Search, by_owner
from columnar.cluster.peer_requests import RowGroup, Rows, RowsFound
from columnar.cluster.row_forms import ReplyForm
from columnar.errors import RequestTooBig
from columnar.limits import ROWS_BYTES, STEP_BYTES
from columnar.model.owner import Incarnation
from columnar.model.read import ReadSpec
from columnar.operations.access import Caller, TableAccess
from columnar.operations.packing import reply_form
from columnar.operations.reads import FoundRow, RowQuery
from columnar.operations.servers import Servers
from columnar.regions.tables import ServedTable
from columnar.storage.stored_cells import PackedRows

_Round = tuple[Incarnation, list[int], RowsFound | BaseException]  # the server, numbers of the rows, its answer


class _Found:
    """The rows of a call, as far as they have come."""

    def __init__(self, query: RowQuery) -> None:
        self.query = query
        self.packed: list[bytes | None] = [None] * len(query.rows)
        self.left = list(range(len(query.rows)))  # numbers of rows that have not come
        self.size_bytes = 0

    def take(self, rounds: list[_Round], search: Search) -> bool:
        """Take the answers of one round; True: some row has come.  RequestTooBig, ServersEnded; a server's error."""
        before, left = len(self.left), list[int]()
        for server, numbers, answer in rounds:
            if isinstance(answer, RowsFound):
                left += self._take_some(numbers, answer)
            elif isinstance(answer, NOTHING_DONE):
                left += numbers
            elif isinstance(answer, LinkBroke):  # a read is retried, once
                search.broke(server, [self.query.rows[number] for number in numbers])
                left += numbers
            else:
                raise answer
        self.left = sorted(left)
        return len(left) < before

    def _take_some(self, numbers: list[int], answer: RowsFound) -> list[int]:
        not_local = frozenset(answer.not_local_rows)
        left = numbers[len(answer.rows) :]
        for at, (number, packed) in enumerate(zip(numbers, answer.rows, strict=False)):
            if at in not_local:
                left.append(number)
            elif packed is not None:
                self.packed[number] = packed
                self.size_bytes += len(packed)
        if self.size_bytes > ROWS_BYTES:
            raise RequestTooBig(f"the rows asked for have over {ROWS_BYTES} bytes; ask for fewer, or scan")
        return left

    def rows(self) -> list[FoundRow]:
        rows: list[FoundRow] = []
        for row, packed in zip(self.query.rows, self.packed, strict=True):
            if packed is not None:
                rows.append(PackedRows(packed, 1, 0, row))  # its cells are not counted
            elif self.query.keeps_absent:
                rows.append((row, []))
        return rows


class DistributedReads:
    def __init__(self, access: TableAccess, servers: Servers) -> None:
        self._access = access
        self._servers = servers

    async def rows(self, caller: Caller, served: ServedTable, query: RowQuery) -> list[FoundRow]:
        table, found = served.schema.name, _Found(query)
        search = Search(self._servers.owners, table)
        form = reply_form(query.service, caller.protocol)
        reply_memory = self._access.reply_memory
        ticket = reply_memory.begin(0, caller.has_gone)
        try:
            while found.left:
                await reply_memory.reserve_step(ticket, found.size_bytes)
                self._access.again(served)
                if found.take(await self._round(table, form, found, search), search):
                    search.succeeded()
                else:
                    await search.again(query.rows[found.left[0]])
            return found.rows()
        finally:
            reply_memory.end(ticket)

    async def _round(self, table: str, form: ReplyForm, found: _Found, search: Search) -> list[_Round]:
        rows = found.query.rows
        search.watch_routes()
        cut = by_owner(self._servers.owners, table, ((number, rows[number]) for number in found.left), search.tries)
        max_bytes = STEP_BYTES // len(cut)
        answers = await asyncio.gather(
            *(
                self._servers.request_server(server, Rows(table, form, _groups(found.query, numbers), max_bytes))
                for server, numbers in cut.items()
            ),
            return_exceptions=True,
        )
        return [(server, numbers, answer) for (server, numbers), answer in zip(cut.items(), answers, strict=True)]


def _groups(query: RowQuery, numbers: list[int]) -> tuple[RowGroup, ...]:
    """Group the rows in their order: rows with the same specification are in one group."""
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
