"""(pure) The sequential semantics of one row: the reference of the linearizability check.

A state is the row's cells, column to value, as a sorted tuple, which can be an element of a set.

A call is a ``Read`` or a ``Change``; conditions and operations are those of ``columnar.client``.  ``step`` returns a
call's answer in a state, and the next state.  Timestamps are no part of the model: a later write hides an earlier one,
as a user of one row expects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from columnar.client import Append, Delete, Expect, Increment, Put

State = tuple[tuple[bytes, bytes], ...]
EMPTY: Final[State] = ()
Operation = Put | Delete | Increment | Append


@dataclass(frozen=True, slots=True)
class Read:
    """A read of columns, or of all without ``columns``; ``way`` is the method, for the report."""

    columns: tuple[bytes, ...] = ()
    way: str = "row"
    changes: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.way}({', '.join(column.decode() for column in self.columns)})"


@dataclass(frozen=True, slots=True)
class Change:
    """A change: if all conditions hold, all operations are applied in their order, as one step."""

    operations: tuple[Operation, ...]
    conditions: tuple[Expect, ...] = ()
    way: str = "put"
    changes: ClassVar[bool] = True

    def __str__(self) -> str:
        parts = [f"if {one.column.decode()} {one.op} {(one.value or b'').decode()}" for one in self.conditions]
        return f"{self.way}({', '.join([*parts, *map(_shown, self.operations)])})"


@dataclass(frozen=True, slots=True)
class Changed:
    applied: bool
    results: tuple[int | bytes, ...] = ()  # new values of increments and appends, in their order


Call = Read | Change
Answer = State | Changed


def step(state: State, call: Call) -> tuple[Answer, State]:
    """Return the answer and the next state."""
    if isinstance(call, Read):
        seen = tuple(cell for cell in state if not call.columns or cell[0] in call.columns)
        return seen, state
    cells = dict(state)
    if not all(holds(expected, cells.get(expected.column)) for expected in call.conditions):
        return Changed(False), state
    results = [result for operation in call.operations if (result := _apply(operation, cells)) is not None]
    return Changed(True, tuple(results)), tuple(sorted(cells.items()))


def _shown(operation: Operation) -> str:
    name = operation.column.decode()
    if isinstance(operation, Put):
        return f"{name}={operation.value.decode(errors='replace')}"
    if isinstance(operation, Delete):
        return f"delete {name}"
    if isinstance(operation, Increment):
        return f"{name}{operation.amount:+d}"
    return f"{name} append {operation.value.decode(errors='replace')!r}"


def holds(expected: Expect, value: bytes | None) -> bool:
    """Return whether ``value`` meets the condition; an empty cell exists."""
    if expected.op == "absent":
        return value is None
    if expected.op == "!=":
        return value != expected.value
    if expected.op == "exists":
        return value is not None
    if expected.op == "=":
        return value is not None and value == expected.value
    raise ValueError(f"the reference has no {expected.op}: add it to tests/proofs/row_semantics.py")


def _apply(operation: Operation, cells: dict[bytes, bytes]) -> int | bytes | None:
    if isinstance(operation, Put):
        cells[operation.column] = operation.value
        return None
    if isinstance(operation, Delete):
        for column in [column for column in cells if _covers(operation.column, column)]:
            del cells[column]
        return None
    held = cells.get(operation.column, b"")
    if isinstance(operation, Append):
        cells[operation.column] = held + operation.value
        return cells[operation.column]
    number = int.from_bytes(held, "big", signed=True) + operation.amount
    cells[operation.column] = number.to_bytes(8, "big", signed=True)
    return number


def _covers(deleted: bytes, column: bytes) -> bool:
    """Return whether a delete covers a column; a deleted name without a colon is a whole family."""
    return column == deleted or (b":" not in deleted and column.startswith(deleted + b":"))
