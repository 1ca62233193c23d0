"""A suggested change is written with the editor's tools, and nothing typed is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import becomes, quiet_pages
from tests.support import axe
from tests.support.wiki_server import WikiServer
from wikka_port.rights.rules import PageRights, Privilege

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "bypass_csp": True}


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    server.wiki.save("P", "one\n\ntwo", author="Olga", base=0, owner="Olga", markup="markdown")
    server.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    with quiet_pages(browser, server, 400, ignored=("Failed to load resource: net::ERR_FAILED",)) as open_one:
        yield open_one


def suggesting(page: Any) -> Any:
    page.goto("/P/suggestion")
    page.wait_for_selector("[data-offered]")
    return page


def test_toolbar_preview_and_send(open_page: Any, server: WikiServer) -> None:
    page = suggesting(open_page(**PHONE))
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert axe.findings(page) == []
    page.evaluate("document.getElementById('body').setSelectionRange(0, 3)")
    page.click("[data-tool=bold]")
    becomes(page, "#body", "value", "**one**\n\ntwo")
    page.wait_for_selector(".preview.live strong:text('one')")
    assert page.get_attribute(".preview.live .preview-label", "class") == "preview-label"
    with page.expect_navigation():
        page.keyboard.press("Control+s")
    page.wait_for_selector("text=Your suggestion is there for those who may edit this page.")
    assert len(server.wiki.suggestions.of("P")) == 1
    page.wait_for_selector("[data-offered='0']")  # the copy went with it


def test_what_was_typed_comes_back_when_the_page_was_left(open_page: Any) -> None:
    page = suggesting(open_page())
    page.on("dialog", lambda dialog: dialog.accept())
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.fill("#body", "typed for long")
    page.wait_for_selector(".kept-status:text('A copy is in this browser.')")
    page.goto("/P")
    suggesting(page)
    page.click(".banner.copy >> text=Go on with it")
    becomes(page, "#body", "value", "typed for long")
    assert not any(url.endswith("/draft") for url in requests), "a suggestion has no draft in the wiki"


def test_a_refusal_and_a_cut_network_leave_the_text(open_page: Any, server: WikiServer) -> None:
    page = suggesting(open_page())
    page.click("button[name=send]")
    page.wait_for_selector(".banner.problem")  # nothing was changed
    page.fill("#body", "words")
    page.route("**/suggestion", lambda route: route.abort())
    page.click("button[name=send]")
    page.wait_for_selector(".kept-status.problem:text('no connection')")
    page.unroute("**/suggestion")
    with page.expect_navigation():
        page.click("button[name=send]")
    assert len(server.wiki.suggestions.of("P")) == 1
