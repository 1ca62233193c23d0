"""Methods on rows: get, mutate, count, append, check.  Each answers directly, or after an fsync.

A handler returns its result, or ``Later(future, result)`` where the answer must wait for a
future that others may share (the group commit); nothing here is a task of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from columnar.errors import IllegalArgument, RegionTooBusy, RequestTooBig, VersionsNotPositive
from columnar.limits import BATCH_BYTES, ROWS_BYTES, STEP_BYTES, STEP_CELLS
from columnar.model.cell import split_column
from columnar.model.mutation import (
    Append,
    CompareOp,
    Condition,
    Delete,
    Durability,
    Increment,
    Put,
    RowMutation,
    RowPuts,
    RowWrite,
)
from columnar.model.read import Projection, ReadSpec
from columnar.regions.applied import Applied
from columnar.regions.found_rows import ScanRow, size_of
from columnar.regions.patience import patiently
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import READ_SPECS, ServedTable, checked_row
from columnar.storage.api import StoreBusy
from columnar.thrift import translate
from columnar.wire.codec_replies import RowList
from columnar.wire.sent_puts import SentPuts
from columnar.wire.service import Later, Sent, SentNumber

Answer = Callable[[Applied | None], Any]  # what was applied last (None: nothing was asked for) to the reply
Work = list[tuple[ServedTable, list[RowWrite]]]  # batches, each of rows of one region

_LATEST: Final = ReadSpec(Projection(()))  # of a column that is named beside it
_REMEMBERED_BYTES: Final = 4 * 1024  # of the columns of a read; a longer list is parsed each time
_SEEK_CELLS: Final = 50  # what finding a row costs, counted in cells


@dataclass(slots=True)
class _Gathered:
    """Rows on their way into one reply."""

    left: list[bytes]  # still to be read, the next one last
    found: list[ScanRow] = field(default_factory=list)
    barriers: list[Any] = field(default_factory=list)
    size_bytes: int = 0


class RowMethods:
    def __init__(self, server: RegionServer) -> None:
        self._server = server
        self._tables = server.tables

    # --- reads -------------------------------------------------------------------------------------

    def _spec(self, served: ServedTable, columns: Sequence[bytes] | None, timestamp: int | None) -> ReadSpec:
        key = (timestamp, *columns) if columns else (timestamp,)
        spec = served.specs.get(key)
        if spec is None:
            spec = translate.read_spec(served.schema, columns, timestamp)
            if not columns or sum(map(len, columns)) <= _REMEMBERED_BYTES:
                if len(served.specs) >= READ_SPECS:
                    served.specs.clear()
                served.specs[key] = spec
        return spec

    def _cells(self, table: Sent, row: Sent, column: Sent, timestamp: SentNumber, versions: int) -> Any:
        served = self._tables.enabled(table)
        row = checked_row(row)
        if versions <= 0:
            raise VersionsNotPositive(versions)
        family, qualifier = split_column(column or b"")
        region = self._server.region_for(served, row)
        if qualifier is not None and timestamp is None and versions == 1:
            served.schema.family(family)
            return after(region.barrier(row), region.get_column(row, family, qualifier, _LATEST))
        spec = translate.read_spec(served.schema, [column or b""], timestamp, versions)
        if qualifier is not None:
            cells = region.get_column(row, family, qualifier, spec)
        else:
            cells = region.get_family(row, family, spec)
        return after(region.barrier(row), cells)

    def get(self, _ctx: Any, table: Sent, row: Sent, column: Sent, _attributes: Any) -> Any:
        return self._cells(table, row, column, None, 1)

    def getVer(self, _ctx: Any, table: Sent, row: Sent, column: Sent, count: SentNumber, _attributes: Any) -> Any:
        return self._cells(table, row, column, None, count or 0)

    def getVerTs(
        self,
        _ctx: Any,
        table: Sent,
        row: Sent,
        column: Sent,
        timestamp: SentNumber,
        count: SentNumber,
        _attributes: Any,
    ) -> Any:
        return self._cells(table, row, column, timestamp, count or 0)

    def getRow(self, _ctx: Any, table: Sent, row: Sent, _attributes: Any) -> Any:
        return self._row(table, row, None, None)

    def getRowWithColumns(self, _ctx: Any, table: Sent, row: Sent, columns: Any, _attributes: Any) -> Any:
        return self._row(table, row, columns, None)

    def getRowTs(self, _ctx: Any, table: Sent, row: Sent, timestamp: SentNumber, _attributes: Any) -> Any:
        return self._row(table, row, None, timestamp)

    def getRowWithColumnsTs(
        self, _ctx: Any, table: Sent, row: Sent, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._row(table, row, columns, timestamp)

    def _row(self, table: Sent, row: Sent, columns: Any, timestamp: SentNumber) -> Any:
        served = self._tables.enabled(table)
        spec = self._spec(served, columns, timestamp)
        row = checked_row(row)
        region = self._server.region_for(served, row)
        cells = region.get_row(row, spec)
        return after(region.barrier(row), RowList([(row, cells)] if cells else []))

    def getRows(self, _ctx: Any, table: Sent, rows: Any, _attributes: Any) -> Any:
        return self._rows(table, rows, None, None)

    def getRowsWithColumns(self, _ctx: Any, table: Sent, rows: Any, columns: Any, _attributes: Any) -> Any:
        return self._rows(table, rows, columns, None)

    def getRowsTs(self, _ctx: Any, table: Sent, rows: Any, timestamp: SentNumber, _attributes: Any) -> Any:
        return self._rows(table, rows, None, timestamp)

    def getRowsWithColumnsTs(
        self, _ctx: Any, table: Sent, rows: Any, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._rows(table, rows, columns, timestamp)

    def _rows(self, table: Sent, rows: list[bytes] | None, columns: Any, timestamp: SentNumber) -> Any:
        """In the order asked, without those that are not there (gateway behaviour 8)."""
        served = self._tables.enabled(table)
        spec = self._spec(served, columns, timestamp)
        gathered = _Gathered([checked_row(row) for row in rows or ()][::-1])
        gathering = self._server.gathering
        if not gathering.is_full and self._gather(served, spec, gathered):
            return after_all(gathered.barriers, RowList(gathered.found))
        return self._gather_rest(table, spec, gathered, gathering.begin(gathered.size_bytes))

    def _gather(self, served: ServedTable, spec: ReadSpec, gathered: _Gathered) -> bool:
        """Read rows for one turn on the loop; True: that was all."""
        cells_left, bytes_left = STEP_CELLS, STEP_BYTES
        while cells_left > 0 and bytes_left > 0:
            if not gathered.left:
                return True
            row = gathered.left[-1]
            region = self._server.region_for(served, row)
            gathered.left.pop()  # now, not before: where its region is away it is read later
            cells = region.get_row(row, spec)
            barrier = region.barrier(row)
            if barrier is not None:
                gathered.barriers.append(barrier)
            cells_left -= len(cells) + _SEEK_CELLS
            if cells:
                gathered.found.append((row, cells))
                size = size_of(gathered.found[-1])
                gathered.size_bytes += size
                bytes_left -= size
            if gathered.size_bytes > ROWS_BYTES:
                raise RequestTooBig(f"the rows asked for have over {ROWS_BYTES} bytes; ask for fewer, or scan")
        return False

    async def _gather_rest(self, table: Sent, spec: ReadSpec, gathered: _Gathered, ticket: int) -> RowList:
        try:
            while True:
                await self._server.gathering.turn(ticket, gathered.size_bytes)
                served = self._tables.enabled(table)
                for family, _ in spec.projection.families:
                    served.schema.family(family)  # the table may have been made anew meanwhile
                if await patiently(partial(self._gather, served, spec, gathered)):
                    break
            waiting = joined(gathered.barriers)
            if waiting is not None:
                await asyncio.shield(waiting)
            return RowList(gathered.found)
        finally:
            self._server.gathering.end(ticket)

    # --- writes ------------------------------------------------------------------------------------

    def mutateRow(self, _ctx: Any, table: Sent, row: Sent, mutations: Any, attributes: Any) -> Any:
        return self._mutate_row(table, row, mutations, None, attributes)

    def mutateRowTs(
        self, _ctx: Any, table: Sent, row: Sent, mutations: Any, timestamp: SentNumber, attributes: Any
    ) -> Any:
        return self._mutate_row(table, row, mutations, timestamp, attributes)

    def _mutate_row(self, table: Sent, row: Sent, mutations: Any, timestamp: SentNumber, attributes: Any) -> Any:
        if not mutations:
            checked_row(row)
            return None  # as HBase, which does not even look for the table
        served = self._tables.enabled(table)
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        stamp = translate.checked_timestamp(timestamp)
        if isinstance(mutations, SentPuts) and stamp is None and ttl_ms is None:
            columns = translate.put_columns(served.schema, mutations, {})
            row = checked_row(row)
            return self.write_rows(served, {row: RowPuts(row, columns, mutations.values)}, _nothing)
        operations, durability = translate.operations(served.schema, mutations, stamp, ttl_ms, {})
        return self.write(served, RowMutation(checked_row(row), operations, (), durability), _nothing)

    def mutateRows(self, _ctx: Any, table: Sent, batches: Any, attributes: Any) -> Any:
        return self.mutate_rows(table, batches, None, attributes, _nothing)

    def mutateRowsTs(self, _ctx: Any, table: Sent, batches: Any, timestamp: SentNumber, attributes: Any) -> Any:
        return self.mutate_rows(table, batches, timestamp, attributes, _nothing)

    def mutate_rows(self, table: Sent, batches: Any, timestamp: SentNumber, attributes: Any, answer: Answer) -> Any:
        """Everything is checked before anything is written (observed row 4); the answer is made from the last row."""
        if not batches:
            return answer(None)
        served = self._tables.enabled(table)
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        stamp = translate.checked_timestamp(timestamp)
        by_row: dict[bytes, RowWrite] = {}
        known: translate.Columns = {}
        known_rows: dict[tuple[bytes, ...], translate.PutColumns] = {}
        by_clock = stamp is None and ttl_ms is None
        for batch in batches:
            sent = batch.mutations
            if by_clock and isinstance(sent, SentPuts) and batch.row not in by_row:
                columns = translate.put_columns(served.schema, sent, known_rows)
                row = checked_row(batch.row)
                by_row[row] = RowPuts(row, columns, sent.values)
                continue
            operations, durability = translate.operations(served.schema, sent or (), stamp, ttl_ms, known)
            row = checked_row(batch.row)
            if not operations:
                continue
            held = by_row.get(row)
            if held is not None:
                if isinstance(held, RowPuts):
                    held = held.spelled_out()
                operations = held.operations + operations
                durability = held.durability if held.durability is Durability.SYNC else durability
            by_row[row] = RowMutation(row, operations, (), durability)
        return self.write_rows(served, by_row, answer)

    def write_all(self, served: ServedTable, by_row: Mapping[bytes, RowWrite]) -> Any:
        """Each row one step, and nothing to tell but that all are durable."""
        return self._write_each(self._by_region(served, by_row), _nothing)

    def _by_region(self, served: ServedTable, by_row: Mapping[bytes, RowWrite]) -> Work:
        """Batches of one region each, none over ``limits.BATCH_BYTES`` but for single rows."""
        found: Work = []
        open_batch: dict[int, tuple[list[RowWrite], int]] = {}
        for mutation in by_row.values():
            region = self._server.region_for(served, mutation.row)
            self._admit(region)
            size = _size(mutation)
            held = open_batch.get(region.info.region_id)
            if held is None or held[1] + size > BATCH_BYTES:
                held = ([], 0)
                found.append((served, held[0]))
            held[0].append(mutation)
            open_batch[region.info.region_id] = (held[0], held[1] + size)
        return found

    # --- writing and answering ---------------------------------------------------------------------

    def write(self, served: ServedTable, mutation: RowMutation, answer: Answer) -> Any:
        """One row, one step; ``answer`` makes the reply from what was applied."""
        region = self._server.region_for(served, mutation.row)
        self._admit(region)
        try:
            applied = region.apply(mutation)
        except StoreBusy:
            return self._go_on([(served, [mutation])], [], answer)
        return after(self._waiting(region, applied), answer(applied))

    def write_rows(self, served: ServedTable, by_row: Mapping[bytes, RowWrite], answer: Answer) -> Any:
        """Each row a step of its own; they have all been checked."""
        return self._write_each(self._by_region(served, by_row), answer)

    def _write_each(self, work: Work, answer: Answer) -> Any:
        """Batch after batch; where the engine falls behind, the rest is written when it has recovered."""
        waits: list[Any] = []
        applied: Applied | None = None
        for number, step in enumerate(work):
            try:
                applied = self._apply(step, waits)
            except StoreBusy:
                return self._go_on(work[number:], waits, answer)
        return after(joined(waits), answer(applied))

    async def _go_on(self, work: Work, waits: list[Any], answer: Answer) -> Any:
        applied: Applied | None = None
        left = deque(work)
        while left:
            applied = await patiently(partial(self._apply_next, left, waits))
        for waiting in waits:
            if waiting is not None:
                await asyncio.shield(waiting)  # others wait for it too
        return answer(applied)

    def _apply_next(self, left: deque[tuple[ServedTable, list[RowWrite]]], waits: list[Any]) -> Applied:
        """The first batch of ``left``, or as much of it as one region holds: it may have been split meanwhile."""
        served, mutations = left[0]
        info = served.holding(mutations[0].row)
        here = [mutation for mutation in mutations if info.holds(mutation.row)]
        applied = self._apply((served, here), waits)
        elsewhere = [mutation for mutation in mutations if not info.holds(mutation.row)]
        if elsewhere:
            left[0] = (served, elsewhere)
        else:
            left.popleft()
        return applied

    def _apply(self, step: tuple[ServedTable, list[RowWrite]], waits: list[Any]) -> Applied:
        served, mutations = step
        # Asked for again: opening the others may have closed it (limits.OPEN_REGIONS), and the table may have changed.
        served = self._tables.enabled(served.schema.name.encode())
        region = self._server.region_for(served, mutations[0].row)
        first = mutations[0]
        if len(mutations) == 1 and isinstance(first, RowMutation):
            applied = region.apply(first)
        else:
            applied = region.apply_many(mutations)
        waits.append(self._waiting(region, applied))
        return applied

    def _admit(self, region: Region) -> None:
        if region.refuses_writes:
            raise RegionTooBusy(
                f"the change log of region {region.info.encoded} of {region.info.table} is full: {region.log_obstacle}"
            )

    def _waiting(self, region: Region, applied: Applied) -> Any:
        """What the answer to a write waits for: its fsync, and the brake of a full log."""
        if applied.durable is None and applied.failed_condition is None:
            self._server.async_write_done()
        if region.write_delay_s > 0:
            return self._server.delayed(applied.durable, region.write_delay_s)
        return applied.durable

    def deleteAll(self, _ctx: Any, table: Sent, row: Sent, column: Sent, attributes: Any) -> Any:
        return self._delete(table, row, column, None)

    def deleteAllTs(
        self, _ctx: Any, table: Sent, row: Sent, column: Sent, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._delete(table, row, column, timestamp)

    def _delete(self, table: Sent, row: Sent, column: Sent, timestamp: SentNumber) -> Any:
        served = self._tables.enabled(table)
        stamp = translate.checked_timestamp(timestamp)
        family, qualifier = split_column(column or b"")
        served.schema.family(family)
        return self.write(served, RowMutation(checked_row(row), (Delete(family, qualifier, stamp),)), _nothing)

    def deleteAllRow(self, _ctx: Any, table: Sent, row: Sent, _attributes: Any) -> Any:
        return self._delete_row(table, row, None)

    def deleteAllRowTs(self, _ctx: Any, table: Sent, row: Sent, timestamp: SentNumber, _attributes: Any) -> Any:
        return self._delete_row(table, row, timestamp)

    def _delete_row(self, table: Sent, row: Sent, timestamp: SentNumber) -> Any:
        served = self._tables.enabled(table)
        stamp = translate.checked_timestamp(timestamp)
        operations = tuple(Delete(family.bytes_name, None, stamp) for family in served.schema.families)
        return self.write(served, RowMutation(checked_row(row), operations), _nothing)

    # --- read, modify, write -----------------------------------------------------------------------

    def atomicIncrement(self, _ctx: Any, table: Sent, row: Sent, column: Sent, amount: SentNumber) -> Any:
        served = self._tables.enabled(table)
        family, qualifier = translate.counter_column(served.schema, column)
        mutation = RowMutation(checked_row(row), (Increment(family, qualifier, amount or 0),))
        return self.write(served, mutation, _counter)

    def increment(self, _ctx: Any, increment: Any) -> Any:
        return self.incrementRows(_ctx, [increment])

    def incrementRows(self, _ctx: Any, increments: Any) -> Any:
        """Everything is checked before anything is written; each row is a step of its own."""
        work: Work = []
        for one in increments or ():
            if one is None:
                raise IllegalArgument("increment needs to be told what")
            served = self._tables.enabled(one.table)
            family, qualifier = translate.counter_column(served.schema, one.column)
            mutation = RowMutation(checked_row(one.row), (Increment(family, qualifier, one.ammount or 0),))
            self._admit(self._server.region_for(served, mutation.row))
            work.append((served, [mutation]))
        return self._write_each(work, _nothing)

    def append(self, _ctx: Any, append: Any) -> Any:
        """The new cells in the order of the columns asked for (observed row 24)."""
        if append is None:
            raise IllegalArgument("append needs to be told what")
        served = self._tables.enabled(append.table)
        columns, values = append.columns or (), append.values or ()
        if not columns or len(columns) != len(values):
            raise IllegalArgument(f"append needs one value for each column, not {len(columns)} and {len(values)}")
        operations = []
        for column, value in zip(columns, values, strict=True):
            family, qualifier = translate.full_column(served.schema, column)
            operations.append(Append(family, qualifier, translate.checked_value(value, column)))
        return self.write(served, RowMutation(checked_row(append.row), tuple(operations)), _new_cells)

    def checkAndPut(
        self, _ctx: Any, table: Sent, row: Sent, column: Sent, value: Sent, mutation: Any, attributes: Any
    ) -> Any:
        """No value, or an empty one, expects the cell to be absent or empty (observed row 23)."""
        served = self._tables.enabled(table)
        family, qualifier = translate.full_column(served.schema, column)
        op = CompareOp.EQUAL if value else CompareOp.ABSENT
        if mutation is None:
            raise IllegalArgument("checkAndPut needs a mutation")
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        operations, durability = translate.operations(served.schema, [mutation], None, ttl_ms, {})
        condition = Condition(family, qualifier, op, value or b"")
        return self.write(served, RowMutation(checked_row(row), operations, (condition,), durability), _was_applied)


def _size(mutation: RowWrite) -> int:
    """Bytes that it takes, roughly."""
    if isinstance(mutation, RowPuts):
        size = 64 * len(mutation.values)
        for value in mutation.values:
            size += len(value)
        return size
    size = 64 * len(mutation.operations)
    for operation in mutation.operations:
        if isinstance(operation, Put):
            size += len(operation.value)
    return size


def _nothing(_applied: Applied | None) -> None:
    return None


def _counter(applied: Applied | None) -> int:
    assert applied is not None, "one increment"
    return int.from_bytes(applied.results[0][1], "big", signed=True)


def _new_cells(applied: Applied | None) -> list[tuple[bytes, int]]:
    assert applied is not None, "one append"
    return [(value, stamp) for _, value, stamp in applied.results]


def _was_applied(applied: Applied | None) -> bool:
    assert applied is not None, "one check"
    return applied.failed_condition is None


def after(future: Any, result: Any) -> Any:
    """``result``, at once where nothing is waited for.  ``future`` may be a coroutine: several fsyncs."""
    if future is None or (isinstance(future, asyncio.Future) and future.done() and not future.exception()):
        return result
    return Later(future, result)


async def _all(futures: list[Any]) -> None:
    for future in futures:
        await future


def joined(waits: list[Any]) -> Any:
    """One awaitable for several futures, or None; the same future is not waited for twice."""
    distinct = list({id(future): future for future in waits if future is not None}.values())
    if not distinct:
        return None
    return distinct[0] if len(distinct) == 1 else _all(distinct)


def after_all(waits: list[Any], result: Any) -> Any:
    future = joined(waits)
    return result if future is None else Later(future, result)
