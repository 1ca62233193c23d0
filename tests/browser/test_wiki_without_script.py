"""Without a script: comments and files, and the pages of administrators, which are used by the keyboard alone too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.keyboard import press_at, tab_to, type_at
from tests.support.seen_pages import running_scene, sign_in
from tests.support.wiki_scene import Scene
from wikka_port.rights.rules import Privilege


@pytest.fixture
def wiki() -> Iterator[tuple[Scene, str]]:
    with running_scene() as running:
        yield running


def opened(browser: Any, url: str, scene: Scene, role: str) -> Any:
    """Open a page for a person of that role, in whose browser no script runs."""
    page = browser.new_context(base_url=url, java_script_enabled=False).new_page()
    sign_in(page, url, scene, role)
    return page


def test_comments_are_written_answered_and_deleted(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    page = opened(browser, url, scene, "registered")
    page.goto("/Tidal_rivers/comments")
    page.fill("textarea[name=body]", "Brackish water [[River mouth]]")
    page.click("button[name=preview]")
    page.wait_for_selector(".preview a:has-text('River mouth')")
    page.click("button[name=send]")
    page.wait_for_selector(".comments a:has-text('River mouth')")
    page.click("a:has-text('Answer')")
    page.wait_for_url("**answer=**")
    page.fill("textarea[name=body]", "And mud")
    page.click("button[name=send]")
    page.click(".comments .level-2:has-text('And mud') a:has-text('Delete')")
    page.wait_for_url("**remove=**")
    page.click("button[name=send]")
    page.wait_for_selector("a:has-text('Bring back')")
    assert "And mud" not in page.inner_text(".comments")
    page.context.close()


def test_files_are_added_replaced_and_removed(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    page = opened(browser, url, scene, "registered")
    for text in (b"first", b"second"):
        page.goto("/Tidal_rivers/files")
        page.set_input_files("input[type=file]", {"name": "Tides.txt", "mimeType": "text/plain", "buffer": text})
        if text == b"second":
            page.check("input[name=replace]")
        with page.expect_navigation():
            page.click("main form.upload button[type=submit]")
        page.wait_for_selector(".file-name:has-text('Tides.txt')")
    there = scene.wiki.page("Tidal rivers").files["Tides.txt"]
    assert (there.number, there.size_bytes) == (2, 6)
    page.click("button[name=remove]")
    page.wait_for_selector(".banner:has-text('removed')")
    assert not scene.wiki.page("Tidal rivers").files["Tides.txt"].is_there
    page.context.close()


def test_somebody_is_blocked_and_let_in_again_by_the_keyboard(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    page = opened(browser, url, scene, "administrator")
    page.goto("/-/blocks")
    type_at(page, "main input[name=target]", "203.0.113.0/24")
    type_at(page, "main input[name=reason]", "floods")
    page.keyboard.press("Enter")
    page.wait_for_selector("main li:has-text('203.0.113.0/24'):has-text('floods')")
    press_at(page, "main button[name=remove]")
    page.wait_for_selector("main .empty-title")
    page.context.close()


@pytest.mark.parametrize("prefix", ["", "Vault/"])
def test_rights_are_set_by_the_keyboard(browser: Any, wiki: tuple[Scene, str], prefix: str) -> None:
    scene, url = wiki
    page = opened(browser, url, scene, "administrator")
    page.goto("/-/rights")
    if prefix:
        type_at(page, "main input[name=prefix]", prefix)
        page.keyboard.press("Enter")
    else:
        press_at(page, "main a[href*='of=site']")
    page.wait_for_selector("main textarea[name=write]")
    press_at(page, "main input[name=own_write]", "Space")
    tab_to(page, "main textarea[name=write]")
    page.keyboard.press("Control+A")
    page.keyboard.type("+")
    with page.expect_navigation():
        press_at(page, "main button[name=save]")
    page.wait_for_selector("main h2:has-text('Names that begin alike')")
    rules = scene.wiki.rights.present_rules()
    assert {one: rules.lists_of(one).get(Privilege.WRITE) for one in ("", "Vault/")} == {
        **dict.fromkeys(("", "Vault/")),
        prefix: "+",
    }
    page.context.close()


def test_a_group_gets_a_member_by_the_keyboard(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    scene.wiki.save("Crew", "+Ann+", author="Root", base=0, owner="Root")
    rights = scene.wiki.rights
    rights.change_rules("", {Privilege.WRITE: "Crew"}, rights.present_rules())
    page = opened(browser, url, scene, "administrator")
    page.goto("/-/groups")
    press_at(page, "main a[href='/Crew/edit']")
    page.wait_for_selector("textarea[name=body]")
    tab_to(page, "textarea[name=body]")
    page.keyboard.press("Control+End")
    page.keyboard.type("Rita+")
    press_at(page, "button[name=save]")
    page.wait_for_selector("article:has-text('+Ann+Rita+')")
    page.context.close()


def test_a_text_under_review_is_accepted_by_the_keyboard(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    page = opened(browser, url, scene, "administrator")
    page.goto("/-/held")
    press_at(page, "main .entries a")
    page.wait_for_selector("button[name=accept]")
    press_at(page, "button[name=accept]")
    page.wait_for_selector("main .empty-title")
    assert scene.wiki.page("Farm") is not None
    page.context.close()


def test_the_settings_of_antispam_are_set_by_the_keyboard_and_stand_in_the_history(
    browser: Any, wiki: tuple[Scene, str]
) -> None:
    scene, url = wiki
    page = opened(browser, url, scene, "administrator")
    page.goto("/-/administration")
    press_at(page, "main a[href='/-/antispam']")
    page.wait_for_selector("main textarea[name=words]")
    tab_to(page, "main input[name=page_links]")
    page.keyboard.press("Control+A")
    page.keyboard.type("many")
    press_at(page, "main button[name=save]")
    page.wait_for_selector("main [role=alert]")
    assert page.input_value("main input[name=page_links]") == "many", "a mistake loses nothing"
    assert page.locator("main .entries li").count() == 0, "and changes nothing"
    tab_to(page, "main input[name=page_links]")
    page.keyboard.press("Control+A")
    page.keyboard.type("4")
    type_at(page, "main textarea[name=words]", "cheap pills")
    press_at(page, "main button[name=save]")
    page.wait_for_selector("main .entries li:has-text('cheap pills')")
    assert page.input_value("main input[name=page_links]") == "4"
    page.context.close()
