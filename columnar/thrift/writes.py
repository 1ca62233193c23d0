"""Methods that write rows: mutate, delete, counters, appends and checks, and many rows in one call."""

from __future__ import annotations

from typing import Any

from columnar.errors import IllegalArgument
from columnar.model.cell import checked_row, split_column
from columnar.model.mutation import Append, CompareOp, Condition, Delete, Increment, RowMutation, RowPuts, RowWrite
from columnar.operations.table_operations import TableOperations
from columnar.operations.writes import Answer
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.thrift import translate
from columnar.wire.sent_puts import SentPuts
from columnar.wire.service import Sent, SentNumber


class _Translator:
    """Translates the BatchMutations of one call to writes.

    Caches the columns, which are mostly the same in each row.
    """

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


class WriteMethods:
    def __init__(self, operations: TableOperations) -> None:
        self._access = operations.access
        self._writes = operations.writes

    # --- mutations ---------------------------------------------------------------------------------

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
            return None  # as HBase, which does not even look up the table
        served = self._access.meant(table)
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        stamp = translate.checked_timestamp(timestamp)
        if isinstance(mutations, SentPuts) and stamp is None and ttl_ms is None:
            columns = translate.put_columns(served.schema, row or b"", mutations, {})
            row = checked_row(row)
            return self._writes.write_row(ctx, served, RowPuts(row, columns, mutations.values), _nothing)
        operations, durability = translate.operations(served.schema, row or b"", mutations, stamp, ttl_ms, {})
        return self._writes.write_row(ctx, served, RowMutation(checked_row(row), operations, (), durability), _nothing)

    def mutateRows(self, ctx: Any, table: Sent, batches: Any, attributes: Any) -> Any:
        return self.mutate_rows(ctx, table, batches, None, attributes, _nothing)

    def mutateRowsTs(self, ctx: Any, table: Sent, batches: Any, timestamp: SentNumber, attributes: Any) -> Any:
        return self.mutate_rows(ctx, table, batches, timestamp, attributes, _nothing)

    def mutate_rows(
        self, ctx: Any, table: Sent, batches: Any, timestamp: SentNumber, attributes: Any, answer: Answer
    ) -> Any:
        """Check all rows, then write them (observed row 4); ``answer`` makes the answer from the last row."""
        if not batches:
            return answer(None)
        served = self._access.meant(table)
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        stamp = translate.checked_timestamp(timestamp)
        if len(batches) == 1:
            one = _Translator(served, stamp, ttl_ms).write(batches[0])
            return answer(None) if one is None else self._writes.write_single(ctx, served, one, answer)
        return self._writes.write_planned(
            ctx, served, batches, lambda current: _Translator(current, stamp, ttl_ms).write, answer
        )

    # --- deletes -----------------------------------------------------------------------------------

    def deleteAll(self, ctx: Any, table: Sent, row: Sent, column: Sent, attributes: Any) -> Any:
        return self._delete(ctx, table, row, column, None, attributes)

    def deleteAllTs(
        self, ctx: Any, table: Sent, row: Sent, column: Sent, timestamp: SentNumber, attributes: Any
    ) -> Any:
        return self._delete(ctx, table, row, column, timestamp, attributes)

    def _delete(self, ctx: Any, table: Sent, row: Sent, column: Sent, timestamp: SentNumber, attributes: Any) -> Any:
        served = self._access.meant(table)
        translate.check_write_attributes(attributes)
        stamp = translate.checked_timestamp(timestamp)
        family, qualifier = split_column(column or b"")
        served.schema.family(family)
        mutation = RowMutation(checked_row(row), (Delete(family, qualifier, stamp),))
        return self._writes.write_row(ctx, served, mutation, _nothing)

    def deleteAllRow(self, ctx: Any, table: Sent, row: Sent, attributes: Any) -> Any:
        return self._delete_row(ctx, table, row, None, attributes)

    def deleteAllRowTs(self, ctx: Any, table: Sent, row: Sent, timestamp: SentNumber, attributes: Any) -> Any:
        return self._delete_row(ctx, table, row, timestamp, attributes)

    def _delete_row(self, ctx: Any, table: Sent, row: Sent, timestamp: SentNumber, attributes: Any) -> Any:
        served = self._access.meant(table)
        translate.check_write_attributes(attributes)
        stamp = translate.checked_timestamp(timestamp)
        operations = tuple(Delete(family.bytes_name, None, stamp) for family in served.schema.families)
        return self._writes.write_row(ctx, served, RowMutation(checked_row(row), operations), _nothing)

    # --- read, decide and write a row as one step --------------------------------------------------

    def atomicIncrement(self, ctx: Any, table: Sent, row: Sent, column: Sent, amount: SentNumber) -> Any:
        served = self._access.meant(table)
        family, qualifier = translate.counter_column(served.schema, column)
        mutation = RowMutation(checked_row(row), (Increment(family, qualifier, amount or 0),))
        return self._writes.write_row(ctx, served, mutation, _counter)

    def increment(self, ctx: Any, increment: Any) -> Any:
        return self.incrementRows(ctx, [increment])

    def incrementRows(self, ctx: Any, increments: Any) -> Any:
        """Check all increments, then apply them; each row is a separate step."""
        asked: list[tuple[ServedTable, RowMutation]] = []
        for one in increments or ():
            if one is None:
                raise IllegalArgument("increment needs to be told what")
            served = self._access.meant(one.table)
            family, qualifier = translate.counter_column(served.schema, one.column)
            mutation = RowMutation(checked_row(one.row), (Increment(family, qualifier, one.ammount or 0),))
            asked.append((served, mutation))
        return self._writes.write_each(ctx, asked, _nothing)

    def append(self, ctx: Any, append: Any) -> Any:
        """Append; returns the new cells in the order of the requested columns (observed row 24)."""
        if append is None:
            raise IllegalArgument("append needs to be told what")
        served = self._access.meant(append.table)
        columns, values = append.columns or (), append.values or ()
        if not columns or len(columns) != len(values):
            raise IllegalArgument(f"append needs one value for each column, not {len(columns)} and {len(values)}")
        translate.checked_operations(len(columns), append.row or b"")
        operations = []
        for column, value in zip(columns, values, strict=True):
            family, qualifier = translate.full_column(served.schema, column)
            operations.append(Append(family, qualifier, translate.checked_value(value, column)))
        return self._writes.write_row(ctx, served, RowMutation(checked_row(append.row), tuple(operations)), _new_cells)

    def checkAndPut(
        self, ctx: Any, table: Sent, row: Sent, column: Sent, value: Sent, mutation: Any, attributes: Any
    ) -> Any:
        """Write if the cell has ``value``.  If that is missing or empty, the cell must be so too (observed row 23)."""
        served = self._access.meant(table)
        family, qualifier = translate.full_column(served.schema, column)
        op = CompareOp.EQUAL if value else CompareOp.ABSENT_OR_EMPTY
        if mutation is None:
            raise IllegalArgument("checkAndPut needs a mutation")
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        operations, durability = translate.operations(served.schema, row or b"", [mutation], None, ttl_ms, {})
        condition = Condition(family, qualifier, op, value or b"")
        checked = RowMutation(checked_row(row), operations, (condition,), durability)
        return self._writes.write_row(ctx, served, checked, _was_applied)


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
