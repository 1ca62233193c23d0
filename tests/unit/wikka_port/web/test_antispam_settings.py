"""The settings of antispam in the browser: who changes them, that they count at once, and their history."""

from __future__ import annotations

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient
from wikka_port.accounts.audit import Audit
from wikka_port.antispam.policy import Policy
from wikka_port.antispam.stored_policy import HISTORY_MAX, policy_history, read_policy, write_policy


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("P", "one", author="Olga", base=0)
    return made


USUAL = {
    "page_links": "15",
    "comment_links": "6",
    "suggestion_links": "6",
    "form_seconds": "2",
    "first_edits": "accept",
    "advertising": "1",
    "judging": "1",
}


def change(browser: WikiClient, **fields: str) -> TestResponse:
    return browser.post("/-/antispam", {**browser.form("/-/antispam"), **USUAL, "save": "1", **fields})


def test_a_change_counts_at_once_and_is_in_the_history(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    assert change(root, words="horse dewormer\nivermectin", domains="https://Bad.example/").status_code == 303
    shown = root.get("/-/antispam").text
    assert "horse dewormer\nivermectin</textarea>" in shown
    assert "bad.example</textarea>" in shown
    assert "words: horse dewormer, ivermectin; domains: bad.example" in shown
    saved = web.save("/P", "Take 1vermect1n.")
    assert saved.headers["Location"].startswith("/-/held")
    assert change(root, first_edits="mark").status_code == 303
    assert web.save("/P", "Take a walk.", note="why").headers["Location"] == "/P"
    assert web.wiki.page("P").note == "First edits: why"
    assert change(root, first_edits="review").status_code == 303
    assert web.save("/P", "An ordinary text.").headers["Location"].startswith("/-/held")
    assert "first_edits: review" in root.get("/-/antispam").text
    assert len(policy_history(web.wiki.rows)) == 3


def test_the_audit_has_each_change_and_nothing_else(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    audit = Audit(web.wiki.rows, lambda: 0)
    assert change(root).status_code == 303
    assert audit.recent(9) == [], "nothing was changed"
    assert change(root, page_links="20", words="ivermectin").status_code == 303
    assert change(root, page_links="no number").status_code == 400
    [one] = audit.recent(9)
    assert (one.what, one.by, one.note) == ("antispam settings", "Root", "page_links, words")
    assert "Settings of antispam changed" in root.get("/-/audit?what=antispam+settings").text


def test_a_wiki_that_judges_nothing_saves_every_text(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    change(root, words="ivermectin")
    assert web.save("/P", "Take 1vermect1n.").headers["Location"].startswith("/-/held")
    off = {key: value for key, value in {**root.form("/-/antispam"), **USUAL, "save": "1"}.items() if key != "judging"}
    assert root.post("/-/antispam", off).status_code == 303
    assert "judging: no" in root.get("/-/antispam").text
    assert web.save("/P", "Take 1vermect1n.").headers["Location"] == "/P"
    assert change(root, words="ivermectin").status_code == 303
    assert web.save("/P", "Take 1vermect1n and ivermectin.").headers["Location"].startswith("/-/held")


def test_a_mistake_comes_back_as_it_was_typed(web: WikiClient) -> None:
    root = web.signed_in("Root", admin=True)
    refused = change(root, page_links="many", words="kept")
    assert refused.status_code == 400
    assert 'value="many"' in refused.text
    assert "kept</textarea>" in refused.text
    assert read_policy(web.wiki.rows).policy == Policy()
    assert "needs an answer" in change(root, question="Why?").text
    form = root.form("/-/antispam")
    assert change(root, page_links="3").status_code == 303
    late = root.post("/-/antispam", {**form, **USUAL, "page_links": "4"})
    assert late.status_code == 409
    assert "meanwhile" in late.text
    assert read_policy(web.wiki.rows).policy.page_links == 3
    assert "The history has what counts now" in late.text
    assert root.post("/-/antispam", {**root.form_of(late), **USUAL, "page_links": "4"}).status_code == 303
    assert read_policy(web.wiki.rows).policy.page_links == 4, "nothing has to be typed anew"


def test_only_administrators_see_and_change_them(web: WikiClient) -> None:
    for other in (web, web.signed_in("Mia")):
        assert other.get("/-/antispam").status_code == 403
        assert other.post("/-/antispam", {**other.form("/P/edit"), **USUAL}).status_code == 403
    assert "/-/antispam" in web.signed_in("Root", admin=True).get("/-/administration").text


def test_the_history_is_bounded(web: WikiClient) -> None:
    revision = ""
    for number in range(HISTORY_MAX + 5):
        policy = Policy(page_links=number)
        revision = write_policy(web.wiki.rows, revision, policy, by="Root", now_ms=number).revision
    found = policy_history(web.wiki.rows)
    assert len(found) == HISTORY_MAX
    assert found[0].policy.page_links == HISTORY_MAX + 4
