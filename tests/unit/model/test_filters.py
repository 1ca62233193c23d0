"""Each filter's meaning over rows written in the test, beside what the recorded answers of HBase cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from columnar.limits import FILTER_BYTES, FILTER_DEPTH, FILTER_LEVELS, FILTER_RANGES_DEEP
from columnar.model import filter_lists
from columnar.model.cell import Cell
from columnar.model.comparators import Comparator, ComparatorProblem, Operator, comparator, predicate
from columnar.model.filter_language import parse
from columnar.model.filters import RowAnswer, apply
from columnar.model.java_patterns import PatternProblem, compiled
from columnar.model.row_ranges import RowRanges, intersection


def cells(*written: str) -> list[Cell]:
    """``f:q@2=v``, in the order given."""
    found = []
    for text in written:
        column, _, rest = text.partition("@")
        timestamp, _, value = rest.partition("=")
        family, _, qualifier = column.partition(":")
        found.append(Cell(family.encode(), qualifier.encode(), int(timestamp), value.encode()))
    return found


def shown(answer: RowAnswer) -> list[str]:
    return [f"{c.column.decode()}@{c.timestamp}={c.value.decode('latin-1')}" for c in answer.cells]


ROW = cells("f:a@3=new", "f:a@2=mid", "f:a@1=old", "f:b@2=x", "g:a@1=y")


def one(text: str, row: list[Cell] = ROW, max_versions: int = 1) -> list[str]:
    return shown(apply(parse(text.encode()), b"row", row, max_versions))


@pytest.mark.parametrize(
    ("text", "versions", "expected"),
    [
        ("ColumnPrefixFilter('')", 1, ["f:a@3=new", "f:b@2=x", "g:a@1=y"]),
        ("ColumnPrefixFilter('')", 2, ["f:a@3=new", "f:a@2=mid", "f:b@2=x", "g:a@1=y"]),
        ("ColumnPrefixFilter('')", 9, ["f:a@3=new", "f:a@2=mid", "f:a@1=old", "f:b@2=x", "g:a@1=y"]),
        ("ValueFilter(=,'binary:old')", 1, ["f:a@1=old"]),
        ("ValueFilter(!=,'binary:new')", 1, ["f:a@2=mid", "f:b@2=x", "g:a@1=y"]),
        ("ValueFilter(!=,'binary:new')", 2, ["f:a@2=mid", "f:a@1=old", "f:b@2=x", "g:a@1=y"]),
        ("TimestampsFilter(1, 2)", 1, ["f:a@2=mid", "f:b@2=x", "g:a@1=y"]),
        ("ColumnPaginationFilter(2, 0)", 9, ["f:a@3=new", "f:b@2=x"]),  # one version of each column
        ("ColumnCountGetFilter(2)", 9, ["f:a@3=new", "f:b@2=x"]),
        ("FirstKeyOnlyFilter()", 9, ["f:a@3=new"]),
    ],
)
def test_versions_are_counted_after_the_filter(text: str, versions: int, expected: list[str]) -> None:
    assert one(text, max_versions=versions) == expected


def test_key_only_leaves_nothing_or_the_length() -> None:
    assert one("KeyOnlyFilter()") == ["f:a@3=", "f:b@2=", "g:a@1="]
    assert one("KeyOnlyFilter(false)") == one("KeyOnlyFilter()")
    assert one("KeyOnlyFilter(true)")[0] == "f:a@3=\0\0\0\3"
    long = [Cell(b"f", b"a", 1, b"x" * 300)]
    assert one("KeyOnlyFilter(true)", long) == ["f:a@1=\0\0\1\x2c"]


@pytest.mark.parametrize(
    ("arguments", "present", "missing"),
    [
        ("'f','a',=,'binary:new'", True, True),
        ("'f','a',=,'binary:mid'", False, True),
        ("'f','a',=,'binary:mid',false,true", False, True),
        ("'f','a',=,'binary:mid',false,false", True, True),  # an older version counts
        ("'f','a',=,'binary:new',true,true", True, False),
        ("'f','a',=,'binary:mid',true,false", True, False),
        ("'f','a',=,'binary:old',false,false", False, True),  # HBase looks one version beyond what the scan returns
        ("'f','a',!=,'binary:new',true,true", False, False),
        ("'f','a',>,'binary:n',true,true", True, False),
        ("'g','a',=,'substring:Y',true,true", True, True),
    ],
)
def test_single_column_value(arguments: str, present: bool, missing: bool) -> None:
    without = cells("f:b@2=x", "g:a@1=y")
    for name, left_out in (("SingleColumnValueFilter", ""), ("SingleColumnValueExcludeFilter", arguments[1:6:4])):
        for row, passes in ((ROW, present), (without, missing)):
            expected = [c for c in one("ColumnPrefixFilter('')", row) if c[0] + c[2] != left_out] if passes else []
            assert one(f"{name}({arguments})", row) == expected


def test_a_page_counts_over_all_rows_and_regions_of_a_scan() -> None:
    flt = parse(b"PageFilter(2)")
    assert not apply(flt, b"r1", ROW).done
    second = apply(flt, b"r2", ROW)
    assert second.cells
    assert second.done
    assert apply(flt, b"r3", ROW) == ([], True)
    assert apply(flt.clone(), b"r3", ROW).cells


def test_a_page_does_not_count_rows_that_others_empty() -> None:
    flt = parse(b"PageFilter(1) AND ValueFilter(=,'binary:x')")
    assert apply(flt, b"r1", cells("f:a@1=n")) == ([], False)
    assert shown(apply(flt, b"r2", ROW)) == ["f:b@2=x"]
    assert apply(flt, b"r3", ROW).done


def test_while_ends_the_scan_and_keeps_what_came_before() -> None:
    flt = parse(b"WHILE ValueFilter(!=,'binary:x')")
    answer = apply(flt, b"r1", ROW)
    assert answer.done
    assert shown(answer) == ["f:a@3=new"]


def test_skip_drops_the_row_with_one_bad_cell() -> None:
    assert one("SKIP ValueFilter(!=,'binary:x')") == []
    assert one("SKIP ValueFilter(!=,'binary:z')") == ["f:a@3=new", "f:b@2=x", "g:a@1=y"]
    assert one("SKIP ValueFilter(!=,'binary:old')") == ["f:a@3=new", "f:b@2=x", "g:a@1=y"]  # never looked at


def test_next_row_ends_the_family_and_not_the_row() -> None:
    assert one("ColumnPrefixFilter('a')") == ["f:a@3=new", "g:a@1=y"]
    assert one("FamilyFilter(=,'binary:g')") == ["g:a@1=y"]


def test_no_cell_is_taken_where_the_key_decides_or_the_row_is_complete() -> None:
    taken: list[Cell] = []

    def lazily() -> Iterator[Cell]:
        for cell in ROW:
            taken.append(cell)
            yield cell

    assert not apply(parse(b"PrefixFilter('x')"), b"row", lazily()).cells
    assert taken == []
    assert apply(parse(b"PrefixFilter('r') AND FirstKeyOnlyFilter()"), b"row", lazily()).cells
    assert len(taken) == 1
    # WHILE learns from the rows that others drop, as in HBase.
    assert apply(parse(b"WHILE ValueFilter(=,'binary:q') AND PrefixFilter('x')"), b"row", lazily()).done


@pytest.mark.parametrize(
    ("text", "needs_values", "whole_rows"),
    [
        ("PrefixFilter('ab')", True, False),
        ("PrefixFilter('ab') AND WHILE KeyOnlyFilter()", False, True),
        ("SKIP PrefixFilter('ab')", True, True),
        ("KeyOnlyFilter() AND FirstKeyOnlyFilter()", False, False),
        ("KeyOnlyFilter() AND ValueFilter(=,'binary:a')", True, False),
        ("KeyOnlyFilter() OR KeyOnlyFilter()", False, False),
        ("KeyOnlyFilter() OR FirstKeyOnlyFilter()", True, False),
        ("KeyOnlyFilter(true)", True, False),
        ("PageFilter(1) AND KeyOnlyFilter()", False, True),
        ("DependentColumnFilter('f','a') OR KeyOnlyFilter()", True, True),
    ],
)
def test_needs(text: str, needs_values: bool, whole_rows: bool) -> None:
    flt = parse(text.encode())
    assert (flt.needs_values, flt.has_filter_row) == (needs_values, whole_rows)


AB = ("ab", "ac")
ALL = ("", None)
B_BUT_C = [("b", "c"), ("c\0", "d")]


@pytest.mark.parametrize(
    ("text", "forward", "backwards"),
    [
        ("PrefixFilter('ab')", [AB], None),
        ("RowFilter(=,'binary:abc') AND PrefixFilter('ab')", [("abc", "abc\0")], None),
        ("RowFilter(=,'binary:abd') AND PrefixFilter('abc')", [], None),
        ("PrefixFilter('ab') OR KeyOnlyFilter()", [ALL], None),
        ("PrefixFilter('ab') OR PrefixFilter('x') OR RowFilter(=, 'binary:ab3')", [AB, ("x", "y")], None),
        ("KeyOnlyFilter() AND (PrefixFilter('x') OR PrefixFilter('ab')) AND PageFilter(3)", [AB, ("x", "y")], None),
        ("RowFilter(<,'binary:b')", [("", "b")], None),
        ("RowFilter(<=,'binary:b')", [("", "b\0")], None),
        ("RowFilter(!=,'binary:b')", [("", "b"), ("b\0", None)], None),
        ("RowFilter(>=,'binary:b')", [("b", None)], None),
        ("RowFilter(>,'binary:b')", [("b\0", None)], None),
        ("RowFilter(<,'binary:')", [], None),
        ("RowFilter(<,'binaryprefix:b')", [("", "b")], None),
        ("RowFilter(<=,'binaryprefix:b')", [("", "c")], None),
        ("RowFilter(=,'binaryprefix:b')", [("b", "c")], None),
        ("RowFilter(!=,'binaryprefix:b')", [("", "b"), ("c", None)], None),
        ("RowFilter(>=,'binaryprefix:b')", [("b", None)], None),
        ("RowFilter(>,'binaryprefix:b')", [("c", None)], None),
        ("RowFilter(>,'binaryprefix:\xff')", [], None),
        ("RowFilter(=,'binaryprefix:\xff')", [("\xff", None)], None),
        ("RowFilter(=,'regexstring:^ab')", [ALL], None),
        ("RowFilter(>=,'binary:b') AND RowFilter(<,'binary:d') AND RowFilter(!=,'binary:c')", B_BUT_C, None),
        ("InclusiveStopFilter('ab')", [("", "ab\0")], [("ab", None)]),
        ("InclusiveStopFilter('ab') AND RowFilter(>,'binary:aa')", [("aa\0", "ab\0")], [("ab", None)]),
        # SKIP asks nothing of the row's key, so it hides the prefix.
        ("SKIP PrefixFilter('ab')", [ALL], None),
        # WHILE and a count of columns learn from rows that are dropped by their key, up to the last that may pass.
        ("PrefixFilter('ab') AND WHILE KeyOnlyFilter()", [("", "ac")], [("ab", None)]),
        ("WHILE PrefixFilter('ab')", [("", "ac")], [("ab", None)]),
        ("PrefixFilter('ab') AND ColumnCountGetFilter(3)", [("", "ac")], [("ab", None)]),
        ("SKIP ColumnCountGetFilter(3) AND PrefixFilter('ab')", [("", "ac")], [("ab", None)]),
        ("WHILE RowFilter(<,'binary:') OR RowFilter(<,'binary:')", [], None),
    ],
)  # fmt: skip
def test_the_rows_that_a_scan_has_to_read(text: str, forward: Any, backwards: Any) -> None:
    for is_reversed, expected in ((False, forward), (True, forward if backwards is None else backwards)):
        flt = parse(text.encode("latin-1"))
        flt.set_reversed(is_reversed)
        found = [(one.start.decode("latin-1"), one.stop and one.stop.decode("latin-1")) for one in flt.scan_ranges.all]
        assert found == expected, is_reversed
        assert flt.clone().scan_ranges == flt.scan_ranges


@pytest.mark.parametrize("levels", [0, 1, FILTER_LEVELS - 1])
def test_a_filter_of_many_rows_reads_them_alone(levels: int) -> None:
    """As many as a filter string can hold: a 257th row once made the scan read what was between them."""
    rows = [b"%05d" % n for n in range(0, 4_000, 2)]
    text = b" OR ".join(b"RowFilter(=,'binary:%b')" % row for row in rows)
    for _ in range(levels):
        text = b"(" + text + b") AND RowFilter(!=,'binary:x')"
    assert len(text) <= FILTER_BYTES
    found = parse(text).scan_ranges
    assert [one.start for one in found.all] == rows
    assert found.is_exact


def test_a_deep_filter_of_many_ranges_merges_them() -> None:
    text = b" OR ".join(b"PrefixFilter('%04d')" % n for n in range(0, 2_000, 2))
    for _ in range(FILTER_LEVELS):
        text = b"(" + text + b") AND RowFilter(>,'binary:')"
    ranges = parse(text).scan_ranges
    found = ranges.all
    assert not ranges.is_exact
    assert len(found) <= FILTER_RANGES_DEEP
    assert (found[0].start, found[-1].stop) == (b"0000", b"1999")
    assert all(one.stop is not None and one.stop < other.start for one, other in pairwise(found))


def test_the_ranges_of_a_deep_filter_cost_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of ranges, through as many lists as there may be."""
    text = b" AND ".join(b"RowFilter(!=,'binary:%04d')" % n for n in range(1_600))
    for _ in range(FILTER_DEPTH):
        text = b"(" + text + b") AND RowFilter(!=,'binary:x')"
    assert len(text) <= FILTER_BYTES
    seen = 0

    def counted(several: Sequence[RowRanges], most: int) -> RowRanges:
        nonlocal seen
        seen += sum(len(ranges.all) for ranges in several)
        return intersection(several, most)

    monkeypatch.setattr(filter_lists, "intersection", counted)
    assert parse(text).row_ranges.all
    assert 1_600 < seen <= 2 * (FILTER_LEVELS * 1_600 + FILTER_DEPTH * FILTER_RANGES_DEEP)


def test_prefix_and_stop_end_the_scan_in_both_directions() -> None:
    for text, rows, backwards in (
        (b"PrefixFilter('b')", [b"a", b"b1", b"c"], False),
        (b"PrefixFilter('b')", [b"c", b"b1", b"a"], True),
        (b"InclusiveStopFilter('b')", [b"a", b"b", b"ba"], False),
        (b"InclusiveStopFilter('b')", [b"c", b"b", b"a"], True),
    ):
        flt = parse(text)
        flt.set_reversed(backwards)
        assert [apply(flt, row, ROW).done for row in rows] == [False, False, True]
        assert not flt.clone().filter_all_remaining()
        assert flt.clone().reversed == backwards


def test_a_row_whose_tested_cell_is_left_out_is_tested_all_the_same() -> None:
    row = cells("f:q@1=no", "g:a@1=y")
    assert one("SingleColumnValueExcludeFilter('f','q',=,'binary:yes',true,true)", row) == []
    assert one("SingleColumnValueExcludeFilter('f','q',=,'binary:no',true,true)", row) == ["g:a@1=y"]


def test_while_sees_families_in_their_order() -> None:
    text = "WHILE (ColumnValueFilter('g','q',>=,'binary:apple'))"
    assert one(text, cells("f:a@1=1", "g:q@1=pear")) == []
    assert one(text, cells("g:q@1=pear")) == ["g:q@1=pear"]


def test_either_of_two_tested_columns_asks_every_row() -> None:
    """A row without a cell in the tested family, too: the one drops it alone, the other has no say over rows."""
    text = "ColumnValueFilter('f','q',!=,'binary:a') OR SingleColumnValueFilter('f','p',>,'binary:1',true,true)"
    assert one(text, cells("g:a@1=x")) == ["g:a@1=x"]
    assert one("SingleColumnValueFilter('f','p',>,'binary:1',true,true)", cells("g:a@1=x")) == []


def test_while_tells_what_it_holds_the_direction() -> None:
    flt = parse(b"WHILE (InclusiveStopFilter('b') AND PrefixFilter(''))")
    flt.set_reversed(True)
    answers = [apply(flt, row, ROW) for row in (b"c", b"b", b"a")]
    assert [bool(answer.cells) for answer in answers] == [True, True, False]


# --- comparators -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "smaller", "equal", "greater"),
    [
        (b"binary:b", [b"", b"a", b"a\xff"], [b"b"], [b"ba", b"\xff"]),
        (b"binaryprefix:ab", [b"", b"a", b"aa\xff"], [b"ab", b"abc"], [b"ac", b"b"]),
    ],
)
def test_ordered_comparators(text: bytes, smaller: list[bytes], equal: list[bytes], greater: list[bytes]) -> None:
    right = comparator(text)
    for op, passing in (
        (Operator.LESS, smaller),
        (Operator.LESS_OR_EQUAL, smaller + equal),
        (Operator.EQUAL, equal),
        (Operator.NOT_EQUAL, smaller + greater),
        (Operator.GREATER_OR_EQUAL, equal + greater),
        (Operator.GREATER, greater),
    ):
        test = predicate(op, right)
        assert [value for value in smaller + equal + greater if test(value)] == passing


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        (b"substring:\xc3\x84b", ["xÄBx", "äb"], ["ab", ""]),
        (b"substring:", ["", "a"], []),
        (b"regexstring:a.c", ["a\nc", "xabcx"], ["AbC"]),
        (b"regexstringnocase:a.c", ["A\nC"], ["ac"]),
        (b"regexstringnocase:\xc3\xa4", ["ä"], ["Ä"]),  # ASCII letters alone, as in Java
        (b"regexstring:^.$", ["ä", "a\n"], ["ab", ""]),  # a character, not a byte
    ],
)
def test_search_comparators(text: bytes, yes: list[str], no: list[str]) -> None:
    test = predicate(Operator.EQUAL, comparator(text))
    opposite = predicate(Operator.NOT_EQUAL, comparator(text))
    assert [value for value in yes + no if test(value.encode())] == yes
    assert [value for value in yes + no if opposite(value.encode())] == no


def test_unknown_comparators_are_refused() -> None:
    for text in (b"", b"binary", b"Binary:a", b"long:1"):
        with pytest.raises(ComparatorProblem, match="is no comparator"):
            comparator(text)
    assert comparator(b"binary:a:b") == Comparator(b"binary", b"a:b")


@pytest.mark.parametrize(
    "pattern", ["(" * 500 + ")" * 500, "[" * 500 + "]" * 500, "(?i)" * 500, "a" * 9_000, "a{70000}", "\\u", "x{1}{2}"]
)
def test_patterns_out_of_bounds_are_refused(pattern: str) -> None:
    with pytest.raises(PatternProblem):
        compiled(pattern)
