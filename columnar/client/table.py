"""A happybase table with additional methods: atomic steps on a row (conditions, then operations), and wide rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from columnar.client.errors import NotColumnar, WrongArgument
from columnar.model.contribution import unpack as unpack_member
from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.connection import Connection

_OPS = {"<": 0, "<=": 1, "=": 2, "!=": 3, ">=": 4, ">": 5, "exists": 6, "absent": 7, "absent or empty": 8}


@dataclass(frozen=True, slots=True)
class Expect:
    """The condition ``column op value``.

    A cell with an empty value exists.  ``absent`` is the negation of ``exists``, and ``!=`` that of ``=``.  HBase's
    checkAndPut without a value is ``absent or empty``.
    """

    column: bytes
    value: bytes | None = None
    op: Literal["<", "<=", "=", "!=", ">=", ">", "exists", "absent", "absent or empty"] = "="

    def __post_init__(self) -> None:
        if self.op not in _OPS:
            raise WrongArgument(f"'{self.op}' is no operator of a condition; use one of {' '.join(_OPS)}")

    @staticmethod
    def absent(column: bytes) -> Expect:
        return Expect(column, None, "absent")

    @staticmethod
    def absent_or_empty(column: bytes) -> Expect:
        return Expect(column, None, "absent or empty")

    @staticmethod
    def exists(column: bytes) -> Expect:
        return Expect(column, None, "exists")


@dataclass(frozen=True, slots=True)
class Put:
    column: bytes
    value: bytes
    timestamp: int | None = None  # milliseconds; None: the server's clock
    ttl_ms: int | None = None


def puts(cells: Mapping[bytes, bytes], timestamp: int | None = None) -> list[Put]:
    """Return the puts of ``cells``, all with the same timestamp."""
    return [Put(column, value, timestamp) for column, value in cells.items()]


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes cells of a column, or of a whole family, whose timestamps are not above ``timestamp``."""

    column: bytes
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Increment:
    column: bytes
    amount: int = 1


@dataclass(frozen=True, slots=True)
class Append:
    column: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class Contribute:
    """Sets the amounts that a source contributes to totals of the row; exact even if repeated or late.

    The server stores the contribution in the cell ``members:source``.  A sequence not above the stored sequence changes
    nothing; a higher one adds the difference of the amounts to each total.  With ``order`` the source also has a cell
    in the family ``ordered``, sorted by the order's bytes, which contains ``carry``.  Families with a time to live are
    refused.
    """

    source: bytes
    sequence: int | str  # rises with each change of the source: a number, or ``Change.sequence`` of a trigger
    amounts: Mapping[bytes, int] | None  # by the column of each total, a counter; None withdraws the source
    members: bytes = b"m"
    order: bytes | None = None
    ordered: bytes = b"o"
    carry: Mapping[bytes, bytes] = field(default_factory=dict)
    relative: bool = False  # the amounts are added to the source's earlier amounts


Operation = Put | Delete | Increment | Append | Contribute


@dataclass(frozen=True, slots=True)
class MemberCell:
    """The amounts that a source contributes to its row, with the source's other fields."""

    amounts: dict[bytes, int]  # by the column of the total
    sequence: str
    order: bytes | None
    carry: dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class CheckResult:
    applied: bool
    timestamp: int  # of all cells whose operation has no timestamp
    sequence: str  # opaque; for ``Triggers.wait``
    counters: list[int]  # new values of the increments, in their order
    failed_condition: int | None  # index of the first unmet condition


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
        return _check_result(
            self.connection.call(
                "columnarCheckAndMutate",
                self.name,
                row,
                [_condition(one) for one in conditions],
                [_to_wire(operation) for operation in operations],
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
                conditions=[_condition(one) for one in conditions],
                operations=[_to_wire(operation) for operation in operations],
            )
            for row, (conditions, operations) in rows.items()
        ]
        try:
            answers = self.connection.call("columnarCheckAndMutateRows", self.name, sent)
        except NotColumnar:  # or an older Columnar
            answers = [columnar.CheckedRowResult() for _ in sent]
        return {
            row: self.check_and_mutate(row, *rows[row]) if answer.result is None else _check_result(answer.result)
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
            columnar.LoadedRow(row=row, operations=[_to_wire(operation) for operation in operations])
            for row, operations in rows.items()
        ]
        self.connection.call("columnarLoadRows", self.name, loaded)


def _condition(expected: Expect) -> Any:
    return columnar.Condition(column=expected.column, op=_OPS[expected.op], value=expected.value)


def _check_result(result: Any) -> CheckResult:
    return CheckResult(
        result.applied,
        result.timestamp,
        _text(result.sequence),
        [int.from_bytes(cell.value, "big", signed=True) for cell in result.counters],
        None if result.failedCondition < 0 else result.failedCondition,
    )


def _to_wire(operation: Operation) -> Any:
    make = columnar.RowOperation
    if isinstance(operation, Put):
        return make(
            kind=0,
            column=operation.column,
            value=operation.value,
            timestamp=operation.timestamp,
            ttlMs=operation.ttl_ms,
        )
    if isinstance(operation, Delete):
        return make(kind=1, column=operation.column, timestamp=operation.timestamp)
    if isinstance(operation, Increment):
        return make(kind=2, column=operation.column, amount=operation.amount)
    if isinstance(operation, Contribute):
        column = operation.members + b":" + operation.source
        return make(kind=4, column=column, contribution=_contribution(operation))
    if isinstance(operation, Append):
        return make(kind=3, column=operation.column, value=operation.value)
    raise WrongArgument(f"{operation!r} is no operation: give Put, Delete, Increment, Append or Contribute")


def _contribution(said: Contribute) -> Any:
    sequence = (0, 0, said.sequence) if isinstance(said.sequence, int) else _numbers(said.sequence)
    return columnar.Contribution(
        sequence=list(sequence),
        amounts=dict(said.amounts or {}),
        withdrawn=said.amounts is None,
        relative=said.relative,
        orderFamily=said.ordered if said.order is not None else b"",
        order=said.order,
        carry=dict(said.carry),
    )


def _numbers(token: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in token.split("-"))
    except ValueError:
        raise ValueError(f"a sequence is a number, or that of a change, as 7-1-42; not {token!r}") from None


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
