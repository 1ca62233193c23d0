"""Actions about people and what is theirs: right for who is signed in, and silent about what one may not read."""

from __future__ import annotations

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.actions import people
from wikka_port.limits import OWNED_MAX
from wikka_port.rights import readable_lists
from wikka_port.rights.rules import PageRights, Privilege

CALLS = (
    "mine: {{countowned}}\n\n{{mypages}}\n\n{{mychanges}}\n\n{{ownedpages}}\n\n"
    "users: {{countusers}}\n\n{{lastusers}}\n\n"
    "owner: {{owner}}, {{ownerlink}}, {{acls}}."
)


@pytest.fixture
def web() -> WikiClient:
    web = WikiClient(edit_burst=100, count_age_s=0.0)
    web.wiki.save("Lists", CALLS, author="a", base=0, owner="Ann", markup="markdown")
    return web


def shown(browser: WikiClient, page: str = "/Lists") -> str:
    answer = browser.get(page)
    assert answer.status_code == 200
    return answer.text.partition('<article class="content">')[2].partition("</article>")[0]


def test_what_is_mine(web: WikiClient) -> None:
    ann, ben = web.signed_in("Ann"), web.signed_in("Ben")
    ann.save("/Ann's", "text")
    ben.save("/Ben's", "text")
    ben.save("/Lists", CALLS + " ")
    text = shown(ann)
    assert "mine: 2" in text
    assert "You own 2 of 3 pages (66.7 %)" in text
    assert '<a href="/Ann&#39;s">' in text or '<a href="/Ann%27s">' in text or '<a href="/Ann\'s">' in text
    assert "users: 2" in text
    assert "owner: Ann, You own this page, <a href=" in text
    other = shown(ben)
    assert "mine: 1" in other
    assert "owner: Ann, Owner: Ann, ." in other


def test_the_share_of_ones_pages_counts_the_pages_of_an_open_wiki_once_for_all() -> None:
    web = WikiClient(edit_burst=100)
    web.wiki.save("Lists", CALLS, author="a", base=0, owner="Ann", markup="markdown")
    browsers = [web.signed_in("Ann"), web.signed_in("Ben")]
    web.wiki.calls.clear()
    for browser in (*browsers, *browsers):
        assert "of 1 pages (" in shown(browser)
    assert web.wiki.calls.count("count_pages") == 1
    browsers[0].save("/New", "text")
    assert "You own 2 of 2 pages (100.0 %)" in shown(browsers[0]), "the kept number is older"


def test_the_share_of_ones_pages_counts_a_bounded_number_of_readable_ones(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readable_lists, "LISTED_STEP", 2)
    web.wiki.save("Hidden", "x", author="Ben", base=0, owner="Ben", signed="account")
    web.wiki.rights.change("Hidden", PageRights("Ben"), "Ben", {Privilege.READ: "Ben"})
    ann, ben = web.signed_in("Ann"), web.signed_in("Ben")
    web.wiki.calls.clear()
    assert "You own 1 of 1 pages (100.0 %)" in shown(ann)
    assert "You own 1 of 2 pages (50.0 %)" in shown(ben)
    assert "count_pages" not in web.wiki.calls
    monkeypatch.setattr(people, "LISTED_SCANNED", 4)
    for number in range(4):
        web.wiki.save(f"Page {number}", "x", author="a", base=0)
    assert '<p class="hint">You own 1 page.</p>' in shown(ann)
    monkeypatch.setattr(people, "OWNED_MAX", 1)
    ben.save("/Second", "text")
    assert "You own more than 1 pages." in shown(ben)


def test_pages_that_one_may_not_read_any_more_are_not_counted(web: WikiClient) -> None:
    web.wiki.save("Hidden", "x", author="Ben", base=0, owner="Ann", signed="account")
    ben = web.signed_in("Ben")
    web.wiki.rights.change("Hidden", PageRights("Ann"), "Ann", {Privilege.READ: "Ann"})
    text = shown(ben)
    assert "Hidden" not in text
    assert "mine: 0" in text
    web.save("/Other", '{{owner page="Hidden"}}')
    assert "Ann" not in shown(ben, "/Other")
    assert "may not read" in shown(ben, "/Other")


def test_names_of_accounts_are_those_of_authors(web: WikiClient) -> None:
    web.signed_in("Silent Sue")
    ann = web.signed_in("Ann")
    ann.save("/P", "text")
    for browser in (web, ann):
        text = shown(browser)
        assert "Silent Sue" not in text
        assert '<li><span class="author">Ann</span> ' in text
    assert "Silent Sue" in shown(web.signed_in("Root", admin=True))


def test_a_list_of_pages_has_a_bound(web: WikiClient) -> None:
    for number in range(OWNED_MAX + 2):
        web.wiki.save(f"Page {number}", "x", author="a", base=0, owner="Ann")
    text = shown(web.signed_in("Ann"))
    assert f"mine: more than {OWNED_MAX:,}" in text
    assert f"the first {OWNED_MAX:,}" in text


def test_claim_is_offered_to_who_may(web: WikiClient) -> None:
    web.save("/Free", "{{ownerlink}}")
    assert "claim it" not in shown(web, "/Free")
    assert 'href="/Free/claim"' in shown(web.signed_in("Ann"), "/Free")
