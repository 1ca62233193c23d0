"""Colours of a browser, and the way up from a subpage."""

from __future__ import annotations

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.names import pages_above


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient()
    made.wiki.save("Page", "A text.", author="Ann", base=0)
    made.wiki.save("Over/Under/Page", "A text.", author="Ann", base=0)
    return made


def choose(web: WikiClient, theme: str, referrer: str = "http://localhost/Page?a=1", **headers: str) -> str:
    answer = web.get(f"/-/theme?theme={theme}", headers={"Referer": referrer, **headers})
    assert answer.status_code == 303
    return answer.headers["Location"]


def test_a_reader_without_an_account_chooses_colours(web: WikiClient) -> None:
    assert "data-theme" not in web.get("/Page").text
    assert choose(web, "dark") == "/Page?a=1"
    dark = web.get("/Page").text
    assert 'data-theme="dark"' in dark
    assert "/-/theme?theme=dark" not in dark
    choose(web, "auto")
    assert "data-theme" not in web.get("/Page").text
    choose(web, "purple")
    assert "data-theme" not in web.get("/Page").text


@pytest.mark.parametrize(
    ("referrer", "headers"),
    [
        ("http://elsewhere.example/Page", {}),
        ("http://localhost/Page", {"Sec-Fetch-Site": "cross-site"}),
        ("", {}),
        ("http://[", {}),
        ("/Page", {}),
    ],
)
def test_another_site_changes_nothing(web: WikiClient, referrer: str, headers: dict[str, str]) -> None:
    assert choose(web, "dark", referrer, **headers) == "/"
    assert "data-theme" not in web.get("/Page").text


def test_the_way_back_stays_in_the_wiki(web: WikiClient) -> None:
    assert choose(web, "dark", "http://localhost//elsewhere.example/") == "/elsewhere.example/"
    assert choose(web, "dark", "http://localhost/\\elsewhere.example") == "/elsewhere.example"
    assert choose(web, "dark", "http://localhost/-/theme?theme=dark") == "/"


def theme_of(text: str) -> str:
    return text.partition('data-theme="')[2].partition('"')[0]


def test_a_browser_has_colours_of_its_own_until_the_account_s_are_saved(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    dark = {**ada.form("/-/settings"), "do": "looks", "theme": "dark", "zone": "Europe/Berlin"}
    ada.post("/-/settings", dark)
    assert theme_of(ada.get("/Page").text) == "dark"
    assert choose(ada, "light") == "/Page?a=1"
    assert theme_of(ada.get("/Page").text) == "light"
    assert choose(ada, "auto") == "/Page?a=1"
    assert "data-theme" not in ada.get("/Page").text
    assert "Europe/Berlin" in ada.get("/-/settings").text
    ada.post("/-/settings", dark)
    assert theme_of(ada.get("/Page").text) == "dark"


def test_another_site_does_not_change_the_colours_of_who_is_signed_in(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    choose(ada, "dark", "http://elsewhere.example/Page")
    assert "data-theme" not in ada.get("/Page").text


def test_a_subpage_leads_to_the_pages_above_it(web: WikiClient) -> None:
    text = web.get("/Over~2FUnder~2FPage").text
    assert '<a href="/Over">Over</a>' in text
    assert '<a href="/Over~2FUnder">Under</a>' in text
    assert '<a href="/Over' not in web.get("/Page").text


@pytest.mark.parametrize(
    ("name", "above"),
    [("Page", []), ("A/B", ["A"]), ("A/B/C", ["A", "A/B"]), ("/A", []), ("A//B", ["A", "A/"]), ("A/B/", ["A", "A/B"])],
)
def test_the_pages_above_a_page(name: str, above: list[str]) -> None:
    assert pages_above(name) == above
