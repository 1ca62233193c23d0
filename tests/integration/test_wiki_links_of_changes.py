"""No link of a list of changes is dead, whatever was renamed, deleted, begun anew or hidden; on a store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from werkzeug.test import TestResponse

from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import wiki_on
from tests.support.wiki_client import WikiClient
from wikka_port.moving.mover import By

ANN = By("Ann", "account", "because")
_LINK = re.compile(r'<a [^>]*href="(/[^"]*)"')


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("changes") / "data") as running:
        yield running


@pytest.fixture
def web(store: StoreThread) -> Iterator[WikiClient]:
    with wiki_on(store.port) as wiki:
        yield WikiClient(wiki, edit_burst=10_000)


def save(web: WikiClient, name: str, *bodies: str) -> None:
    for body in bodies:
        page = web.wiki.page(name)
        web.wiki.save(name, body, author="Ann", base=page.number if page else 0, signed="account")


def links_of(answer: TestResponse) -> set[str]:
    """Those that lead to differences and revisions."""
    found = {unescape(link) for link in _LINK.findall(answer.text)}
    return {link for link in found if any(part in link for part in ("/diff", "/revert", "/history", "revision="))}


def dead_links(web: WikiClient, *paths: str) -> set[str]:
    """Of these pages, and of the pages that they lead to."""
    seen, left, dead = set[str](), set(paths), set[str]()
    while left:
        path = left.pop()
        seen.add(path)
        answer = web.get(path, follow_redirects=True)
        if answer.status_code >= 400:
            dead.add(path)
        else:
            left |= links_of(answer) - seen
    return dead


def test_behind_a_rename_the_old_name_has_no_dead_link(web: WikiClient) -> None:
    save(web, "Renamed", "one", "two")
    web.wiki.mover.rename("Renamed", "Renamed since", ANN)
    assert dead_links(web, "/-/recentchanges", "/Renamed/revisions", "/Renamed/history", "/Renamed/diff") == set()
    assert "#REDIRECT" in web.get("/Renamed/diff").text, "the page begins with this text"


def test_a_page_that_was_begun_anew_has_no_dead_link(web: WikiClient) -> None:
    save(web, "Anew", "one", "two")
    web.wiki.mover.delete("Anew", ANN)
    save(web, "Anew", "three", "four")
    assert dead_links(web, "/-/recentchanges", "/Anew/revisions", "/Anew/history", "/Anew/diff?b=3") == set()
    assert web.get("/Anew/diff?a=2&b=3").status_code == 404, "that text is of another page"


def test_a_change_is_shown_beside_the_last_one_before_it_that_is_not_hidden(web: WikiClient) -> None:
    save(web, "Hiding", *(f"text {number}" for number in range(1, 14)))
    root = web.signed_in("Root", admin=True)
    for number in (3, 7, 8, 12):
        fields = {**root.form("/Hiding/hide"), "revision": str(number)}
        assert root.post("/Hiding/hide", fields).status_code == 303
    assert dead_links(root, "/Hiding/revisions", "/Hiding/history", "/Hiding/diff") == set()
    assert root.form("/Hiding/revert")["base"] == "13", "back to revision 11"
    assert "revision 11" in root.get("/Hiding/revert").text
    shown = root.get("/Hiding/diff?b=9").text
    assert "Revision 6" in shown
    assert "text <del>6</del>" in shown
    assert "text <ins>9</ins>" in shown
    assert "text <del>2</del>" in root.get("/Hiding/history?below=5").text


@pytest.mark.parametrize("hidden", [2, 3, 4])
def test_the_last_change_in_full_of_a_list_is_no_whole_page(web: WikiClient, hidden: int) -> None:
    """The list has ten changes; the text before the tenth one may be hidden, or the one before it."""
    name = f"Full {hidden}"
    save(web, name, *(f"text {number}" for number in range(1, 14)))
    root = web.signed_in(f"Root {hidden}", admin=True)
    fields = {**root.form(f"/Full_{hidden}/hide"), "revision": str(hidden)}
    assert root.post(f"/Full_{hidden}/hide", fields).status_code == 303
    shown = root.get(f"/Full_{hidden}/history").text
    assert len(re.findall(r"text <del>\d+</del>", shown)) == 10
