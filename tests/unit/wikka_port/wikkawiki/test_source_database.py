"""WikkaWiki's tables out of a dump and out of SQLite: which they are, and texts of every character set."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sql_dumps import dump_of, pieces_of
from wikka_port.wikkawiki.source_database import NoWikkaWiki, Source, copied, opened
from wikka_port.wikkawiki.source_pages import SourcePages
from wikka_port.wikkawiki.sql_text import SqlDumpError
from wikka_port.wikkawiki.stored_text import TextReader, WordLinks, encoded_twice, latin_text, with_bars, word_links

PAGE = ("id", "tag", "time", "body", "owner", "user", "latest", "note")


def page(tag: bytes, body: bytes) -> tuple[bytes, ...]:
    return (b"1", tag, b"2009-09-01 10:00:00", body, b"", b"JoDoe", b"Y", b"")


def read(tmp_path: Path, sql: bytes, prefix: str | None = None) -> Source:
    return copied(pieces_of(sql, 1_000), tmp_path / "copy.sqlite", prefix)


@pytest.mark.parametrize(
    ("typed", "pages", "other_wikis"),
    [
        ("a [[HomePage home]] b", "a [[HomePage | home]] b", None),
        ("a [[Größe9 groß und klein]] b", "a [[Größe9 | groß und klein]] b", None),
        ("[[ WikiPedia:Tide the\ntides ]]", "[[WikiPedia:Tide | the\ntides]]", "[[WikiPedia:Tide | the\ntides]]"),
        ('""[[A b]]"" %%[[A b]]%% [[A b]]', '""[[A b]]"" %%[[A b]]%% [[A | b]]', None),
        ("[[http://x.org a b]] [[A | b c]] [[A]] [[ A ]] [[a [b]]", None, None),
    ],
)
def test_links_with_words_behind_a_blank_get_a_bar(typed: str, pages: str | None, other_wikis: str | None) -> None:
    kinds: tuple[tuple[WordLinks, str], ...] = (
        ("any", pages or typed),
        ("words", pages or typed),
        ("none", other_wikis or typed),
    )
    for of_pages, wanted in kinds:
        assert with_bars(typed, of_pages=of_pages) == wanted
        assert with_bars(wanted, of_pages=of_pages) == wanted


def test_from_1_3_to_1_3_6_only_names_of_letters_and_digits_have_words_behind_a_blank() -> None:
    typed = "[[Some-Page words]] [[9Lives words]] [[A_b words]] [[Ab words]]"
    assert with_bars(typed, of_pages="words") == typed.replace("Ab w", "Ab | w")
    assert with_bars(typed, of_pages="any").count(" | ") == 4


@pytest.mark.parametrize(
    ("version", "has_titles", "found"),
    [
        ("", False, "any"), ("1.4.2", False, "any"), ("1.3", True, "words"), ("1.3.0", True, "words"),
        ("1.3.6-p1", True, "words"), ("1.3.7", True, "none"), ("1.4.2", True, "none"), ("1.10.0", True, "none"),
        ("2.0", True, "none"), ("trunk", True, None), ("0", True, None), ("", True, None),
    ],
)  # fmt: skip
def test_the_version_says_which_links_have_words(version: str, has_titles: bool, found: WordLinks | None) -> None:
    assert word_links(version, has_titles=has_titles) == found


def test_links_that_an_unknown_version_would_decide_are_named(tmp_path: Path) -> None:
    body = b"[[HomePage home]] [[HomePage again]] [[HomePage is_there]] [[Nowhere words]] [[HomePage | bar]]"
    body += b" %%[[HomePage x]]%%"
    rows = [
        (b"1", b"HomePage", body),
        (b"2", b"HomePage_is_there", b""),
        (b"3", b"OtherPage", b"[[HomePage is there]]"),
    ]
    made = [(number, tag, b"2013-09-01 10:00:00", text, b"", b"JoDoe", b"Y", b"", b"") for number, tag, text in rows]
    source = read(tmp_path, dump_of({"x_pages": ((*PAGE, "title"), made)}))
    assert SourcePages.ordered(source).unclear_links() == ["HomePage: [[HomePage home]], [[HomePage again]]"]
    known = replace(source, version="1.3.2")
    assert SourcePages.ordered(known).unclear_links() == []
    assert "[[HomePage | home]]" in dict(SourcePages.ordered(known).newest())["HomePage"]
    assert SourcePages.ordered(replace(source, version="1.4.2")).unclear_links() == []


def test_only_old_wikis_have_pages_with_words_behind_a_blank_and_the_text_is_kept_as_it_was(tmp_path: Path) -> None:
    for title, body in (((), "[[HomePage | home]]"), (("title",), "[[HomePage home]]")):
        row = (*page(b"HomePage", b"[[HomePage home]]"), *(b"Home" for _ in title))
        found = SourcePages.ordered(read(tmp_path, dump_of({"x_pages": ((*PAGE, *title), [row])})))
        (part,) = found
        (revision,) = part.revisions
        assert (revision.body, revision.source) == (body, None if title else "[[HomePage home]]")
        assert list(found.newest()) == [("HomePage", body)]
        (tmp_path / "copy.sqlite").unlink(missing_ok=True)


def test_tables_of_any_prefix_are_found_and_others_left_out(tmp_path: Path) -> None:
    sql = dump_of({
        "x_pages": (PAGE, [page(b"HomePage", b"a"), page(b"OtherPage", b"b")]),
        "x_users": (("name", "password"), []),
        "x_referrers": (("page_tag",), [(b"HomePage",)]),
        "x_subpages": (("id",), [(b"1",)]),
    })  # fmt: skip
    source = read(tmp_path, sql)
    assert (source.prefix, source.counts) == ("x_", {"pages": 2, "users": 0})
    assert list(source.rows("pages", ("tag", "body", "title"), "tag")) == [
        ("HomePage", "a", ""),
        ("OtherPage", "b", ""),
    ]
    assert list(source.rows("acls", ("page_tag",), "page_tag")) == []
    assert not source.escapes_html


def test_several_wikis_in_one_database_are_told_apart_by_their_prefix(tmp_path: Path) -> None:
    sql = dump_of({"a_pages": (PAGE, [page(b"A", b"")]), "b_pages": (PAGE, [page(b"B", b"")])})
    with pytest.raises(NoWikkaWiki, match=r"'a_', 'b_'.*--prefix"):
        read(tmp_path, sql)
    assert list(opened(tmp_path / "copy.sqlite", "b_").rows("pages", ("tag",), "id")) == [("B",)]
    with pytest.raises(NoWikkaWiki, match=r"no tables.*'c_'"):
        opened(tmp_path / "copy.sqlite", "c_")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all, but long enough to look for its header\n" * 20)
    with pytest.raises(NoWikkaWiki, match="is no SQLite database"):
        opened(tmp_path / "text")
    with pytest.raises(SqlDumpError, match="line 1"):
        read(tmp_path, b"<?xml version='1.0'?><mediawiki>")


def test_a_database_is_opened_without_writing_to_it(tmp_path: Path) -> None:
    made = sqlite3.connect(tmp_path / "wikka.sqlite")
    made.execute(f"CREATE TABLE pages ({', '.join(PAGE)}, title)")
    made.execute("INSERT INTO pages VALUES (1, 'A', '', '', NULL, '', 'Y', '', '')")
    made.commit()
    made.close()
    before = (tmp_path / "wikka.sqlite").read_bytes()
    source = opened(tmp_path / "wikka.sqlite")
    assert source.escapes_html
    assert list(source.rows("pages", ("tag", "owner"), "id")) == [("A", "")]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        source.database.execute("DELETE FROM pages")
    assert (tmp_path / "wikka.sqlite").read_bytes() == before


TEXT = "Grüße, “Zitat” – naïve Ω 日本"


@pytest.mark.parametrize(
    ("charset", "stored", "repaired"),
    [
        ("utf8", TEXT.encode(), 0),
        ("utf8mb4", (TEXT + "😀").encode(), 0),
        ("latin1", TEXT.encode(), 1),  # UTF-8 through a latin1 connection, and dumped so
        ("utf8", latin_text(TEXT.encode()).encode(), 1),  # the same, dumped as UTF-8
        ("latin1", "Grüße – “Zitat” €".encode("cp1252"), 0),
    ],
)
def test_texts_of_every_character_set(tmp_path: Path, charset: str, stored: bytes, repaired: int) -> None:
    source = read(tmp_path, dump_of({"pages": (PAGE, [page(b"A", stored)])}, 0, charset))
    (found,) = source.rows("pages", ("body",), "id")
    expected = {0: TEXT, 1: TEXT + "😀", 4: "Grüße – “Zitat” €"}
    assert found[0] in expected.values()
    assert (source.repaired, source.damaged) == (repaired, 0)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_what_was_encoded_twice_is_recognised_and_what_was_not_is_left_alone(text: str) -> None:
    twice = latin_text(text.encode())
    assert encoded_twice(twice) == (None if text.isascii() else text)
    reader = TextReader(lambda: "utf8")
    if encoded_twice(text) is None:
        assert reader.text(text.encode()) == text
    assert (reader.text(b"\xff\xfe"), reader.damaged) == ("ÿþ", 1)
