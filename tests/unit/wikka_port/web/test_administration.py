"""What administrators have: a page that leads to all of it, and links where it is needed.  Others see none of it."""

from __future__ import annotations

import re

import pytest

from tests.support.wiki_client import WikiClient

PLACES = (
    *("massrevert", "massdelete", "pages", "deleted", "moves", "held", "blocks", "antispam"),
    *("users", "groups", "rights", "audit", "jobs", "sizes", "site"),
)


@pytest.fixture
def web() -> WikiClient:
    web = WikiClient()
    for number in range(3):
        web.wiki.save("P", f"words {number}", author="Eve & Co", base=number)
    return web


def test_a_page_leads_to_all_that_administrators_have(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    assert 'href="/-/administration"' in root.get("/P").text
    text = root.get("/-/administration").text
    for place in PLACES:
        assert f'href="/-/{place}"' in text
        assert root.get(f"/-/{place}").status_code == 200


def test_the_page_says_how_many_texts_and_accounts_wait(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    assert 'class="badge"' not in root.get("/-/administration").text
    for number in range(3):
        web.signed_in(f"Late{number}", status="pending")
    form = web.form("/Farm/edit")
    web.now += 60
    web.post("/Farm/edit", {**form, "body": " ".join(f"https://farm{n}.example" for n in range(20)), "save": "1"})
    text = root.get("/-/administration").text
    assert re.search(r'href="/-/users\?state=pending">\s*3 wait<', text)
    assert re.search(r'Edits and comments that wait</a> <span class="badge">1<', text)


def test_a_page_of_the_wiki_asks_nothing_more_for_those_numbers(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    web.wiki.calls.clear()
    root.get("/P")
    assert "rows.scan" not in web.wiki.calls


def test_others_are_led_nowhere(web: WikiClient) -> None:
    suspended = web.signed_in("Sid", status="suspended", admin=True)
    for browser in (web, web.signed_in("Mia"), suspended):
        for path in ("/P", "/P/revisions", "/-/recentchanges", "/-/search?q=words+by:Eve", "/Nowhere"):
            text = browser.get(path).text
            assert not re.search(r"/-/(administration|massrevert)|/hide|/undelete", text), path
        assert browser.get("/-/administration").status_code == 403


def test_administrators_hide_revisions_from_the_history(web: WikiClient) -> None:
    text = web.signed_in("Root", admin=True).get("/P/revisions").text
    assert re.findall(r"/P/hide\?revision=(\d)", text) == ["2", "1"], "the newest one cannot be hidden"


@pytest.mark.parametrize("path", ["/P/revisions", "/-/recentchanges", '/-/search?q=words+by:"Eve+%26+Co"'])
def test_changes_of_an_author_lead_to_taking_them_all_back(web: WikiClient, path: str) -> None:
    text = web.signed_in("Root", admin=True).get(path).text
    assert re.search(r'href="/-/massrevert\?author=[Ee]ve\+%26\+[Cc]o"', text)
