"""(pure) Filter strings, as HBase's ``ParseFilter`` reads them.

    filter   := and ("OR" and)*
    and      := unary ("AND" unary)*
    unary    := ("SKIP" | "WHILE") unary | "(" filter ")" | call
    call     := NAME "(" argument* ")"              arguments separated by blanks or commas
    argument := "'" (byte except ' | "''")* "'"     bytes, and comparators: 'binary:abc'
              | "true" | "false" (any case) | an integer | "<" | "<=" | "=" | "!=" | ">=" | ">"

Words are case-sensitive; any white space is a blank.  ANDs and ORs of one level make one list.  The parser
reads the bytes once and keeps open groups on its own stack.  So its time is linear, and ``limits.FILTER_DEPTH``
bounds the depth (parentheses and SKIP/WHILE together), not the interpreter's stack.

A text that is no filter raises FilterSyntaxError with the position of the first wrong byte.

Knows nothing of the effect of filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, NoReturn

from columnar.errors import FilterSyntaxError, abbreviate
from columnar.limits import FILTER_BYTES, FILTER_DEPTH
from columnar.model import cell_filters as cells
from columnar.model import row_filters as rows
from columnar.model.comparators import Comparator, ComparatorProblem, Operator, comparator
from columnar.model.filter_lists import AndList, FilterList, OrList, SkipFilter, WhileMatchFilter
from columnar.model.filters import Filter

Kind = Literal["bytes", "int", "long", "bool", "operator", "comparator"]

_BLANKS: Final = b" \t\n\r\f\v"
_WORD: Final = re.compile(rb"[A-Za-z0-9_]+")
_BARE: Final = re.compile(rb"[^\s,()']+")
_QUOTED: Final = re.compile(rb"'([^']*+(?:''[^']*+)*+)'")  # possessive: linear, whatever the quotes
_GAP: Final = re.compile(rb"[\s,]*")
_INTEGER: Final = re.compile(rb"-?[0-9]{1,20}")
_LARGEST: Final = {"int": 2**31 - 1, "long": 2**63 - 1}
_WORDING: Final[dict[Kind, str]] = {
    "bytes": "a quoted value like 'abc'",
    "int": "an integer from 0 to 2147483647",
    "long": "an integer from 0 to 9223372036854775807",
    "bool": "true or false",
    "operator": "one of < <= = != >= >",
    "comparator": "a quoted comparator like 'binary:abc'",
}


class Signature(NamedTuple):
    make: Callable[..., Filter]
    forms: tuple[tuple[Kind, ...], ...]  # the argument lists that the filter accepts
    any_number: bool = False  # of arguments of the kind in ``forms``; passed as one tuple


_COLUMN: Final[tuple[Kind, ...]] = ("bytes", "bytes")
_COMPARE: Final[tuple[Kind, ...]] = ("operator", "comparator")
_SINGLE: Final = ((*_COLUMN, *_COMPARE), (*_COLUMN, *_COMPARE, "bool", "bool"))

FILTERS: Final[dict[bytes, Signature]] = {
    b"KeyOnlyFilter": Signature(cells.KeyOnlyFilter, ((), ("bool",))),
    b"FirstKeyOnlyFilter": Signature(rows.FirstKeyOnlyFilter, ((),)),
    b"PrefixFilter": Signature(rows.PrefixFilter, (("bytes",),)),
    b"ColumnPrefixFilter": Signature(cells.ColumnPrefixFilter, (("bytes",),)),
    b"MultipleColumnPrefixFilter": Signature(cells.MultipleColumnPrefixFilter, (("bytes",),), any_number=True),
    b"ColumnCountGetFilter": Signature(rows.ColumnCountGetFilter, (("int",),)),
    b"PageFilter": Signature(rows.PageFilter, (("long",),)),
    b"ColumnPaginationFilter": Signature(rows.ColumnPaginationFilter, (("int", "int"),)),
    b"InclusiveStopFilter": Signature(rows.InclusiveStopFilter, (("bytes",),)),
    b"TimestampsFilter": Signature(cells.TimestampsFilter, (("long",),), any_number=True),
    b"RowFilter": Signature(rows.RowFilter, (_COMPARE,)),
    b"FamilyFilter": Signature(cells.FamilyFilter, (_COMPARE,)),
    b"QualifierFilter": Signature(cells.QualifierFilter, (_COMPARE,)),
    b"ValueFilter": Signature(cells.ValueFilter, (_COMPARE,)),
    b"ColumnRangeFilter": Signature(cells.ColumnRangeFilter, (("bytes", "bool", "bytes", "bool"),)),
    b"SingleColumnValueFilter": Signature(cells.SingleColumnValueFilter, _SINGLE),
    b"SingleColumnValueExcludeFilter": Signature(cells.SingleColumnValueExcludeFilter, _SINGLE),
    b"DependentColumnFilter": Signature(
        cells.DependentColumnFilter, (_COLUMN, (*_COLUMN, "bool"), (*_COLUMN, "bool", *_COMPARE))
    ),
    b"ColumnValueFilter": Signature(cells.ColumnValueFilter, ((*_COLUMN, *_COMPARE),)),
}
_UNARY: Final[dict[bytes, Callable[[Filter], Filter]]] = {b"SKIP": SkipFilter, b"WHILE": WhileMatchFilter}
_BINARY: Final = (b"AND", b"OR")


def parse(text: bytes) -> Filter:
    """Return the filter that ``text`` describes.  Raises FilterSyntaxError.  The time is linear in the length."""
    steps = parse_in_steps(text)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            parsed: Filter = done.value
            return parsed


def parse_in_steps(text: bytes) -> Generator[None, None, Filter]:
    """Parse as ``parse`` does, yielding between two words so that the caller may do other work."""
    if len(text) > FILTER_BYTES:
        raise FilterSyntaxError(f"the string has {len(text)} bytes, over the limit of {FILTER_BYTES}", FILTER_BYTES)
    return (yield from _Parser(text).steps())


@dataclass(slots=True)
class _Group:
    """An open parenthesis, or the whole string."""

    position: int
    depth: int
    alternatives: list[list[Filter]] = field(default_factory=lambda: [[]])
    wrappers: list[Callable[[Filter], Filter]] = field(default_factory=list)  # waiting for their operand

    def add_operand(self, operand: Filter) -> None:
        while self.wrappers:
            operand = self.wrappers.pop()(operand)
        self.alternatives[-1].append(operand)

    def close(self) -> Filter:
        ands = [AndList(every) if len(every) > 1 else every[0] for every in self.alternatives]
        return OrList(ands) if len(ands) > 1 else ands[0]


@dataclass(slots=True)
class _Argument:
    position: int
    value: bytes
    quoted: bool


class _Parser:
    def __init__(self, text: bytes) -> None:
        self.text: Final = text
        self.at = 0
        self.groups = [_Group(0, 0)]

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        raise FilterSyntaxError(problem, self.at if position is None else position)

    def found(self) -> str:
        rest = self.text[self.at : self.at + 24]
        return f"found '{abbreviate(rest)}'" if rest else "the string ends"

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1

    def steps(self) -> Generator[None, None, Filter]:
        wants_operand = True
        while True:
            self.blanks()
            if self.at == len(self.text):
                break
            wants_operand = self.operand() if wants_operand else self.after_operand()
            yield
        if wants_operand:
            self.fail("expected a filter, SKIP, WHILE or '('; the string ends")
        if len(self.groups) > 1:
            self.fail("this '(' is never closed", self.groups[-1].position)
        return self.groups[0].close()

    # ``operand`` and ``after_operand`` return whether an operand must follow.

    def operand(self) -> bool:
        group = self.groups[-1]
        if self.text[self.at] == ord("("):
            self.groups.append(_Group(self.at, self.deeper(group)))
            self.at += 1
            return True
        word = _WORD.match(self.text, self.at)
        if word is None:
            self.fail(f"expected a filter, SKIP, WHILE or '('; {self.found()}")
        if word[0] in _UNARY:
            self.deeper(group)
            group.wrappers.append(_UNARY[word[0]])
            self.at = word.end()
            return True
        if word[0] in _BINARY:
            self.fail(f"expected a filter before {word[0].decode()}")
        group.add_operand(self.call(word[0]))
        return False

    def after_operand(self) -> bool:
        group = self.groups[-1]
        if self.text[self.at] == ord(")"):
            if len(self.groups) == 1:
                self.fail("this ')' closes nothing")
            self.groups.pop()
            self.groups[-1].add_operand(group.close())
            self.at += 1
            return False
        word = _WORD.match(self.text, self.at)
        if word is None or word[0] not in _BINARY:
            self.fail(f"expected AND, OR, ')' or the end; {self.found()}")
        self.at = word.end()
        if word[0] == b"OR":
            group.alternatives.append([])
        return True

    def deeper(self, group: _Group) -> int:
        depth = group.depth + len(group.wrappers) + 1
        if depth > FILTER_DEPTH:
            self.fail(f"nested deeper than {FILTER_DEPTH} levels")
        return depth

    # --- one filter --------------------------------------------------------------------------------
    def call(self, name: bytes) -> Filter:
        start = self.at
        signature = FILTERS.get(name)
        if signature is None:
            self.fail(f"there is no filter '{abbreviate(name)}'{_near(name)}")
        self.at += len(name)
        self.blanks()
        if self.text[self.at : self.at + 1] != b"(":
            self.fail(f"expected '(' after {name.decode()}; {self.found()}")
        self.at += 1
        given = self.arguments()
        form = _form(signature, len(given))
        if form is None:
            counts = " or ".join(str(len(form)) for form in signature.forms)
            self.fail(f"{name.decode()} takes {counts} arguments, not {len(given)}", start)
        values = [self.value(kind, argument) for kind, argument in zip(form, given, strict=True)]
        self.check(name, given, values)
        return signature.make(tuple(values)) if signature.any_number else signature.make(*values)

    def arguments(self) -> list[_Argument]:
        """Read the arguments and the closing parenthesis.  As in HBase both commas and blanks separate arguments."""
        given: list[_Argument] = []
        while True:
            gap = _GAP.match(self.text, self.at)
            glued = bool(given) and gap is not None and gap.end() == self.at
            self.at = gap.end() if gap else self.at
            if self.text[self.at : self.at + 1] == b")":
                self.at += 1
                return given
            if glued:
                self.fail(f"expected ',' or ')' after the argument; {self.found()}")
            given.append(self.argument())

    def argument(self) -> _Argument:
        start = self.at
        if self.text[start : start + 1] == b"'":
            quoted = _QUOTED.match(self.text, start)
            if quoted is None:
                self.fail("this quote is never closed; a quote inside a value is written twice")
            self.at = quoted.end()
            return _Argument(start, quoted[1].replace(b"''", b"'"), quoted=True)
        bare = _BARE.match(self.text, start)
        if bare is None:
            self.fail(f"expected an argument or ')'; {self.found()}")
        self.at = bare.end()
        return _Argument(start, bare[0], quoted=False)

    def value(self, kind: Kind, argument: _Argument) -> Any:
        wanted = f"expected {_WORDING[kind]}; found '{abbreviate(argument.value)}'"
        if argument.quoted != (kind in ("bytes", "comparator")):
            self.fail(wanted + (" in quotes" if argument.quoted else " without quotes"), argument.position)
        if kind == "bytes":
            return argument.value
        if kind == "comparator":
            return self.comparator(argument)
        if kind == "bool" and argument.value.lower() in (b"true", b"false"):
            return argument.value.lower() == b"true"
        if kind == "operator" and argument.value in Operator._value2member_map_:
            return Operator(argument.value)
        if kind in _LARGEST and _INTEGER.fullmatch(argument.value):
            number = int(argument.value)
            if 0 <= number <= _LARGEST[kind]:
                return number
        return self.fail(wanted, argument.position)

    def comparator(self, argument: _Argument) -> Comparator:
        try:
            return comparator(argument.value)
        except ComparatorProblem as problem:
            self.fail(str(problem), argument.position)

    def check(self, name: bytes, given: list[_Argument], values: list[Any]) -> None:
        """Check the rules about more than one argument."""
        if name == b"MultipleColumnPrefixFilter" and len(set(values)) < len(values):
            self.fail("the prefixes must be distinct", given[0].position)
        if name == b"DependentColumnFilter":
            return  # HBase accepts '<' before a pattern only in this filter
        for operator, right, argument in zip(values, values[1:], given, strict=False):
            unordered = isinstance(right, Comparator) and not right.ordered
            if unordered and operator not in (Operator.EQUAL, Operator.NOT_EQUAL):
                self.fail(f"{right.kind.decode()} can only be compared with = or !=", argument.position)


def _form(signature: Signature, count: int) -> tuple[Kind, ...] | None:
    if signature.any_number:
        return signature.forms[0] * count
    return next((form for form in signature.forms if len(form) == count), None)


def _near(name: bytes) -> str:
    """Return a suggestion for a misspelt name from the nearest filter names, or an empty text."""
    known = {one.decode().lower(): one.decode() for one in FILTERS}
    from difflib import get_close_matches  # 0.5 MB of memory, so only after a mistake

    near = get_close_matches(name.decode("latin-1").lower()[:64], known, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(known[one] for one in near)}?" if near else ""


# --- filters that remember ---------------------------------------------------------------------------


_BY_ROW: Final = frozenset(
    {
        rows.RowFilter,
        rows.FirstKeyOnlyFilter,
        rows.ColumnPaginationFilter,
        cells.KeyOnlyFilter,
        cells.FamilyFilter,
        cells.QualifierFilter,
        cells.ValueFilter,
        cells.ColumnPrefixFilter,
        cells.MultipleColumnPrefixFilter,
        cells.ColumnRangeFilter,
        cells.TimestampsFilter,
        cells.ColumnValueFilter,
        cells.SingleColumnValueFilter,
        cells.SingleColumnValueExcludeFilter,
        cells.DependentColumnFilter,
    }
)
_ENDING: Final = frozenset({rows.PrefixFilter, rows.InclusiveStopFilter})  # they remember only that the scan ends


def remembers(flt: Filter) -> bool:
    """Tell whether the filter's answer for a row depends on earlier rows of the same scan.

    A filter that remembers only that the scan ends does not count.
    """
    if isinstance(flt, AndList):  # ends as soon as one of its filters does
        return any(remembers(one) for one in flt.filters)
    return type(flt) not in _ENDING and not _is_by_row(flt)


def _is_by_row(flt: Filter) -> bool:
    if isinstance(flt, FilterList):
        return all(_is_by_row(one) for one in flt.filters)
    return _is_by_row(flt.inner) if isinstance(flt, SkipFilter) else type(flt) in _BY_ROW
