"""Suggested changes: who makes, sees, takes and refuses them, and that they are bounded."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_edit import text_in
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.editing.suggestions import SUGGESTIONS
from wikka_port.limits import SUGGESTED_BY_ONE, SUGGESTED_OF_PAGE
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.store import StoreUnavailable

TEXT = "one\n\ntwo\n\nthree"


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("P", TEXT, author="Olga", base=0, owner="Olga", markup="markdown")
    made.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    return made


def suggest(browser: WikiClient, body: str, **fields: str) -> TestResponse:
    form = browser.form("/P/suggestion")
    return browser.post("/P/suggestion", {**form, "body": body, "send": "1", **fields})


def listed(browser: WikiClient) -> list[str]:
    return re.findall(r'suggestion\?id=([0-9a-f]{16})"', browser.get("/P/suggestion").text)


def test_a_suggestion_is_seen_as_a_difference_and_taken_as_an_edit(web: WikiClient) -> None:
    assert "Suggest a change</a>" in web.get("/P").text
    assert text_in(web.get("/P/suggestion")) == TEXT
    assert suggest(web, "one\n\nTWO\n\nthree", note="louder").status_code == 303
    assert web.wiki.page("P").number == 1
    olga = web.signed_in("Olga")
    assert "Suggest a change</a>" not in olga.get("/P").text
    assert "1 suggested change</a>" in olga.get("/P/edit").text
    (found,) = listed(olga)
    shown = olga.get(f"/P/suggestion?id={found}")
    assert "<ins>TWO</ins>" in shown.text
    answer = olga.post("/P/suggestion", {**olga.form_of(shown), "take": "1"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/P")
    page = web.wiki.page("P")
    assert (page.body, page.author, page.markup) == ("one\n\nTWO\n\nthree", "Olga", "markdown")
    assert re.fullmatch("Suggested by Visitor [0-9a-f]{4}: louder", page.note)
    assert listed(olga) == []


def test_a_page_that_changed_since_is_merged_or_shown_as_a_conflict(web: WikiClient) -> None:
    suggest(web, "one\n\nTWO\n\nthree")
    web.now += 1
    suggest(web, "one\n\nzwei\n\nthree")
    web.wiki.save("P", "one\n\ntwo\n\nTHREE", author="Olga", base=1)
    olga = web.signed_in("Olga")
    second, first = listed(olga)
    olga.post("/P/suggestion", {**olga.form(f"/P/suggestion?id={first}"), "take": "1"})
    assert web.wiki.page("P").body == "one\n\nTWO\n\nTHREE"
    answer = olga.post("/P/suggestion", {**olga.form(f"/P/suggestion?id={second}"), "take": "1"})
    assert answer.status_code == 409
    assert text_in(answer) == "one\n\nzwei\n\nthree"
    assert listed(olga) == [second], "it stays until it is decided"


def test_refused_by_who_may_write_and_withdrawn_by_its_author(web: WikiClient) -> None:
    rita, ben, olga = web.signed_in("Rita"), web.signed_in("Ben"), web.signed_in("Olga")
    suggest(rita, "a")
    web.now += 1
    suggest(rita, "b")
    second, first = listed(rita)
    form = {**ben.form("/-/login"), **ben.form("/P/suggestion"), "id": first}
    assert ben.get(f"/P/suggestion?id={first}").status_code == 404, "it is not Ben's"
    for decision in ("take", "refuse"):
        assert ben.post("/P/suggestion", {**form, decision: "1"}).status_code == 404
    taken = rita.post("/P/suggestion", {**rita.form(f"/P/suggestion?id={first}"), "take": "1"})
    assert taken.status_code == 403, "its author may not write the page"
    rita.post("/P/suggestion", {**rita.form(f"/P/suggestion?id={first}"), "refuse": "1"})
    assert listed(olga) == [second]
    olga.post("/P/suggestion", {**olga.form(f"/P/suggestion?id={second}"), "refuse": "1"})
    assert listed(olga) == []
    assert web.wiki.page("P").number == 1


@pytest.mark.parametrize("buttons", [(), ("take", "refuse")])
def test_a_form_without_one_button_decides_nothing(web: WikiClient, buttons: tuple[str, ...]) -> None:
    suggest(web, "a")
    olga = web.signed_in("Olga")
    (found,) = listed(olga)
    form = olga.form(f"/P/suggestion?id={found}")
    assert olga.post("/P/suggestion", {**form, **dict.fromkeys(buttons, "1")}).status_code == 400
    assert listed(olga) == [found]
    assert web.wiki.page("P").number == 1


def test_who_may_write_or_may_not_read_or_is_banned_suggests_nothing(web: WikiClient) -> None:
    banned = web.signed_in("Ben", status="banned")
    assert "Suggest a change</a>" not in banned.get("/P").text
    fields = {**web.form("/P/suggestion"), "as": "Ben", "csrf": banned.form("/-/logout").get("csrf", "")}
    assert banned.post("/P/suggestion", {**fields, "body": "x", "send": "1"}).status_code == 403
    olga = web.signed_in("Olga")
    fields = {**olga.form("/P/edit"), "body": "x", "send": "1"}
    assert olga.post("/P/suggestion", fields).status_code == 403
    web.wiki.rights.change("P", web.wiki.page("P").rights, "Olga", {Privilege.READ: "Olga"})
    assert web.get("/P/suggestion").status_code == 403
    assert listed(olga) == []


def test_forms_of_others_and_empty_ones_are_refused_and_keep_the_text(web: WikiClient) -> None:
    assert suggest(web, TEXT).status_code == 400
    answer = suggest(web, "typed", csrf="x")
    assert answer.status_code == 403
    assert text_in(answer) == "typed"
    assert web.get("/Nowhere/suggestion").status_code == 404
    assert listed(web.signed_in("Olga")) == []


def test_one_person_and_one_page_have_a_bound(web: WikiClient) -> None:
    for number in range(SUGGESTED_BY_ONE):
        assert suggest(web, f"mine {number}").status_code == 303
    answer = suggest(web, "one more")
    assert answer.status_code == 429
    assert text_in(answer) == "one more"
    store = web.wiki.suggestions
    one = store.of("P")[0]
    for number in range(SUGGESTED_OF_PAGE - SUGGESTED_BY_ONE):
        store.add("P", replace(one, id="", owner=f"{number:032x}"))
    assert suggest(web.signed_in("Rita"), "too late").status_code == 429


def test_an_account_that_ends_takes_its_suggestions_along(web: WikiClient) -> None:
    rita = web.signed_in("Rita")
    suggest(rita, "x")
    suggest(web, "y")
    assert web.wiki.suggestions.forget({owner_of_account("rita")}) == 1
    assert len(listed(web.signed_in("Olga"))) == 1


def test_a_store_that_is_away_keeps_the_text(web: WikiClient) -> None:
    form = web.form("/P/suggestion")
    web.wiki.away = True
    answer = web.post("/P/suggestion", {**form, "body": "typed", "send": "1"})
    assert (answer.status_code, text_in(answer)) == (503, "typed")


def scans(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Tables that are scanned from here on."""
    found: list[bytes] = []
    rows = web.wiki.rows
    plain = rows.scan

    def noting(table: bytes, *given: Any, **options: Any) -> Any:
        found.append(table)
        return plain(table, *given, **options)

    monkeypatch.setattr(rows, "scan", noting)
    return found


def test_the_page_itself_says_that_a_suggestion_waits(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    suggest(web, "one\n\nTWO\n\nthree")
    web.wiki.save("Everybody's", "text", author="Olga", base=0)
    olga, rita = web.signed_in("Olga"), web.signed_in("Rita")
    scanned = scans(web, monkeypatch)
    for other in (web, rita):
        assert "suggested change" not in other.get("/P").text
    assert "suggested change" not in olga.get("/Everybody%27s").text
    assert scanned == [], "who may not write a page is not told, and costs nothing; nor a page that everybody may write"
    assert '<a href="/P/suggestion">1 suggested change</a> of this page waits' in olga.get("/P").text
    assert scanned == [SUGGESTIONS], "one call"


def test_a_page_is_shown_while_its_suggestions_cannot_be_read(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    olga = web.signed_in("Olga")

    def away(*_given: Any, **_options: Any) -> Any:
        raise StoreUnavailable("away", "")

    monkeypatch.setattr(web.wiki.rows, "scan", away)
    assert olga.get("/P").status_code == 200


def test_the_form_is_an_editor_that_shows_the_page_before_it_is_sent(web: WikiClient) -> None:
    text = web.get("/P/suggestion").text
    assert "/editor.js" in text
    assert 'name="written" value="markdown"' in text
    form = web.form("/P/suggestion")
    answer = web.post("/P/suggestion", {**form, "body": "some **bold** words", "note": "why", "preview": "1"})
    assert answer.status_code == 200
    assert "<strong>bold</strong>" in answer.text
    assert text_in(answer) == "some **bold** words"
    assert 'value="why"' in answer.text
    live = web.post("/-/preview", {**form, "name": "P", "body": "some **bold** words"})
    assert "<strong>bold</strong>" in live.text
    assert listed(web.signed_in("Olga")) == []


def test_who_may_not_suggest_previews_nothing(web: WikiClient) -> None:
    banned = web.signed_in("Ben", status="suspended")
    fields = {**banned.form("/-/login"), "body": "words", "preview": "1", "name": "P"}
    assert banned.post("/P/suggestion", fields).status_code == 403
    assert banned.post("/-/preview", fields).status_code == 403
