"""Rows of one call for several servers: each owner writes its own, concurrently, each row as a step of its own.

    checked   by the gateway, all rows, before the first request
    cut       by owner, into requests of at most ``limits.BATCH_BYTES``, one after the other to each owner
    again     rows that an owner does not own, or that were not sent: their owner is looked up again
    ended     when every owner has its rows on disk, or with the gravest error after all requests have ended

Invariants:
    I1. A row that was sent and not answered is never sent again: the call ends with OutcomeUnknown.
    I2. A row that the call names several times is written in the order given: its steps are in different parts, and
        a part begins when the part before is on disk.
    I3. No request is sent once the call's connection has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from columnar.cluster.owners import NOTHING_DONE, LinkBroke, Search, by_owner
from columnar.cluster.peer_requests import Apply, Ingest
from columnar.errors import ClientGone, ColumnarError, OutcomeUnknown, abbreviate
from columnar.limits import BATCH_BYTES
from columnar.model.mutation import RowWrite
from columnar.model.owner import Incarnation
from columnar.operations.row_plan import size_of
from columnar.operations.servers import Servers
from columnar.operations.writes import partly
from columnar.regions.log import change_record
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.regions.write.ingestion import IncomingRows
from columnar.runtime.loop_budget import IsDisconnected


class _Share:
    """The rows of one owner, to be sent to it."""

    def __init__(self, servers: Servers, server: Incarnation, table: str, is_disconnected: IsDisconnected) -> None:
        self._servers = servers
        self._server = server
        self._table = table
        self._has_gone = is_disconnected
        self.left: list[RowWrite] = []  # that were not written
        self.has_written = False  # at least one of its requests was carried out
        self.sequence: tuple[int, int, int] | None = None  # of the last change

    async def send(self, rows: Sequence[RowWrite]) -> None:
        """Send the rows.  OutcomeUnknown; ClientGone; the error that the owner met."""
        batches = list(_split_into_requests(rows))
        for number, (batch, size_bytes) in enumerate(batches):
            if self._has_gone():
                raise ClientGone
            try:
                applied = await self._servers.request_server(self._server, Apply(self._table, tuple(batch)), size_bytes)
            except NOTHING_DONE:
                self.left += [row for rest, _ in batches[number:] for row in rest]
                return
            except LinkBroke:
                raise _unsure(self._server, self._table, len(batch), batch[0].row, batch[-1].row) from None
            self.left += [batch[at] for at in applied.not_local_rows]
            self.has_written |= len(applied.not_local_rows) < len(batch)
            self.sequence = applied.sequence or self.sequence


class DistributedWrites:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def write(
        self, is_disconnected: IsDisconnected, writes: Sequence[tuple[ServedTable, RowWrite]]
    ) -> Applied | None:
        """Write the rows; returns the last change, as far as answers are made of it; None: there was none."""
        sequence: tuple[int, int, int] | None = None
        has_written = False
        for table, rows in _in_parts(writes):
            sequence = await self._write_part(is_disconnected, table, rows, has_written) or sequence
            has_written = True
        return Applied(change_record.Sequence(*sequence), 0, (), None, None) if sequence is not None else None

    async def _write_part(
        self, is_disconnected: IsDisconnected, table: str, rows: list[RowWrite], has_written: bool
    ) -> tuple[int, int, int] | None:
        search = Search(self._servers.owners, table)
        sequence: tuple[int, int, int] | None = None
        left = rows
        while left:
            search.watch_routes()
            numbered = [(number, row.row) for number, row in enumerate(left)]
            cut = by_owner(self._servers.owners, table, numbered, search.tries)
            shares = [_Share(self._servers, server, table, is_disconnected) for server in cut]
            outcomes = await asyncio.gather(
                *(
                    share.send([left[number] for number in numbers])
                    for share, numbers in zip(shares, cut.values(), strict=True)
                ),
                return_exceptions=True,
            )
            missing = [row for share in shares for row in share.left]
            has_progress = len(missing) < len(left)
            has_written = has_written or any(share.has_written for share in shares)
            _raise_gravest(outcomes, has_written or len(shares) > 1)
            sequence = next((share.sequence for share in reversed(shares) if share.sequence is not None), sequence)
            left = missing
            if has_progress:
                search.succeeded()
            else:
                await self._retry_lookup(search, left[0].row, has_written)
        return sequence

    async def ingest(self, table: str, incoming: IncomingRows) -> bool:
        """Have the owner of the first row ingest the sorted files.  OutcomeUnknown."""
        owners = self._servers.owners
        search = Search(owners, table)
        files = tuple((space, tuple(paths)) for space, paths in incoming.files.items())
        request = Ingest(table, incoming.first, incoming.last, incoming.highest_timestamp, incoming.rows, files)
        while True:
            search.watch_routes()
            (server,) = by_owner(owners, table, [(0, incoming.first)], search.tries)
            try:
                ingested = await self._servers.request_server(server, request)
            except NOTHING_DONE:
                pass
            except LinkBroke:
                raise _unsure(server, table, incoming.rows, incoming.first, incoming.last) from None
            else:
                if not ingested.is_not_local:
                    return ingested.came
            await search.again(incoming.first)

    async def _retry_lookup(self, search: Search, row: bytes, has_written: bool) -> None:
        try:
            await search.again(row)
        except ColumnarError as error:
            raise partly(error) if has_written else error from None


def _unsure(server: Incarnation, table: str, count: int, first: bytes, last: bytes) -> OutcomeUnknown:
    which = f"row {abbreviate(first)}" if count == 1 else f"{count} rows from {abbreviate(first)} to {abbreviate(last)}"
    return OutcomeUnknown(
        f"server {server} did not answer before the link to it broke: {which} of table {table} may or may not be "
        "written; read before you repeat the call"
    )


def _raise_gravest(outcomes: list[BaseException | None], is_partial: bool) -> None:
    """Raise the gravest error.  OutcomeUnknown goes first: the caller must read before it repeats the call."""
    failures = [one for one in outcomes if one is not None]
    if not failures:
        return
    gravest = next((one for one in failures if isinstance(one, OutcomeUnknown)), failures[0])
    raise partly(gravest) if is_partial and isinstance(gravest, ColumnarError) else gravest


def _in_parts(writes: Iterable[tuple[ServedTable, RowWrite]]) -> Iterator[tuple[str, list[RowWrite]]]:
    """Yield runs of rows of one table in which each row is named once (I2)."""
    table, rows, seen = "", list[RowWrite](), set[bytes]()
    for served, row in writes:
        name = served.schema.name
        if rows and (name != table or row.row in seen):
            yield table, rows
            rows, seen = [], set()
        table = name
        rows.append(row)
        seen.add(row.row)
    if rows:
        yield table, rows


def _split_into_requests(rows: Sequence[RowWrite]) -> Iterator[tuple[list[RowWrite], int]]:
    """Yield the rows of each request, and their bytes."""
    batch: list[RowWrite] = []
    size = 0
    for row in rows:
        row_size = size_of(row)
        if batch and size + row_size > BATCH_BYTES:
            yield batch, size
            batch, size = [], 0
        batch.append(row)
        size += row_size
    if batch:
        yield batch, size
