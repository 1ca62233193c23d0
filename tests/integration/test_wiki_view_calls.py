"""How often a page view calls the store, counted at the client's own requests.  It must not come to be more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from werkzeug.test import Client

from columnar.client import Connection
from tests.support.sent_calls import counted_calls
from tests.support.stored_wiki import stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.sessions import Sessions
from wikka_port.app import make_application
from wikka_port.comments.comment_rows import (
    COMMENTS,
    COMMENTS_HEAD,
    Comment,
    CommentsHead,
    comment_row,
    path_under,
)
from wikka_port.config import WikiConfig
from wikka_port.names import page_key
from wikka_port.pages import Wiki
from wikka_port.rights import stored
from wikka_port.schema import PAGES, cells_of

PLAIN = 1  # the page's row, which brings its rights and the version of the site's rules
LINKING = 2  # and which of the linked pages exist
ACCOUNT = 1  # the row of who is signed in


@pytest.fixture
def wiki(tmp_path: Path) -> Iterator[Wiki]:
    with stored_wiki(tmp_path) as made:
        made.save("Plain", "A text without links.", author="a", base=0)
        made.save("Linking", "To [[Plain]] and [[Nowhere]].", author="a", base=0)
        yield made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods that are called, in order; the rules of the site are read once, however slow the machine is."""
    monkeypatch.setattr(stored, "RIGHTS_AGE_S", 1e9)
    return counted_calls(monkeypatch)


def calls_of(web: Client, path: str, calls: list[str]) -> list[str]:
    """Of the second view: the first one reads the rules of the site, which are kept for a moment."""
    for _ in range(2):
        calls.clear()
        assert web.get(path).status_code == 200
    return calls


def test_a_view_calls_the_store_as_often_as_it_always_did(wiki: Wiki, calls: list[str]) -> None:
    application = make_application(wiki, WikiConfig(secret=b"s" * 32), clock=lambda: 1_000_000.0)
    web, person = Client(application), Client(application)
    account = Directory(wiki.rows, lambda: 1_000_000_000).make("Ada", status="active")
    cookie = Sessions(wiki.rows, lambda: 1_000_000_000).begin(account, network="192.0.2.0", agent="a test")
    assert cookie is not None
    person.set_cookie("wikka_session", cookie)
    for path, expected in (("/Plain", PLAIN), ("/Linking", LINKING)):
        assert len(calls_of(web, path, calls)) == expected, path
        assert len(calls_of(person, path, calls)) == expected + ACCOUNT, path


def test_unread_notices_cost_one_call_and_none_at_all_once_they_are_read(wiki: Wiki, calls: list[str]) -> None:
    web = WikiClient(wiki, edit_burst=1_000)
    ada = web.signed_in("Ada")
    ada.post("/Plain/watch", {**ada.form("/Plain/watch"), "do": "page"})
    web.save("/Plain", "An edit of a visitor.")
    assert "1 new" in ada.get("/Linking").text
    assert len(calls_of(ada.client, "/Linking", calls)) == LINKING + ACCOUNT + 1
    inbox = ada.form("/-/inbox")
    ada.post("/-/inbox", {**inbox, "do": "read"})
    assert "You watch this page" in ada.get("/Plain").text
    assert len(calls_of(ada.client, "/Plain", calls)) == PLAIN + ACCOUNT
    assert len(calls_of(ada.client, "/Linking", calls)) == LINKING + ACCOUNT


def test_an_unread_comment_costs_one_call_more_which_finds_it_deleted(wiki: Wiki, calls: list[str]) -> None:
    web = WikiClient(wiki, edit_burst=1_000)
    ada = web.signed_in("Ada")
    ada.post("/Plain/watch", {**ada.form("/Plain/watch"), "do": "page"})
    web.post("/Plain/comments", {**web.form("/Plain/comments"), "body": "A comment.", "send": "1"})
    assert "1 new" in ada.get("/Linking").text
    assert len(calls_of(ada.client, "/Linking", calls)) == LINKING + ACCOUNT + 2
    path = "/Plain/comments"
    assert web.post(path, {**web.form(f"{path}?remove=1"), "remove": "1", "send": "1"}).status_code == 303
    assert "1 new" not in ada.get("/Linking").text


def test_a_save_of_the_editor_reads_its_page_once(wiki: Wiki, calls: list[str]) -> None:
    """Of a page that is there and of a new one: one call reads it, the next ones stage and commit.

    Between them the settings of antispam are read, since the visitor is not trusted yet.
    """
    web = WikiClient(wiki)
    web.save("/Plain", "The first save of a process asks what store it is.")
    for path in ("/Plain", "/New"):
        form = {**web.form(f"{path}/edit"), "body": f"Text of {path}."}
        calls.clear()
        assert web.post(f"{path}/edit", form).status_code == 303, path
        assert calls[0] in ("getRow", "getRows", "getRowWithColumns", "getRowsWithColumns"), (path, calls)
        assert calls[1:4] == ["getRowWithColumns", "columnarLoadRows", "columnarCheckAndMutate"], (path, calls)


def test_comments_cost_the_same_at_any_number(wiki: Wiki, calls: list[str]) -> None:
    """The first part of 10,000 comments is one call, and one more comment costs as many calls as the third."""
    web, counted = WikiClient(wiki), list[int]()
    for present in (1, 2, 10_000):
        fill_with_comments(wiki, "Plain", present)
        web.get("/Plain")  # reads the rules of the site, which are kept for a moment
        form = {**web.form("/Plain/comments"), "body": f"After {present}.", "send": "1"}
        calls.clear()
        assert (
            web.post("/Plain/comments", form).headers["Location"] == f"/Plain/comments?at={present + 1}#c{present + 1}"
        )
        # a process finds the owners of a table's regions once, some of them with the second comment
        counted.append(sum(call != "columnarRegionOwners" for call in calls))
    assert counted[1] == counted[2], "the first comment of a page has none before it"
    for order in ("newest", "oldest"):
        assert len(calls_of(web.client, f"/Plain?comments={order}", calls)) == PLAIN + 1
        assert web.get(f"/Plain?comments={order}").text.count('<li id="c') == 100, order


def fill_with_comments(wiki: Wiki, page: str, number: int) -> None:
    """Put so many comments into the store as they lie there."""
    history = page_key(page)
    template = Comment(0, 1_000, "Ada", "account", "A text.", "", "0" * 16, "wikka", op=b"1:" + b"0" * 16)
    rows = {
        comment_row(history, one): cells_of(replace(template, number=one, path=path_under(None, one)))
        for one in range(1, number + 1)
    }

    def put(connection: Connection) -> None:
        with connection.table(COMMENTS).batch(batch_size=500) as batch:
            for row, cells in rows.items():
                batch.put(row, cells)

    wiki.store.run(put)
    head = CommentsHead(number, number, number, 10**12, b"0" * 16)
    wiki.rows.put(PAGES, history, {COMMENTS_HEAD: head.pack()})


def test_comments_that_are_shown_cost_one_call(wiki: Wiki, calls: list[str]) -> None:
    """The links in comments are looked up together with those of the page."""
    web = WikiClient(wiki)
    for text, further in (("A comment.", 1), ("Another one to [[Plain]].", 2)):
        for path in ("/Plain", "/Linking"):
            form = {**web.form(f"{path}/comments"), "body": text, "send": "1"}
            assert web.post(f"{path}/comments", form).status_code == 303
        assert len(calls_of(web.client, "/Plain", calls)) == PLAIN, "only their number is shown"
        assert len(calls_of(web.client, "/Plain?comments=threaded", calls)) == PLAIN + further
        assert len(calls_of(web.client, "/Linking?comments=newest", calls)) == LINKING + 1
