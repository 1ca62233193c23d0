"""Writes rows of one call on several servers: owners write their rows concurrently, each row as a step of its own.

    check     the gateway checks all rows before the first request
    cut       rows are cut by owner, into requests of at most ``limits.BATCH_BYTES``; an owner gets them one at a time
    again     if a server does not own rows any more, or rows were not sent, their owners are looked up again
    end       the call ends when all rows are on disk, or after all requests have ended with the gravest error

Invariants:
    I1. A row that was sent and not answered is never sent again: the call ends with OutcomeUnknown.
    I2. A row that the call names several times is written in the order given: its steps are in different parts, and
        a part begins when the previous part is on disk.
    I3. No request is sent once the call's connection has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from columnar.cluster.link_errors import LinkBroke
from columnar.cluster.peer_requests import Apply, Ingest, ReplaceCell
from columnar.cluster.scatter_gather import NOTHING_DONE, Owners, request_owner, scatter_gather
from columnar.errors import ClientGone, ColumnarError, OutcomeUnknown, abbreviate
from columnar.limits import BATCH_BYTES
from columnar.model.mutation import RowWrite
from columnar.model.owner import Incarnation
from columnar.operations.row_plan import size_of
from columnar.operations.writes import partly
from columnar.regions.log import change_record
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.regions.write.ingestion import IncomingRows
from columnar.runtime.loop_budget import IsDisconnected

_Sequence: TypeAlias = tuple[int, int, int]


class _Writing:
    """The progress of one call's writes."""

    def __init__(self, owners: Owners, is_disconnected: IsDisconnected) -> None:
        self._owners = owners
        self._has_gone = is_disconnected
        self._has_written = False  # at least one request was carried out
        self.last_changes: dict[int, _Sequence] = {}  # by origin, the latest one last

    async def write_part(self, table: str, rows: list[RowWrite]) -> None:
        """Write rows of one table, each of which is named once (I2)."""

        async def send(server: Incarnation, numbers: list[int], servers: int) -> list[int]:
            try:
                return await self._send(server, table, numbers, [rows[number] for number in numbers])
            except ColumnarError as error:
                raise partly(error) if servers > 1 else error from None

        try:
            await scatter_gather(self._owners, table, [row.row for row in rows], send, _left)
        except ColumnarError as error:
            raise partly(error) if self._has_written else error from None

    async def _send(self, server: Incarnation, table: str, numbers: list[int], rows: list[RowWrite]) -> list[int]:
        """Send rows to their owner; return the numbers of rows that were not written."""
        left: list[int] = []
        sent = 0
        for batch, size_bytes in _split_into_requests(rows):
            if self._has_gone():
                raise ClientGone
            try:
                applied = await self._owners.request_server(server, Apply(table, tuple(batch)), size_bytes)
            except NOTHING_DONE:
                return left + numbers[sent:]
            except LinkBroke:
                raise _unsure(server, table, len(batch), batch[0].row, batch[-1].row) from None
            left += [numbers[sent + at] for at in applied.not_local_rows]
            sent += len(batch)
            self._has_written |= len(applied.not_local_rows) < len(batch)
            for sequence in (*applied.earlier, applied.sequence):
                if sequence is not None:
                    self._note_change(sequence)
        return left

    def _note_change(self, sequence: _Sequence) -> None:
        before = self.last_changes.pop(sequence[0], sequence)
        self.last_changes[sequence[0]] = max(before, sequence)


async def write_rows(
    owners: Owners, is_disconnected: IsDisconnected, writes: Sequence[tuple[ServedTable, RowWrite]]
) -> Applied | None:
    """Write the rows; return the fields of the last change that answers use, or None if there was no change."""
    writing = _Writing(owners, is_disconnected)
    for table, rows in _in_parts(writes):
        await writing.write_part(table, rows)
    changes = [change_record.Sequence(*change) for change in writing.last_changes.values()]
    return Applied(changes[-1], 0, (), None, None, tuple(changes[:-1])) if changes else None


def _left(_numbers: list[int], left: list[int]) -> list[int]:
    return left


async def replace_cell(owners: Owners, request: ReplaceCell) -> bool:
    """Have the owner of the row replace the cell; return whether it was as expected.  Raises OutcomeUnknown."""
    table, row = request.table, request.row
    answer = await request_owner(
        owners,
        table,
        row,
        request,
        lambda answer: answer.is_not_local,
        lambda server, _: _unsure(server, table, 1, row, row),
    )
    return answer.is_done


async def ingest_files(owners: Owners, table: str, incoming: IncomingRows) -> bool:
    """Have the owner of the first row ingest the sorted files.  Raises OutcomeUnknown if the link to it breaks."""
    files = tuple((space, tuple(paths)) for space, paths in incoming.files.items())
    request = Ingest(table, incoming.first, incoming.last, incoming.highest_timestamp, incoming.rows, files)
    ingested = await request_owner(
        owners,
        table,
        incoming.first,
        request,
        lambda answer: answer.is_not_local,
        lambda server, _: _unsure(server, table, incoming.rows, incoming.first, incoming.last),
    )
    return ingested.came


def _unsure(server: Incarnation, table: str, count: int, first: bytes, last: bytes) -> OutcomeUnknown:
    which = f"row {abbreviate(first)}" if count == 1 else f"{count} rows from {abbreviate(first)} to {abbreviate(last)}"
    return OutcomeUnknown(
        f"server {server} did not answer before the link to it broke: {which} of table {table} may or may not be "
        "written; read before you repeat the call"
    )


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
