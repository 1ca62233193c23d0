"""A happybase table with one atomic step on a row: conditions, then operations in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import happybase

from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.connection import Connection

_OPS = {"<": 0, "<=": 1, "=": 2, "!=": 3, ">=": 4, ">": 5, "exists": 6, "absent": 7}


@dataclass(frozen=True, slots=True)
class Expect:
    """``column op value``; with ``absent`` a cell that is not there or empty also matches."""

    column: bytes
    value: bytes | None = None
    op: Literal["<", "<=", "=", "!=", ">=", ">", "exists", "absent"] = "="

    @staticmethod
    def absent(column: bytes) -> Expect:
        return Expect(column, None, "absent")

    @staticmethod
    def exists(column: bytes) -> Expect:
        return Expect(column, None, "exists")


@dataclass(frozen=True, slots=True)
class Put:
    column: bytes
    value: bytes
    timestamp: int | None = None  # milliseconds; None: the server's clock
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes what stands at or below ``timestamp``; a bare family removes the whole of it."""

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


Operation = Put | Delete | Increment | Append


@dataclass(frozen=True, slots=True)
class CheckResult:
    applied: bool
    timestamp: int  # what cells without one of their own were stamped with
    sequence: str  # opaque; for ``Triggers.wait``
    counters: list[int]  # new values of the increments, in their order
    failed_condition: int | None  # index of the first that did not hold


class Table(happybase.Table):  # type: ignore[misc]
    connection: Connection

    def check_and_mutate(
        self, row: bytes, conditions: Sequence[Expect], operations: Sequence[Operation]
    ) -> CheckResult:
        """All conditions hold: all operations are applied, in the order given, as one step; else nothing is.

        Returns after the fsync.  IllegalArgument, IOError as happybase; NotColumnar on a plain HBase.
        """
        result = self.connection.call(
            "columnarCheckAndMutate",
            self.name,
            row,
            [columnar.Condition(column=c.column, op=_OPS[c.op], value=c.value) for c in conditions],
            [_to_wire(operation) for operation in operations],
            {},
        )
        return CheckResult(
            result.applied,
            result.timestamp,
            _text(result.sequence),
            [int.from_bytes(cell.value, "big", signed=True) for cell in result.counters],
            None if result.failedCondition < 0 else result.failedCondition,
        )

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
        """(qualifier, value) of cells of one family, from ``start`` up to ``stop`` and not with it (empty: no bound).

        In the order of qualifiers, or with ``reverse`` from the last on.  At most ``limit`` (10,000), and fewer where
        they have over 4 MiB: none says that there are none.  The cost is that of the answer, however wide the row is.
        """
        found = self.connection.call("columnarRowSlice", self.name, row, family, start, stop, limit, reverse)
        cut = len(family.removesuffix(b":")) + 1
        return [(one.columnName[cut:], one.cell.value) for held in found for one in held.sortedColumns]

    def mutate(self, row: bytes, operations: Sequence[Operation]) -> CheckResult:
        """``check_and_mutate`` without conditions."""
        return self.check_and_mutate(row, (), operations)


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
    return make(kind=3, column=operation.column, value=operation.value)


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
