"""A happybase table with additional methods: atomic steps on a row or a group of rows, and wide rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from columnar.client.errors import NotColumnar
from columnar.client.row_operations import (
    CheckResult,
    Expect,
    Operation,
    change_rows,
    check_result,
    condition_to_wire,
    to_wire,
)
from columnar.model.contribution import unpack as unpack_member
from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.connection import Connection
    from columnar.client.row_groups import GroupResult, RowGroup, Transaction

T = TypeVar("T")


def _all_of(groups: Iterable[Sequence[Operation]]) -> Iterable[Operation]:
    return chain.from_iterable(groups)


TRIES = 20  # of a transaction that meets the changes of others


@dataclass(frozen=True, slots=True)
class MemberCell:
    """The amounts that a source contributes to its row, with the source's other fields."""

    amounts: dict[bytes, int]  # by the column of the total
    sequence: str
    order: bytes | None
    carry: dict[bytes, bytes]


if TYPE_CHECKING:
    from columnar.client.happybase_types import HappybaseTable as _HappybaseTable
else:
    from happybase import Table as _HappybaseTable


class Table(_HappybaseTable):
    connection: Connection

    def check_and_mutate(
        self, row: bytes, conditions: Sequence[Expect], operations: Sequence[Operation]
    ) -> CheckResult:
        """Apply all operations, in the given order, as one atomic step, if all conditions are met; else none.

        Returns after the fsync.  Raises IllegalArgument and IOError as happybase does, and NotColumnar with a plain
        HBase.
        """
        return check_result(
            change_rows(
                self.connection,
                operations,
                "columnarCheckAndMutate",
                self.name,
                row,
                [condition_to_wire(one) for one in conditions],
                [to_wire(operation) for operation in operations],
                {},
            )
        )

    def check_and_mutate_rows(
        self, rows: Mapping[bytes, tuple[Sequence[Expect], Sequence[Operation]]]
    ) -> dict[bytes, CheckResult]:
        """Do ``check_and_mutate`` for several rows, mostly in one call with one fsync.  Each row is a separate step.

        After an error some rows may be written.  Raises IllegalArgument and IOError as happybase does, and NotColumnar
        with a plain HBase.
        """
        sent = [
            columnar.CheckedRow(
                row=row,
                conditions=[condition_to_wire(one) for one in conditions],
                operations=[to_wire(operation) for operation in operations],
            )
            for row, (conditions, operations) in rows.items()
        ]
        try:
            changed = _all_of(operations for _, operations in rows.values())
            answers = change_rows(self.connection, changed, "columnarCheckAndMutateRows", self.name, sent)
        except NotColumnar:  # or an older Columnar
            answers = [columnar.CheckedRowResult() for _ in sent]
        return {
            row: self.check_and_mutate(row, *rows[row]) if answer.result is None else check_result(answer.result)
            for row, answer in zip(rows, answers, strict=True)
        }

    def slice(
        self,
        row: bytes,
        family: bytes,
        start: bytes = b"",
        stop: bytes = b"",
        *,
        limit: int = 1_000,
        reverse: bool = False,
    ) -> list[tuple[bytes, bytes]]:
        """Return (qualifier, value) of cells of one family, from ``start`` up to ``stop``, exclusive (empty: no bound).

        The cells are in the order of qualifiers; with ``reverse`` in descending order.  Returns at most ``limit`` cells
        (``limit`` at most 10,000), and fewer if the cells exceed 4 MiB; only an empty list means that no cells are
        left.  The cost depends on the answer's size only, not on the row's width.
        """
        found = self.connection.call("columnarRowSlice", self.name, row, family, start, stop, limit, reverse)
        cut = len(family.removesuffix(b":")) + 1
        return [(one.columnName[cut:], one.cell.value) for row_result in found for one in row_result.sortedColumns]

    def members(self, row: bytes, family: bytes = b"m") -> dict[bytes, MemberCell]:
        """Return the sources that contribute to the row (``Contribute``), without withdrawn ones."""
        prefix = family + b":"
        found = {}
        for column, value in self.row(row, columns=[family]).items():
            member = unpack_member(value)
            if not member.is_gone:
                order = member.order if member.ordered else None
                sequence = "-".join(map(str, member.sequence))
                found[column[len(prefix) :]] = MemberCell(dict(member.amounts), sequence, order, dict(member.carried))
        return found

    def mutate(self, row: bytes, operations: Sequence[Operation]) -> CheckResult:
        """Do ``check_and_mutate`` without conditions."""
        return self.check_and_mutate(row, (), operations)

    def mutate_rows(self, rows: Mapping[bytes, Sequence[Operation]]) -> None:
        """Write many rows in one call; each row is a separate step.  Returns when all rows are on disk.

        After an error some rows may be written.  Raises IllegalArgument and IOError as happybase does, and NotColumnar
        with a plain HBase.
        """
        loaded = [
            columnar.LoadedRow(row=row, operations=[to_wire(operation) for operation in operations])
            for row, operations in rows.items()
        ]
        change_rows(self.connection, _all_of(rows.values()), "columnarLoadRows", self.name, loaded)

    # --- groups of rows (the table attribute ROW_GROUP) ----------------------------------------------

    def group(self, row: bytes) -> RowGroup:
        """Return the group of ``row``, which is read as of one moment."""
        from columnar.client.row_groups import RowGroup  # most tables have no groups

        return RowGroup(self, row)

    def mutate_group(self, rows: Mapping[bytes, tuple[Sequence[Expect], Sequence[Operation]]]) -> GroupResult:
        """Do ``check_and_mutate`` for rows of one group as one atomic step: all conditions hold, or nothing is done.

        A row may have conditions alone.  Returns after the fsync.  Raises IllegalArgument and IOError as happybase
        does, and NotColumnar with a plain HBase.
        """
        from columnar.client.row_groups import mutate_group

        return mutate_group(self, rows)

    def transact(self, group: bytes, f: Callable[[Transaction], T], tries: int = TRIES) -> T:
        """Call ``f`` with a transaction on the group, write what it asked for as one step, and return its result.

        If the rows that ``f`` has read have changed meanwhile, nothing is written, and ``f`` is called again, after
        growing pauses, up to ``tries`` times in all.  Raises GroupConflict then.  An error of ``f`` ends the
        transaction with nothing written.
        """
        from columnar.client.row_groups import transact

        return transact(self, group, f, tries)
