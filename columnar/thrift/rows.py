"""Methods on rows: get, mutate, count, append, check.  Each answers directly, or after an fsync.

A handler returns its result, or ``Later(future, result)`` where the answer must wait for a
future that others may share (the group commit); nothing here is a task of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from columnar.errors import IllegalArgument, RequestTooBig, VersionsNotPositive
from columnar.limits import ROWS_BYTES, STEP_BYTES, STEP_CELLS
from columnar.model.cell import split_column
from columnar.model.mutation import (
    Append,
    CompareOp,
    Condition,
    Delete,
    Increment,
    RowMutation,
    RowPuts,
    RowWrite,
)
from columnar.model.read import Projection, ReadSpec
from columnar.regions.applied import Applied
from columnar.regions.found_rows import ScanRow, size_of
from columnar.regions.patience import patiently
from columnar.regions.tables import READ_SPECS, ServedTable, checked_row
from columnar.thrift import translate
from columnar.thrift.row_writes import Answer, RowWrites, Work, after, after_all, joined
from columnar.turns import HasGone
from columnar.wire.codec_replies import RowList
from columnar.wire.sent_puts import SentPuts
from columnar.wire.service import Sent, SentNumber

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


class _Translator:
    """BatchMutations of one call to what they ask of their rows; remembers the columns, which are mostly the same."""

    def __init__(self, served: ServedTable, stamp: int | None, ttl_ms: int | None) -> None:
        self._schema = served.schema
        self._stamp = stamp
        self._ttl_ms = ttl_ms
        self._by_clock = stamp is None and ttl_ms is None
        self._known: translate.Columns = {}
        self._known_rows: dict[tuple[bytes, ...], translate.PutColumns] = {}

    def write(self, batch: Any) -> RowWrite | None:
        sent, row = batch.mutations or (), batch.row or b""
        if self._by_clock and isinstance(sent, SentPuts):
            columns = translate.put_columns(self._schema, row, sent, self._known_rows)
            return RowPuts(checked_row(batch.row), columns, sent.values)
        operations, durability = translate.operations(self._schema, row, sent, self._stamp, self._ttl_ms, self._known)
        row = checked_row(batch.row)
        return RowMutation(row, operations, (), durability) if operations else None


class RowMethods(RowWrites):
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

    def getRows(self, ctx: Any, table: Sent, rows: Any, _attributes: Any) -> Any:
        return self._rows(ctx, table, rows, None, None)

    def getRowsWithColumns(self, ctx: Any, table: Sent, rows: Any, columns: Any, _attributes: Any) -> Any:
        return self._rows(ctx, table, rows, columns, None)

    def getRowsTs(self, ctx: Any, table: Sent, rows: Any, timestamp: SentNumber, _attributes: Any) -> Any:
        return self._rows(ctx, table, rows, None, timestamp)

    def getRowsWithColumnsTs(
        self, ctx: Any, table: Sent, rows: Any, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._rows(ctx, table, rows, columns, timestamp)

    def _rows(self, ctx: Any, table: Sent, rows: list[bytes] | None, columns: Any, timestamp: SentNumber) -> Any:
        """In the order asked, without those that are not there (gateway behaviour 8)."""
        served = self._tables.enabled(table)
        spec = self._spec(served, columns, timestamp)
        gathered = _Gathered([checked_row(row) for row in rows or ()][::-1])
        gathering = self._server.gathering
        if not gathering.is_full and self._gather(served, spec, gathered):
            return after_all(gathered.barriers, RowList(gathered.found))
        return self._gather_rest(table, spec, gathered, ctx.has_gone)

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

    async def _gather_rest(self, table: Sent, spec: ReadSpec, gathered: _Gathered, has_gone: HasGone) -> RowList:
        ticket = self._server.gathering.begin(gathered.size_bytes, has_gone)
        try:
            while True:
                await self._server.gathering.turn(ticket, gathered.size_bytes)
                served = self._tables.enabled(table)
                for family, _ in spec.projection.families:
                    served.schema.family(family)  # the table may have been made anew meanwhile
                if await patiently(partial(self._gather, served, spec, gathered), has_gone):
                    break
            waiting = joined(gathered.barriers)
            if waiting is not None:
                await asyncio.shield(waiting)
            return RowList(gathered.found)
        finally:
            self._server.gathering.end(ticket)

    # --- writes ------------------------------------------------------------------------------------

    def mutateRow(self, ctx: Any, table: Sent, row: Sent, mutations: Any, attributes: Any) -> Any:
        return self._mutate_row(ctx, table, row, mutations, None, attributes)

    def mutateRowTs(
        self, ctx: Any, table: Sent, row: Sent, mutations: Any, timestamp: SentNumber, attributes: Any
    ) -> Any:
        return self._mutate_row(ctx, table, row, mutations, timestamp, attributes)

    def _mutate_row(
        self, ctx: Any, table: Sent, row: Sent, mutations: Any, timestamp: SentNumber, attributes: Any
    ) -> Any:
        if not mutations:
            checked_row(row)
            return None  # as HBase, which does not even look for the table
        served = self._tables.enabled(table)
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        stamp = translate.checked_timestamp(timestamp)
        if isinstance(mutations, SentPuts) and stamp is None and ttl_ms is None:
            columns = translate.put_columns(served.schema, row or b"", mutations, {})
            row = checked_row(row)
            return self.write_alone(ctx, served, RowPuts(row, columns, mutations.values), _nothing)
        operations, durability = translate.operations(served.schema, row or b"", mutations, stamp, ttl_ms, {})
        return self.write(ctx, served, RowMutation(checked_row(row), operations, (), durability), _nothing)

    def mutateRows(self, ctx: Any, table: Sent, batches: Any, attributes: Any) -> Any:
        return self.mutate_rows(ctx, table, batches, None, attributes, _nothing)

    def mutateRowsTs(self, ctx: Any, table: Sent, batches: Any, timestamp: SentNumber, attributes: Any) -> Any:
        return self.mutate_rows(ctx, table, batches, timestamp, attributes, _nothing)

    def mutate_rows(
        self, ctx: Any, table: Sent, batches: Any, timestamp: SentNumber, attributes: Any, answer: Answer
    ) -> Any:
        """Everything is checked before anything is written (observed row 4); the answer is made from the last row."""
        if not batches:
            return answer(None)
        served = self._tables.enabled(table)
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        stamp = translate.checked_timestamp(timestamp)
        if len(batches) == 1:
            one = _Translator(served, stamp, ttl_ms).write(batches[0])
            return answer(None) if one is None else self.write_alone(ctx, served, one, answer)
        return self.write_planned(
            ctx, served, batches, lambda current: _Translator(current, stamp, ttl_ms).write, answer
        )

    def deleteAll(self, ctx: Any, table: Sent, row: Sent, column: Sent, attributes: Any) -> Any:
        return self._delete(ctx, table, row, column, None)

    def deleteAllTs(
        self, ctx: Any, table: Sent, row: Sent, column: Sent, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._delete(ctx, table, row, column, timestamp)

    def _delete(self, ctx: Any, table: Sent, row: Sent, column: Sent, timestamp: SentNumber) -> Any:
        served = self._tables.enabled(table)
        stamp = translate.checked_timestamp(timestamp)
        family, qualifier = split_column(column or b"")
        served.schema.family(family)
        return self.write(ctx, served, RowMutation(checked_row(row), (Delete(family, qualifier, stamp),)), _nothing)

    def deleteAllRow(self, ctx: Any, table: Sent, row: Sent, _attributes: Any) -> Any:
        return self._delete_row(ctx, table, row, None)

    def deleteAllRowTs(self, ctx: Any, table: Sent, row: Sent, timestamp: SentNumber, _attributes: Any) -> Any:
        return self._delete_row(ctx, table, row, timestamp)

    def _delete_row(self, ctx: Any, table: Sent, row: Sent, timestamp: SentNumber) -> Any:
        served = self._tables.enabled(table)
        stamp = translate.checked_timestamp(timestamp)
        operations = tuple(Delete(family.bytes_name, None, stamp) for family in served.schema.families)
        return self.write(ctx, served, RowMutation(checked_row(row), operations), _nothing)

    # --- read, modify, write -----------------------------------------------------------------------

    def atomicIncrement(self, ctx: Any, table: Sent, row: Sent, column: Sent, amount: SentNumber) -> Any:
        served = self._tables.enabled(table)
        family, qualifier = translate.counter_column(served.schema, column)
        mutation = RowMutation(checked_row(row), (Increment(family, qualifier, amount or 0),))
        return self.write(ctx, served, mutation, _counter)

    def increment(self, ctx: Any, increment: Any) -> Any:
        return self.incrementRows(ctx, [increment])

    def incrementRows(self, ctx: Any, increments: Any) -> Any:
        """Everything is checked before anything is written; each row is a step of its own."""
        work: Work = []
        for one in increments or ():
            if one is None:
                raise IllegalArgument("increment needs to be told what")
            served = self._tables.enabled(one.table)
            family, qualifier = translate.counter_column(served.schema, one.column)
            mutation = RowMutation(checked_row(one.row), (Increment(family, qualifier, one.ammount or 0),))
            self.admitted(served, mutation.row)
            work.append((served, [mutation]))
        return self.write_work(ctx, work, _nothing)

    def append(self, ctx: Any, append: Any) -> Any:
        """The new cells in the order of the columns asked for (observed row 24)."""
        if append is None:
            raise IllegalArgument("append needs to be told what")
        served = self._tables.enabled(append.table)
        columns, values = append.columns or (), append.values or ()
        if not columns or len(columns) != len(values):
            raise IllegalArgument(f"append needs one value for each column, not {len(columns)} and {len(values)}")
        translate.checked_operations(len(columns), append.row or b"")
        operations = []
        for column, value in zip(columns, values, strict=True):
            family, qualifier = translate.full_column(served.schema, column)
            operations.append(Append(family, qualifier, translate.checked_value(value, column)))
        return self.write(ctx, served, RowMutation(checked_row(append.row), tuple(operations)), _new_cells)

    def checkAndPut(
        self, ctx: Any, table: Sent, row: Sent, column: Sent, value: Sent, mutation: Any, attributes: Any
    ) -> Any:
        """No value, or an empty one, expects the cell to be absent or empty (observed row 23)."""
        served = self._tables.enabled(table)
        family, qualifier = translate.full_column(served.schema, column)
        op = CompareOp.EQUAL if value else CompareOp.ABSENT
        if mutation is None:
            raise IllegalArgument("checkAndPut needs a mutation")
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        operations, durability = translate.operations(served.schema, row or b"", [mutation], None, ttl_ms, {})
        condition = Condition(family, qualifier, op, value or b"")
        checked = RowMutation(checked_row(row), operations, (condition,), durability)
        return self.write(ctx, served, checked, _was_applied)


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
