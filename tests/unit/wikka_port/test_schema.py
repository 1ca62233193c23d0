"""Row keys: their order is what the access paths need, and they can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port import schema
from wikka_port.names import page_key
from wikka_port.schema import NO_HEAD, Head, parse_head, revision_token

KEY = page_key("Home Page")
TOKEN = b"0123456789abcdef"


def test_the_bytes_of_each_key() -> None:
    assert KEY == b"cfe6e34a4c7f24aad32aa4299562f5b1"
    assert schema.revision_row(KEY, Head(3, TOKEN)) == KEY + b"9999999996:" + TOKEN
    assert schema.change_row(KEY, 1_267_458_429_000, 3) == b"38732541570999" + KEY + b"9999999996"
    assert schema.name_row("Ēka") == b"eka\x00" + "Ēka".encode()
    assert Head(3, TOKEN).pack() == b"3:" + TOKEN


@settings(max_examples=50)
@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_newer_revisions_stand_before_older_ones_and_inside_their_range(one: int, other: int) -> None:
    rows = [schema.revision_row(KEY, Head(number, TOKEN)) for number in (one, other)]
    assert (rows[0] < rows[1]) == (one > other)
    assert all(schema.revisions_from(KEY, max(one, other)) <= row < schema.revisions_end(KEY) for row in rows)
    assert schema.parse_revision_row(rows[0]) == (KEY, Head(one, TOKEN))


@settings(max_examples=50)
@given(st.integers(0, schema.TIME_MAX_MS), st.integers(0, schema.TIME_MAX_MS))
def test_newer_changes_stand_before_older_ones(one: int, other: int) -> None:
    rows = [schema.change_row(KEY, at, 1) for at in (one, other)]
    assert (rows[0] < rows[1]) == (one > other)
    assert schema.page_key_of_change_row(rows[0]) == KEY


def test_changes_go_to_all_salts() -> None:
    assert {schema.change_salt(page_key(f"Page {n}")) for n in range(50)} == set(schema.CHANGE_SALTS)


def test_names_sort_without_case_and_accents() -> None:
    names = ["zoo", "Ēka", "eka", "Eks", "Ångström", "angst", "Straße", "STRASSE", "10", "Жук", "жаба"]
    assert sorted(names, key=schema.name_row) == [
        "10", "angst", "Ångström", "eka", "Ēka", "Eks", "STRASSE", "Straße", "zoo", "жаба", "Жук",
    ]  # fmt: skip
    assert [schema.name_of_row(schema.name_row(name)) for name in names] == names
    assert schema.page_key_of_name_row(schema.name_row("Ēka")) == page_key("Ēka")
    assert schema.page_key_of_name_row(b"other\x00name") is None
    assert schema.page_key_of_name_row(b"no separator") is None


LETTERS = st.text("abzABZ ēĒéÅßñЖж'-1", min_size=1, max_size=8)


@settings(max_examples=60)
@given(LETTERS, LETTERS)
def test_a_name_is_found_by_each_of_its_beginnings_however_written(begin: str, rest: str) -> None:
    row = schema.name_row(begin + rest)
    assert row.startswith(schema.name_prefix(begin))
    assert row.startswith(schema.name_prefix(begin.upper()))


def test_heads_are_read_back_and_junk_is_refused() -> None:
    assert parse_head(Head(12, TOKEN).pack()) == Head(12, TOKEN)
    assert parse_head(None) == parse_head(b"") == NO_HEAD
    for junk in (b"12", b"x:y", b"-1:a", b"99999999999:a"):
        with pytest.raises(ValueError, match="no revision"):
            parse_head(junk)
    with pytest.raises(ValueError, match="no row"):
        schema.parse_revision_row(b"junk")


def test_tokens_tell_apart_what_differs_anywhere() -> None:
    given_parts = ("Page", 1, 5, "Ann", "note", "body")
    token = revision_token(*given_parts)
    assert token == revision_token(*given_parts) == b"76020060e230e14e"
    others = [
        ("Pag", 1, 5, "eAnn", "note", "body"),
        ("Page", 2, 5, "Ann", "note", "body"),
        ("Page", 1, 5, "Ann", "noteb", "ody"),
    ]
    assert token not in {revision_token(*other) for other in others}
    behind = {previous: revision_token(*given_parts, previous) for previous in (b"", b"0123", b"0124")}
    assert behind[b""] == token
    assert len(set(behind.values())) == 3


def test_every_derived_table_keeps_delete_markers() -> None:
    marked = {table.name for table in schema.TABLES if "DELETE_MARKERS" in table.attributes}
    assert marked == set(schema.DERIVED)
