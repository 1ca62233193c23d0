"""Ask a real Apache HBase what filter strings answer, and write it down as a golden file.

    python tests/differential/record_filter_answers.py 127.0.0.1:9090 > tests/golden/hbase_filter_answers.json

Needs an unframed Thrift 1 gateway of HBase 2.6.  It makes a table of its own and drops it again.
The file holds the table and every question with its answer; the unit tests replay it against
``columnar.model.filters`` (``tests/unit/model/test_filter_answers.py``).  Bytes are written as latin-1 text.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import happybase
from thriftpy2.thrift import TException

TABLE = "columnar_filter_answers"
FAMILIES = {"f": 3, "g": 2}  # VERSIONS
# row, column, timestamp, value
CELLS: list[tuple[str, str, int, str]] = [
    ("r01", "f:a", 10, "1"),
    ("r01", "f:a", 20, "2"),
    ("r01", "f:a", 30, "3"),
    ("r01", "f:b", 10, "x"),
    ("r01", "f:sa", 15, "apple"),
    ("r01", "f:sb", 15, "Banana"),
    ("r01", "g:a", 10, "g1"),
    ("r01", "g:a", 20, "g2"),
    ("r01", "g:s", 10, "S"),
    ("r02", "f:a", 10, "2"),
    ("r02", "f:c", 40, "cherry"),
    ("r02", "g:a", 30, "9"),
    ("r03", "f:b", 10, "Apple pie"),
    ("r03", "f:b", 20, "banana split"),
    ("r03", "f:sa", 20, ""),
    ("r03", "g:z", 5, "zed"),
    ("r04", "g:a", 10, "1"),
    ("r04", "g:s", 20, "line one\nline two"),
    ("r05", "f:a", 20, "10"),
    ("r05", "f:b", 20, "5"),
    ("r05", "f:c", 20, "x"),
    ("r05", "f:d", 20, "y"),
    ("r05", "f:e", 20, ""),
    ("r05", "g:a", 20, "1"),
    ("r05", "g:b", 30, "2"),
    ("r06", "f:", 10, "empty"),
    ("r06", "f:a", 10, "\x00\xff\x80"),
    ("r06", "f:s\xff", 20, "1"),
    ("r06", "g:a", 10, "1"),
    ("row7", "f:a", 10, "it's"),
    ("row7", "f:b", 10, "2"),
    ("row7", "f:b", 20, "1"),
    ("row7", "g:a", 10, "2"),
    ("x\xff", "f:a", 10, "1"),
]

_OPERATORS = ("<", "<=", "=", "!=", ">=", ">")

SIMPLE: list[str] = [
    "KeyOnlyFilter()",
    "KeyOnlyFilter(true)",
    "KeyOnlyFilter(false)",
    "FirstKeyOnlyFilter()",
    "PrefixFilter('r0')",
    "PrefixFilter('r03')",
    "PrefixFilter('row')",
    "PrefixFilter('')",
    "PrefixFilter('r035')",
    "PrefixFilter('a')",
    "PrefixFilter('z')",
    "ColumnPrefixFilter('s')",
    "ColumnPrefixFilter('')",
    "ColumnPrefixFilter('sa')",
    "ColumnPrefixFilter('saa')",
    "ColumnPrefixFilter('zz')",
    "MultipleColumnPrefixFilter('a','s')",
    "MultipleColumnPrefixFilter('s','b')",
    "MultipleColumnPrefixFilter('s','sa')",
    "MultipleColumnPrefixFilter()",
    "ColumnPaginationFilter(2, 1)",
    "ColumnPaginationFilter(1, 0)",
    "ColumnPaginationFilter(0, 0)",
    "ColumnPaginationFilter(3, 3)",
    "ColumnPaginationFilter(100, 4)",
    "InclusiveStopFilter('r03')",
    "InclusiveStopFilter('r035')",
    "InclusiveStopFilter('')",
    "InclusiveStopFilter('zz')",
    "TimestampsFilter(10, 20)",
    "TimestampsFilter(10)",
    "TimestampsFilter(30, 5)",
    "TimestampsFilter()",
    "ColumnRangeFilter('a', true, 'c', true)",
    "ColumnRangeFilter('a', false, 'c', false)",
    "ColumnRangeFilter('', true, 'b', true)",
    "ColumnRangeFilter('b', true, '', true)",
    "ColumnRangeFilter('', false, '', false)",
    "ColumnCountGetFilter(1)",
    "ColumnCountGetFilter(3)",
    "ColumnCountGetFilter(100)",
    *(f"PageFilter({n})" for n in (0, 1, 2, 5, 100)),
    *(f"RowFilter({op}, 'binary:r03')" for op in _OPERATORS),
    *(f"QualifierFilter({op}, 'binary:b')" for op in _OPERATORS),
    *(f"ValueFilter({op}, 'binary:2')" for op in _OPERATORS),
    *(f"FamilyFilter({op}, 'binary:g')" for op in _OPERATORS),
    *(f"ValueFilter({op}, 'binaryprefix:ba')" for op in _OPERATORS),
    *(f"RowFilter({op}, 'binaryprefix:r03x')" for op in _OPERATORS),
    "RowFilter(=, 'binaryprefix:r0')",
    "RowFilter(=, 'substring:O')",
    "RowFilter(!=, 'substring:0')",
    "RowFilter(=, 'regexstring:^r0[1-3]$')",
    "RowFilter(=, 'regexstring:\\xFF')",
    "QualifierFilter(=, 'regexstringnocase:^S')",
    "QualifierFilter(=, 'substring:S')",
    "QualifierFilter(=, 'binary:')",
    "QualifierFilter(=, 'binaryprefix:s')",
    "ValueFilter(=, 'substring:APPLE')",
    "ValueFilter(!=, 'substring:a')",
    "ValueFilter(=, 'substring:')",
    "ValueFilter(=, 'regexstring:one.line')",
    "ValueFilter(=, 'regexstring:an')",
    "ValueFilter(=, 'regexstring:^ban')",
    "ValueFilter(=, 'regexstringnocase:^ban')",
    "ValueFilter(!=, 'regexstring:[0-9]')",
    "ValueFilter(=, 'regexstring:(?i)APPLE')",
    "ValueFilter(=, 'regexstring:\\Aapple\\z')",
    "ValueFilter(=, 'regexstring:e\\Z')",
    "ValueFilter(=, 'regexstring:\\p{Upper}')",
    "ValueFilter(=, 'regexstring:[\\p{Digit}&&[^1]]')",
    "ValueFilter(=, 'regexstring:\\Q1\\E')",
    "ValueFilter(=, 'regexstring:^\\d++$')",
    "ValueFilter(=, 'regexstring:(?<first>a)p\\k<first>?')",
    "ValueFilter(=, 'regexstring:e$')",
    "ValueFilter(=, 'regexstring:^line two')",
    "ValueFilter(=, 'regexstring:(?m)^line two')",
    "ValueFilter(=, 'binary:it''s')",
    "ValueFilter(=, 'binary:')",
    "ValueFilter(=, 'regexstring:^$')",
    "ColumnValueFilter('f','a',=,'binary:2')",
    "ColumnValueFilter('f','a',!=,'binary:2')",
    "ColumnValueFilter('f','b',=,'regexstring:an')",
    "ColumnValueFilter('g','a',<,'binary:2')",
    "ColumnValueFilter('g','nope',=,'binary:2')",
    *(
        f"{name}('f','a',{op},'binary:2'{rest})"
        for name in ("SingleColumnValueFilter", "SingleColumnValueExcludeFilter")
        for op in ("=", "!=", ">")
        for rest in ("", ",true,true", ",false,false", ",true,false")
    ),
    "SingleColumnValueFilter('g','a',=,'binary:1')",
    "SingleColumnValueFilter('g','a',=,'binary:g1',true,false)",
    "SingleColumnValueFilter('f','sa',=,'substring:PP',true,true)",
    "SingleColumnValueFilter('f','b',=,'regexstring:^[A-Z]',true,false)",
    "SingleColumnValueFilter('f','b',=,'regexstring:^[A-Z]',true,true)",
    "SingleColumnValueFilter('f','',=,'binary:empty',true,true)",
    "SingleColumnValueExcludeFilter('g','a',=,'binary:1',true,true)",
    "SingleColumnValueExcludeFilter('f','a',=,'binary:1',true,true)",
    "DependentColumnFilter('f','a')",
    "DependentColumnFilter('f','a',true)",
    "DependentColumnFilter('f','a',false,=,'binary:2')",
    "DependentColumnFilter('f','a',true,!=,'binary:2')",
    "DependentColumnFilter('g','a',false,<,'regexstring:1')",
    "DependentColumnFilter('g','a',false,>=,'binary:1')",
]

COMBINED: list[str] = [
    "PrefixFilter('r0') AND KeyOnlyFilter()",
    "KeyOnlyFilter() AND ValueFilter(=,'binary:2')",
    "ValueFilter(=,'binary:2') AND KeyOnlyFilter()",
    "KeyOnlyFilter() OR ValueFilter(=,'binary:2')",
    "FirstKeyOnlyFilter() AND KeyOnlyFilter()",
    "FirstKeyOnlyFilter() AND ValueFilter(=,'binary:2')",
    "ValueFilter(=,'binary:2') AND FirstKeyOnlyFilter()",
    "FirstKeyOnlyFilter() OR ValueFilter(=,'binary:2')",
    "FirstKeyOnlyFilter() AND PageFilter(2)",
    "PrefixFilter('r02') AND PageFilter(1)",
    "PageFilter(1) AND PrefixFilter('r02')",
    "PrefixFilter('r02') OR PrefixFilter('row')",
    "PrefixFilter('r02') OR PageFilter(2)",
    "PageFilter(2) OR PageFilter(3)",
    "PageFilter(2) AND ValueFilter(=,'binary:2')",
    "ValueFilter(=,'binary:2') AND PageFilter(2)",
    "RowFilter(>=,'binary:r03') AND PageFilter(2)",
    "PageFilter(2) AND RowFilter(>=,'binary:r03')",
    "SingleColumnValueFilter('g','a',=,'binary:1',true,true) AND PageFilter(2)",
    "PageFilter(2) AND SingleColumnValueFilter('g','a',=,'binary:1',true,true)",
    "SingleColumnValueFilter('g','a',=,'binary:1',true,true) OR PageFilter(2)",
    "SingleColumnValueFilter('f','a',=,'binary:1',true,true)"
    " OR SingleColumnValueFilter('g','a',=,'binary:1',true,true)",
    "SingleColumnValueFilter('f','a',=,'binary:2',true,true)"
    " AND SingleColumnValueFilter('g','a',>,'binary:1',true,true)",
    "SingleColumnValueFilter('f','a',=,'binary:2') AND ColumnPrefixFilter('a')",
    "ColumnPrefixFilter('a') AND SingleColumnValueFilter('f','b',=,'binary:2')",
    "SingleColumnValueFilter('f','a',=,'binary:1',true,true) OR ColumnPrefixFilter('s')",
    "SingleColumnValueFilter('f','a',=,'binary:2',true,true) AND KeyOnlyFilter()",
    "KeyOnlyFilter() AND SingleColumnValueFilter('f','a',=,'binary:2',true,true)",
    "ColumnPaginationFilter(1,0) AND ColumnPrefixFilter('s')",
    "ColumnPrefixFilter('s') AND ColumnPaginationFilter(1,0)",
    "ColumnPaginationFilter(2,1) OR ColumnPrefixFilter('s')",
    "ColumnPaginationFilter(2,1) AND ValueFilter(=,'binary:2')",
    "ValueFilter(=,'binary:2') AND ColumnPaginationFilter(2,0)",
    "ColumnPrefixFilter('s') OR ColumnPrefixFilter('a')",
    "ColumnPrefixFilter('s') AND ColumnPrefixFilter('sa')",
    "ColumnPrefixFilter('sa') AND ColumnPrefixFilter('s')",
    "ColumnPrefixFilter('s') AND ColumnRangeFilter('b',true,'sb',false)",
    "ColumnRangeFilter('b',true,'sb',false) OR ColumnPrefixFilter('a')",
    "MultipleColumnPrefixFilter('a','s') AND ValueFilter(=,'regexstring:[0-9]')",
    "FamilyFilter(=,'binary:f') AND ValueFilter(=,'regexstring:[0-9]')",
    "FamilyFilter(=,'binary:f') OR ValueFilter(=,'regexstring:[0-9]')",
    "FamilyFilter(=,'binary:g') AND FirstKeyOnlyFilter()",
    "FirstKeyOnlyFilter() AND FamilyFilter(=,'binary:g')",
    "QualifierFilter(=,'binary:a') AND ValueFilter(=,'binary:1')",
    "QualifierFilter(=,'binary:a') OR ValueFilter(=,'binary:x')",
    "TimestampsFilter(10) AND ColumnPrefixFilter('a')",
    "TimestampsFilter(10) OR TimestampsFilter(30)",
    "TimestampsFilter(10,20) AND ValueFilter(!=,'binary:1')",
    "TimestampsFilter(20) OR ColumnPrefixFilter('a')",
    "ColumnValueFilter('f','a',=,'binary:2') OR ColumnValueFilter('g','a',=,'binary:1')",
    "ColumnValueFilter('f','a',=,'binary:2') AND ColumnValueFilter('g','a',=,'binary:1')",
    "ColumnValueFilter('f','a',=,'binary:2') AND PageFilter(1)",
    "InclusiveStopFilter('r03') AND PrefixFilter('r02')",
    "InclusiveStopFilter('r03') OR PrefixFilter('r05')",
    "InclusiveStopFilter('r03') AND ValueFilter(=,'binary:2')",
    "PrefixFilter('r0') AND (ValueFilter(=,'binary:1') OR ColumnPrefixFilter('s'))",
    "(PrefixFilter('r01') AND ColumnPrefixFilter('a')) OR (PrefixFilter('r05') AND ColumnPrefixFilter('b'))",
    "(PrefixFilter('r05') AND ColumnPrefixFilter('b')) OR PrefixFilter('r02') OR ValueFilter(=,'binary:zed')",
    "(FirstKeyOnlyFilter() OR ColumnPrefixFilter('s')) AND KeyOnlyFilter()",
    "(KeyOnlyFilter() AND ColumnPrefixFilter('a')) OR ColumnPrefixFilter('s')",
    "ColumnPrefixFilter('s') OR (KeyOnlyFilter() AND ColumnPrefixFilter('a'))",
    "(KeyOnlyFilter() AND ColumnPrefixFilter('a')) OR KeyOnlyFilter(true)",
    "DependentColumnFilter('f','a') AND PageFilter(2)",
    "DependentColumnFilter('f','a') AND ColumnPrefixFilter('a')",
    "DependentColumnFilter('f','a') OR ColumnPrefixFilter('s')",
    "RowFilter(=,'binary:r01') OR RowFilter(=,'binary:r05')",
    "RowFilter(=,'binary:r01') OR ColumnPrefixFilter('s')",
    "RowFilter(>,'binary:r01') AND RowFilter(<,'binary:r05') AND FirstKeyOnlyFilter()",
    "RowFilter(!=,'binary:r02') AND ValueFilter(=,'regexstring:^[0-9]+$') AND FirstKeyOnlyFilter()",
    "SKIP ValueFilter(!=,'binary:2')",
    "SKIP ValueFilter(!=,'binary:zed')",
    "SKIP ValueFilter(=,'regexstring:.')",
    "SKIP ColumnPrefixFilter('a')",
    "SKIP FirstKeyOnlyFilter()",
    "SKIP KeyOnlyFilter()",
    "SKIP PrefixFilter('r0')",
    "SKIP RowFilter(=,'binary:r03')",
    "SKIP QualifierFilter(!=,'binary:c')",
    "SKIP FamilyFilter(=,'binary:g')",
    "SKIP TimestampsFilter(10,20,30)",
    "SKIP ColumnPaginationFilter(10,0)",
    "SKIP PageFilter(2)",
    "SKIP (ValueFilter(!=,'binary:2') AND ValueFilter(!=,'binary:zed'))",
    "SKIP (ValueFilter(=,'binary:1') OR FamilyFilter(=,'binary:f'))",
    "SKIP SingleColumnValueFilter('f','a',=,'binary:1',true,true)",
    "SKIP ValueFilter(!=,'binary:9') AND PageFilter(2)",
    "PageFilter(2) AND SKIP ValueFilter(!=,'binary:9')",
    "SKIP ValueFilter(!=,'binary:9') OR ColumnPrefixFilter('s')",
    "WHILE ValueFilter(!=,'binary:zed')",
    "WHILE ValueFilter(!=,'binary:9')",
    "WHILE ValueFilter(!=,'binary:cherry')",
    "WHILE RowFilter(!=,'binary:r03')",
    "WHILE RowFilter(<=,'binary:r04')",
    "WHILE PrefixFilter('r0')",
    "WHILE PrefixFilter('x')",
    "WHILE PageFilter(2)",
    "WHILE FirstKeyOnlyFilter()",
    "WHILE KeyOnlyFilter()",
    "WHILE FamilyFilter(=,'binary:f')",
    "WHILE QualifierFilter(!=,'binary:c')",
    "WHILE ColumnPaginationFilter(100,0)",
    "WHILE SingleColumnValueFilter('f','a',>,'binary:0',true,true)",
    "WHILE SingleColumnValueFilter('g','a',!=,'binary:9')",
    "WHILE (RowFilter(<=,'binary:r04') AND ValueFilter(!=,'binary:zed'))",
    "WHILE (RowFilter(<=,'binary:r02') OR ValueFilter(!=,'binary:zed'))",
    "WHILE ValueFilter(!=,'binary:zed') AND PrefixFilter('r03')",
    "PrefixFilter('r03') AND WHILE ValueFilter(!=,'binary:zed')",
    "PrefixFilter('r02') AND WHILE ValueFilter(!=,'binary:g2')",
    "RowFilter(=,'binary:r05') AND WHILE ValueFilter(!=,'binary:g2')",
    "WHILE ValueFilter(!=,'binary:g2') AND RowFilter(=,'binary:r05')",
    "WHILE RowFilter(<=,'binary:r02') OR PrefixFilter('r05')",
    "PageFilter(1) AND WHILE RowFilter(<=,'binary:r02')",
    "WHILE RowFilter(!=,'binary:r03') AND FirstKeyOnlyFilter() AND KeyOnlyFilter()",
    "WHILE SKIP ValueFilter(!=,'binary:9')",
    "SKIP WHILE ValueFilter(!=,'binary:9')",
    "PrefixFilter('r01') OR PrefixFilter('r05') AND ColumnPrefixFilter('a') OR ValueFilter(=,'binary:2')",
    "SKIP ValueFilter(!=,'binary:9') AND ColumnPrefixFilter('a') OR PrefixFilter('r04')",
]

# Only whether the parser takes it.
SYNTAX: list[str] = [
    "KeyOnlyFilter ('') ", " FirstKeyOnlyFilter( ) ", " FirstKeyOnlyFilter ('') ", " PrefixFilter('row' ) ",
    " PrefixFilter(row)", "ColumnCountGetFilter(4)", "ColumnCountGetFilter('abc')",
    "ColumnCountGetFilter(2147483648)", "PageFilter('123')", "PageFilter(9223372036854775807)",
    "PageFilter(9223372036854775808)", "PageFilter(-1)", "PageFilter(+1)", "PageFilter(01)", "PageFilter( 1 )",
    "PageFilter(1 2)", "PageFilter()", "PageFilter(1,)", "PageFilter(,1)", "ColumnPaginationFilter('124')",
    "ColumnPaginationFilter('4' , '123a')", "ColumnPaginationFilter('4' , '-123')", "ColumnPaginationFilter(4, -1)",
    "ColumnPaginationFilter(4 6)", "TimestampsFilter(9223372036854775806, 6)",
    "TimestampsFilter(9223372036854775808, 6)", "TimestampsFilter(-45, 6)", "TimestampsFilter('1')",
    "TimeStampsFilter(1)", "QualifierFilter(=, 'regexstringnocase:pre*')", "RowFilter ('>>' , 'binary:region')",
    "RowFilter ('>=' , 'binaryoperator:region')", "RowFilter ('>=' 'regexstring:pre*')",
    "RowFilter ('>=' , 'binary:region')", "RowFilter(>=, 'regexstring:a')", "RowFilter(<, 'substring:a')",
    "RowFilter(=, 'binary')", "RowFilter(=, binary:a)", "RowFilter(==, 'binary:a')", "RowFilter(= 'binary:a')",
    "RowFilter(=,'BINARY:a')", "RowFilter(=,'null')", "RowFilter(=,'regexstring:(')",
    "RowFilter(=,'regexstring:a**')", "RowFilter(=,'regexstring:a++')", "RowFilter(=,'regexstring:a{2')",
    "RowFilter(=,'regexstring:]')", "RowFilter(=,'regexstring:}')", "RowFilter(=,'regexstring:\\y')",
    "RowFilter(=,'regexstring:[a-z&&[^b]]')", "RowFilter(=,'bigdecimal:1')", "RowFilter(=,'long:1')",
    "InclusiveStopFilter ('row''3')", "InclusiveStopFilter ('row''3''')", "InclusiveStopFilter ('''')",
    "InclusiveStopFilter (''')", "InclusiveStopFilter ('a'b')", "PrefixFilter('a' 'b')", "PrefixFilter('a'x)",
    "PrefixFilter('a')PrefixFilter('b')", "PrefixFilter('a') PrefixFilter('b')", "PrefixFilter('a'",
    "PrefixFilter('a", "PrefixFilter", "PrefixFilter 'a'", "()", "(", ")", " ", "AND", "OR", "SKIP", "WHILE ",
    "PrefixFilter('a') AND", "AND PrefixFilter('a')", "PrefixFilter('a') AND AND PrefixFilter('b')",
    "PrefixFilter('a') ANDPrefixFilter('b')", "PrefixFilter('a')AND PrefixFilter('b')",
    "PrefixFilter('a') AND(PrefixFilter('b'))", "PrefixFilter('a') and PrefixFilter('b')", "prefixfilter('a')",
    "NoSuchFilter()", "((PrefixFilter('a')))", "(PrefixFilter('a')", "PrefixFilter('a'))",
    "(PrefixFilter('a') OR PrefixFilter('b')", "SKIP SKIP PrefixFilter('a')", "(SKIP SKIP PrefixFilter('a'))",
    "PrefixFilter('a') SKIP PrefixFilter('b')", "SKIP(PrefixFilter('a'))", "WHILE(PrefixFilter('a'))",
    "SKIPPrefixFilter('a')", "PrefixFilter('a') AND SKIP PrefixFilter('b')",
    "(PrefixFilter('a') AND SKIP PrefixFilter('b'))",
    "(PrefixFilter('a') OR PrefixFilter('b') AND PrefixFilter('c'))", "PrefixFilter('a')\tAND\tPrefixFilter('b')",
    "PrefixFilter(\t'a')", "PrefixFilter('a') AND\nPrefixFilter('b')", "PrefixFilter('a') OR SKIP PrefixFilter('b')",
    "KeyOnlyFilter(TRUE)", "KeyOnlyFilter(True)", "KeyOnlyFilter('true')", "KeyOnlyFilter(yes)",
    "KeyOnlyFilter(true,false)", "ColumnRangeFilter('a',true,'b')", "ColumnRangeFilter(a,true,b,true)",
    "SingleColumnValueFilter('f','q',=)", "SingleColumnValueFilter('f','q',=,'binary:a',true)",
    "SingleColumnValueFilter('f','q',>,'substring:a')", "SingleColumnValueFilter('f','q','=','binary:a')",
    "SingleColumnValueFilter ('family', 'qualifier', >, 'binaryprefix:a')",
    "SingleColumnValueFilter('','q',=,'binary:a')", "DependentColumnFilter('f')",
    "DependentColumnFilter('f','q',true,=)", "DependentColumnFilter('f','q',true,<,'substring:a')",
    "ColumnValueFilter('f','q',>,'substring:a')", "ColumnValueFilter('f','q')", "MultipleColumnPrefixFilter('a','a')",
    "MultipleColumnPrefixFilter(a)", "PageFilter(-)", "ColumnCountGetFilter(0)", "ColumnCountGetFilter(-1)",
    " (PrefixFilter ('realtime')AND  FirstKeyOnlyFilter() OR KeyOnlyFilter())",
    " PrefixFilter ('realtime')AND  SKIP FirstKeyOnlyFilter()OR KeyOnlyFilter()",
    "(ValueFilter(>=,'binary:x') AND (ValueFilter(<=,'binary:y'))) OR ValueFilter(=,'binary:ab')",
]  # fmt: skip

PATTERNS: list[str] = [
    "(?i)a(?-i)P", "a|(?i)B|C", "(a(?i)P)p", "(?:(?i)X|Y)", "[a-c&&b-z]", "[^a-z ]", "[\\w&&[^\\d]]", "[a[0-1]]",
    "[]1]", "[1-]", "[\\d-x]", "\\bpie\\b", "\\Bp", "^.$", "^..$", "(?s)one.", "(?-s)one.line", "one$", "(?m)one$",
    "two\\Z", "\\x31", "\\u0032", "\\061", "\\x{33}", "\\cJ", "\\h", "\\v", "\\R", "\\H+\\h\\H+", "\\P{Lower}",
    "[\\p{Punct}]", "\\p{L}", "\\p{IsAlphabetic}", "\\p{javaLowerCase}", "(p)\\1", "(?<x>p)\\k<x>", "(?>an)*a",
    "an++a", "a{2}", "p{2,}", "p{1,2}?l", "(?=b)b", "(?!b)b", "(?<=a)n", "(?<!a)n", "(?<=a+)n", "(?<=a{1,3})n",
    "a{,2}", "{2}", "a{2}{3}", "x*+y", "\\Q[1\\E", "\\Q1", "\\e", "\\a", "\\0", "\\8", "(?<1a>b)", "(?P<x>p)",
    "(?#comment)a", "(?x) a p", "(?u)a", "(?d)a$", "\\G1", "\\X", "[[:alpha:]]", "[a-\\d]", "[z-a]", "[", "[]", "[^]",
    "[a", "a)", "*a", "+", "a|*", "|", "()", "(|a)", "^*a", "$+", "\\", "\\N{DIGIT ONE}", "\\ufffd", "\u00e9|1",
    "[&&a]", "[a&&]", "[a&b]", "[a-c-e]", "[\\Q1]\\E]", "(?i:B)an", "(?im-s:^B)", "\\x", "\\u12", "\\p{Alnum}+$",
]  # fmt: skip

_ATOMS = [
    "KeyOnlyFilter()", "FirstKeyOnlyFilter()", "PrefixFilter('r0')", "PrefixFilter('r03')", "ColumnPrefixFilter('a')",
    "ColumnPrefixFilter('s')", "MultipleColumnPrefixFilter('b','s')", "PageFilter(3)", "ColumnPaginationFilter(2,1)",
    "ColumnPaginationFilter(1,0)", "InclusiveStopFilter('r04')", "TimestampsFilter(10,20)",
    "RowFilter(>,'binary:r02')", "RowFilter(!=,'substring:5')", "FamilyFilter(=,'binary:f')",
    "FamilyFilter(!=,'binary:f')", "QualifierFilter(<,'binary:c')", "ValueFilter(=,'binary:2')",
    "ValueFilter(!=,'binary:1')", "ValueFilter(=,'regexstring:[0-9]')", "ColumnRangeFilter('a',false,'sb',true)",
    "SingleColumnValueFilter('f','a',=,'binary:1',false,false)", "SingleColumnValueFilter('f','b',!=,'binary:5')",
    "SingleColumnValueExcludeFilter('g','a',<=,'binary:1')", "DependentColumnFilter('f','a')",
    "ColumnValueFilter('f','a',!=,'binary:3')",
]  # fmt: skip


def generated(count: int, rng: random.Random) -> list[str]:
    """Trees of up to three levels."""

    def tree(depth: int) -> str:
        kind = rng.random()
        if depth == 0 or kind < 0.15:
            return rng.choice(_ATOMS)
        if kind < 0.3:
            return rng.choice(("SKIP ", "WHILE ")) + "(" + tree(depth - 1) + ")"
        word = rng.choice((" AND ", " OR "))
        return word.join("(" + tree(depth - 1) + ")" for _ in range(rng.randint(2, 3)))

    return [tree(rng.randint(1, 3)) for _ in range(count)]


def ask(table: happybase.Table, **how: Any) -> Any:
    try:
        rows = list(table.scan(include_timestamp=True, batch_size=100, **how))
    except TException as error:
        return "error: " + str(getattr(error, "message", error)).split("\n")[0][:160]
    return [
        [key.decode("latin-1"), [[c.decode("latin-1"), ts, v.decode("latin-1")] for c, (v, ts) in sorted(data.items())]]
        for key, data in rows
    ]


def main() -> None:
    host, _, port = sys.argv[1].partition(":")
    connection = happybase.Connection(host, int(port), timeout=120_000)
    if TABLE.encode() in connection.tables():
        connection.delete_table(TABLE, disable=True)
    connection.create_table(TABLE, {name: {"max_versions": n} for name, n in FAMILIES.items()})
    table = connection.table(TABLE)
    for row, column, timestamp, value in CELLS:
        table.put(row.encode("latin-1"), {column.encode("latin-1"): value.encode("latin-1")}, timestamp=timestamp)
    questions: list[dict[str, Any]] = []
    for text in SIMPLE + COMBINED:
        for backwards in (False, True):
            questions.append({"filter": text, "reversed": backwards})
    for text in (s for s in SIMPLE + COMBINED if "Single" in s or "Dependent" in s or "First" in s or "Pagin" in s):
        questions.append({"filter": text, "reversed": False, "columns": ["f:b", "g"]})
    for pattern in PATTERNS:
        quoted = pattern.replace("'", "''")
        questions.append({"filter": f"ValueFilter(=,'regexstring:{quoted}')", "reversed": False, "pattern": True})
    for text in generated(500, random.Random(7)):
        questions.append({"filter": text, "reversed": False, "generated": True})
    for text in SYNTAX:
        questions.append({"filter": text, "reversed": False, "syntax": True})
    answers = []
    for number, question in enumerate(questions):
        answer = ask(
            table,
            filter=question["filter"].encode("latin-1"),
            reverse=question["reversed"],
            columns=[c.encode() for c in question["columns"]] if "columns" in question else None,
        )
        if question.get("syntax"):
            answer = answer if isinstance(answer, str) else "ok"
        answers.append({**question, "answer": answer})
        print(f"\r{number + 1}/{len(questions)}", end="", file=sys.stderr)
    connection.delete_table(TABLE, disable=True)
    lines = ",\n  ".join(json.dumps(entry) for entry in answers)
    print(
        '{"from": "Apache HBase 2.6.1, Thrift 1 gateway",\n'
        f' "families": {json.dumps(FAMILIES)},\n "cells": {json.dumps(CELLS)},\n "questions": [\n  {lines}\n]}}'
    )


if __name__ == "__main__":
    main()
