"""(pure) Conditions on a row's cells as people write them: ``where`` of views and triggers.

    condition := f:q=VALUE | f:q!=VALUE              by bytes; VALUE goes to the end, or is quoted
               | f:q<'VALUE' | <= | > | >=           by bytes, so the value is quoted: '9' is above '10'
               | number(f:q)<10 | <= | > | >= | = | !=    by number; also counter(f:q), decimal(f:q, 2)
               | f:q exists | f:q absent             an empty cell exists; absent is the opposite of exists

A cell that is no number meets ``!=`` and no other comparison of numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from columnar.errors import IllegalArgument
from columnar.model.column_text import COLUMN, QUOTED, bytes_of, column_of, unquoted
from columnar.model.mutation import CompareOp, Condition
from columnar.model.number_cells import Number, Unreadable, decimal_of, number_of

_PRESENCE: Final = {"exists": CompareOp.EXISTS, "absent": CompareOp.ABSENT}
_COMPARISONS: Final = {
    "=": CompareOp.EQUAL,
    "!=": CompareOp.NOT_EQUAL,
    "<": CompareOp.LESS,
    "<=": CompareOp.LESS_OR_EQUAL,
    ">": CompareOp.GREATER,
    ">=": CompareOp.GREATER_OR_EQUAL,
}
_FORM: Final = (
    "write family:qualifier=value, != for unequal, <, <=, > or >= with a quoted value, "
    "number(family:qualifier)>=10, or family:qualifier with exists or absent"
)
_IS_THERE: Final = re.compile(rf"({COLUMN})\s+(exists|absent)")
_COMPARED: Final = re.compile(rf"({COLUMN}|(?:number|counter|decimal)\([^)]*\))\s*(!=|<=|>=|=|<|>)(.*)", re.S)
_QUOTED: Final = re.compile(QUOTED)


@dataclass(frozen=True, slots=True)
class NumberCondition:
    """A condition that compares the number in a cell; ``Condition`` compares its bytes."""

    number: Number
    op: CompareOp
    value: int

    @property
    def column(self) -> bytes:
        return self.number.column

    def matches_cell(self, stored: bytes | None) -> bool:
        try:
            held = None if stored is None else self.number.read(stored)
        except Unreadable:
            held = None
        if held is None:
            return self.op is CompareOp.NOT_EQUAL
        return {
            CompareOp.LESS: held < self.value,
            CompareOp.LESS_OR_EQUAL: held <= self.value,
            CompareOp.EQUAL: held == self.value,
            CompareOp.NOT_EQUAL: held != self.value,
            CompareOp.GREATER_OR_EQUAL: held >= self.value,
            CompareOp.GREATER: held > self.value,
        }[self.op]


RowCondition = Condition | NumberCondition


def column_tested(condition: RowCondition) -> bytes:
    if isinstance(condition, NumberCondition):
        return condition.column
    return condition.family + b":" + condition.qualifier


def condition_of(text: str) -> RowCondition:
    """Parse a condition.  Raises IllegalArgument, with the correct form, for any other text."""
    bare = text.strip()
    presence = _IS_THERE.fullmatch(bare)
    if presence is not None:
        return _by_bytes(presence[1], _PRESENCE[presence[2]], b"")
    match = _COMPARED.fullmatch(bare)
    if match is None:
        raise IllegalArgument(f"condition '{text}': {_FORM}")
    left, op, right = match[1], _COMPARISONS[match[2]], match[3].strip()
    if left.endswith(")"):
        return _by_number(text, number_of(left), op, right)
    if right.startswith("="):
        raise IllegalArgument(f"condition '{text}': write one =, or quote a value that begins with it")
    is_quoted = _QUOTED.fullmatch(right) is not None
    if not is_quoted and right[:1] in ("'", '"') and right:
        raise IllegalArgument(f"condition '{text}': its quote does not end where the value does")
    if not is_quoted and op not in (CompareOp.EQUAL, CompareOp.NOT_EQUAL):
        raise IllegalArgument(
            f"condition '{text}': bytes are compared, and '9' is above '10'; "
            f"write number({left}){match[2]}{right} for numbers, {left}{match[2]}'{right}' for bytes"
        )
    return _by_bytes(left, op, unquoted(right) if is_quoted else bytes_of(right))


def _by_bytes(column: str, op: CompareOp, value: bytes) -> Condition:
    family, _, qualifier = column_of(column).partition(b":")
    return Condition(family, qualifier, op, value)


def _by_number(text: str, number: Number, op: CompareOp, right: str) -> NumberCondition:
    try:
        return NumberCondition(number, op, decimal_of(right.encode(), number.scale))
    except Unreadable as error:
        raise IllegalArgument(f"condition '{text}': {error}") from error
