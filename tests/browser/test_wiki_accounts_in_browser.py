"""Accounts as people use them: in a real browser, without script where it is off, on a phone, in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support.wiki_server import WikiServer
from wikka_port.accounts.tables import USERS

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
PASSWORD = "correct horse battery"


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    with quiet_pages(browser, server, 403, 404) as open_one:
        yield open_one


def register(page: Any, name: str = "Ada") -> None:
    page.goto("/-/register")
    page.fill("[name=user]", name)
    page.fill("[name=password]", PASSWORD)
    page.click("main button[type=submit]")
    page.wait_for_selector(".me")


def test_register_edit_and_sign_out_without_script(open_page: Any, server: WikiServer) -> None:
    page = open_page(java_script_enabled=False)
    register(page)
    page.goto("/Draft/edit")
    page.fill("#body", "by Ada")
    with page.expect_navigation():
        page.click("button[name=save]")
    assert page.inner_text(".provenance .author") == "Ada"
    assert server.wiki.page("Draft").signed == "account"
    page.click(".me")
    page.click("text=Sign out")
    page.wait_for_url("**/-/logout")
    with page.expect_navigation():
        page.click("main button[type=submit]")
    assert page.locator(".me").count() == 0
    page.click("text=Sign in")
    page.wait_for_url("**/-/login**")
    page.fill("[name=user]", "ada")
    page.fill("[name=password]", PASSWORD)
    with page.expect_navigation():
        page.click("main button[type=submit]")
    assert page.inner_text(".me") == "Ada"


def test_a_session_that_ends_during_an_edit_costs_no_text(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    register(page)
    page.goto("/Draft/edit")
    page.fill("#body", "typed for an hour")
    row = server.wiki.rows.data[USERS][b"ada"]
    for column in [column for column in row if column.startswith(b"session:")]:
        del row[column]
    page.click("button[name=save]")
    page.wait_for_selector(".sign-in-here")
    assert page.input_value("#body") == "typed for an hour"
    assert page.input_value("[name=user]") == "Ada"
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_selector(".provenance")
    assert server.wiki.page("Draft").author == "Ada"


def test_settings_of_colours_and_double_click(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Page", "Some words.", author="a", base=0)
    page = open_page(color_scheme="light")
    register(page)
    page.goto("/-/settings")
    page.check("[name=theme][value=dark]")
    page.check("[name=dblclick]")
    page.click("text=Save")
    page.wait_for_selector("[role=status]")
    page.goto("/Page")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(20, 24, 27)"
    page.dblclick("article p")
    page.wait_for_selector("#body")


def test_pages_of_accounts_fit_a_phone(open_page: Any, server: WikiServer) -> None:
    page = open_page(**PHONE)
    paths = ["/-/login", "/-/register", "/-/reset"]
    for path in paths:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    register(page, "A name that is rather long for a header of a phone and then some")
    for path in ("/-/settings", "/-/sessions", "/-/account", "/-/logout"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_a_field_of_another_form_is_not_left_behind_unnoticed(open_page: Any) -> None:
    page = open_page()
    register(page)
    page.goto("/-/settings")
    page.fill("[name=password]", "another horse battery")
    page.check("[name=theme][value=dark]")
    page.click("main button.primary")
    assert "You changed “New password” too" in page.inner_text(".doubt")
    assert page.locator("html[data-theme]").count() == 0
    page.click("main button.primary")
    page.wait_for_selector("html[data-theme=dark]")
    page.check("[name=theme][value=light]")
    page.click("main button.primary")
    page.wait_for_selector("html[data-theme=light]")
