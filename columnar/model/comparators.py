"""(pure) The right-hand sides of comparisons in filters: ``'binary:abc'`` and four other kinds.

    binary            unsigned byte order
    binaryprefix      the same, with only the first bytes of the value, as many as the operand has
    regexstring       a Java regular expression found anywhere in the value read as UTF-8; ``.`` matches newlines
    regexstringnocase the same, ignoring the case of ASCII letters
    substring         a text found anywhere in the value; both are converted to lower case

The last three kinds only tell whether a value matches.  As in HBase a value that does not match counts as smaller
than the operand; only ``DependentColumnFilter`` makes that visible, because it alone accepts ``<`` before a pattern.

The searches of a pattern have a bounded time (``java_patterns``); beyond it they raise PatternTimeout.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from columnar.errors import abbreviate
from columnar.model.bounded_search import SEARCHES
from columnar.model.java_patterns import BoundedPattern, PatternProblem, compiled


class Operator(enum.Enum):
    LESS = b"<"
    LESS_OR_EQUAL = b"<="
    EQUAL = b"="
    NOT_EQUAL = b"!="
    GREATER_OR_EQUAL = b">="
    GREATER = b">"


KINDS: Final = (b"binary", b"binaryprefix", b"regexstring", b"regexstringnocase", b"substring")
_ORDERED: Final = {
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.GREATER_OR_EQUAL: operator.ge,
    Operator.GREATER: operator.gt,
}


class ComparatorProblem(ValueError):
    """The text is no comparator; the parser of the filter string adds its position."""


@dataclass(frozen=True, slots=True)
class Comparator:
    kind: bytes
    operand: bytes

    @property
    def text(self) -> bytes:
        return self.kind + b":" + self.operand

    @property
    def ordered(self) -> bool:
        """Whether the comparator orders values, so that < and > are meaningful."""
        return self.kind in (b"binary", b"binaryprefix")


def comparator(text: bytes) -> Comparator:
    """Parse ``kind:operand``.  Raises ComparatorProblem if the kind is unknown or the pattern cannot be used."""
    kind, colon, operand = text.partition(b":")
    if not colon or kind not in KINDS:
        raise ComparatorProblem(
            f"'{abbreviate(text)}' is no comparator; it begins with one of "
            + ", ".join(f"{known.decode()}:" for known in KINDS)
        )
    made = Comparator(kind, operand)
    if kind.startswith(b"regex"):
        try:
            _pattern(made)
        except PatternProblem as problem:
            raise ComparatorProblem(f"the pattern '{abbreviate(operand)}' {problem}") from problem
    return made


def _pattern(made: Comparator) -> BoundedPattern:
    return compiled(made.operand.decode("utf-8", "replace"), ignore_case=made.kind == b"regexstringnocase")


def predicate(op: Operator, right: Comparator) -> Callable[[bytes], bool]:
    """Return the test ``value op right``, prepared once for a whole scan."""
    operand = right.operand
    compare = _ORDERED[op]
    if right.kind == b"binary":
        return lambda value: compare(value, operand)
    if right.kind == b"binaryprefix":
        width = len(operand)
        return lambda value: compare(value[:width], operand)
    found = _found(right)
    return lambda value: compare(0 if found(value) else -1, 0)


def _found(right: Comparator) -> Callable[[bytes], bool]:
    if right.kind == b"substring":
        wanted = right.operand.decode("utf-8", "replace").lower()
        return lambda value: SEARCHES.contains(value, wanted)
    is_in = _pattern(right).is_in
    return lambda value: is_in(SEARCHES.decode(value))
