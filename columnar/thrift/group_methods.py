"""The methods of groups of rows (ROW_GROUP): ``columnarMutateGroup`` and ``columnarReadGroup``."""

from __future__ import annotations

from typing import Any

from columnar.errors import IllegalArgument
from columnar.model.cell import checked_row
from columnar.model.mutation import Increment, RowMutation
from columnar.operations.group_calls import GroupOutcome, GroupWrite, check_count, check_group, span_of
from columnar.operations.table_operations import TableOperations
from columnar.regions.log.change_record import SequenceRange
from columnar.regions.read.group_reads import FoundGroup, GroupRead, digest_of
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Step
from columnar.thrift import translate
from columnar.thrift.sends import check_places
from columnar.wire.idl import columnar, hbase


class GroupMethods:
    def __init__(self, operations: TableOperations) -> None:
        self._access = operations.access
        self._groups = operations.groups

    def columnarReadGroup(self, _ctx: Any, table: bytes, group: bytes, columns: Any, rows: Any) -> Any:
        served = self._access.meant(table)
        span = span_of(served, checked_row(group))
        check_count(len(rows or ()))
        named = sorted({checked_row(row) for row in rows or ()})
        check_group(served, span, named)
        spec = translate.read_spec(served.schema, columns, None)
        return self._groups.read_group(served, span, named, spec, lambda found: _rows(found, columns))

    def columnarMutateGroup(self, ctx: Any, table: bytes, group: bytes, rows: Any, reads: Any) -> Any:
        served = self._access.meant(table)
        span = span_of(served, checked_row(group))
        check_count(_size_of_call(rows, reads))
        mutations = [
            translate.row_mutation(served.schema, one.row, one.conditions, one.operations) for one in rows or ()
        ]
        check_group(served, span, [one.row for one in mutations])
        check_places(self._access, mutations)
        write = GroupWrite(span, mutations, [_read(served, span.group, one) for one in reads or ()])
        if not write.mutations and not write.reads:
            raise IllegalArgument("columnarMutateGroup needs a row, or a read to look at again")
        return self._groups.write_group(ctx, served, write, lambda outcome: _result(write.mutations, outcome))


def _size_of_call(rows: Any, reads: Any) -> int:
    """Return the number of rows, operations and conditions that the call names."""
    count = len(reads or ()) + sum([len(one.rows or ()) for one in reads or ()])
    return count + sum([max(1, len(one.conditions or ()) + len(one.operations or ())) for one in rows or ()])


def _read(served: ServedTable, group: bytes, sent: Any) -> GroupRead:
    rows = sorted({checked_row(row) for row in sent.rows or ()})
    check_group(served, span_of(served, group), rows)
    return GroupRead(tuple(rows), translate.read_spec(served.schema, sent.columns, None), sent.digest or b"")


def _rows(found: FoundGroup, columns: Any) -> Any:
    return columnar.GroupRows(
        rows=[
            hbase.TRowResult(row=row, columns={name: hbase.TCell(value, stamp) for name, value, stamp in cells})
            for row, cells in found
        ],
        columns=list(columns or ()),
        digest=digest_of(found),
    )


def _result(mutations: list[RowMutation], outcome: GroupOutcome) -> Any:
    written, failed_read = outcome
    failed_row = written.failed_row
    if failed_read is not None or failed_row is not None:
        return columnar.GroupResult(
            applied=False,
            sequence="",
            rows=[],
            failedRead=-1 if failed_read is None else failed_read,
            failedRow=-1 if failed_row is None else failed_row,
            failedCondition=-1 if failed_row is None else written.applied.failed_condition,
        )
    changed = [step.sequence for step in written.steps if step is not None]  # ascending
    return columnar.GroupResult(
        applied=True,
        sequence=SequenceRange(changed[0], changed[-1]).token if changed else "",
        rows=[_row(mutation, step) for mutation, step in zip(mutations, written.steps, strict=True)],
    )


def _row(mutation: RowMutation, step: Step | None) -> Any:
    if step is None:
        return columnar.CheckAndMutateResult(applied=True, timestamp=0, sequence="", counters=[])
    increments = sum(isinstance(one, Increment) for one in mutation.operations)  # their results come first
    return columnar.CheckAndMutateResult(
        applied=True,
        timestamp=step.timestamp,
        sequence=step.sequence.token,
        counters=[hbase.TCell(value, stamp) for _, value, stamp in step.results[:increments]],
    )
