"""Comments and files in the index of words: found at once, by rights, and the same after each repair."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.stored_wiki import ADA, KINDS, anybody, attach, save, settle, stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port import preparation, schema
from wikka_port.accounts.tables import SITE
from wikka_port.comments.comment_rows import REMOVED, Comment
from wikka_port.comments.stored_comments import NewComment
from wikka_port.consistency import check
from wikka_port.files.file_rows import FileVersion
from wikka_port.folder_format import NUMBER, ROW
from wikka_port.moving.journal import deleted
from wikka_port.names import page_key
from wikka_port.pages import Wiki
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.search import beside_pages, indexing, searching
from wikka_port.search.beside_pages import kind_of
from wikka_port.search.found_documents import Rights
from wikka_port.search.postings import STEMS, column_of, term_row
from wikka_port.search.query import parse
from wikka_port.search.words import Terms, terms

SEED = 20261130
WORDS = ("moon", "landing", "lunar", "rocket", "stone", "Häuser", "東京都", "river-bed", "don't")


@pytest.fixture(scope="module", params=KINDS)
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("words"), request.param) as made:
        yield made


@pytest.fixture
def wiki(prepared: Wiki) -> Iterator[Wiki]:
    settle(prepared)
    yield prepared
    for name in prepared.names(limit=10_000):
        prepared.mover.delete(name, ADA)
    settle(prepared)
    for one in deleted(prepared.rows):
        prepared.mover.purge(one.name, one.row, ADA)
    settle(prepared)
    assert [row for row, _ in prepared.rows.scan(schema.DOCS)] == [], "nothing is left of what is no more"
    assert [row for row, cells in prepared.rows.scan(schema.TERMS) if cells] == []


def commented(wiki: Wiki, page: str, text: str, **given: Any) -> Comment:
    new = NewComment(text, "Ben", "account", f"{page} {text}", given.pop("markup", "wikka"), **given)
    added = wiki.comments.add(page, b"", new, allow=anybody)
    settle(wiki)
    return added


def found(wiki: Wiki, typed: str, rights: Rights = searching.ALL) -> list[tuple[str, str, int | str]]:
    settle(wiki)
    hits = wiki.search(parse(typed), pages=10, rights=rights).hits
    return [(one.kind, one.name, one.comment or one.file) for one in hits]


def test_a_comment_is_found_until_it_is_changed_or_removed(wiki: Wiki) -> None:
    save(wiki, "Home", "a page of stones")
    first = commented(wiki, "Home", "The **rockets** landed, see %%codeword%%")
    assert found(wiki, "rocket landing") == found(wiki, "codeword") == [("comment", "Home", 1)]
    assert found(wiki, '"rockets landed"') == [("comment", "Home", 1)]
    assert found(wiki, '"landed rockets"') == []
    assert found(wiki, "stone") == [("page", "Home", "")]
    assert found(wiki, "rocket -landed") == found(wiki, "rocket by:Ada") == found(wiki, "rocket in:Other") == []
    assert found(wiki, "rocket by:ben in:Ho changed:>2020-01-01") == [("comment", "Home", 1)]
    wiki.comments.change("Home", b"", 1, lambda one: replace(one, text="a lunar module"), allow=anybody)
    assert (found(wiki, "rocket"), found(wiki, "modules")) == ([], [("comment", "Home", 1)])
    wiki.comments.change("Home", b"", 1, lambda one: replace(one, state=REMOVED), allow=anybody)
    assert found(wiki, "module") == []
    wiki.comments.change("Home", b"", 1, lambda one: replace(one, state=first.state), allow=anybody)
    assert found(wiki, "module") == [("comment", "Home", 1)]
    wiki.mover.rename("Home", "New", ADA, redirect=False)
    assert found(wiki, "module") == [("comment", "New", 1)]
    wiki.mover.delete("New", ADA)
    assert found(wiki, "module") == []
    wiki.mover.undelete("New", deleted(wiki.rows, "New")[0].row, ADA)
    assert found(wiki, "module") == [("comment", "New", 1)]
    commented(wiki, "New", "held rocket", state="held")
    commented(wiki, "New", "plain **rocket**s", markup="plain")
    assert found(wiki, "rocket") == [("comment", "New", 3)]
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_a_file_is_found_by_its_name_its_description_and_its_text(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    save(wiki, "Home", "text")
    plan = attach(wiki, "Home", "Moon_plan-2026.csv", b"rocket,stone\n1,2\n", alt="a table of journeys")
    for typed in ("plan", "2026", "csv", "journey", "rockets", '"moon plan"', "moon rocket kind:file", "by:Ada rocket"):
        assert found(wiki, typed) == [("file", "Home", "Moon_plan-2026.csv")], typed
    assert found(wiki, "rocket kind:page") == found(wiki, "rocket kind:comment") == []
    other = attach(wiki, "Home", "moon.csv", b"lunar,base\n", replaces=plan.token)
    assert (found(wiki, "rocket"), found(wiki, "lunar")) == ([], [("file", "Home", "Moon_plan-2026.csv")])
    described = wiki.files.describe("Home", other.name, other.token, ADA, alt="words of apollo", allow=anybody)
    assert (found(wiki, "journey"), len(found(wiki, "apollo"))) == ([], 1)
    wiki.mover.rename("Home", "New", ADA)
    assert found(wiki, "lunar") == [("file", "New", other.name)]
    removed = wiki.files.remove("New", other.name, described.token, ADA, allow=anybody)
    assert found(wiki, "lunar") == []
    wiki.files.restore("New", other.name, removed.token, plan, ADA, allow=anybody)
    assert (found(wiki, "lunar"), found(wiki, "stone")) == ([], [("file", "New", other.name)])
    wiki.mover.delete("New", ADA)
    assert found(wiki, "stone") == []
    wiki.mover.undelete("New", deleted(wiki.rows, "New")[0].row, ADA)
    assert found(wiki, "stone") == [("file", "New", other.name)]
    long = b"word " * (beside_pages.FILE_TEXT_BYTES // 5) + b"beyondword"
    attach(wiki, "New", "long.txt", long)
    assert (len(found(wiki, "word")), found(wiki, "beyondword")) == (1, [])
    attach(wiki, "New", "page.html", b"<!DOCTYPE html><p class=hiddenword>shown<b>word</b></p>")
    assert (len(found(wiki, "shown")), found(wiki, "hiddenword")) == (1, [])
    attach(wiki, "New", "archive.zip", b"PK\x05\x06" + bytes(18))
    assert found(wiki, "archive") == [("file", "New", "archive.zip")]
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_many_texts_of_one_page_are_indexed_in_groups(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "TOGETHER", 3)  # where the application indexes
    save(wiki, "Home", "text")
    for n in range(5):
        attach(wiki, "Home", f"f{n}.txt", f"common word{n} more{n}".encode())
    wiki.mover.rename("Home", "New", ADA)
    assert len(found(wiki, "common")) == 5
    assert found(wiki, "word3") == [("file", "New", "f3.txt")]
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_results_are_filtered_by_the_rights_of_the_visitor(wiki: Wiki) -> None:
    save(wiki, "Open", "moon")
    save(wiki, "Own", "moon", owner="Rita")
    for page in ("Open", "Own"):
        commented(wiki, page, "moon comment oneword" + page)
        attach(wiki, page, "moon.txt", b"moon fileword" + page.encode())
    web, rita = WikiClient(wiki), WikiClient(wiki).signed_in(f"Rita{wiki.indexes[:3]}{wiki.store._is_columnar}")
    owner = f"Rita{wiki.indexes[:3]}{wiki.store._is_columnar}"
    wiki.rights.change("Open", PageRights(""), "Ada", {Privilege.COMMENT_READ: owner})
    wiki.rights.change("Own", PageRights("Rita"), "Rita", {Privilege.READ: owner, Privilege.COMMENT_READ: owner})
    shown, whole = web.get("/-/search?q=moon").text, rita.get("/-/search?q=moon").text
    assert ("2 results" in shown, "6 results" in whole) == (True, True)
    assert ("Own" in shown, "Comment by" in shown, "/Open/file?file=moon.txt" in shown) == (False, False, True)
    assert "/Own/comments?at=1#c1" in whole
    assert "File of <a" in whole
    for word in ("onewordown", "filewordown", "onewordopen"):
        answer = web.get(f"/-/search?q={word}").text
        assert 'class="hit"' not in answer, word
        assert 'class="hit"' in rita.get(f"/-/search?q={word}").text, word
    api = web.get("/api/v1/search?q=moon").json
    assert {(one["kind"], one["name"], one["file"]) for one in api["hits"]} == {
        ("page", "Open", None),
        ("file", "Open", "moon.txt"),
    }
    assert web.get("/api/v1/search?q=onewordowm").json["instead"] == "", "no word of what may not be read is told"


def test_random_changes_and_a_look_at_everything(wiki: Wiki) -> None:
    rng = random.Random(SEED)
    pages, comments, files = ["A", "B"], dict[tuple[str, int], str](), dict[tuple[str, str], FileVersion]()
    for name in pages:
        save(wiki, name, "nothing")
    texts = dict[tuple[str, str], str]()
    for _ in range(40):
        page, text = rng.choice(pages), " ".join(rng.choices(WORDS, k=rng.randrange(1, 5)))
        kind = rng.randrange(4)
        if kind == 0:
            comments[page, commented(wiki, page, f"{text} {rng.random()}").number] = text
        elif kind == 1 and comments:
            at = rng.choice(list(comments))
            wiki.comments.change(at[0], b"", at[1], lambda one, t=text: replace(one, text=t), allow=anybody)  # type: ignore[misc]
            comments[at] = text
        elif kind == 2:
            name = f"f{rng.randrange(3)}.txt"
            before = files.get((page, name))
            files[page, name] = attach(wiki, page, name, text.encode(), replaces=before.token if before else "")
            texts[page, name] = text
        elif files:
            at_file = rng.choice(list(files))
            wiki.files.remove(at_file[0], at_file[1], files.pop(at_file).token, ADA, allow=anybody)
            del texts[at_file]
    settle(wiki)
    for one in (*"東京都", "月"):
        having: set[tuple[str, str, int | str]] = {("comment", *at) for at, text in comments.items() if one in text}
        having |= {("file", *at) for at, text in texts.items() if one in text}
        assert set(found(wiki, one)) == having, one
    for word in WORDS:
        expected = {("comment", page, number) for (page, number), text in comments.items() if word in text.split()}
        expected |= {("file", page, name) for (page, name), text in texts.items() if word in text.split()}  # type: ignore[misc]
        assert set(found(wiki, f'"{word}"')) == expected, word
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_a_check_finds_and_repairs_what_is_wrong(wiki: Wiki) -> None:
    save(wiki, "Home", "moon")
    commented(wiki, "Home", "rocket stone")
    attach(wiki, "Home", "plan.txt", b"lunar words")
    docs = dict(wiki.rows.scan(schema.DOCS))
    comment, file = (next(row for row in docs if kind_of(row) == kind) for kind in ("comment", "file"))
    rows = {term_row(word, key) for key in docs for word in ("rocket", "lunar")}
    before = {row: wiki.rows.row(schema.TERMS, row) for row in rows}
    wiki.rows.delete(schema.TERMS, term_row("rocket", comment), [column_of(comment)])
    wiki.rows.put(schema.TERMS, term_row("lunar", comment), {column_of(comment): b"\0\0\1\2"})
    wiki.rows.put(schema.TERMS, term_row("lunar", file), {column_of(file): b"\0\0\7\2"})
    wiki.rows.put(schema.DOCS, file, {STEMS: b"wrong"})
    nobody = page_key("Nobody") + b"f" + b"0" * 15
    wiki.rows.put(schema.TERMS, term_row("lunar", nobody), {column_of(nobody): b"\0\0\1\2"})
    wiki.rows.put(schema.DOCS, nobody, {STEMS: b"lunar"})
    differences = check(wiki, settle=lambda: settle(wiki)).differences
    assert {(one.table, one.row) for one in differences} == {
        *((schema.TERMS, row) for row in (comment, file, nobody)),
        *((schema.DOCS, row) for row in (file, nobody)),
    }
    assert check(wiki, repair=True, settle=lambda: settle(wiki)).left == ()
    assert dict(wiki.rows.scan(schema.DOCS)) == docs
    assert {row: wiki.rows.row(schema.TERMS, row) for row in before} == before


def test_preparing_an_older_folder_indexes_comments_and_files(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    if wiki.indexes == "triggers":
        pytest.skip("its worker cannot be made to leave them out")
    monkeypatch.setattr("wikka_port.application_indexes.index_comment", lambda *_: None)
    monkeypatch.setattr("wikka_port.application_indexes.index_file", lambda *_: None)
    save(wiki, "Home", "moon")
    commented(wiki, "Home", "rocket")
    attach(wiki, "Home", "plan.txt", b"lunar words")
    assert found(wiki, "rocket") == found(wiki, "lunar") == []
    monkeypatch.undo()
    wiki.rows.put(SITE, ROW, {NUMBER: b"4"})
    assert wiki.prepare() == []
    assert (len(found(wiki, "rocket")), len(found(wiki, "lunar"))) == (1, 1)
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_preparing_an_older_folder_indexes_characters(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    if wiki.indexes == "triggers":
        pytest.skip("its worker cannot be made to leave them out")
    monkeypatch.setattr("wikka_port.search.postings.terms", lambda *given: Terms(terms(*given).stems, []))
    save(wiki, "Home", "潮 汐 moon")  # an edit deletes the postings of both characters
    save(wiki, "Home", "潮汐 moon")
    save(wiki, "Moon", "moon 月")
    commented(wiki, "Home", "赤潮")
    attach(wiki, "Home", "潮流.txt", b"moon")
    attach(wiki, "Home", "words.txt", b"moon")
    assert (found(wiki, "潮"), len(found(wiki, "潮汐"))) == ([], 1)
    monkeypatch.undo()
    wiki.rows.put(SITE, ROW, {NUMBER: b"5"})
    assert wiki.prepare() == []
    assert {one[0] for one in found(wiki, "潮")} == {"page", "comment", "file"}
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()
    assert wiki.store.run(preparation.index_characters) == 3, "of five documents three have pairs"
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_a_crowd_of_comments_does_not_hide_the_page(wiki: Wiki) -> None:
    save(wiki, "Home", "moon and further words about it")
    for n in range(25):
        commented(wiki, "Home", f"moon {n}")
    assert found(wiki, "moon")[0] == ("page", "Home", "")
    assert wiki.search(parse("moon"), pages=10).count == 26
    assert len(wiki.search(parse("moon"), pages=10, page=2).hits) == 6
    assert [one[0] for one in found(wiki, "moon kind:pages")] == ["page"]
    assert parse("moon kind:none").problems
