"""Each filter of the language is known to answer by the row alone or to remember rows, and does so."""

from __future__ import annotations

import pytest

from columnar.model import filter_language
from columnar.model.cell import Cell
from columnar.model.filter_language import FILTERS, parse, remembers
from columnar.model.filters import Filter, apply
from columnar.model.row_filters import ColumnCountGetFilter, PageFilter

# A filter of a new class is in ``filter_language._BY_ROW``, or here: its answer for a row depends on earlier rows.
REMEMBERING = {PageFilter, ColumnCountGetFilter}
EXAMPLES = {
    "KeyOnlyFilter": ["()", "(true)"],
    "FirstKeyOnlyFilter": ["()"],
    "PrefixFilter": ["('a')", "('b')"],
    "ColumnPrefixFilter": ["('x')"],
    "MultipleColumnPrefixFilter": ["('x', 'z')"],
    "ColumnCountGetFilter": ["(1)", "(2)"],
    "PageFilter": ["(1)", "(2)"],
    "ColumnPaginationFilter": ["(1, 1)", "(2, 0)"],
    "InclusiveStopFilter": ["('a2')", "('b')"],
    "TimestampsFilter": ["(3, 5)"],
    "RowFilter": ["(=, 'binary:a2')", "(>, 'binary:a1')"],
    "FamilyFilter": ["(=, 'binary:f')"],
    "QualifierFilter": ["(>, 'binary:x')"],
    "ValueFilter": ["(=, 'binary:v3')", "(!=, 'substring:v')"],
    "ColumnRangeFilter": ["('x', true, 'z', false)"],
    "SingleColumnValueFilter": ["('f', 'x', =, 'binary:v3')", "('f', 'y', =, 'binary:v4', true, true)"],
    "SingleColumnValueExcludeFilter": ["('f', 'x', =, 'binary:v3')"],
    "DependentColumnFilter": ["('f', 'x')", "('f', 'x', true)"],
    "ColumnValueFilter": ["('f', 'x', =, 'binary:v3')"],
}
ROWS = {
    b"a1": [Cell(b"f", b"x", 3, b"v3"), Cell(b"f", b"y", 4, b"v4"), Cell(b"f", b"z", 5, b"v5")],
    b"a2": [Cell(b"f", b"x", 9, b"v9")],
    b"a3": [Cell(b"f", b"x", 3, b"v3"), Cell(b"g", b"y", 4, b"v4")],
    b"b1": [Cell(b"f", b"y", 3, b"v3")],
    b"b2": [Cell(b"f", b"x", 3, b"v3"), Cell(b"f", b"xx", 3, b"v3")],
}


def filters(name: str) -> list[Filter]:
    return [parse(f"{name}{arguments}".encode()) for arguments in EXAMPLES[name]]


def test_every_filter_is_known() -> None:
    assert {name.decode() for name in FILTERS} == EXAMPLES.keys()
    classes = {type(one) for name in EXAMPLES for one in filters(name)}
    known = filter_language._BY_ROW | filter_language._ENDING | REMEMBERING
    assert classes - known == set(), "neither by row nor remembering: see filter_memory"
    assert not (filter_language._BY_ROW | filter_language._ENDING) & REMEMBERING


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_filter_by_row_answers_for_a_row_as_a_fresh_one_would(name: str) -> None:
    for one in filters(name):
        assert remembers(one) == (type(one) in REMEMBERING)
        if remembers(one):
            continue
        going = one.clone()
        for row, cells in ROWS.items():
            answer = apply(going, row, cells)
            assert answer == apply(one.clone(), row, cells), (name, row)
            if answer.done:
                break
