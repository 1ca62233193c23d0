"""The pages of administrators in a browser: axe, 320 px, and work done by the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import axe
from tests.support.keyboard import press_at, type_at
from tests.support.seen_pages import named, running_scene, show, sign_in
from tests.support.wiki_scene import Scene

PAGES = (
    *("administration", "users", "a user", "groups", "rights", "lists of a prefix", "lists tried"),
    *("audit", "jobs", "sizes", "site", "what waits"),
)


@pytest.fixture(scope="module")
def wiki() -> Iterator[tuple[Scene, str]]:
    with running_scene() as running:
        yield running


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
    page = browser.new_context(base_url=url).new_page()
    sign_in(page, url, scene, "administrator")
    page.goto("/-/users?name=Rita")
    type_at(page, "select[name=status]", "susp")
    press_at(page, "form:has(select[name=status]) button")
    page.wait_for_url("**done=1")
    account = scene.directory.account("Rita")
    assert account is not None
    assert account.status == "suspended"
    page.goto("/-/site")
    type_at(page, "main input[name=name]", "Rivers")
    type_at(page, "main input[name=colour]", "#7a1f5c")
    with page.expect_navigation():  # until its sheets are there, too
        page.keyboard.press("Enter")
    page.wait_for_selector(".brand:has-text('Rivers')")
    shown = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()")
    assert shown == "#7a1f5c", "the policy of contents lets the sheet in"
    page.context.close()


def test_enter_behind_words_to_an_author_accepts_nothing(browser: Any, wiki: tuple[Scene, str]) -> None:
    """Enter presses the first button of a form, which accepts."""
    scene, url = wiki
    page = browser.new_context(base_url=url).new_page()
    sign_in(page, url, scene, "administrator")
    page.goto(named("held").at(scene))
    type_at(page, "main input[name=said]", "No farms, please.")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.wait_for_selector("main [role=alert]")
    assert scene.wiki.page("Farm") is None
    assert page.input_value("main input[name=said]") == "No farms, please."
    with page.expect_navigation():  # the refused form has the same address
        press_at(page, "main button[name=refuse]")
    assert scene.wiki.suggestions.waiting() == []
    page.context.close()


def test_a_field_of_another_form_of_an_account_is_not_left_behind_unnoticed(
    browser: Any, wiki: tuple[Scene, str]
) -> None:
    scene, url = wiki
    page = browser.new_context(base_url=url).new_page()
    sign_in(page, url, scene, "administrator")
    for left, words in (("[name=email]", "Mail address; it may be empty"), ("[name=admin]", "An administrator")):
        page.goto("/-/users?name=Rita")
        if "admin" in left:
            page.check(f"main input{left}")
        else:
            page.fill(f"main input{left}", "new@mail.example")
        page.click("form:has(select[name=status]) button")
        assert f"You changed “{words}” too" in page.inner_text(".doubt.left")
    page.context.close()
