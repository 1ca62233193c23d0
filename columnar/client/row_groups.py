"""Groups of rows from a client: written as one step, read as of one moment, and transactions over both.

A transaction is optimistic.  Each read comes with a digest; the write sends the digests back, and the server compares
them with what the same reads find now, in the step that writes.  A digest covers the absence of rows and cells: a row
that has come into a group that was read as a whole is a conflict, too.

Invariants:
    I1. Nothing of a transaction is written before its function has returned, and all of it or nothing then.
    I2. A transaction whose outcome is unknown is not tried again, so increments and appends are exact.
    I3. An error of the function reaches the caller only if all that the function has read was true at one moment.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from thriftpy2.thrift import TException

from columnar.client.errors import GroupConflict, WrongArgument
from columnar.client.row_operations import (
    Append,
    CheckResult,
    Delete,
    Expect,
    Increment,
    Operation,
    change_rows,
    check_result,
    condition_to_wire,
    puts,
    text_of,
    to_wire,
)
from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.table import Table

FIRST_PAUSE_S: Final = 0.002  # before the second try; each pause is twice the one before, with a random part
LONGEST_PAUSE_S: Final = 0.5
T = TypeVar("T")
Row = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class GroupResult:
    applied: bool
    sequence: str  # of all changes of the step, opaque; for ``Triggers.wait``; empty if nothing was changed
    rows: dict[bytes, CheckResult]  # empty unless applied
    failed_row: bytes | None  # the row with the first unmet condition, and the condition's index
    failed_condition: int | None
    failed_read: int | None = None  # index of the first read that finds something else now


class RowGroup:
    """A group of rows, which any of its rows names."""

    def __init__(self, table: Table, row: bytes) -> None:
        self._table = table
        self._row = row

    def rows(self, columns: Sequence[bytes] = ()) -> dict[bytes, Row]:
        """Return the rows of the group as of one moment, in their order; rows without such cells are left out.

        Raises IOError if the group is larger than a step may read (10,000 cells).
        """
        return _cells(_read(self._table, self._row, columns, ()))


class Transaction:
    """The reads and writes of a function in a group; nothing is written before ``commit``.  Reads come first."""

    def __init__(self, table: Table, group: bytes) -> None:
        self._table = table
        self._group = group
        self._found: dict[tuple[Any, ...], dict[bytes, Row]] = {}  # by what was asked for
        self._reads: list[Any] = []
        self._writes: dict[bytes, list[Operation]] = {}

    # --- reads ---------------------------------------------------------------------------------------

    def row(self, row: bytes, columns: Sequence[bytes] = ()) -> Row:
        """Return the row, or those columns of it; empty if it is missing."""
        return self._seen(columns, (row,)).get(row, {})

    def rows(self, columns: Sequence[bytes] = ()) -> dict[bytes, Row]:
        """Return all rows of the group, or those columns of them, in their order."""
        return self._seen(columns, ())

    def _seen(self, columns: Sequence[bytes], rows: tuple[bytes, ...]) -> dict[bytes, Row]:
        if self._writes and (not rows or rows[0] in self._writes):
            what = f"row {rows[0]!r}" if rows else "the group"
            raise WrongArgument(f"{what} is read after a write to it, which the read would not show; read it before")
        asked = (*rows, None, *columns)
        found = self._found.get(asked)
        if found is None:
            answer = _read(self._table, self._group, columns, rows)
            self._reads.append(columnar.GroupRead(rows=list(rows), columns=answer.columns, digest=answer.digest))
            found = self._found[asked] = _cells(answer)
        return {row: dict(cells) for row, cells in found.items()}

    # --- writes --------------------------------------------------------------------------------------

    def put(self, row: bytes, cells: Mapping[bytes, bytes]) -> None:
        self.mutate(row, puts(cells))

    def delete(self, row: bytes, columns: Sequence[bytes]) -> None:
        """Delete cells of a row: of columns, or of whole families (``b"f"``)."""
        self.mutate(row, [Delete(column) for column in columns])

    def increment(self, row: bytes, column: bytes, amount: int = 1) -> None:
        self.mutate(row, [Increment(column, amount)])

    def append(self, row: bytes, column: bytes, value: bytes) -> None:
        self.mutate(row, [Append(column, value)])

    def mutate(self, row: bytes, operations: Sequence[Operation]) -> None:
        """Add operations on a row; those of one row are applied in the order in which they were added."""
        self._writes.setdefault(row, []).extend(operations)

    # --- its end -------------------------------------------------------------------------------------

    def commit(self) -> bool:
        """Write all as one step; return whether what was read still holds.  A single read needs no look."""
        written = {row: ((), operations) for row, operations in self._writes.items() if operations}
        if not written and len(self._reads) < 2:
            return True
        return mutate_group(self._table, written, self._group, self._reads).applied

    def has_torn_reads(self) -> bool:
        """Tell whether the function's reads differ from the rows now, so that it may have seen what never was."""
        if len(self._reads) < 2:
            return False  # one read is as of one moment
        try:
            return not mutate_group(self._table, {}, self._group, self._reads).applied
        except (TException, OSError):
            return False  # the function's own error says more


def transact(
    table: Table,
    group: bytes,
    f: Callable[[Transaction], T],
    tries: int,
    pause: Callable[[float], None] = time.sleep,
) -> T:
    """Do ``Table.transact``; ``pause`` waits between two tries."""
    if tries < 1:
        raise WrongArgument(f"a transaction is tried at least once, not {tries} times")
    for number in range(tries):
        if number:
            pause(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (number - 1)) * random.uniform(0.5, 1.0))
        transaction = Transaction(table, group)
        try:
            result = f(transaction)
        except Exception:
            if not transaction.has_torn_reads():  # I3
                raise
            continue
        if transaction.commit():
            return result
    raise GroupConflict(group, tries)


def mutate_group(
    table: Table,
    rows: Mapping[bytes, tuple[Sequence[Expect], Sequence[Operation]]],
    group: bytes | None = None,
    reads: Sequence[Any] = (),
) -> GroupResult:
    """Do ``Table.mutate_group``, if the reads still hold; without ``group`` the first row names it."""
    if not rows and not reads:
        raise WrongArgument("a group is written with at least one row")
    names = list(rows)
    sent = [
        columnar.CheckedRow(
            row=row,
            conditions=[condition_to_wire(one) for one in conditions],
            operations=[to_wire(operation) for operation in operations],
        )
        for row, (conditions, operations) in rows.items()
    ]
    changed = [operation for _, operations in rows.values() for operation in operations]
    args = (table.name, group or names[0], sent, list(reads))
    answer = change_rows(table.connection, changed, "columnarMutateGroup", *args)
    failed = answer.failedRow
    return GroupResult(
        answer.applied,
        text_of(answer.sequence),
        {row: check_result(one) for row, one in zip(names, answer.rows, strict=True)} if answer.applied else {},
        None if failed < 0 else names[failed],
        None if failed < 0 else answer.failedCondition,
        None if answer.failedRead < 0 else answer.failedRead,
    )


def _read(table: Table, group: bytes, columns: Sequence[bytes], rows: Sequence[bytes]) -> Any:
    return table.connection.call("columnarReadGroup", table.name, group, list(columns), list(rows))


def _cells(answer: Any) -> dict[bytes, Row]:
    return {one.row: {column: cell.value for column, cell in one.columns.items()} for one in answer.rows}
