"""Each page that shows moments says of which zone they are, once."""

from __future__ import annotations

import re

import pytest

from tests.support.wiki_client import WikiClient

PAGES = ["/-/recentchanges", "/P/revisions", "/P/history", "/P/diff", "/-/search?q=words", "/P", "/P/print"]
ZONE = re.compile(r"Times are UTC|Times are of the time zone|UTC(?:\+9)?</time>")


@pytest.fixture
def web() -> WikiClient:
    web = WikiClient()
    web.wiki.save("P", "words", author="a", base=0)
    web.wiki.save("P", "more words", author="a", base=1)
    return web


@pytest.mark.parametrize("path", PAGES)
def test_without_an_account_it_is_utc_and_said(web: WikiClient, path: str) -> None:
    text = web.get(path).text
    assert set(ZONE.findall(text)) <= {"Times are UTC", "UTC</time>"}
    assert len(ZONE.findall(text)) == 1
    assert "/times.js" in text


@pytest.mark.parametrize("path", [*PAGES, "/-/sessions"])
def test_with_a_zone_of_ones_own_it_is_that_and_said(web: WikiClient, path: str) -> None:
    ada = web.signed_in("Ada")
    ada.post("/-/settings", {**ada.form("/-/settings"), "do": "looks", "zone": "Asia/Tokyo"})
    text = ada.get(path).text
    found = ZONE.findall(text)
    assert len(found) == 1
    assert set(found) <= {"Times are of the time zone", "UTC+9</time>"}
    assert ("Times are of the time zone Asia/Tokyo." in text) or "UTC+9</time>" in text
    assert "/times.js" not in text, "the script is for readers who have set no zone"
