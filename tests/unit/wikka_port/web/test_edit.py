"""Edits: saved, refused, in conflict; whatever happens, the typed text comes back."""

from __future__ import annotations

import re
from html import unescape

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient

TYPED = 'what I <typed> & "meant"\n\nwith lines'


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edit_burst=100)


def text_in(answer: TestResponse) -> str:
    """What stands in the editor's text field."""
    start = answer.text.index('<textarea id="body"')
    start = answer.text.index(">\n", start) + 2
    return unescape(answer.text[start : answer.text.index("</textarea>", start)])


def kept(answer: TestResponse, status: int) -> bool:
    return answer.status_code == status and text_in(answer) == TYPED


def test_create_and_edit(web: WikiClient) -> None:
    answer = web.save("/P", "one\r\ntwo\rthree", note="  a \x07 note ")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/P")
    page = web.wiki.page("P")
    assert (page.number, page.body, page.note) == (1, "one\ntwo\nthree", "a note")
    assert web.wiki.settled == ["sequence-0"], "the editor sees his change in the lists"
    web.save("/P", "changed")
    assert web.wiki.page("P").number == 2
    assert text_in(web.get("/P/edit")) == "changed"


def test_an_edit_without_an_account_is_signed_with_a_name_made_from_the_network(web: WikiClient) -> None:
    """Nobody signs as anybody else: a name that a form sends is not looked at."""
    fields = {**web.form("/P/edit"), "body": "x", "author": "Ada"}
    web.client.post("/P/edit", data=fields, environ_overrides={"REMOTE_ADDR": "10.1.2.3"})
    page = web.wiki.page("P")
    assert re.fullmatch("Visitor [0-9a-f]{4}", page.author)
    assert page.signed == "visitor"
    assert "10.1.2.3" not in web.get("/P/revisions").text


def test_leading_empty_lines_survive_the_form(web: WikiClient) -> None:
    web.wiki.save("P", "\n\ntext", author="a", base=0)
    assert text_in(web.get("/P/edit")) == "\n\ntext"


def test_an_unchanged_text_is_no_revision(web: WikiClient) -> None:
    web.save("/P", "same")
    assert web.save("/P", "same").status_code == 303
    assert web.wiki.page("P").number == 1


def test_the_same_form_sent_twice_is_one_revision(web: WikiClient) -> None:
    fields = {**web.form("/P/edit"), "body": "once"}
    assert [web.post("/P/edit", fields).status_code for _ in range(2)] == [303, 303]
    assert web.wiki.page("P").number == 1


def test_an_imported_page_stays_without_camel_case(web: WikiClient) -> None:
    web.wiki.save("P", "x", author="a", base=0, autolink=False, attribution="from there")
    web.save("/P", "CamelCase")
    page = web.wiki.page("P")
    assert (page.autolink, page.attribution) == (False, "from there")


def test_preview_saves_nothing_and_keeps_everything(web: WikiClient) -> None:
    fields = {**web.form("/P/edit"), "body": TYPED + " **b**", "note": "n", "preview": "1"}
    answer = web.post("/P/edit", fields)
    assert answer.status_code == 200
    assert "<strong>b</strong>" in answer.text
    assert text_in(answer) == TYPED + " **b**"
    assert 'name="note" value="n"' in answer.text
    assert web.wiki.page("P") is None


def test_a_preview_stands_below_the_editor(web: WikiClient) -> None:
    """Above it, a long page put the editor thousands of pixels away."""
    fields = {**web.form("/P/edit"), "body": "======A======\n" + "line\n\n" * 50, "preview": "1"}
    text = web.post("/P/edit", fields).text
    assert text.index('<textarea id="body"') < text.index('<section class="preview" id="preview"')
    assert 'formaction="/P/edit#preview"' in text


def test_a_page_that_was_emptied_says_so(web: WikiClient) -> None:
    web.wiki.save("P", "text", author="a", base=0)
    web.save("/P", "")
    text = web.get("/P").text
    assert "This page has no text: revision 2 emptied it." in text
    assert 'href="/P/revisions">what it was before' in text


def test_preview_works_while_the_store_is_away(web: WikiClient) -> None:
    fields = {**web.form("/P/edit"), "body": TYPED + " LinkHere {{recentchanges}}", "preview": "1"}
    web.wiki.away = True
    answer = web.post("/P/edit", fields)
    assert answer.status_code == 200
    assert 'href="/LinkHere"' in answer.text


def test_conflict_shows_both_texts_and_can_be_merged(web: WikiClient) -> None:
    web.wiki.save("P", "line one\nline two", author="a", base=0)
    fields = {**web.form("/P/edit"), "body": TYPED, "note": "mine"}
    web.wiki.save("P", "line one by <other>\nline two", author="Eve", base=1)
    answer = web.post("/P/edit", fields)
    assert kept(answer, 409)
    assert "line one by &lt;other&gt;\nline two</textarea>" in answer.text
    assert 'class="diff side"' in answer.text
    assert 'name="note" value="mine"' in answer.text
    assert web.wiki.page("P").author == "Eve"
    merged = {"csrf": fields["csrf"], "base": "2", "body": "merged"}
    assert 'name="base" value="2"' in answer.text
    assert web.post("/P/edit", merged).status_code == 303
    assert web.wiki.page("P").body == "merged"


def test_two_that_create_the_same_page(web: WikiClient) -> None:
    fields = {**web.form("/P/edit"), "body": TYPED}
    web.wiki.save("P", "theirs", author="Eve", base=0)
    assert kept(web.post("/P/edit", fields), 409)


@pytest.mark.parametrize("csrf", ["", "nonsense", "0." + "0" * 64])
def test_a_form_that_is_not_ours_is_not_saved(web: WikiClient, csrf: str) -> None:
    fields = {**web.form("/P/edit"), "body": TYPED, "csrf": csrf}
    assert kept(web.post("/P/edit", fields), 403)
    assert web.wiki.page("P") is None


def test_a_token_of_another_visitor_is_not_taken(web: WikiClient) -> None:
    stolen = web.other_visitor().form("/P/edit")
    web.get("/P/edit")
    assert kept(web.post("/P/edit", {**stolen, "body": TYPED}), 403)


def test_a_form_that_was_open_too_long_can_be_sent_again(web: WikiClient) -> None:
    fields = {**web.form("/P/edit"), "body": TYPED}
    web.now += web.config.token_max_age_s + 1
    answer = web.post("/P/edit", fields)
    assert kept(answer, 403)
    start = answer.text.index('name="csrf" value="') + len('name="csrf" value="')
    fresh = answer.text[start : answer.text.index('"', start)]
    assert web.post("/P/edit", {**fields, "csrf": fresh}).status_code == 303


def test_too_many_edits_wait() -> None:
    web = WikiClient(edit_burst=2, edits_per_minute=60)
    for n in range(2):
        assert web.save(f"/P{n}", "x").status_code == 303
    fields = {**web.form("/P/edit"), "body": TYPED}
    answer = web.post("/P/edit", fields)
    assert kept(answer, 429)
    assert answer.headers["Retry-After"] == "1"
    web.now += 1
    assert web.post("/P/edit", fields).status_code == 303


def test_the_store_is_away_and_the_text_is_kept(web: WikiClient) -> None:
    fields = {**web.form("/P/edit"), "body": TYPED}
    web.wiki.away = True
    answer = web.post("/P/edit", fields)
    assert kept(answer, 503)
    assert int(answer.headers["Retry-After"]) > 0
    web.wiki.away = False
    assert web.post("/P/edit", fields).status_code == 303


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"note": "x" * 201}, 400),
    ],
)
def test_fields_that_cannot_be_saved(web: WikiClient, fields: dict[str, str], status: int) -> None:
    assert kept(web.save("/P", TYPED, **fields), status)
    assert web.wiki.page("P") is None


def test_nothing_is_not_a_new_page(web: WikiClient) -> None:
    assert web.save("/P", " \n ").status_code == 400


def test_a_text_that_is_too_long() -> None:
    web = WikiClient(max_text_bytes=1_000)
    answer = web.save("/P", "é" * 501)
    assert answer.status_code == 413
    assert text_in(answer) == "é" * 501
    assert web.save("/P", "x" * 200_000).status_code == 413, "not even read"
    assert web.wiki.page("P") is None


def test_a_text_as_long_as_may_be() -> None:
    web = WikiClient(max_text_bytes=900_000)
    assert web.save("/P", "é" * 450_000).status_code == 303


def test_a_redirect_is_shown_to_its_editor(web: WikiClient) -> None:
    assert web.save("/P", "#REDIRECT [[Other]]").headers["Location"] == "/P?redirect=no"


def test_edit_from_an_old_revision(web: WikiClient) -> None:
    web.wiki.save("P", "one", author="a", base=0)
    web.wiki.save("P", "two", author="a", base=1)
    answer = web.get("/P/edit?revision=1")
    assert text_in(answer) == "one"
    assert 'name="base" value="2"' in answer.text


@pytest.mark.parametrize("base", ["", "x", "-1", "9" * 30, "1.5"])
def test_a_base_that_is_none(web: WikiClient, base: str) -> None:
    web.wiki.save("P", "theirs", author="a", base=0)
    assert kept(web.post("/P/edit", {**web.form("/P/edit"), "base": base, "body": TYPED}), 409)


def test_revert_saves_the_old_text_anew(web: WikiClient) -> None:
    web.wiki.save("P", "one", author="a", base=0)
    web.wiki.save("P", "two", author="a", base=1)
    assert "Go back to revision 1?" in web.get("/P/revert?revision=1").text
    assert web.wiki.page("P").number == 2, "asking changes nothing"
    fields = web.form("/P/revert?revision=1")
    assert web.post("/P/revert?revision=1", {**fields, "body": "not this"}).status_code == 303
    page = web.wiki.page("P")
    assert (page.number, page.body, page.note) == (3, "one", "Back to revision 1")


def test_revert_sees_a_conflict_and_needs_a_token(web: WikiClient) -> None:
    web.wiki.save("P", "one", author="a", base=0)
    web.wiki.save("P", "two", author="a", base=1)
    fields = web.form("/P/revert?revision=1")
    web.wiki.save("P", "three", author="a", base=2)
    assert web.post("/P/revert?revision=1", fields).status_code == 409
    assert web.post("/P/revert?revision=1", {"base": "3"}).status_code == 403
    assert web.post("/P/revert?revision=9", fields).status_code == 404
    assert web.wiki.page("P").body == "three"


def test_cookies_are_not_for_scripts_nor_other_sites(web: WikiClient) -> None:
    plain = web.get("/P/edit").headers["Set-Cookie"]
    assert "HttpOnly" in plain
    assert "SameSite=Lax" in plain
    assert "Secure" not in plain
    assert "Secure" in web.other_visitor().get("/P/edit", base_url="https://localhost").headers["Set-Cookie"]
    assert "Set-Cookie" not in web.get("/P").headers, "readers get none"


def test_behind_a_proxy_the_visitor_is_whom_it_names() -> None:
    web = WikiClient(proxies=1)
    headers = {"X-Forwarded-For": "6.6.6.6, 10.9.8.7"}
    ours = {"REMOTE_ADDR": "127.0.0.1"}
    web.post("/P/edit", {**web.form("/P/edit"), "body": "x"}, headers=headers, environ_overrides=ours)
    assert web.wiki.networks_noted() == {"10.9.8.7"}
    open_web = WikiClient()
    open_web.post("/P/edit", {**open_web.form("/P/edit"), "body": "x"}, headers=headers, environ_overrides=ours)
    assert open_web.wiki.networks_noted() == {"127.0.0.1"}
