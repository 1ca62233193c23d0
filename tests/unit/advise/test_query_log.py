"""Statements out of general logs of MySQL and MariaDB, and out of plain files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from columnar.advise import query_log
from columnar.advise.query_log import Entry, entries, split_statements

OLD = (
    "/usr/sbin/mysqld, Version: 5.1.37 (Debian). started with:\n"
    "Tcp port: 3306  Unix socket: /run/mysqld.sock\n"
    "Time                 Id Command    Argument\n"
    "090515 10:51:21\t    1 Connect\troot@localhost on wikka\n"
    "\t\t    1 Query\tSELECT *\n  FROM pages\n\tWHERE tag = 'a'\n"
    "090515  9:51:22\t   12 Query\tUPDATE t SET a = 1\n"
    "/usr/sbin/mysqld, Version: 5.1.37 (Debian). started with:\n"
    "Tcp port: 3306  Unix socket: /run/mysqld.sock\n"
    "Time                 Id Command    Argument\n"
    "\t\t    1 Quit\t\n"
)
NEW = (
    "2024-01-05T10:51:21.123456Z\t   12 Prepare\tSELECT a FROM t WHERE b = ?\n"
    "2024-01-05T10:51:21.223456Z\t   12 Execute\tSELECT a FROM t WHERE b = 5\n"
    "2024-01-05T10:51:21.323456+01:00\t   12 Close stmt\t\n"
    "2024-01-05T10:51:21.423456Z\t   13 Query\tCOMMIT\n"
)
MARIADB = "240105 10:51:21\t    12 Query\tSELECT 1\n\t\t    12 Init DB\twiki\n\t\t    12 Query\tSELECT 2\n"


def of(text: str) -> list[Entry]:
    return list(entries(text.splitlines(keepends=True)))


def runs(text: str) -> list[tuple[str, str]]:
    return [(one.connection, one.text) for one in of(text) if one.kind == "run"]


def test_the_general_log_of_mysql_5() -> None:
    assert runs(OLD) == [("1", "SELECT *\n  FROM pages\n\tWHERE tag = 'a'"), ("12", "UPDATE t SET a = 1")]
    assert [one.kind for one in of(OLD)] == ["other", "run", "run", "other"]


def test_the_general_log_of_mysql_8_names_what_was_prepared() -> None:
    assert [(one.kind, one.text) for one in of(NEW)] == [
        ("prepared", "SELECT a FROM t WHERE b = ?"),
        ("run", "SELECT a FROM t WHERE b = 5"),
        ("other", ""),
        ("run", "COMMIT"),
    ]


def test_the_general_log_of_mariadb() -> None:
    assert runs(MARIADB) == [("12", "SELECT 1"), ("12", "SELECT 2")]


def test_a_file_of_statements_ends_them_with_semicolons() -> None:
    text = "SELECT 1;\nSELECT ';\n;\n' FROM t; DELETE\nFROM u;\n-- a ; note\nSELECT 2"
    assert [one.text for one in of(text)] == [
        "SELECT 1",
        "SELECT ';\n;\n' FROM t",
        "DELETE\nFROM u",
        "-- a ; note\nSELECT 2",
    ]


def test_a_file_without_semicolons_has_one_a_line() -> None:
    assert [one.text.strip() for one in of("SELECT 1\n\nSELECT 2\n")] == ["SELECT 1", "SELECT 2"]


@pytest.mark.parametrize("head", ["\t\t    1 Query\t", ""])
def test_a_statement_has_a_bound(monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    monkeypatch.setattr(query_log, "STATEMENT_CHARS", 40)
    text = f"{head}SELECT 1;\n{head}SELECT '{'x' * 30}\n{'y' * 30}\n{'z' * 30}';\n{head}SELECT 2;\n"
    found = [one.text for one in of(text)]
    assert found[0].startswith("SELECT 1")
    assert found[-1].startswith("SELECT 2")
    assert max(map(len, found)) <= 42


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1)
    )
)
def test_each_entry_of_a_log_comes_once(statements: list[str]) -> None:
    """L1, whatever the statements are: they may look like entries."""
    lines = [f"2024-01-05T10:51:21.1Z\t   12 Query\tSELECT {one}\n" for one in statements]
    assert [one.text for one in entries(lines)] == [f"SELECT {one}" for one in statements]


@given(
    st.lists(st.sampled_from(["a", "'", '"', "`", ";", "\\", "\n", "-- ", "/*", "*/", "#"]), max_size=25).map("".join)
)
def test_nothing_of_a_text_is_lost_between_statements(text: str) -> None:
    whole, open_from = split_statements(text)
    kept = "".join(whole)
    assert sum(map(kept.count, "a'\"`\\")) == sum(map(text.count, "a'\"`\\"))
    assert open_from is None or text[open_from] in "'\"`"
