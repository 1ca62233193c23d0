"""How often a page view calls the store, counted at the client's own requests.  It must not come to be more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.test import Client

from tests.support.sent_calls import counted_calls
from tests.support.store_thread import StoreThread
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.sessions import Sessions
from wikka_port.app import make_application
from wikka_port.config import WikiConfig
from wikka_port.pages import Wiki

PLAIN = 1  # the page's row, which brings its rights and the version of the site's rules
LINKING = 2  # and which of the linked pages exist
ACCOUNT = 1  # the row of who is signed in


@pytest.fixture
def wiki(tmp_path: Path) -> Iterator[Wiki]:
    with StoreThread(tmp_path) as store:
        made = Wiki("127.0.0.1", store.port, indexes="application")
        made.prepare()
        made.save("Plain", "A text without links.", author="a", base=0)
        made.save("Linking", "To [[Plain]] and [[Nowhere]].", author="a", base=0)
        yield made
        made.store.close()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods that are called, in order."""
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


def test_a_save_of_the_editor_reads_its_page_once(wiki: Wiki, calls: list[str]) -> None:
    """Of a page that is there and of a new one: one call reads it, the next ones stage and commit."""
    web = WikiClient(wiki)
    web.save("/Plain", "The first save of a process asks what store it is.")
    for path in ("/Plain", "/New"):
        form = {**web.form(f"{path}/edit"), "body": f"Text of {path}."}
        calls.clear()
        assert web.post(f"{path}/edit", form).status_code == 303, path
        assert calls[1:3] == ["columnarLoadRows", "columnarCheckAndMutate"], (path, calls)


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
