"""CamelCase words: links on new pages in Wikka markup, and not in Markdown, unless the site says otherwise."""

from __future__ import annotations

import pytest

from tests.support.wiki_client import WikiClient

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
