"""The strings of HBase's own parser tests: each is read as the tree that it stands for, or refused with its place."""

from __future__ import annotations

import pytest

from columnar.errors import FilterSyntaxError
from columnar.model.filter_language import parse

# What a string is read as, written in full: brackets around lists in lists, one blank between words.
READ = {
    "KeyOnlyFilter()": "KeyOnlyFilter()",
    " FirstKeyOnlyFilter( ) ": "FirstKeyOnlyFilter()",
    " PrefixFilter('row' ) ": "PrefixFilter('row')",
    " ColumnCountGetFilter(4)": "ColumnCountGetFilter(4)",
    " PageFilter(4)": "PageFilter(4)",
    "ColumnPaginationFilter(4, 6)": "ColumnPaginationFilter(4, 6)",
    "TimestampsFilter(9223372036854775806, 6)": "TimestampsFilter(9223372036854775806, 6)",
    "TimestampsFilter()": "TimestampsFilter()",
    "QualifierFilter(=, 'regexstringnocase:pre*')": "QualifierFilter(=, 'regexstringnocase:pre*')",
    "SingleColumnValueFilter ('family', 'qualifier', >, 'binaryprefix:a')":
        "SingleColumnValueFilter('family', 'qualifier', >, 'binaryprefix:a')",
    "SKIP ValueFilter( =,  'binary:0')": "SKIP ValueFilter(=, 'binary:0')",
    " WHILE   RowFilter ( !=, 'binary:row1')": "WHILE RowFilter(!=, 'binary:row1')",
    " (PrefixFilter ('realtime')AND  FirstKeyOnlyFilter())": "PrefixFilter('realtime') AND FirstKeyOnlyFilter()",
    "(PrefixFilter('realtime') AND QualifierFilter (>=, 'binary:e'))OR FamilyFilter (=, 'binary:qualifier') ":
        "(PrefixFilter('realtime') AND QualifierFilter(>=, 'binary:e')) OR FamilyFilter(=, 'binary:qualifier')",
    " ColumnPrefixFilter ('realtime')AND  FirstKeyOnlyFilter() OR SKIP FamilyFilter(=, 'substring:hihi')":
        "(ColumnPrefixFilter('realtime') AND FirstKeyOnlyFilter()) OR SKIP FamilyFilter(=, 'substring:hihi')",
    " ColumnPrefixFilter ('realtime') OR FirstKeyOnlyFilter() OR SKIP FamilyFilter(=, 'substring:hihi')":
        "ColumnPrefixFilter('realtime') OR FirstKeyOnlyFilter() OR SKIP FamilyFilter(=, 'substring:hihi')",
    "(ValueFilter(>=,'binary:x') AND (ValueFilter(<=,'binary:y'))) OR ValueFilter(=,'binary:ab')":
        "(ValueFilter(>=, 'binary:x') AND ValueFilter(<=, 'binary:y')) OR ValueFilter(=, 'binary:ab')",
    " (PrefixFilter ('realtime')AND  FirstKeyOnlyFilter() OR KeyOnlyFilter())":
        "(PrefixFilter('realtime') AND FirstKeyOnlyFilter()) OR KeyOnlyFilter()",
    " PrefixFilter ('realtime')AND  SKIP FirstKeyOnlyFilter()OR KeyOnlyFilter()":
        "(PrefixFilter('realtime') AND SKIP FirstKeyOnlyFilter()) OR KeyOnlyFilter()",
    "InclusiveStopFilter ('row''3')": "InclusiveStopFilter('row''3')",
    "InclusiveStopFilter ('row''3''')": "InclusiveStopFilter('row''3''')",
    "InclusiveStopFilter ('''')": "InclusiveStopFilter('''')",
}  # fmt: skip

# Where a string is refused, in bytes from 0.
REFUSED = {
    "KeyOnlyFilter ('') ": 15,
    " FirstKeyOnlyFilter ('') ": 1,
    " PrefixFilter(row)": 14,
    " ColumnCountGetFilter('abc')": 22,
    " ColumnCountGetFilter(2147483648)": 22,
    " PageFilter('123')": 12,
    "ColumnPaginationFilter('124')": 0,
    "ColumnPaginationFilter('4' , '123a')": 23,
    "ColumnPaginationFilter('4' , '-123')": 23,
    "TimestampsFilter(9223372036854775808, 6)": 17,
    "TimestampsFilter(-45, 6)": 17,
    "RowFilter ('>>' , 'binary:region')": 11,
    "RowFilter ('>=' , 'binaryoperator:region')": 11,
    "RowFilter ('>=' 'regexstring:pre*')": 11,
    "()": 1,
}


@pytest.mark.parametrize("text", READ)
def test_read_as(text: str) -> None:
    assert parse(text.encode()).text.decode() == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_refused_at(text: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text.encode())
    assert caught.value.position == REFUSED[text]
    assert f"at byte {REFUSED[text]}: " in caught.value.text
