"""The grammar of filter strings: what they mean, what is refused and where, and what no input may do."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.errors import FilterSyntaxError
from columnar.limits import FILTER_BYTES, FILTER_DEPTH
from columnar.model.cell import Cell
from columnar.model.filter_language import FILTERS, parse
from columnar.model.filter_lists import AndList, FilterList, SkipFilter, WhileMatchFilter
from columnar.model.filters import Filter, apply
from columnar.model.row_ranges import RowRange

SHORT = {
    "PrefixFilter": "Prefix",
    "FirstKeyOnlyFilter": "First",
    "KeyOnlyFilter": "Key",
    "ColumnPrefixFilter": "ColPrefix",
    "QualifierFilter": "Qualifier",
    "FamilyFilter": "Family",
    "ValueFilter": "Value",
}


def shape(flt: Filter) -> str:
    if isinstance(flt, FilterList):
        word = "AND" if isinstance(flt, AndList) else "OR"
        return f"{word}[{','.join(shape(f) for f in flt.filters)}]"
    if isinstance(flt, SkipFilter | WhileMatchFilter):
        return f"{'SKIP' if isinstance(flt, SkipFilter) else 'WHILE'} {shape(flt.inner)}"
    return SHORT.get(type(flt).__name__, type(flt).__name__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" (PrefixFilter ('realtime')AND  FirstKeyOnlyFilter())", "AND[Prefix,First]"),
        (
            "(PrefixFilter('realtime') AND QualifierFilter (>=, 'binary:e'))OR FamilyFilter (=, 'binary:qualifier') ",
            "OR[AND[Prefix,Qualifier],Family]",
        ),
        (
            " ColumnPrefixFilter ('realtime')AND  FirstKeyOnlyFilter() OR SKIP FamilyFilter(=, 'substring:hihi')",
            "OR[AND[ColPrefix,First],SKIP Family]",
        ),
        (
            " ColumnPrefixFilter ('realtime') OR FirstKeyOnlyFilter() OR SKIP FamilyFilter(=, 'substring:hihi')",
            "OR[ColPrefix,First,SKIP Family]",
        ),
        (
            "(ValueFilter(>=,'binary:x') AND (ValueFilter(<=,'binary:y'))) OR ValueFilter(=,'binary:ab')",
            "OR[AND[Value,Value],Value]",
        ),
        (" (PrefixFilter ('realtime')AND  FirstKeyOnlyFilter() OR KeyOnlyFilter())", "OR[AND[Prefix,First],Key]"),
        (
            " PrefixFilter ('realtime')AND  SKIP FirstKeyOnlyFilter()OR KeyOnlyFilter()",
            "OR[AND[Prefix,SKIP First],Key]",
        ),
        ("SKIP ValueFilter( =,  'binary:0')", "SKIP Value"),
        ("WHILE SKIP KeyOnlyFilter() AND KeyOnlyFilter()", "AND[WHILE SKIP Key,Key]"),
        ("WHILE (KeyOnlyFilter() AND KeyOnlyFilter())", "WHILE AND[Key,Key]"),
        ("((KeyOnlyFilter()))", "Key"),
        ("KeyOnlyFilter()\nAND\tKeyOnlyFilter()\r\n", "AND[Key,Key]"),
    ],
)
def test_precedence(text: str, expected: str) -> None:
    assert shape(parse(text.encode())) == expected


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("InclusiveStopFilter ('row''3')", "InclusiveStopFilter('row''3')"),
        ("InclusiveStopFilter ('row''3''')", "InclusiveStopFilter('row''3''')"),
        ("InclusiveStopFilter ('''')", "InclusiveStopFilter('''')"),
        ("PrefixFilter(' AND (OR) ')", "PrefixFilter(' AND (OR) ')"),
        ("TimestampsFilter(9223372036854775806, 6)", "TimestampsFilter(9223372036854775806, 6)"),
        ("TimestampsFilter()", "TimestampsFilter()"),
        ("KeyOnlyFilter(TRUE)", "KeyOnlyFilter(true)"),
        (
            "SingleColumnValueFilter ('family', 'qualifier', >, 'binaryprefix:a')",
            "SingleColumnValueFilter('family', 'qualifier', >, 'binaryprefix:a')",
        ),
        ("DependentColumnFilter('f','q',true)", "DependentColumnFilter('f', 'q', true)"),
        ("RowFilter(=,'binary::')", "RowFilter(=, 'binary::')"),
    ],
)
def test_arguments(text: str, written: str) -> None:
    assert parse(text.encode()).text == written.encode()


def test_binary_arguments_are_bytes() -> None:
    value = bytes(range(256))
    flt = parse(b"PrefixFilter('" + value.replace(b"'", b"''") + b"')")
    assert flt.row_ranges.all == (RowRange(value, value[:-2] + b"\xff"),)


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        (b"", 0, "expected a filter"),
        (b"   ", 3, "expected a filter"),
        (b"PrefixFiltr('a')", 0, "did you mean PrefixFilter"),
        (b"TimeStampsFilter(1)", 0, "did you mean TimestampsFilter"),
        (b"Zq()", 0, "there is no filter 'Zq'"),
        (b"KeyOnlyFilter() AND\nNope()", 20, "there is no filter"),
        (b"KeyOnlyFilter", 13, r"expected '\(' after KeyOnlyFilter"),
        (b"KeyOnlyFilter(", 14, "expected an argument"),
        (b"KeyOnlyFilter() KeyOnlyFilter()", 16, "expected AND, OR"),
        (b"KeyOnlyFilter())", 15, "closes nothing"),
        (b"(KeyOnlyFilter() OR (KeyOnlyFilter())", 0, "never closed"),
        (b"AND KeyOnlyFilter()", 0, "expected a filter before AND"),
        (b"KeyOnlyFilter() OR", 18, "the string ends"),
        (b"KeyOnlyFilter('')", 14, "expected true or false"),
        (b"PrefixFilter(row)", 13, "expected a quoted value"),
        (b"PrefixFilter('row", 13, "never closed"),
        (b"PrefixFilter('a', 'b')", 0, "takes 1 arguments, not 2"),
        (b"PageFilter(9223372036854775808)", 11, "expected an integer"),
        (b"ColumnCountGetFilter(2147483648)", 21, "2147483647"),
        (b"TimestampsFilter(6, -45)", 20, "expected an integer"),
        (b"RowFilter(>>, 'binary:a')", 10, "one of < <="),
        (b"RowFilter(>=, 'binaryoperator:a')", 14, "begins with one of binary:"),
        (b"RowFilter(>=, 'substring:a')", 10, "only be compared with = or !="),
        (b"RowFilter(=, 'regexstring:(')", 13, "the pattern '\\('"),
        (b"MultipleColumnPrefixFilter('a', 'a')", 27, "distinct"),
    ],
)
def test_refusals_say_where_and_what(text: bytes, position: int, problem: str) -> None:
    with pytest.raises(FilterSyntaxError, match=problem) as caught:
        parse(text)
    assert caught.value.position == position
    assert f"at byte {position}" in caught.value.wire_message
    assert "\n" not in caught.value.wire_message


def test_depth_is_bounded_before_the_interpreter_is() -> None:
    for opening, closing in ((b"(", b")"), (b"SKIP ", b""), (b"WHILE (", b")"), (b"KeyOnlyFilter() OR (", b")")):
        step = 2 if opening == b"WHILE (" else 1
        fits = FILTER_DEPTH // step
        flt = parse(opening * fits + b"KeyOnlyFilter()" + closing * fits)
        apply(flt, b"r", [Cell(b"f", b"q", 1, b"v")])
        assert parse(flt.text).text == flt.text
        flt.clone().set_reversed(True)
        for over in (fits + 1, 30_000 // len(opening)):
            with pytest.raises(FilterSyntaxError, match="nested deeper"):
                parse(opening * over + b"KeyOnlyFilter()" + closing * over)


def test_a_deep_tree_of_mixed_lists_runs_within_the_recursion_limit() -> None:
    text = b"KeyOnlyFilter()"
    for level in range(FILTER_DEPTH - 1):
        text = b"(" + text + (b") AND " if level % 2 else b") OR ") + b"ColumnPrefixFilter('b')"
    flt = parse(text)
    assert apply(flt, b"r", [Cell(b"f", b"a", 1, b"v"), Cell(b"f", b"b", 1, b"v")]).cells
    assert flt.needs_values
    assert flt.row_ranges.is_everything


def test_size_is_bounded() -> None:
    text = b"PrefixFilter('" + b"a" * (FILTER_BYTES - 16) + b"')"
    assert len(text) == FILTER_BYTES
    assert not parse(text).row_ranges.is_everything
    with pytest.raises(FilterSyntaxError, match="over the limit"):
        parse(text + b" ")


class Steps:
    """Counts the Python lines that a call runs: a clock that is the same on every machine."""

    def __init__(self) -> None:
        self.count = 0

    def _line(self, frame: object, event: str, arg: object) -> Callable[..., object]:
        self.count += event == "line"
        return self._line

    def of(self, call: Callable[[], object]) -> int:
        before = sys.gettrace()
        sys.settrace(self._line)
        try:
            call()
        finally:
            sys.settrace(before)
        return self.count


@pytest.mark.parametrize(
    "unit",
    [
        b"KeyOnlyFilter() AND ",
        b"PrefixFilter('a''b') OR ",
        b"SKIP KeyOnlyFilter() AND ",
        b"(KeyOnlyFilter()) OR ",
        b"TimestampsFilter(1,2,3) AND ",
    ],
)
def test_parsing_is_linear(unit: bytes) -> None:
    few, many = (Steps().of(lambda n=n: parse(unit * n + b"KeyOnlyFilter()")) for n in (50, 500))
    assert many < 11 * few


@pytest.mark.parametrize("text", [b"'" * 300_001, b"PrefixFilter(" + b"'" * 300_001, b"a" * 500_000, b" " * 500_000])
def test_long_nonsense_is_refused(text: bytes) -> None:
    with pytest.raises(FilterSyntaxError):
        parse(text)


# --- generated -----------------------------------------------------------------------------------------
quoted = st.binary(max_size=6).map(lambda b: b"'" + b.replace(b"'", b"''") + b"'")
operators = st.sampled_from([b"<", b"<=", b"=", b"!=", b">=", b">"])
values = st.binary(max_size=4).map(lambda b: b.replace(b"'", b"''"))
ordered = st.tuples(operators, st.sampled_from([b"binary", b"binaryprefix"]), values).map(
    lambda t: t[0] + b", '" + t[1] + b":" + t[2] + b"'"
)
found = st.tuples(st.sampled_from([b"=", b"!="]), st.sampled_from([b"substring:x''y", b"regexstring:^a+$"])).map(
    lambda t: t[0] + b", '" + t[1] + b"'"
)
ARGUMENTS = {
    "bytes": quoted,
    "int": st.integers(0, 2**31 - 1).map(lambda n: b"%d" % n),
    "long": st.integers(0, 2**63 - 1).map(lambda n: b"%d" % n),
    "bool": st.sampled_from([b"true", b"false"]),
    "comparison": ordered | found,
}


@st.composite
def calls(draw: st.DrawFn) -> bytes:
    name = draw(st.sampled_from(sorted(FILTERS)))
    signature = FILTERS[name]
    kinds = list(draw(st.sampled_from(signature.forms)))
    if signature.any_number:
        drawn = draw(st.lists(ARGUMENTS[kinds[0]], max_size=4, unique=True))
        return name + b"(" + b", ".join(drawn) + b")"
    if "operator" in kinds:
        kinds[kinds.index("operator") : kinds.index("comparator") + 1] = ["comparison"]  # type: ignore[list-item]
    return name + b"(" + b", ".join(draw(ARGUMENTS[kind]) for kind in kinds) + b")"


trees = st.recursive(
    calls(),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from([b"SKIP ", b"WHILE "]), inner).map(lambda t: t[0] + b"(" + t[1] + b")"),
        st.tuples(st.sampled_from([b" AND ", b" OR "]), st.lists(inner, min_size=2, max_size=3)).map(
            lambda t: t[0].join(b"(" + one + b")" for one in t[1])
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(trees)
def test_writing_and_reading_again_gives_the_same(text: bytes) -> None:
    flt = parse(text)
    assert shape(parse(flt.text)) == shape(flt)
    assert parse(flt.text).text == flt.text
    assert flt.clone().text == flt.text


@settings(max_examples=200)
@given(trees)
def test_every_filter_runs_over_any_row(text: bytes) -> None:
    row = [Cell(f, q, ts, v) for f in (b"f", b"g") for q in (b"", b"a") for ts, v in ((2, b"x"), (1, b"\xff"))]
    flt = parse(text)
    for key in (b"", b"a", b"\xff"):
        answer = apply(flt, key, row, 2)
        assert [c[:3] for c in answer.cells] == [c[:3] for c in row if c[:3] in {kept[:3] for kept in answer.cells}]


def filter_or_error(text: bytes) -> Filter | FilterSyntaxError:
    try:
        return parse(text)
    except FilterSyntaxError as error:
        return error


def parsed_or_refused(text: bytes) -> None:
    flt = filter_or_error(text)
    if isinstance(flt, FilterSyntaxError):
        assert 0 <= flt.position <= len(text)
    else:
        assert parse(flt.text).text == flt.text


@settings(max_examples=500)
@given(st.binary(max_size=60) | st.text("()', KeyOnlyFilterANDSKP=<\\[", max_size=60).map(str.encode))
def test_random_bytes(text: bytes) -> None:
    parsed_or_refused(text)


@settings(max_examples=500)
@given(trees, st.data())
def test_mutated_filters(text: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    width = data.draw(st.integers(0, 3))
    parsed_or_refused(text[:at] + data.draw(st.binary(max_size=3)) + text[at + width :])


@settings(max_examples=600)
@given(st.text("ab01()[]{}^$|?*+\\-&<>=!:.,QEpPidkxuzZRhv", max_size=25))
def test_any_pattern_is_taken_or_refused(pattern: str) -> None:
    text = b"ValueFilter(=, 'regexstring:" + pattern.replace("'", "''").encode() + b"')"
    flt = filter_or_error(text)
    if isinstance(flt, FilterSyntaxError):
        assert "the pattern" in flt.problem
    else:
        apply(flt, b"r", [Cell(b"f", b"q", 1, b"ab01")])
