"""The pages that use a file: exactly those whose HTML shows or links to it, kept by triggers or the application."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator

import pytest

from tests.support.stored_wiki import ADA, KINDS, anybody, attach, save, settle, stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port import link_index, preparation, schema
from wikka_port.accounts.tables import SITE
from wikka_port.consistency import check
from wikka_port.file_uses import MARK, key_of_file, key_of_name
from wikka_port.files.file_html import NO_FILES, find_files
from wikka_port.files.file_rows import FileVersion
from wikka_port.folder_format import NUMBER, ROW
from wikka_port.markup.document import parse
from wikka_port.moving.journal import deleted
from wikka_port.names import page_key
from wikka_port.pages import Wiki
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.visitors import OPERATOR

SEED = 20261130


@pytest.fixture(scope="module", params=KINDS)
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("uses"), request.param) as made:
        yield made


@pytest.fixture
def wiki(prepared: Wiki) -> Wiki:
    """The wiki without pages; what the tests before left in its indexes goes with them."""
    for name in prepared.names(limit=10_000):
        prepared.mover.delete(name, ADA)
    settle(prepared)
    return prepared


def users(wiki: Wiki, page: str, file: str, limit: int = 100) -> list[str]:
    files = GuardedWiki(wiki, OPERATOR).files(page)
    own, current = files.find(file)
    assert current is not None
    return files.used_on_part(own, current, limit=limit)[0]


def seen(wiki: Wiki, page: str, file: str, pages: Collection[str]) -> set[str]:
    """Look at the HTML of every page, as a reader would."""
    found = set[str]()
    files = {name: wiki.files.files_of(name) for name in pages}
    for name in pages:
        held = wiki.page(name)
        assert held is not None
        named = parse(held.body, markup=held.markup).files
        shared = wiki.files.config.shared_page
        meant = find_files(
            named, name, files.get(name, NO_FILES), shared, lambda names: {n: files[n] for n in names if n in files}
        )  # type: ignore[misc]
        if any((one.page, one.name) == (page, file) for one in meant.values()):
            found.add(name)
    return found


def test_a_file_is_used_where_a_text_shows_it(wiki: Wiki) -> None:
    for name in ("Home", "Home/Sub", "Home/Sub/Deep", "Other", "Files", "Homeless"):
        save(wiki, name, "text")
    attach(wiki, "Home", "Plan.txt")
    assert users(wiki, "Home", "Plan.txt") == []
    save(wiki, "Home", "[[Plan.txt]]")
    save(wiki, "Home/Sub/Deep", "{{files download='plan.TXT'}}")
    save(wiki, "Other", "[[file:Home/Plan.txt|the plan]] [[Plan.txt]]", markup="wikka")
    save(wiki, "Homeless", "[[Plan.txt]]")
    assert users(wiki, "Home", "Plan.txt") == ["Home", "Home/Sub/Deep", "Other"]
    attach(wiki, "Home/Sub", "plan.txt")
    assert users(wiki, "Home", "Plan.txt") == ["Home", "Other"], "the nearer file is meant below it"
    assert users(wiki, "Home/Sub", "plan.txt") == ["Home/Sub/Deep"]
    attach(wiki, "Files", "Plan.txt")
    assert users(wiki, "Files", "Plan.txt") == ["Homeless", "Other"]
    save(wiki, "Other", "no more")
    assert users(wiki, "Home", "Plan.txt") == ["Home"]
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_uses_follow_moves_of_pages_and_the_end_of_a_file(wiki: Wiki) -> None:
    save(wiki, "Home", "[[a.txt]]")
    save(wiki, "Other", "[[file:Home/a.txt]]")
    version = attach(wiki, "Home", "a.txt")
    wiki.mover.rename("Other", "New", ADA)
    settle(wiki)
    assert users(wiki, "Home", "a.txt") == ["Home", "New"], "the redirect at the old name shows no file"
    wiki.mover.delete("New", ADA)
    settle(wiki)
    assert users(wiki, "Home", "a.txt") == ["Home"]
    wiki.mover.undelete("New", deleted(wiki.rows, "New")[0].row, ADA)
    settle(wiki)
    assert users(wiki, "Home", "a.txt") == ["Home", "New"]
    wiki.files.remove("Home", "a.txt", version.token, ADA, allow=anybody)
    assert users(wiki, "Home", "a.txt") == ["Home", "New"], "of a removed file those that name it"
    wiki.mover.rename("Home", "Moved", ADA)
    settle(wiki)
    assert users(wiki, "Moved", "a.txt") == ["Moved"], "the file went along, and the text of New names it at Home"
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_random_texts_and_files(wiki: Wiki) -> None:
    rng = random.Random(SEED)
    pages = ["A", "A/B", "A/B/C", "D", "Files", "A-x"]
    for name in pages:
        save(wiki, name, "text")
    names, there = ("one.txt", "Two.csv", "three.md"), dict[tuple[str, str], FileVersion]()
    for _ in range(25):
        page = rng.choice(pages)
        if rng.random() < 0.4 and len(there) < 12:
            file = rng.choice(names)
            if (page, file) not in there:
                there[page, file] = attach(wiki, page, file, rng.randbytes(4).hex().encode())
            continue
        parts = [f"[[{rng.choice((*names, 'ONE.txt', 'Page'))}]]" for _ in range(rng.randrange(3))]
        parts += [f"[[file:{rng.choice(pages)}/{rng.choice(names)}]]" for _ in range(rng.randrange(2))]
        save(wiki, page, " ".join(parts) or "nothing")
    assert there
    for page, file in there:
        assert set(users(wiki, page, file)) == seen(wiki, page, file, pages), (page, file)
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_a_long_list_comes_in_parts(wiki: Wiki) -> None:
    save(wiki, "Home", "text")
    attach(wiki, "Home", "a.txt")
    expected = {f"User {n}" for n in range(12)} | {f"Home/Below {n}" for n in range(12)}
    for name in sorted(expected):
        save(wiki, name, "[[file:Home/a.txt]]" if name.startswith("User") else "[[a.txt]]")
    for n in range(12):
        save(wiki, f"Zed {n}", "[[a.txt]]")  # not below the page that has the file
    web, found, path = WikiClient(wiki), list[str](), "/Home/backlinks?file=A.txt"
    files = GuardedWiki(wiki, OPERATOR).files("Home")
    own, current = files.find("a.txt")
    assert current is not None
    step, after = files.used_on_part(own, current, limit=5)
    while found.extend(step) or after:
        assert step == sorted(step, key=page_key)
        step, after = files.used_on_part(own, current, after=after, limit=5)
    assert (sorted(found), len(found)) == (sorted(expected), len(expected))
    answer = web.get(path)
    assert answer.status_code == 200
    assert all(name in answer.text for name in expected)
    assert web.get("/Home/backlinks?file=none.txt").status_code == 404
    assert web.get("/Nowhere/backlinks?file=a.txt").status_code == 404


def test_only_readable_pages_are_named_and_a_hidden_file_hides_no_use(wiki: Wiki) -> None:
    save(wiki, "Home", "text")
    save(wiki, "Home/Secret", "[[a.txt]]", owner="Rita")
    save(wiki, "Home/Secret/Below", "[[a.txt]]")
    attach(wiki, "Home", "a.txt")
    attach(wiki, "Home/Secret", "a.txt")
    web, rita = WikiClient(wiki), WikiClient(wiki).signed_in("Rita")
    assert users(wiki, "Home", "a.txt") == []
    wiki.rights.change("Home/Secret", PageRights("Rita"), "Rita", {Privilege.READ: "Rita"})
    for path in ("/Home/file?file=a.txt", "/Home/backlinks?file=a.txt"):
        shown = web.get(path).text
        assert "/Home~2FSecret~2FBelow" in shown, "what this reader sees in that page is the file of Home"
        assert '"/Home~2FSecret"' not in shown
        assert "Below" not in rita.get(path).text
    assert web.get("/Home~2FSecret/backlinks?file=a.txt").status_code == 403


def test_a_check_finds_and_repairs_what_the_index_lacks_or_has_too_much(wiki: Wiki) -> None:
    save(wiki, "Home", "[[a.txt]] [[Page]]")
    save(wiki, "Other", "[[file:Home/a.txt]]")
    attach(wiki, "Home", "a.txt")
    exact, loose = key_of_file("Home", "a.txt"), key_of_name("a.txt")
    source, none = schema.FROM + page_key("Other"), schema.FROM + page_key("Nobody")
    before = {row: wiki.rows.row(schema.BACKLINKS, row) for row in (exact, loose, page_key("Home"))}
    wiki.rows.delete(schema.BACKLINKS, exact, [source])
    wiki.rows.put(schema.BACKLINKS, loose, {none: b"Nobody", schema.FROM + page_key("Home"): b"Wrong"})
    wiki.rows.put(schema.BACKLINKS, page_key("Home"), {schema.TO + key_of_name("b.txt"): b"b.txt"})
    assert users(wiki, "Home", "a.txt") != ["Home", "Other"]
    found = check(wiki, settle=lambda: settle(wiki)).differences
    assert {one.table for one in found} == {schema.BACKLINKS}
    assert {one.kind.value for one in found} == {"missing", "stale", "different"}
    assert check(wiki, repair=True, settle=lambda: settle(wiki)).left == ()
    assert {row: wiki.rows.row(schema.BACKLINKS, row) for row in before} == before
    assert not any(row.startswith(MARK) for row, _ in wiki.rows.scan(schema.WANTED)), "no file is wanted"


def test_preparing_an_older_folder_lists_the_files_that_texts_name(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    if wiki.indexes == "application":
        monkeypatch.setattr(link_index, "targets_of_files", lambda page, named: {})  # as an older program
    save(wiki, "Home", "[[old.txt]]\n")
    save(wiki, "Mark", "![words](old.txt) [w](<b c.txt>)", markup="markdown")
    save(wiki, "Plain", "3.5 words, e.g. [[Home]]. The end.")
    attach(wiki, "Home", "old.txt")
    assert users(wiki, "Home", "old.txt") == ([] if wiki.indexes == "application" else ["Home"])
    monkeypatch.undo()
    wiki.rows.put(SITE, ROW, {NUMBER: b"4"})
    assert wiki.prepare() == []
    assert users(wiki, "Home", "old.txt") == ["Home"]
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()
    assert wiki.store.run(preparation.list_named_files) == 2
