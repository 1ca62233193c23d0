"""How much one network and one account may send: each is counted by itself, for everything that is sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from werkzeug.test import TestResponse

from tests.support.file_forms import CONTENT_TYPE, multipart
from tests.support.wiki_client import WikiClient
from wikka_port import limits
from wikka_port.config import FileConfig
from wikka_port.rights.rules import PageRights, Privilege

Send = Callable[[WikiClient, str, int], TestResponse]


def edit(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, "/P/edit", address, body=f"text {number} of {address}", save="1")


def preview(browser: WikiClient, address: str, number: int) -> TestResponse:
    form = {**browser.form("/P/edit"), "name": "P", "body": f"{number}"}
    return browser.post("/-/preview", form, environ_base={"REMOTE_ADDR": address})


def suggestion(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, "/Lent/suggestion", address, body=f"text {number} of {address}", send="1")


def draft(browser: WikiClient, address: str, number: int) -> TestResponse:
    form = {**browser.form("/P/edit"), "body": f"{number}", "keep": "1"}
    return browser.post("/P/draft", form, environ_base={"REMOTE_ADDR": address})


def file(browser: WikiClient, address: str, number: int) -> TestResponse:
    body = multipart({"csrf": browser.form("/P/files")["csrf"]}, (f"{number} {address}.txt", b"words"))
    return browser.client.post("/P/files", data=body, content_type=CONTENT_TYPE, environ_base={"REMOTE_ADDR": address})


def resumed_file(browser: WikiClient, address: str, number: int) -> TestResponse:
    headers = {
        "Tus-Resumable": "1.0.0",
        "X-Form-Token": browser.form("/P/files")["csrf"],
        "Upload-Length": "5",
        "Upload-Metadata": "filename UC50eHQ=",
    }
    return browser.client.post("/P/files", headers=headers, environ_base={"REMOTE_ADDR": address})


def _post(browser: WikiClient, path: str, address: str, **fields: str) -> TestResponse:
    return browser.post(path, {**browser.form(path), **fields}, environ_base={"REMOTE_ADDR": address})


def is_refused(answer: TestResponse) -> bool:
    return answer.status_code == 429 or "came at once" in answer.text


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> WikiClient:
    for name in ("DRAFT_BURST", "PREVIEW_BURST", "UPLOAD_BURST"):
        monkeypatch.setattr(limits, name, 2)
    for name in ("DRAFTS_PER_MINUTE", "PREVIEWS_PER_MINUTE", "UPLOADS_PER_MINUTE"):
        monkeypatch.setattr(limits, name, 1.0)
    made = WikiClient(edit_burst=2, edits_per_minute=1, files=FileConfig(bytes_max=1_000))
    made.wiki.save("P", "one", author="Olga", base=0)
    made.wiki.save("Lent", "one", author="Olga", base=0, owner="Olga")
    made.wiki.rights.change("Lent", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    return made


SENT = [edit, preview, suggestion, draft, file, resumed_file]


@pytest.mark.parametrize("send", SENT, ids=lambda send: send.__name__)
def test_an_account_is_counted_whatever_networks_it_comes_from(web: WikiClient, send: Send) -> None:
    mia, ben = web.signed_in("Mia"), web.signed_in("Ben")
    assert [is_refused(send(mia, f"192.0.2.{number}", number)) for number in range(3)] == [False, False, True]
    assert not is_refused(send(ben, "192.0.2.2", 9)), "another account, from a network that sent little"


@pytest.mark.parametrize("send", SENT, ids=lambda send: send.__name__)
def test_a_network_is_counted_whatever_accounts_it_has(web: WikiClient, send: Send) -> None:
    people = [web.signed_in(name) for name in ("Mia", "Ben", "Kim")]
    assert [is_refused(send(person, "192.0.2.7", n)) for n, person in enumerate(people)] == [False, False, True]
    assert not is_refused(send(web.signed_in("Ada"), "192.0.2.8", 9))
