"""Drafts: kept only when the store says so, found by their owner alone, gone with the save."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from random import Random
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.support.account_pages import PASSWORD, hidden_fields, register, text_in
from tests.support.wiki_client import WikiClient
from wikka_port.accounts import tables
from wikka_port.editing.kept_drafts import DRAFTS, DRAFTS_S, KeptDraft, draft_row, unpack_draft
from wikka_port.limits import DRAFT_BURST, KEPT_PER_PAGE, NEW_DRAFT_BURST, PRESENT_MS
from wikka_port.rights.rules import Privilege
from wikka_port.schema import cells_of

TYPED = 'what I <typed> & "meant"\n\nwith lines'


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edit_burst=1_000)


def keep(web: WikiClient, body: str = TYPED, path: str = "/P", **fields: str) -> TestResponse:
    """What the script of an editor that was opened a moment ago sends."""
    form = {key: value for key, value in web.form(f"{path}/edit").items() if key in FIELDS}
    return web.post(f"{path}/draft", {**form, "body": body, **fields})


FIELDS = ("csrf", "as", "base", "section", "draft", "note")


def told(answer: TestResponse) -> dict[str, Any]:
    assert answer.mimetype == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    found: dict[str, Any] = json.loads(answer.text)
    return found


def offers(web: WikiClient, path: str = "/P") -> list[str]:
    """Ids of the drafts that the editor offers."""
    return re.findall(r'/edit\?draft=([0-9a-f]{16})"', web.get(f"{path}/edit").text)


def rows_of(web: WikiClient) -> dict[bytes, Any]:
    return web.wiki.rows.data.get(DRAFTS, {})


def test_the_bytes_of_a_draft() -> None:
    draft = KeptDraft("0123456789abcdef", "f" * 32, "Ada", 5, 7, 3, "s-x", "té\n", "n", "markdown", "0a" * 8, "de")
    row = draft_row("Home page", draft.owner, draft.id)
    assert row == b"7b19b37e7fc3dfe3c3e1ad5b84c7f565" + b"f" * 32 + b"0123456789abcdef"
    assert cells_of(draft) == {
        b"d:text": "té\n".encode(),
        b"d:note": b"n",
        b"at:who": b"Ada",
        b"at:since": b"5",
        b"at:time": b"7",
        b"at:base": b"3",
        b"at:token": b"0a" * 8,
        b"at:section": b"s-x",
        b"at:format": b"markdown",
        b"at:language": b"de",
    }
    assert unpack_draft(row, cells_of(draft)) == draft
    assert unpack_draft(row, {b"at:time": b"7"}) == replace(
        draft, who="", since_ms=0, base=0, section="", text=None, note="", markup="", base_token="", language=""
    )
    assert unpack_draft(row, {}) is None


@pytest.mark.parametrize("signed_in", [False, True])
def test_a_draft_is_kept_offered_compared_gone_on_with_and_saved(web: WikiClient, signed_in: bool) -> None:
    web.wiki.save("P", "the page", author="a", base=0)
    me = web.signed_in("Ada") if signed_in else web.other_visitor()
    answer = keep(me, note="why")
    assert (answer.status_code, told(answer)) == (200, {"kept": 1_000_000, "others": []})
    (draft,) = offers(me)
    assert text_in(me.get("/P/edit")) == "the page", "it is offered, and does not replace the page"
    compared = me.get(f"/P/draft?draft={draft}").text
    assert all(words in unescape(compared) for words in ("the page", 'I <typed> & "meant"', "Throw away"))
    opened = me.get(f"/P/edit?draft={draft}")
    assert text_in(opened) == TYPED
    assert 'name="note" value="why"' in opened.text
    saved = me.post("/P/edit", {**hidden_fields(opened), "body": text_in(opened)})
    assert saved.status_code == 303
    assert web.wiki.page("P").body == TYPED
    assert rows_of(web) == {}, "a saved page removes the draft"
    assert offers(me) == []


def test_without_script_a_button_keeps_the_draft(web: WikiClient) -> None:
    me = web.other_visitor()
    answer = keep(me, keep="1")
    assert answer.status_code == 303
    page = me.get(answer.headers["Location"])
    assert text_in(page) == TYPED
    assert "This is your draft, kept" in page.text
    form = {**hidden_fields(page), "body": "more", "keep": "1"}
    assert me.post("/P/draft", form).headers["Location"] == answer.headers["Location"], "the same draft goes on"
    assert len(rows_of(web)) == 1


def test_a_draft_is_thrown_away(web: WikiClient) -> None:
    me = web.other_visitor()
    keep(me)
    (draft,) = offers(me)
    form = {key: me.form("/P/edit")[key] for key in ("csrf", "as")}
    assert me.post("/P/draft", {"draft": draft, "discard": "1"}).status_code == 403
    assert me.post("/P/draft", {**form, "draft": draft, "discard": "1"}).headers["Location"] == "/P/edit"
    assert rows_of(web) == {}
    assert me.get(f"/P/draft?draft={draft}").status_code == 404


def test_nobody_else_finds_or_guesses_a_draft(web: WikiClient) -> None:
    """Whatever another visitor sends as id, cookie or name, no answer has the text and the draft stays."""
    ada, visitor = web.signed_in("Ada"), web.other_visitor()
    keep(ada, "WORTGEHEIM of Ada")
    keep(visitor, "WORTGEHEIM of a visitor")
    before = {row: dict(cells) for row, cells in rows_of(web).items()}
    ids = [*offers(ada), *offers(visitor)]
    rng = Random(19)
    owners = [row[32:64].decode() for row in before]
    eve, stranger = web.signed_in("Eve"), web.other_visitor()
    guesses = ["", "0" * 32, "f" * 32, *owners, *(f"{rng.getrandbits(128):032x}" for _ in range(50))]
    for cookie in guesses:
        for other in (eve, stranger):
            other.client.set_cookie("wikka_drafts", cookie)
            token = other.form("/P/edit")
            for draft in ids:
                answers = [
                    other.get(f"/P/edit?draft={draft}"),
                    other.get(f"/P/draft?draft={draft}"),
                    other.post("/P/draft", {**token, "draft": draft, "discard": "1"}),
                ]
                assert not any("WORTGEHEIM" in answer.text for answer in answers), cookie
    token = {**eve.form("/P/edit"), "draft": ids[0], "body": "Eve's"}
    assert eve.post("/P/draft", token).status_code == 200
    assert {row: cells for row, cells in rows_of(web).items() if row in before} == before, "an id is not the row"


def test_the_store_has_no_cookie_and_no_answer_a_row(web: WikiClient) -> None:
    me = web.other_visitor()
    answer = keep(me)
    cookie = re.search(r"wikka_drafts=([0-9a-f]{32}); .*Max-Age=(\d+).*HttpOnly", str(answer.headers))
    assert cookie is not None
    assert int(cookie[2]) == DRAFTS_S
    (row,) = rows_of(web)
    assert cookie[1] not in str(rows_of(web))
    assert row[32:64].decode() not in me.get("/P/edit").text


def test_what_was_typed_before_a_sign_in_is_found_after_it(web: WikiClient) -> None:
    me = web.other_visitor()
    keep(me, "before")
    register(me)
    (draft,) = offers(me)
    opened = me.get(f"/P/edit?draft={draft}")
    assert text_in(opened) == "before"
    me.post("/P/draft", {**hidden_fields(opened), "body": "after"})
    assert offers(me) == [draft], "kept under the account by now, and offered once"
    assert text_in(me.get(f"/P/edit?draft={draft}")) == "after"
    me.post("/P/edit", {**hidden_fields(opened), "body": "saved"})
    assert rows_of(web) == {}


def test_a_session_that_ends_costs_no_draft(web: WikiClient) -> None:
    me = web.other_visitor()
    register(me)
    form = me.form("/P/edit")
    web.now += tables.SESSION_S
    answer = me.post("/P/draft", {**form, "body": TYPED})
    said = told(answer)
    assert (answer.status_code, said["as"]) == (401, "")
    assert "not signed in any more" in said["error"]
    assert rows_of(web) == {}, "nothing is kept that is not said to be kept"
    again = {**form, "csrf": said["token"], "as": said["as"], "body": TYPED}
    assert me.post("/P/draft", again).status_code == 200, "kept for the browser"
    hidden = hidden_fields(me.post("/P/edit", {**form, "body": TYPED}))
    signed = {**hidden, "body": TYPED, "signin": "1", "user": "Ada", "password": PASSWORD}
    assert me.post("/P/edit", signed).status_code == 303, "sign in again in place"
    assert web.wiki.page("P").author == "Ada"
    assert rows_of(web) == {}


def test_somebody_else_is_signed_in_by_now(web: WikiClient) -> None:
    me = web.other_visitor()
    form = me.form("/P/edit")
    register(me)
    answer = me.post("/P/draft", {**form, "body": TYPED})
    assert (answer.status_code, told(answer)["as"]) == (403, "Ada")
    button = me.post("/P/draft", {**form, "body": TYPED, "keep": "1"})
    assert (button.status_code, text_in(button)) == (403, TYPED)
    assert rows_of(web) == {}


def test_a_token_that_is_too_old_is_replaced_once(web: WikiClient) -> None:
    form = web.form("/P/edit")
    web.now += web.config.token_max_age_s + 1
    answer = web.post("/P/draft", {**form, "body": TYPED})
    said = told(answer)
    assert (answer.status_code, said["as"]) == (403, form["as"])
    assert web.post("/P/draft", {**form, "csrf": said["token"], "body": TYPED}).status_code == 200
    assert web.other_visitor().post("/P/draft", {**form, "body": TYPED}).status_code == 403, "not from elsewhere"


def test_who_may_not_edit_keeps_nothing_and_sees_nobody(web: WikiClient) -> None:
    me = web.other_visitor()
    form = me.form("/P/edit")
    keep(web.signed_in("Ada"))
    web.wiki.save("P", "text", author="a", base=0)
    web.wiki.rights.change("P", web.wiki.page("P").rights, "", {Privilege.WRITE: "Ada"})
    answer = me.post("/P/draft", {**form, "body": TYPED})
    assert answer.status_code == 403
    assert told(answer).keys() == {"error"}
    button = me.post("/P/draft", {**form, "body": TYPED, "keep": "1"})
    assert (button.status_code, text_in(button)) == (403, TYPED)
    assert "Ada" not in me.get("/P/edit").text + me.get("/P/draft").text
    assert len(rows_of(web)) == 1


def test_a_store_that_is_away_keeps_nothing_and_says_so(web: WikiClient) -> None:
    me = web.signed_in("Ada")
    form = web.form("/P/edit")
    web.wiki.rows.put = fail_with(web)  # type: ignore[method-assign]
    answer = web.post("/P/draft", {**form, "body": TYPED})
    assert (answer.status_code, told(answer)["retry"], answer.headers["Retry-After"]) == (503, 5, "5")
    button = web.post("/P/draft", {**form, "body": TYPED, "keep": "1"})
    assert (button.status_code, text_in(button)) == (503, TYPED)
    assert me


def fail_with(web: WikiClient) -> Any:
    def put(*args: Any) -> None:
        web.wiki.away = True
        try:
            web.wiki._asked("put")
        finally:
            web.wiki.away = False

    return put


def test_a_text_that_is_too_large(web: WikiClient) -> None:
    small = WikiClient(max_text_bytes=1_000)
    answer = keep(small, "é" * 501)
    assert answer.status_code == 413
    assert "1,002 bytes" in told(answer)["error"]
    whole = keep(small, "x" * 200_000)
    assert (whole.status_code, "error" in told(whole)) == (413, True), "not even read"
    assert rows_of(small) == {}


def test_drafts_come_at_a_bounded_rate(web: WikiClient) -> None:
    form = web.form("/P/edit")
    statuses = [web.post("/P/draft", {**form, "body": TYPED}).status_code for _ in range(DRAFT_BURST + 1)]
    assert statuses == [200] * DRAFT_BURST + [429]
    answer = web.post("/P/draft", {**form, "body": TYPED})
    assert told(answer)["retry"] == int(answer.headers["Retry-After"]) == 1


def test_new_drafts_without_an_account_come_at_a_lower_rate(web: WikiClient) -> None:
    form = web.form("/P/edit")
    posts = [web.post("/P/draft", {**form, "draft": f"{n:016x}", "body": "x"}) for n in range(NEW_DRAFT_BURST + 1)]
    assert [answer.status_code for answer in posts] == [200] * NEW_DRAFT_BURST + [429]
    last = {**form, "draft": f"{NEW_DRAFT_BURST - 1:016x}", "body": "y"}
    assert web.post("/P/draft", last).status_code == 200, "one that was begun goes on"


def test_an_owner_has_a_few_drafts_of_a_page_the_oldest_go(web: WikiClient) -> None:
    for number in range(KEPT_PER_PAGE + 2):
        web.now += 1
        keep(web, f"draft {number}")
    shown = [text_in(web.get(f"/P/edit?draft={draft}")) for draft in offers(web)]
    assert shown == [f"draft {number}" for number in range(KEPT_PER_PAGE + 1, 1, -1)]
    keep(web, "elsewhere", path="/Q")
    assert len(offers(web)) == KEPT_PER_PAGE


def test_a_new_form_does_not_overwrite_the_draft_on_offer(web: WikiClient) -> None:
    keep(web, "long work")
    keep(web, "typed without looking at the offer")
    assert [text_in(web.get(f"/P/edit?draft={draft}")) for draft in offers(web)].count("long work") == 1


def test_a_draft_that_comes_behind_its_save_is_not_offered(web: WikiClient) -> None:
    form = {**web.form("/P/edit"), "body": TYPED}
    web.post("/P/edit", form)
    web.post("/P/draft", form)
    assert offers(web) == []


@pytest.mark.parametrize("draft", ["", "x", "0" * 15, "0" * 17, "../" * 5 + "x", "Z" * 16])
def test_ids_that_are_none(web: WikiClient, draft: str) -> None:
    assert keep(web, draft=draft).status_code == 400
    assert web.get(f"/P/draft?draft={draft}").status_code == 404
    assert web.get(f"/P/edit?draft={draft}").status_code == 200
    assert web.save("/P", "x", draft=draft).status_code == 303


def test_who_is_here(web: WikiClient) -> None:
    ada, visitor, me = web.signed_in("Ada"), web.other_visitor(), web.other_visitor()
    keep(ada)
    first = int(web.now)
    web.now += 60
    said = told(keep(visitor))
    assert said["others"] == [{"name": "Ada", "since": first}]
    web.now += 60
    form = ada.form("/P/edit?draft=" + offers(ada)[0])
    ada.post("/P/draft", {**form, "draft": offers(ada)[0], "body": "more"})
    shown = told(keep(me))["others"]
    assert [one["name"] for one in shown] == ["Ada", shown[1]["name"]]
    assert [one["since"] for one in shown] == [first, first + 60], "her spell goes on"
    assert re.fullmatch("Visitor [0-9a-f]{4}", shown[1]["name"])
    page = me.get("/P/edit").text
    assert re.search(r'<span class="author">Ada</span>\s+is editing this page since', page)
    web.now += PRESENT_MS / 1000
    assert "is editing this page" not in me.get("/P/edit").text
    assert told(keep(me))["others"] == []
    keep(ada, draft=offers(ada)[0])
    assert told(keep(me))["others"] == [{"name": "Ada", "since": int(web.now)}], "a new spell"


def test_an_account_that_ends_takes_its_drafts_along(web: WikiClient) -> None:
    me = web.other_visitor()
    register(me)
    keep(me)
    keep(web)
    assert me.post("/-/account", {**me.form("/-/account"), "current": PASSWORD}).status_code in (200, 303)
    assert len(rows_of(web)) == 1
