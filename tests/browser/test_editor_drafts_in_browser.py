"""Drafts as people meet them: what is said to be kept is kept, and no cut, refusal or ended session costs a text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import becomes, quiet_pages
from tests.browser.test_wiki_accounts_in_browser import PASSWORD, register
from tests.support.wiki_server import WikiServer
from wikka_port.accounts.tables import USERS

COPIES = "Object.keys(localStorage).filter((key) => key.startsWith('wikka-copy')).length"
# At once, or on the disk already: of the form that is open.
COPIES_OF_FORM = """() => {
    const form = document.querySelector("form[data-draft]");
    return wikkaEditor.copies.of(form.elements.namedItem("as").value, form.dataset.page).then((found) => found.length);
}"""

LOADING_S = 60  # until a page is there, whose clock goes on by itself


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    cut = ("Failed to load resource: net::ERR_INTERNET_DISCONNECTED", "Failed to load resource: net::ERR_FAILED")
    with quiet_pages(browser, server, 401, 403, 404, 503, ignored=cut) as open_one:
        yield open_one


def editor(page: Any, place: str = "/Draft/edit") -> Any:
    page.goto(place)
    page.wait_for_selector("[data-offered]")
    page.focus("#body")
    return page


def begin(open_page: Any) -> Any:
    """An editor whose clock the test alone moves on."""
    page = open_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.clock.install()
    editor(page)
    page.clock.pause_at(time.time() + LOADING_S)
    return page


def sent(page: Any) -> list[Any]:
    """The drafts that go out from here on."""
    requests: list[Any] = []
    page.on("request", lambda request: requests.append(request) if request.url.endswith("/draft") else None)
    return requests


def said(page: Any, words: str) -> str:
    """Waits for the words in this case of letters: "Not kept" is not "Kept"."""
    page.wait_for_selector(f".kept-status:text-matches('{words}')")
    return str(page.inner_text(".kept-status"))


def go_on(page: Any, text: str) -> None:
    """Goes on with a draft, whose editor has the same address, or with a copy, in the editor that is open."""
    page.click("text=Go on with it")
    becomes(page, "#body", "value", text)
    page.wait_for_selector("[data-offered]")


def test_a_draft_is_sent_after_a_pause_and_said_to_be_kept_after_the_answer(open_page: Any) -> None:
    page = begin(open_page)
    requests = sent(page)
    held: list[Any] = []
    page.route("**/draft", lambda route: held.append(route))
    page.keyboard.type("words")
    page.clock.run_for(1_900)
    assert requests == []
    with page.expect_request("**/draft"):
        page.clock.run_for(200)
    page.clock.run_for(5_000)
    assert page.inner_text(".kept-status") == ""
    held[0].continue_()
    assert said(page, "Kept")[-5:][2] == ":"
    assert page.get_attribute(".kept-status", "role") == "status"
    assert page.evaluate(COPIES) == 0
    editor(page)
    go_on(page, "words")


def test_drafts_go_out_while_somebody_types_on_but_not_often(open_page: Any) -> None:
    page = begin(open_page)
    requests = sent(page)
    for _ in range(36):
        page.keyboard.type("x")
        before = len(requests)
        page.evaluate("document.querySelector('.kept-status').textContent = ''")
        page.clock.run_for(1_000)
        if len(requests) > before:
            said(page, "Kept")
    page.clock.run_for(1)
    assert 3 <= len(requests) <= 4, "36 s without a pause"


def test_a_cut_network_is_said_and_the_draft_follows(open_page: Any) -> None:
    page = begin(open_page)
    page.context.set_offline(True)
    page.keyboard.type("typed on a train")
    page.clock.run_for(2_100)
    assert said(page, "Not kept").startswith("Not kept: there is no connection to the wiki. A copy is in this browser.")
    assert "problem" in page.get_attribute(".kept-status", "class")
    assert page.evaluate(COPIES_OF_FORM) == 1
    page.clock.run_for(1)  # the copy is older than what the wiki gets
    page.context.set_offline(False)
    said(page, "Kept")
    assert page.evaluate(COPIES) == 0


def test_an_answer_of_somebody_else_is_no_kept_draft(open_page: Any) -> None:
    page = begin(open_page)
    answers = iter([{"body": "<p>Please sign in to this hotel"}, {"json": {"ok": True}}])
    page.route("**/draft", lambda route: route.fulfill(status=200, **next(answers)))
    page.keyboard.type("words")
    page.clock.run_for(2_100)
    assert "answered something else" in said(page, "Not kept")
    with page.expect_response("**/draft"):
        page.clock.run_for(10_000)
    page.wait_for_selector(".kept-status:has-text('the wiki answered 200')")
    assert page.evaluate(COPIES_OF_FORM) == 1


def test_a_network_cut_during_a_save_costs_nothing(open_page: Any, server: WikiServer) -> None:
    page = begin(open_page)
    page.keyboard.type("to be saved")
    page.context.set_offline(True)
    page.keyboard.press("Control+s")
    assert "no connection" in said(page, "Not saved")
    assert page.input_value("#body") == "to be saved"
    assert page.evaluate(COPIES_OF_FORM) == 1
    page.context.set_offline(False)
    page.keyboard.press("Control+s")
    page.wait_for_selector(".provenance")
    assert server.wiki.page("Draft").body == "to be saved"
    assert page.evaluate(COPIES) == 0


def test_a_store_that_is_away_is_said_and_the_text_stays(open_page: Any, server: WikiServer) -> None:
    page = begin(open_page)
    page.keyboard.type("words")
    server.wiki.away = True
    page.clock.run_for(2_100)
    assert "cannot reach its store" in said(page, "Not kept")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".banner.problem")
    assert page.input_value("#body") == "words"
    server.wiki.away = False
    page.clock.run_for(2_100)
    said(page, "Kept")


def test_a_session_that_ended_costs_nothing_and_is_said(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    register(page)
    page.clock.install()
    editor(page)
    page.keyboard.type("typed by Ada")
    row = server.wiki.rows.data[USERS][b"ada"]
    for column in [column for column in row if column.startswith(b"session:")]:
        del row[column]
    page.clock.run_for(2_100)
    assert said(page, "Kept").startswith("You are not signed in any more.")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".sign-in-here")
    assert page.input_value("#body") == "typed by Ada"
    assert page.evaluate("document.activeElement.name") == "password"
    page.keyboard.type("a wrong one")
    page.keyboard.press("Enter")
    becomes(page, "[name=password]", "value", "")
    assert page.input_value("#body") == "typed by Ada"
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector(".provenance")
    assert server.wiki.page("Draft").body == "typed by Ada"
    assert server.wiki.page("Draft").author == "Ada"
    assert page.evaluate(COPIES) == 0


def test_leaving_a_page_keeps_what_was_typed_last(open_page: Any) -> None:
    page = begin(open_page)
    page.keyboard.type("typed at the last moment")
    page.goto("/-/recentchanges")
    editor(page)
    go_on(page, "typed at the last moment")


def left_copy(open_page: Any, text: str) -> Any:
    """An editor on return: the wiki has no draft, the browser has ``text``."""
    page = begin(open_page)
    page.context.set_offline(True)
    page.fill("#body", text)
    page.clock.run_for(2_100)
    said(page, "Not kept")
    page.context.route("**/draft", lambda route: route.abort())
    page.context.set_offline(False)
    editor(page)
    page.wait_for_selector(".banner.copy")
    page.context.unroute_all()
    return page


def test_a_copy_of_the_browser_is_offered_compared_and_gone_on_with(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Draft", "one\ntwo\nthree", author="x", base=0)
    page = left_copy(open_page, "one\ntwo and a half\nthree")
    assert page.input_value("#body") == "one\ntwo\nthree"
    page.click(".banner.copy >> text=Compare")
    assert page.inner_text(".copy .diff del") == "two"
    assert page.inner_text(".copy .diff ins") == "two and a half"
    page.click(".banner.copy >> text=Go on with it")
    assert page.input_value("#body") == "one\ntwo and a half\nthree"
    page.clock.run_for(10_000)
    said(page, "Kept")
    assert page.evaluate(COPIES) == 0
    page.keyboard.press("Control+s")
    page.wait_for_selector(".provenance")
    assert server.wiki.page("Draft").body == "one\ntwo and a half\nthree"


def test_a_copy_is_thrown_away_and_others_do_not_see_it(open_page: Any, server: WikiServer) -> None:
    page = left_copy(open_page, "of a visitor")
    register(page)
    editor(page)
    assert page.locator(".banner.copy").count() == 0, "the copy is not Ada's"
    editor(page, "/Other/edit")
    assert page.locator(".banner.copy").count() == 0
    page.context.clear_cookies()
    editor(page)
    page.click(".banner.copy >> text=Throw away")
    page.wait_for_selector(".banner.copy", state="detached")
    assert page.evaluate(COPIES) == 0
    editor(page)
    assert page.locator(".banner.copy").count() == 0


def test_copies_are_bounded(open_page: Any) -> None:
    page = editor(open_page())
    at_once, sizes, on_disk = page.evaluate("""async () => {
        const copy = (n) => (
            { as: "", page: `P${n}`, id: String(n), section: "", base: "0", body: "x".repeat(200_000), note: "" });
        for (let n = 0; n < 30; n++) wikkaEditor.copies.keep(copy(n));
        const sizes = Object.keys(localStorage).map((key) => localStorage[key].length);
        for (let n = 30; n < 60; n++) await wikkaEditor.copies.write(copy(n), false);
        const of = async (n) => (await wikkaEditor.copies.of("", `P${n}`)).length;
        await of(0);
        return [
            Object.keys(localStorage).length, sizes.reduce((a, b) => a + b), [await of(59), await of(50), await of(0)]];
    }""")
    assert at_once <= 20
    assert sizes <= 4_000_000
    assert on_disk == [1, 1, 0]


def test_a_visitor_whose_cookie_is_gone_finds_the_text_in_the_browser(open_page: Any) -> None:
    """A browser that is killed has not written down a cookie of the last half minute."""
    page = begin(open_page)
    page.keyboard.type("of a visitor")
    page.clock.run_for(2_100)
    said(page, "Kept")
    page.context.clear_cookies()
    editor(page)
    page.click(".banner.copy >> text=Go on with it")
    assert page.input_value("#body") == "of a visitor"


def test_a_draft_that_is_thrown_away_does_not_come_back(open_page: Any) -> None:
    page = begin(open_page)
    page.keyboard.type("not wanted")
    page.clock.run_for(2_100)
    said(page, "Kept")
    editor(page)
    go_on(page, "not wanted")
    page.focus("#body")
    page.keyboard.type(" at all")
    with page.expect_navigation():  # to the address that the page has already
        page.click("text=Throw away")
    editor(page)
    assert page.locator(".banner.kept").count() == 0


@pytest.mark.parametrize("breaks_off", [False, True])
def test_a_draft_is_thrown_away_after_the_text_that_is_on_its_way(open_page: Any, breaks_off: bool) -> None:
    page = begin(open_page)
    page.keyboard.type("not wanted")
    page.clock.run_for(2_100)
    said(page, "Kept")
    editor(page)
    go_on(page, "not wanted")
    if breaks_off:  # as the body of an answer does if the page ends meanwhile
        page.evaluate("void (wikkaEditor.Drafts.prototype.kept = async () => { throw new TypeError('NetworkError'); })")
    held: list[Any] = []
    requests = sent(page)
    page.route("**/draft", lambda route: route.continue_() if held else held.append(route))
    page.focus("#body")
    page.keyboard.type(" at all")
    with page.expect_request("**/draft"):
        page.clock.run_for(2_100)
    page.click("text=Throw away")
    page.clock.run_for(100)
    assert requests == [held[0].request]
    with page.expect_navigation():
        held[0].continue_()
    editor(page)
    assert page.locator(".banner.kept").count() == 0
    assert page.evaluate(COPIES) == 0
