"""Methods that read a row, decide and write it as one step: counters, appends, checks."""

from __future__ import annotations

from typing import Any

from columnar.errors import IllegalArgument
from columnar.model.cell import checked_row
from columnar.model.mutation import Append, CompareOp, Condition, Increment, RowMutation
from columnar.operations.table_operations import TableOperations
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.thrift import translate
from columnar.wire.service import Sent, SentNumber


class CheckMethods:
    def __init__(self, operations: TableOperations) -> None:
        self._access = operations.access
        self._writes = operations.writes

    def atomicIncrement(self, ctx: Any, table: Sent, row: Sent, column: Sent, amount: SentNumber) -> Any:
        served = self._access.meant(table)
        family, qualifier = translate.counter_column(served.schema, column)
        mutation = RowMutation(checked_row(row), (Increment(family, qualifier, amount or 0),))
        return self._writes.write(ctx, served, mutation, _counter)

    def increment(self, ctx: Any, increment: Any) -> Any:
        return self.incrementRows(ctx, [increment])

    def incrementRows(self, ctx: Any, increments: Any) -> Any:
        """Everything is checked before anything is written; each row is a step of its own."""
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
        return self._writes.write(ctx, served, RowMutation(checked_row(append.row), tuple(operations)), _new_cells)

    def checkAndPut(
        self, ctx: Any, table: Sent, row: Sent, column: Sent, value: Sent, mutation: Any, attributes: Any
    ) -> Any:
        """No value, or an empty one, expects the cell to be absent or empty (observed row 23)."""
        served = self._access.meant(table)
        family, qualifier = translate.full_column(served.schema, column)
        op = CompareOp.EQUAL if value else CompareOp.ABSENT_OR_EMPTY
        if mutation is None:
            raise IllegalArgument("checkAndPut needs a mutation")
        ttl_ms = translate.ttl_of(attributes) if attributes else None
        operations, durability = translate.operations(served.schema, row or b"", [mutation], None, ttl_ms, {})
        condition = Condition(family, qualifier, op, value or b"")
        checked = RowMutation(checked_row(row), operations, (condition,), durability)
        return self._writes.write(ctx, served, checked, _was_applied)


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
