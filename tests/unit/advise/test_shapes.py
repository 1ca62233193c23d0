"""Literals become ``?``, and statements of one form one shape, in memory that does not grow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from columnar.advise import shapes
from columnar.advise.shapes import CUT, SHAPE_CHARS, ShapeCounts, shape_of, without_easy_literals


@pytest.mark.parametrize(
    ("statement", "shape"),
    [
        ("SELECT * FROM p WHERE id IN (1, 2)  AND t LIKE 'a%'", "SELECT * FROM p WHERE id IN (?) AND t LIKE '?%'"),
        ("select a from t1 where t LIKE '%a%' or u like 'a%b' or v like 'a_'",
         "select a from t1 where t LIKE '%?%' or u like '?%' or v like '?'"),
        ("INSERT INTO p (a,b) VALUES (1,'it''s'), (2, NOW()), (-3, 'c\\'d')", "INSERT INTO p (a,b) VALUES (?,?)"),
        ("select * from x where a=-1 and b is null and c = NULL limit 10, 20 -- mine",
         "select * from x where a=? and b is null and c = ? limit ?, ?"),
        ("/*!40101 SET NAMES utf8 */;", "SET NAMES utf8"),
        ("select a from t order by b limit 1;", "select a from t order by b limit 1"),
        ("select a from t order by b limit 5, 1", "select a from t order by b limit ?, ?"),
        ("select a from t where b = 1", "select a from t where b = ?"),
        ("/* only a note */", ""),
        ("SELECT /* it's 'mine' */ a, '/*', 5 FROM t /* Page::get 7 */ WHERE b = '*/'",
         "SELECT a, ?, ? FROM t WHERE b = ?"),
        ("select 'open", "select ?"),
        ('SELECT a FROM t WHERE b = 0x1F AND c = 1.5e3 AND d = "x" AND e = b\'01\'',
         "SELECT a FROM t WHERE b = ? AND c = ? AND d = ? AND e = ?"),
        ("UPDATE `a 5` SET x = x + 1, y = @v WHERE z5 = .5", "UPDATE `a 5` SET x = x + ?, y = @v WHERE z5 = ?"),
    ],
)  # fmt: skip
def test_shape_of_a_statement(statement: str, shape: str) -> None:
    assert shape_of(statement) == shape
    counts = ShapeCounts()
    for _ in range(2):
        counts.add_statement(statement)
    assert counts.shapes() == ([(shape, 2)] if shape else [])


def test_a_quoted_name_of_standard_sql_stays() -> None:
    assert shape_of('SELECT "A" FROM "T" WHERE "b" = \'c\'', dialect="postgres") == 'SELECT "A" FROM "T" WHERE "b" = ?'


LITERALS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text().map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"),
    st.text(st.characters(codec="ascii")).map(lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'),
).map(str)
FORMS = ("SELECT a FROM t WHERE b = {} AND c IN ({}, {})", "UPDATE t SET a = {}, b = {} WHERE c > {}",
         "INSERT INTO t VALUES ({}, {}), (4, {})", "SELECT a FROM t -- {}\n WHERE b = {} LIMIT {}")  # fmt: skip


@given(st.sampled_from(FORMS[:3]), st.lists(LITERALS, min_size=3, max_size=3))
def test_no_literal_is_left_and_the_quick_way_agrees(form: str, literals: list[str]) -> None:
    """S2, and the cheap replacement comes to the shape of the whole grammar."""
    statement = form.format(*literals)
    plain = form.format("1", "2", "3")
    assert shape_of(statement) == shape_of(plain)
    counts = ShapeCounts()
    counts.add_statement(statement)
    counts.add_statement(plain)
    assert counts.shapes() == [(shape_of(plain), 2)]


@given(st.lists(st.text(max_size=60), max_size=30), st.integers(1, 4))
def test_every_statement_is_counted(statements: list[str], most: int) -> None:
    """S1, also beyond the bound, for any bytes."""
    counts = ShapeCounts(most=most)
    for one in statements:
        counts.add_statement(one)
    assert counts.statements + counts.beyond + counts.empty == len(statements)
    assert len(counts.shapes()) <= most


def test_millions_of_lines_become_few_shapes() -> None:
    counts = ShapeCounts()
    for number in range(3_000):
        counts.add_statement(f"SELECT * FROM p WHERE id = {number} AND name = 'n{number}'")
        counts.add_statement(f"INSERT INTO p VALUES {', '.join(['(1, 2)'] * (1 + number % 7))}")
    assert [count for _, count in counts.shapes()] == [3_000, 3_000]


def test_a_long_shape_is_cut_and_says_so() -> None:
    columns = ", ".join(f"column_{number}" for number in range(2_000))
    shape = shape_of(f"SELECT {columns} FROM t")
    assert len(shape) == SHAPE_CHARS
    assert shape.endswith(CUT)


def test_statements_of_a_transaction_are_noted_by_connection() -> None:
    counts = ShapeCounts()
    for connection, statement in [
        ("1", "BEGIN"), ("2", "START TRANSACTION"), ("1", "UPDATE a SET b = 1 WHERE c = 2"), ("1", "SELECT 1 FROM a"),
        ("2", "DELETE FROM d WHERE e = 5"), ("1", "INSERT INTO f VALUES (1)"), ("2", "ROLLBACK"), ("1", "COMMIT"),
        ("3", "UPDATE a SET b = 1 WHERE c = 2"), ("3", "COMMIT"),
    ]:  # fmt: skip
        counts.add_statement(statement, connection=connection)
    assert counts.transactions() == [(("INSERT INTO f VALUES (?)", "UPDATE a SET b = ? WHERE c = ?"), 1)]


def test_open_transactions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "CONNECTIONS", 2)
    counts = ShapeCounts()
    for connection in "123":
        counts.add_statement("BEGIN", connection=connection)
        counts.add_statement("DELETE FROM d WHERE e = 5", connection=connection)
    for connection in "123":
        counts.add_statement("COMMIT", connection=connection)
    assert [count for _, count in counts.transactions()] == [2]


def test_statements_with_notes_and_patterns_take_the_whole_grammar() -> None:
    assert without_easy_literals("SELECT 1", is_quoted_name=False) == "SELECT ?"
    for statement in ("SELECT 1 -- 2", "SELECT a LIKE '1%'", "SELECT 1e5", "SELECT N'a'", "SELECT `a 1`"):
        assert without_easy_literals(statement, is_quoted_name=False) == ""
    assert without_easy_literals('SELECT "a" = 1', is_quoted_name=True) == ""
    assert not re.search(r"\d", shape_of("SELECT 1e5, 1.5E-3, 0xFF, 12"))


def test_one_row_and_a_page_of_rows_are_two_shapes() -> None:
    counts = ShapeCounts()
    for limit in (20, 1, 30, 1, 11):
        counts.add_statement(f"SELECT a FROM t WHERE c = 'x' ORDER BY b LIMIT {limit}")
    text = "SELECT a FROM t WHERE c = ? ORDER BY b LIMIT "
    assert counts.shapes() == [(f"{text}?", 3), (f"{text}1", 2)]
