"""The rights of a page in a real browser: without script, by keyboard alone, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support.wiki_server import WikiServer

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    with quiet_pages(browser, server, 400, 403, 404) as open_one:
        yield open_one


def owner_of_a_page(page: Any, name: str) -> None:
    page.goto("/-/register")
    page.fill("[name=user]", name)
    page.fill("[name=password]", "correct horse battery")
    page.click("main button[type=submit]")
    page.wait_for_selector(".me")
    page.goto(f"/Page_of_{name}/edit")
    page.fill("#body", "for some")
    page.click("button[name=save]")
    page.wait_for_selector(".provenance")


def test_a_list_is_tried_and_saved_without_script(open_page: Any, server: WikiServer) -> None:
    page, stranger = open_page(java_script_enabled=False), open_page()
    owner_of_a_page(page, "Owen")
    page.click("text=Rights")
    page.wait_for_url("**/acls")
    page.check("[name=own_read]")
    page.fill("#list-read", "+")
    with page.expect_navigation():
        page.click("button[name=try]")
    assert "Read the page: no" in page.inner_text(".tried")
    assert page.input_value("#list-read") == "+"
    page.click("button[name=save]")
    page.wait_for_url("**/Page_of_Owen")
    assert page.inner_text("article").strip() == "for some"
    assert stranger.goto("/Page_of_Owen").status == 403
    assert "Perhaps you may when you are signed in" in stranger.inner_text("main")
    stranger.click("main >> text=Sign in")
    stranger.wait_for_url("**/-/login**")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_list_that_is_typed_counts_or_is_asked_about(open_page: Any, server: WikiServer, script: bool) -> None:
    page, stranger = open_page(java_script_enabled=script), open_page()
    owner_of_a_page(page, "Lia")
    page.goto("/Page_of_Lia/acls")
    page.fill("#list-read", "Lia")
    assert page.is_checked("[name=own_read]") is script
    with page.expect_navigation():
        page.click("button[name=save]")
    if not script:
        assert "You typed a list for: Read the page." in page.inner_text(".banner.problem")
        assert page.is_checked("[name=own_read]")
        page.click("button[name=save]")
    page.wait_for_url("**/Page_of_Lia")
    assert server.wiki.page("Page of Lia").rights.lists == {"read": "Lia"}
    assert stranger.goto("/Page_of_Lia").status == 403


def test_enter_in_the_field_of_a_user_tries_and_saves_nothing(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    owner_of_a_page(page, "Tim")
    page.goto("/Page_of_Tim/acls")
    page.fill("#list-read", "Tim")
    page.fill("[name=as]", "Nobody")
    with page.expect_navigation():
        page.press("[name=as]", "Enter")
    assert "Read the page: no" in page.inner_text(".tried")
    assert server.wiki.page("Page of Tim").rights.lists == {}


def test_the_form_by_keyboard_alone(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    owner_of_a_page(page, "Kim")
    page.goto("/Page_of_Kim/acls")
    page.focus("[name=own_write]")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("!\nKim")
    page.focus("button[name=save]")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "behind “!” stands nobody" in page.inner_text("#wrong-write")
    page.focus("#list-write")
    page.keyboard.press("Control+A")
    page.keyboard.type("Kim")
    page.focus("button[name=save]")
    page.keyboard.press("Enter")
    page.wait_for_url("**/Page_of_Kim")
    assert server.wiki.page("Page of Kim").rights.lists == {"write": "Kim"}


def test_on_a_phone_nothing_scrolls_sideways(open_page: Any, server: WikiServer) -> None:
    page = open_page(**PHONE)
    owner_of_a_page(page, "Pia")
    page.goto("/Page_of_Pia/acls")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
