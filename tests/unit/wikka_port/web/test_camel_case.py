"""CamelCase words: links on new pages in Wikka markup, and not in Markdown, unless the site says otherwise."""

from __future__ import annotations

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.site_settings import KEPT, SiteSettings

LINK = '<a href="/WikiWord/edit"'


def saved(web: WikiClient, name: str, markup: str, body: str = "a WikiWord") -> str:
    web.save(f"/{name}", body, format=markup)
    return web.get(f"/{name}").text


@pytest.mark.parametrize(
    ("setting", "wikka", "markdown"), [("wikka", True, False), ("all", True, True), ("none", False, False)]
)
def test_on_new_pages(setting: str, wikka: bool, markdown: bool) -> None:
    web = WikiClient(camel_case=setting)
    assert (LINK in saved(web, "A", "wikka")) == wikka
    assert (LINK in saved(web, "B", "markdown")) == markdown


def test_a_page_keeps_its_links_unless_the_site_switches_them_off() -> None:
    web = WikiClient()
    for name in ("A", "B"):
        web.wiki.save(name, "a WikiWord", author="a", base=0, markup="markdown", autolink=True)
    assert LINK in saved(web, "A", "markdown", "the WikiWord")
    off = WikiClient(web.wiki, camel_case="none")
    assert LINK in off.get("/B").text
    assert LINK not in saved(off, "B", "markdown", "the WikiWord")
    assert LINK in off.get("/A").text


def test_a_preview_is_as_the_page_will_be() -> None:
    web = WikiClient(markup="markdown")
    for name, setting in (("wikka", False), ("all", True)):
        other = WikiClient(web.wiki, camel_case=name, markup="markdown")
        form = {**other.form("/New/edit"), "body": "a WikiWord", "preview": "1"}
        assert (LINK in other.post("/New/edit", form).text) == setting


def test_a_new_text_that_becomes_markdown_keeps_its_links() -> None:
    web = WikiClient()
    form = {**web.form("/New/edit"), "body": "a WikiWord", "written": "wikka", "format": "markdown", "preview": "1"}
    assert "a [[WikiWord]]" in web.post("/New/edit", form).text


@pytest.mark.parametrize(
    ("stored", "given", "wikka", "markdown"), [("all", None, True, True), ("all", "none", False, False)]
)
def test_the_stored_setting_counts_unless_the_process_was_given_one(
    stored: str, given: str | None, wikka: bool, markdown: bool
) -> None:
    web = WikiClient(camel_case=given)
    KEPT.write(web.wiki.rows, "", SiteSettings(camel_case=stored), by="Root", now_ms=1)
    web.wiki.rights.memory.forget()
    assert (LINK in saved(web, "A", "wikka")) == wikka
    assert (LINK in saved(web, "B", "markdown")) == markdown


def test_an_administrator_sets_it_and_sees_what_wins() -> None:
    web = WikiClient()
    root = web.signed_in("Root", admin=True)
    form = root.form("/-/site")
    assert root.post("/-/site", {**form, "camel_case": "some", "save": "1"}).status_code == 400
    assert root.post("/-/site", {**form, "camel_case": "none", "save": "1"}).status_code == 303
    assert '<option value="none" selected>' in root.get("/-/site").text
    assert LINK not in saved(web, "A", "wikka")
    given = WikiClient(web.wiki, camel_case="all").signed_in("Ruth", admin=True)
    assert 'which wins: <span translate="no">all</span>' in given.get("/-/site").text
