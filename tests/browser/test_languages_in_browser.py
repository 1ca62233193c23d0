"""Pages and a wiki in other languages: their direction, and what the scripts say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import becomes, quiet_pages
from tests.support.marked_language import BEGIN, CODE, write_marked_language
from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_server import running_wiki

HEBREW = "=====שלום עולם=====\nזה דף בעברית עם [[Home]] ועם ##code(1)##.\n\n~- אחת\n~- שתיים\n\n%%(python)\nx = 1\n%%"
PHONE = {"viewport": {"width": 390, "height": 844}}
DESK = {"viewport": {"width": 1280, "height": 800}}


def edges(page: Any, selector: str) -> tuple[float, float]:
    """Left and right."""
    box = page.locator(selector).first.bounding_box()
    return box["x"], box["x"] + box["width"]


def is_wider_than_the_window(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_a_page_from_right_to_left_in_a_wiki_from_left_to_right(browser: Any, size: dict[str, Any]) -> None:
    wiki = MemoryWiki()
    wiki.save("Hebrew", HEBREW, author="Ann", base=0, language="he")
    with running_wiki(wiki) as server, quiet_pages(browser, server) as open_page:
        page = open_page(**size)
        page.goto("/Hebrew")
        text, bullet = edges(page, "article.content"), edges(page, "article.content li")
        assert bullet[1] < text[1] - 10, "the mark of a point stands at its right"
        assert page.evaluate("getComputedStyle(document.querySelector('article h2, article h3')).direction") == "rtl"
        assert page.evaluate("getComputedStyle(document.querySelector('article pre')).direction") == "ltr"
        assert page.evaluate("getComputedStyle(document.querySelector('.tabs')).direction") == "ltr"
        assert not is_wider_than_the_window(page)


def test_the_editor_turns_with_the_language_that_is_chosen(browser: Any) -> None:
    with running_wiki() as server, quiet_pages(browser, server) as open_page:
        page = open_page(**DESK)
        page.goto("/New/edit")
        page.wait_for_selector(".toolbar")
        becomes(page, "#body", "dir", "")
        page.select_option("select[name=language]", "he")
        becomes(page, "#body", "dir", "rtl")
        becomes(page, "#body", "lang", "he")
        becomes(page, ".preview.live article", "dir", "rtl")
        page.select_option("select[name=language]", "fr")
        becomes(page, "#body", "dir", "")
        becomes(page, "#body", "lang", "fr")
        page.select_option("select[name=language]", "ar")
        page.fill("#body", "مرحبا")
        page.click("button[name=save]")
        page.wait_for_selector("article[lang=ar][dir=rtl]")


def test_the_scripts_speak_german(browser: Any) -> None:
    with running_wiki(language="de") as server, quiet_pages(browser, server) as open_page:
        page = open_page(**DESK)
        page.goto("/Neu/edit")
        page.wait_for_selector(".toolbar")
        assert page.locator('.toolbar [title^="Fett"], .toolbar [aria-label^="Fett"]').count() == 1
        page.fill("#body", "Ein Text")
        page.wait_for_selector(".kept-status:has-text('Gesichert')")
        assert page.locator("html").get_attribute("lang") == "de"


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_a_wiki_that_speaks_from_right_to_left(browser: Any, size: dict[str, Any], tmp_path: Path) -> None:
    """Any text, in a language whose code says so: the whole page is turned, and nothing stands out of it."""
    write_marked_language(tmp_path)
    (tmp_path / f"{CODE}.po").rename(tmp_path / "he.po")
    with running_wiki(language="he", languages=tmp_path) as server, quiet_pages(browser, server, 404) as open_page:
        page = open_page(**size)
        for path in ("/Home", "/Home/edit", "/-/search?q=x", "/-/login", "/-/recentchanges"):
            page.goto(path)
            assert page.locator("html").get_attribute("dir") == "rtl"
            assert BEGIN in page.locator("body").inner_text()
            assert not is_wider_than_the_window(page), path
        page.goto("/-/recentchanges")
        brand, search = edges(page, ".brand"), edges(page, ".bar .search")
        assert brand[1] > search[1] - 1, "the name of the wiki stands at the right"
