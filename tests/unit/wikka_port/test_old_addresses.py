"""Addresses of WikkaWiki lead to the same pages here."""

from __future__ import annotations

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.names import InvalidName
from wikka_port.old_addresses import place_of_name, place_of_script


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
