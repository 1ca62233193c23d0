"""How much one network and one account may send: each is counted by itself, for everything that is sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from werkzeug.test import TestResponse

from tests.support.file_forms import CONTENT_TYPE, multipart, upload
from tests.support.wiki_client import WikiClient
from wikka_port import limits, schema
from wikka_port.config import FileConfig
from wikka_port.moving.jobs import LINKS, Job, Jobs
from wikka_port.moving.journal import DELETED, deleted_row
from wikka_port.rights.rules import PageRights, Privilege

JOB = Job(b"0123456789abcdef", LINKS, "Olga", "account", "", source="Old", target="P")
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


def rename(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, "/P/rename", address, new=f"P {number} of {address}", reason="clearer")


def deletion(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, "/P/delete", address, reason=f"{number}")


def undeletion(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, "/Gone/undelete", address)


def undo(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, f"/-/moves?job={JOB.id.decode()}", address, undo="1")


def rights(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, "/Lent/acls", address, owner="Olga", own_read="1", read="*", save="1")


def claim(browser: WikiClient, address: str, number: int) -> TestResponse:
    name = f"Free {number} of {address}"
    browser.wiki.save(name, "one", author="Olga", base=0)
    return _post(browser, f"/{name.replace(' ', '_')}/claim", address)


def description(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, "/P/file?file=Plan.txt", address, alt=f"{number} {address}", note="", describe="1")


def removal(browser: WikiClient, address: str, number: int) -> TestResponse:
    return _post(browser, "/P/file?file=Plan.txt", address, alt="", note=f"{number}", remove="1")


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
    assert upload(made, ("Plan.txt", b"words"), page="/P").status_code == 303
    Jobs(made.wiki.rows, lambda: 0).begin(JOB, [])
    gone = {schema.NAME: b"Gone", schema.VERSIONCOUNT: b"1:0123456789abcdef", schema.HEAD: b"1:0123456789abcdef"}
    made.wiki.rows.put(DELETED, deleted_row("Gone", 1, b"0123456789abcdef"), gone)
    return made


SENT = [edit, preview, suggestion, draft, file, resumed_file, rename, claim, description, removal]
OF_ADMINISTRATORS = [deletion, undeletion, undo, rights]  # who are counted as everybody else


def person(web: WikiClient, name: str, send: Send) -> WikiClient:
    return web.signed_in(name, admin=send in OF_ADMINISTRATORS)


SENDS = pytest.mark.parametrize("send", [*SENT, *OF_ADMINISTRATORS], ids=lambda send: send.__name__)


@SENDS
def test_an_account_is_counted_whatever_networks_it_comes_from(web: WikiClient, send: Send) -> None:
    mia, ben = person(web, "Mia", send), person(web, "Ben", send)
    assert [is_refused(send(mia, f"192.0.2.{number}", number)) for number in range(3)] == [False, False, True]
    assert not is_refused(send(ben, "192.0.2.2", 9)), "another account, from a network that sent little"


@SENDS
def test_a_network_is_counted_whatever_accounts_it_has(web: WikiClient, send: Send) -> None:
    people = [person(web, name, send) for name in ("Mia", "Ben", "Kim")]
    assert [is_refused(send(person, "192.0.2.7", n)) for n, person in enumerate(people)] == [False, False, True]
    assert not is_refused(send(person(web, "Ada", send), "192.0.2.8", 9))
