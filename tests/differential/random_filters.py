"""(pure) Filter strings at random: every filter, comparator and combinator, well formed or spoilt.

What a server answers otherwise on purpose is not generated; COMPATIBILITY.md ("Filters") lists it:

    reversed scans with OR and a filter that seeks by hints
    reversed scans with filters that read one family first (SingleColumnValue(.., true, ..), ColumnValue)
    reversed scans with WHILE over a filter that must know the direction (Prefix, InclusiveStop)
    SKIP over SingleColumnValue(.., true, ..) and ColumnValue; WHILE over them, where there are several families
    OR over both of these and nothing else, where there are several families
    SingleColumnValueExclude(.., true, ..) over several families
    ColumnCountGetFilter where it would end the scan
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

OPERATORS: Final = (b"<", b"<=", b"=", b"!=", b">=", b">")
_PATTERNS: Final = (
    rb"regexstring:an", rb"regexstring:^[0-9]+$", rb"regexstring:^r0[1-3]", rb"regexstringnocase:^BAN",
    rb"regexstring:one.line", rb"regexstring:(a|b)p*", rb"substring:A", rb"substring:0", rb"substring:",
    rb"regexstring:^$", rb"regexstring:\d", rb"regexstring:[^a-z]", rb"regexstringnocase:S",
)  # fmt: skip
_SPOILT: Final = (
    b"", b" ", b"x", b"PrefixFilter", b"PrefixFilter(", b"PrefixFilter('a'", b"PrefixFilter(a)", b"PageFilter('1')",
    b"PageFilter(9223372036854775808)", b"NoSuchFilter()", b"KeyOnlyFilter('')", b"TimestampsFilter(-1)",
    b"RowFilter(>=, 'substring:a')", b"RowFilter(==, 'binary:a')", b"RowFilter(=, 'binary')", b"()", b"SKIP", b"AND",
    b"PrefixFilter('a') AND", b"PrefixFilter('a') PrefixFilter('b')", b"PrefixFilter('a'))", b"prefixfilter('a')",
    b"ColumnPaginationFilter('4', '-1')", b"ColumnCountGetFilter(2147483648)", b"RowFilter(=, 'regexstring:(')",
    b"ColumnRangeFilter('a', true, 'b')", b"SingleColumnValueFilter('f','q',=)",
    b"PrefixFilter('a') and KeyOnlyFilter()",
    b"InclusiveStopFilter(''')", b"KeyOnlyFilter(yes)", b"\xff\xfe", b"DependentColumnFilter('f')",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RandomFilter:
    text: bytes
    whole_rows: bool = False  # HBase: hasFilterRow; a batchSize is refused
    hints: bool = False
    family_first: bool = False
    has_or: bool = False
    directed: bool = False  # goes the way of the scan; WHILE does not tell it which
    misled: bool = False
    counts: bool = False
    cells_alone: bool = False  # ColumnValue: keeps cells of its column and no others
    rows_alone: bool = False  # SingleColumnValue(.., true, ..)


@dataclass(frozen=True, slots=True)
class FilterWords:
    """What arguments are drawn from."""

    rows: Sequence[bytes]
    families: Sequence[bytes]
    qualifiers: Sequence[bytes]
    values: Sequence[bytes]


def spoilt(rng: random.Random) -> bytes:
    return rng.choice(_SPOILT)


def random_filter(
    rng: random.Random, words: FilterWords, *, backwards: bool, hints: bool, counts: bool
) -> RandomFilter:
    """``hints``, ``counts``: whether filters that seek by hints, that count columns, may be used."""
    maker = _Maker(rng, words)
    while True:
        found = maker.tree(rng.choice((0, 0, 0, 1, 1, 2, 3)))
        otherwise = backwards and ((found.has_or and found.hints) or found.family_first or found.misled)
        otherwise = otherwise or (found.hints and not hints) or (found.counts and not counts)
        if not otherwise:
            return found


def _quoted(text: bytes) -> bytes:
    return b"'" + text.replace(b"'", b"''") + b"'"


def _one_family_alone(parts: Sequence[RandomFilter]) -> bool:
    """All of them have HBase read families first, and some of them keep rows that have no cell there."""
    alone = all(part.cells_alone or part.rows_alone for part in parts)
    return alone and any(part.cells_alone for part in parts) and any(part.rows_alone for part in parts)


class _Maker:
    def __init__(self, rng: random.Random, words: FilterWords) -> None:
        self._rng = rng
        self._words = words

    def tree(self, depth: int) -> RandomFilter:
        rng = self._rng
        if depth == 0:
            return self.leaf()
        if rng.random() < 0.25:
            word = rng.choice((b"SKIP ", b"WHILE "))
            under = self.tree(depth - 1)
            while under.family_first and (word == b"SKIP " or len(self._words.families) > 1):
                under = self.tree(depth - 1)
            text = word + b"(" + under.text + b")"
            return dataclasses.replace(
                under, text=text, whole_rows=True, misled=under.misled or (word == b"WHILE " and under.directed)
            )
        word = rng.choice((b" AND ", b" OR "))
        parts = [self.tree(depth - 1) for _ in range(rng.randint(2, 3))]
        while word == b" OR " and len(self._words.families) > 1 and _one_family_alone(parts):
            parts = [self.tree(depth - 1) for _ in range(rng.randint(2, 3))]
        return RandomFilter(
            word.join(b"(" + part.text + b")" for part in parts),
            any(part.whole_rows for part in parts),
            any(part.hints for part in parts),
            any(part.family_first for part in parts),
            word == b" OR " or any(part.has_or for part in parts),
            any(part.directed for part in parts),
            any(part.misled for part in parts),
            any(part.counts for part in parts),
            any(part.cells_alone for part in parts) and all(part.cells_alone or part.rows_alone for part in parts),
            any(part.rows_alone for part in parts) and all(part.cells_alone or part.rows_alone for part in parts),
        )

    def leaf(self) -> RandomFilter:
        rng, words = self._rng, self._words
        makers = (
            self._plain, self._plain, self._row, self._compared, self._compared, self._compared, self._columns,
            self._columns, self._single, self._dependent, self._column_value, self._timestamps,
        )  # fmt: skip
        return rng.choice(makers)() if words else self._plain()

    def _plain(self) -> RandomFilter:
        rng = self._rng
        number = rng.choice((0, 1, 2, 3, 5, 100))
        text, whole = rng.choice(
            (
                (b"KeyOnlyFilter()", False), (b"KeyOnlyFilter(true)", False), (b"KeyOnlyFilter(false)", False),
                (b"FirstKeyOnlyFilter()", False), (b"PageFilter(%d)" % number, True),
                (b"ColumnCountGetFilter(1000)", False),
                (b"ColumnPaginationFilter(%d, %d)" % (number, rng.choice((0, 0, 1, 2, 4))), False),
            )
        )  # fmt: skip
        return RandomFilter(text, whole, counts=text.startswith(b"ColumnPagination"))

    def _row(self) -> RandomFilter:
        rng = self._rng
        row = rng.choice(self._words.rows)
        name = rng.choice((b"PrefixFilter", b"InclusiveStopFilter"))
        return RandomFilter(name + b"(" + _quoted(row[: rng.randint(0, len(row))]) + b")", directed=True)

    def _comparator(self, of: Sequence[bytes]) -> tuple[bytes, bytes]:
        """(operator, comparator)"""
        rng = self._rng
        if rng.random() < 0.3:
            return rng.choice((b"=", b"!=")), rng.choice(_PATTERNS)
        word = rng.choice(of)
        if rng.random() < 0.3:
            return rng.choice(OPERATORS), b"binaryprefix:" + word[: rng.randint(0, len(word))]
        return rng.choice(OPERATORS), b"binary:" + word

    def _compared(self) -> RandomFilter:
        words = self._words
        name, of = self._rng.choice(
            (
                (b"RowFilter", words.rows), (b"FamilyFilter", words.families), (b"QualifierFilter", words.qualifiers),
                (b"ValueFilter", words.values), (b"ValueFilter", words.values),
            )
        )  # fmt: skip
        operator, comparator = self._comparator(of)
        return RandomFilter(name + b"(" + operator + b", " + _quoted(comparator) + b")")

    def _columns(self) -> RandomFilter:
        rng, qualifiers = self._rng, self._words.qualifiers
        low, high = sorted((rng.choice(qualifiers), rng.choice(qualifiers)))
        yes = (b"true", b"false")
        text = rng.choice(
            (
                b"ColumnPrefixFilter(" + _quoted(low[:1]) + b")",
                b"MultipleColumnPrefixFilter(" + _quoted(low) + b", " + _quoted(high) + b")",
                b"ColumnRangeFilter(%s, %s, %s, %s)" % (_quoted(low), rng.choice(yes), _quoted(high), rng.choice(yes)),
            )
        )
        return RandomFilter(text, hints=True)

    def _column(self) -> bytes:
        rng = self._rng
        return _quoted(rng.choice(self._words.families)) + b", " + _quoted(rng.choice(self._words.qualifiers))

    def _single(self) -> RandomFilter:
        rng = self._rng
        name = rng.choice((b"SingleColumnValueFilter", b"SingleColumnValueExcludeFilter"))
        operator, comparator = self._comparator(self._words.values)
        missing, latest = rng.choice(((b"true", b"true"), (b"false", b"true"), (b"true", b"false"), (b"", b"")))
        if len(self._words.families) > 1 and missing == b"true":
            name = b"SingleColumnValueFilter"
        rest = b", " + missing + b", " + latest if missing else b""
        text = name + b"(" + self._column() + b", " + operator + b", " + _quoted(comparator) + rest + b")"
        return RandomFilter(text, True, family_first=missing == b"true", rows_alone=missing == b"true")

    def _dependent(self) -> RandomFilter:
        rng = self._rng
        rest = rng.choice((b"", b", true", b", false"))
        if rest:
            operator, comparator = self._comparator(self._words.values)
            rest += rng.choice((b"", b", " + operator + b", " + _quoted(comparator)))
        return RandomFilter(b"DependentColumnFilter(" + self._column() + rest + b")", True)

    def _column_value(self) -> RandomFilter:
        operator, comparator = self._comparator(self._words.values)
        text = b"ColumnValueFilter(" + self._column() + b", " + operator + b", " + _quoted(comparator) + b")"
        return RandomFilter(text, family_first=True, cells_alone=True)

    def _timestamps(self) -> RandomFilter:
        rng = self._rng
        stamps = b", ".join(b"%d" % rng.randint(0, 40) for _ in range(rng.randint(0, 12)))
        return RandomFilter(b"TimestampsFilter(" + stamps + b")")
