"""Moments on the reader's own clock, where the reader has set no zone in the wiki."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support import axe
from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_server import running_wiki

EVENING = 1_749_999_600_000  # 2025-06-15 15:00 UTC, which is the next day in Tokyo
NIGHT = 1_750_032_000_000  # 2025-06-16 00:00 UTC
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture
def wiki() -> MemoryWiki:
    wiki = MemoryWiki()
    wiki.save("First", "x", author="Ann", base=0, time_ms=EVENING - 7_200_000)
    wiki.save("Second", "x", author="Ann", base=0, time_ms=EVENING)
    wiki.save("Third", "x", author="Ann", base=0, time_ms=NIGHT)
    return wiki


def days(page: Any) -> list[tuple[str, list[str]]]:
    found = []
    for section in page.query_selector_all("section.day"):
        entries = [entry.inner_text().split()[0] for entry in section.query_selector_all("li .entry")]
        found.append((section.query_selector("h2").inner_text(), entries))
    return found


def test_changes_stand_under_the_days_of_the_reader(browser: Any, wiki: MemoryWiki) -> None:
    with running_wiki(wiki) as server, quiet_pages(browser, server) as open_page:
        page = open_page(**PHONE, timezone_id="Asia/Tokyo", color_scheme="dark", bypass_csp=True)
        page.goto("/-/recentchanges")
        assert days(page) == [("2025-06-16", ["Third", "Second"]), ("2025-06-15", ["First"])]
        assert [one.inner_text() for one in page.query_selector_all("li time")] == ["09:00", "00:00", "22:00"]
        assert page.inner_text(".zone-note") == "Times are of your time zone, Asia/Tokyo."
        assert axe.findings(page) == []
        page.goto("/Second")
        assert "saved 2025-06-16 00:00 UTC+9 by" in page.inner_text(".provenance")
        page.goto("/Second/print")
        assert "saved 2025-06-16 00:00 UTC+9 by" in page.inner_text(".provenance")
        page.goto("/Second/revisions")
        assert page.inner_text("li time") == "2025-06-16 00:00"


@pytest.mark.parametrize("given", [{"timezone_id": "UTC"}, {"timezone_id": "Asia/Tokyo", "java_script_enabled": False}])
def test_in_utc_and_without_script_all_is_as_it_came(browser: Any, wiki: MemoryWiki, given: dict[str, Any]) -> None:
    with running_wiki(wiki) as server, quiet_pages(browser, server) as open_page:
        page = open_page(**given)
        page.goto("/-/recentchanges")
        assert days(page) == [("2025-06-16", ["Third"]), ("2025-06-15", ["Second", "First"])]
        assert page.inner_text(".zone-note") == "Times are UTC."
        page.goto("/Second")
        assert "saved 2025-06-15 15:00 UTC by" in page.inner_text(".provenance")
