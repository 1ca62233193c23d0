"""The pages of administrators in a browser: axe, 320 px, and work done by the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.test_wiki_access import named, tab_to
from tests.support import axe
from tests.support.account_pages import session_cookie
from tests.support.seen_pages import rich_scene, show
from tests.support.wiki_scene import Scene
from tests.support.wiki_server import running_wiki

PAGES = (
    *("administration", "users", "a user", "groups", "rights", "lists of a prefix", "lists tried"),
    *("audit", "jobs", "sizes", "site", "what waits"),
)


@pytest.fixture(scope="module")
def wiki() -> Iterator[tuple[Scene, str]]:
    scene = rich_scene()
    with running_wiki(scene.wiki) as server:
        yield scene, server.url


def test_axe_finds_nothing_and_nothing_scrolls_sideways_at_320_px(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    found = {}
    for number, name in enumerate(PAGES):
        mode = sorted(axe.MODES)[number % len(axe.MODES)]
        context = browser.new_context(bypass_csp=True, **{**axe.MODES[mode], "viewport": {"width": 320, "height": 600}})
        page = context.new_page()
        show(page, url, scene, named(name))
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found[name] = [*axe.findings(page), *([f"{over} px too wide"] if over > 0 else [])]
        context.close()
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_an_administrator_works_by_the_keyboard_alone(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    context = browser.new_context(base_url=url)
    page = context.new_page()
    cookie = session_cookie(scene.browsers["administrator"])
    context.add_cookies([{"name": "wikka_session", "value": cookie, "url": url}])
    page.goto("/-/users?name=Rita")
    tab_to(page, "select[name=status]")
    page.keyboard.type("susp")
    tab_to(page, "form:has(select[name=status]) button")
    page.keyboard.press("Enter")
    page.wait_for_url("**done=1")
    account = scene.directory.account("Rita")
    assert account is not None
    assert account.status == "suspended"
    page.goto("/-/site")
    tab_to(page, "main input[name=name]")
    page.keyboard.type("Rivers")
    tab_to(page, "main input[name=colour]")
    page.keyboard.type("#7a1f5c")
    page.keyboard.press("Enter")
    page.wait_for_selector(".brand:has-text('Rivers')")
    shown = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()")
    assert shown == "#7a1f5c", "the policy of contents lets the sheet in"
    context.close()
