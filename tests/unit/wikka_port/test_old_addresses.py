"""Addresses of WikkaWiki lead to the same pages here."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.names import InvalidName
from wikka_port.old_addresses import moment_ms, place_of_name, place_of_script
from wikka_port.site_settings import KEPT, SiteSettings
from wikka_port.wikkawiki.source_pages import local_time_ms


@pytest.mark.parametrize(
    ("path", "query", "place"),
    [
        ("/wikka.php", {"wakka": "HomePage"}, "/HomePage"),
        ("/wiki/wikka.php", {"wakka": "Home_Page/history"}, "/Home_Page/history"),
        ("/wikka.php", {"wakka": "", "x": "1"}, "/RootPage"),
        (
            "/wikka.php",
            {"wakka": "/HomePage/", "time": "2012-01-01 12:00:00"},
            "/HomePage?time=2012-01-01+12%3A00%3A00",
        ),
        ("/wikka.php", {"wakka": "HomePage/diff", "a": "7", "b": "9"}, "/HomePage/revisions"),
        ("/wikka.php", {"wakka": "HomePage/recentchanges.xml"}, "/-/recentchanges.xml"),
        ("/wikka.php", {"wakka": "HomePage/referrers"}, "/HomePage"),
        ("/wikka.php", {"wakka": "HomePage", "show_comments": "1", "id": "7"}, "/HomePage?show_comments=1"),
        (
            "/wikka.php",
            {"wakka": "A/files.xml", "action": "download", "file": "a b.png", "time": "1"},
            "/A/files.xml?action=download&file=a+b.png",
        ),
        ("/wikka.php", {"wakka": "//evil.example/x"}, "/evil.example"),
        ("/wikka.php", {}, None),
        ("/HomePage", {"wakka": "Other"}, None),
    ],
)
def test_addresses_of_the_script(path: str, query: dict[str, str], place: str | None) -> None:
    assert place_of_script(path, query, "RootPage") == place


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidName):
        place_of_script("/wikka.php", {"wakka": "a\x01"}, "RootPage")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("HomePage/referrers", "/HomePage"),
        ("HomePage/recentchanges.xml", "/-/recentchanges.xml"),
        ("HomePage/other", None),
        ("referrers", None),
        ("/referrers", None),
    ],
)
def test_names_that_were_addresses(name: str, place: str | None) -> None:
    assert place_of_name(name) == place


def test_old_links_are_redirected_unless_a_page_has_the_name() -> None:
    web = WikiClient()
    web.wiki.save("A/referrers", "a page", author="Ann", base=0)
    for address, place in (
        ("/wikka.php?wakka=HomePage/edit", "/HomePage/edit"),
        ("/HomePage/referrers", "/HomePage"),
        ("/HomePage/recentchanges.xml", "/-/recentchanges.xml"),
    ):
        answer = web.get(address)
        assert (answer.status_code, answer.headers["Location"]) == (301, place)
    assert web.get("/A~2Freferrers").status_code == 200
    assert web.get("/wikka.php?wakka=%01").status_code == 400
    assert web.post("/wikka.php?wakka=HomePage", {}).status_code == 405
    assert web.get("/wikka.php").status_code == 404


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def test_times_are_read_as_an_import_reads_them(zone: str) -> None:
    """Also in the hour that comes twice, and in the one that does not come."""
    for time in ("2012-07-01 12:00:00", "2012-01-01 00:00:00", "2012-10-28 02:30:00", "2012-03-25 02:30:00"):
        imported = local_time_ms(time, ZoneInfo(zone))
        assert imported is not None
        assert moment_ms(time, "" if zone == "UTC" else zone) == imported + 999


def test_a_time_with_its_own_zone_is_of_that_and_no_time_is_none() -> None:
    assert moment_ms("2012-07-01T12:00:00+02:00", "Asia/Kolkata") == moment_ms("2012-07-01 10:00:00", "")
    assert moment_ms("1341136800000", "Asia/Kolkata") == 1341136800000
    for nothing in ("", "x", "9999-99-99", "1" * 16):
        assert moment_ms(nothing, "Asia/Kolkata") is None


def test_an_old_address_finds_the_revision_of_the_old_wikis_time() -> None:
    web = WikiClient()
    web.wiki.save("P", "text one", author="Ada", base=0)
    web.wiki.save("P", "text two", author="Bob", base=1)
    place = web.get("/wikka.php?wakka=P&time=2025-06-15+17:07:41").headers["Location"]
    assert web.get(place).headers["Location"] == "/P", "the newest, as of a time in UTC"
    KEPT.write(web.wiki.rows, "", SiteSettings(old_zone="Europe/Berlin"), by="WikkaWiki", now_ms=1)
    web.wiki.rights.memory.forget()
    assert "text one" in web.get(place).text
    assert web.get("/P?time=2025-06-15T15:07:41").status_code == 404
    assert "text one" in web.get("/P?time=2025-06-15T15:07:41Z").text
    for time in ("0001-01-01", "9999-12-31T23:59:59"):
        assert web.get(f"/P?time={time}").status_code in (302, 404), "the ends of the calendar"
