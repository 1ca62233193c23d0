"""(pure) The sequential semantics of a group of rows: the reference of its linearizability check.

A state has the rows of the group that have cells, ascending, each with its state (``row_semantics``).  A call on a
single row is a ``RowCall``; the others are about several rows, and each is one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from tests.proofs import row_semantics
from tests.proofs.row_semantics import Answer, Call, Change, Changed, Put, holds

State = tuple[tuple[bytes, row_semantics.State], ...]
EMPTY: Final[State] = ()
AMOUNT: Final = b"f:amount"  # decimal text
COUNT: Final = b"f:count"


@dataclass(frozen=True, slots=True)
class RowCall:
    """A call on one row of the group, as on a row of any table."""

    row: bytes
    call: Call

    @property
    def way(self) -> str:
        return self.call.way

    @property
    def changes(self) -> bool:
        return self.call.changes

    def __str__(self) -> str:
        return f"{self.row.decode()}.{self.call}"


@dataclass(frozen=True, slots=True)
class GroupRead:
    """A read of all rows as of one moment."""

    way: str = "group"
    changes: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.way


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Changes of several rows: if all conditions of all rows hold, all operations are applied as one step."""

    rows: tuple[tuple[bytes, Change], ...]
    way: str = "mutate_group"
    changes: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"{self.way}({'; '.join(f'{row.decode()}.{change}' for row, change in self.rows)})"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transaction: reads two rows, and moves an amount from one to the other if it is there."""

    source: bytes
    target: bytes
    amount: int
    way: str = "transact, rows"
    changes: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"transfer {self.amount} from {self.source.decode()} to {self.target.decode()}"


@dataclass(frozen=True, slots=True)
class Census:
    """A transaction: reads the whole group, and writes the number of its rows into a row."""

    row: bytes
    way: str = "transact, group"
    changes: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"count the rows into {self.row.decode()}"


GroupCall = RowCall | GroupRead | GroupChange | Transfer | Census
GroupAnswer = Answer | State | tuple[int, int] | int


def step(state: object, call: GroupCall | Call) -> tuple[object, State]:
    """Return the answer and the next state; a call on a row alone is taken as in ``row_semantics``."""
    if isinstance(call, row_semantics.Read | Change):
        return row_semantics.step(state, call)  # type: ignore[arg-type, return-value]
    rows = dict(state)  # type: ignore[call-overload]
    answer = _answer(rows, call)
    return answer, tuple(sorted((row, cells) for row, cells in rows.items() if cells))


def _answer(rows: dict[bytes, row_semantics.State], call: GroupCall) -> object:
    if isinstance(call, RowCall):
        answer, rows[call.row] = row_semantics.step(rows.get(call.row, row_semantics.EMPTY), call.call)
        return answer
    if isinstance(call, GroupRead):
        return tuple(sorted(rows.items()))
    if isinstance(call, GroupChange):
        return _changed(rows, call)
    if isinstance(call, Census):
        count = len(rows)
        put(rows, call.row, COUNT, count)
        return count
    held = amount_of(dict(rows.get(call.source, ()))), amount_of(dict(rows.get(call.target, ())))
    if held[0] >= call.amount:
        put(rows, call.source, AMOUNT, held[0] - call.amount)
        put(rows, call.target, AMOUNT, held[1] + call.amount)
    return held


def _changed(rows: dict[bytes, row_semantics.State], call: GroupChange) -> Changed:
    for row, change in call.rows:
        cells = dict(rows.get(row, ()))
        if not all(holds(expected, cells.get(expected.column)) for expected in change.conditions):
            return Changed(False)
    results: tuple[int | bytes, ...] = ()
    for row, change in call.rows:
        if change.operations:
            done, rows[row] = row_semantics.step(rows.get(row, ()), Change(change.operations))
            assert isinstance(done, Changed)
            results += done.results
    return Changed(True, results)


def amount_of(cells: dict[bytes, bytes]) -> int:
    return int(cells.get(AMOUNT, b"0"))


def put(rows: dict[bytes, row_semantics.State], row: bytes, column: bytes, number: int) -> None:
    _, rows[row] = row_semantics.step(rows.get(row, ()), Change((Put(column, b"%d" % number),)))
