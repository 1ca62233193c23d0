"""How often a page view calls the store, counted at the client's own requests.  It must not come to be more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TClient
from werkzeug.test import Client

from tests.support.store_thread import StoreThread
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


def calls_of(web: Client, path: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of the second view: the first one reads the rules of the site, which are kept for a moment."""
    calls: list[str] = []
    request = TClient._req

    def counted(self: Any, api: str, *given: Any, **named: Any) -> Any:
        calls.append(api)
        return request(self, api, *given, **named)

    monkeypatch.setattr(TClient, "_req", counted)
    for _ in range(2):
        calls.clear()
        assert web.get(path).status_code == 200
    monkeypatch.undo()
    return calls


def test_a_view_calls_the_store_as_often_as_it_always_did(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    application = make_application(wiki, WikiConfig(secret=b"s" * 32), clock=lambda: 1_000_000.0)
    web, person = Client(application), Client(application)
    account = Directory(wiki.rows, lambda: 1_000_000_000).make("Ada", status="active")
    cookie = Sessions(wiki.rows, lambda: 1_000_000_000).begin(account, network="192.0.2.0", agent="a test")
    assert cookie is not None
    person.set_cookie("wikka_session", cookie)
    for path, expected in (("/Plain", PLAIN), ("/Linking", LINKING)):
        assert len(calls_of(web, path, monkeypatch)) == expected, path
        assert len(calls_of(person, path, monkeypatch)) == expected + ACCOUNT, path
