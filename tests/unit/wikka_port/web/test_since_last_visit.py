"""What is new since a reader was here last, and that a page says that it is watched."""

from __future__ import annotations

import re

import pytest

from tests.support.memory_rows import MemoryRows
from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.records import GAP_MS, NOTED_EVERY_MS, Visit, visit_of
from wikka_port.accounts.settings import DEFAULT
from wikka_port.accounts.tables import USERS, VISIT
from wikka_port.notices import watching
from wikka_port.notices.notice_rows import below_target
from wikka_port.notices.watching import Watching

MINUTE_MS = 60_000
MARK = "since you were here"
BANNER = "Changed since you were here last"


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(MemoryWiki(start_ms=1_000_000_000), edit_burst=10_000)
    for name in ("Home", "Other", "Docs/Intro"):
        made.wiki.save(name, "A text.", author="Ann", base=0)
    made.now += 10 * 60  # each save takes the clock of this wiki a minute further
    return made


def pass_minutes(web: WikiClient, minutes: float) -> None:
    web.now += 60 * minutes
    web.wiki._now_ms = max(web.wiki._now_ms, int(web.now * 1_000))


def test_a_visit_ends_without_requests_and_the_next_one_knows_when() -> None:
    visit = Visit()
    assert visit.new_after_ms(5_000) == -1, "nothing is new at the first visit"
    begun = 10 * GAP_MS
    visit = visit.at(begun)
    for request in range(1, 20):
        assert visit.is_to_be_noted(begun + request * 29 * MINUTE_MS)
        visit = visit.at(begun + request * 29 * MINUTE_MS)
        assert visit.since_ms == 0, "it goes on"
    last = visit.last_ms
    assert not visit.is_to_be_noted(last + NOTED_EVERY_MS - 1)
    assert visit.new_after_ms(last + GAP_MS) == -1
    assert visit.new_after_ms(last + GAP_MS + 1) == last
    assert visit.at(last + GAP_MS + 1) == Visit(last, last + GAP_MS + 1)
    assert visit.at(5) == visit, "a clock that went back changes nothing"
    assert visit_of(visit.pack()) == visit
    assert visit_of(b"") == visit_of(b"x:1") == visit_of(b"1:") == visit_of(b"-1:5") == Visit()


def test_changes_and_pages_say_what_is_new_since_the_last_visit(web: WikiClient) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    bob.save("/Home", "Seen by Ada.")
    assert MARK not in ada.get("/-/recentchanges").text, "her first visit"
    pass_minutes(web, 10)
    ada.get("/Home")
    pass_minutes(web, 40)
    bob.save("/Other", "While she was not here.")
    pass_minutes(web, 40)
    ada.save("/Docs~2FIntro", "Her own edit.")
    assert ada.get("/-/recentchanges").text.count(MARK) == 1
    assert BANNER in ada.get("/Other").text
    assert BANNER not in ada.get("/Home").text
    assert BANNER not in ada.get("/Docs~2FIntro").text
    assert BANNER not in ada.get("/Other?revision=1").text
    assert BANNER not in web.get("/Other").text
    since = ada.get("/Other").text.partition("/Other/diff?since=")[2].partition('"')[0]
    difference = re.sub("<.*?>", "", ada.get(f"/Other/diff?since={since}").text)
    assert "While she was not here." in difference
    assert "A text." in difference
    for minutes in (6, 29, 29):
        pass_minutes(web, minutes)
        assert BANNER in ada.get("/Other").text, "as long as the visit goes on"
    pass_minutes(web, 31)
    assert BANNER not in ada.get("/Other").text


def test_a_page_that_began_since_then_is_compared_with_nothing(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    ada.get("/Home")
    pass_minutes(web, 60)
    web.save("/Fresh", "A new page.")
    text = ada.get("/Fresh").text
    assert BANNER in text
    since = text.partition("/Fresh/diff?since=")[2].partition('"')[0]
    assert "A new page." in ada.get(f"/Fresh/diff?since={since}").text
    for wrong in ("x", "-1", "9" * 18, "9" * 400):
        assert ada.get(f"/Fresh/diff?since={wrong}").status_code == 200


def test_the_mark_is_written_at_most_every_five_minutes(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    marks = set()
    for _ in range(15):
        ada.get("/Home")
        marks.add(web.wiki.rows.row(USERS, b"ada")[VISIT])
        pass_minutes(web, 1)
    assert len(marks) == 3


def test_a_page_says_that_it_is_watched(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, again = web.signed_in("Ada"), "You watch this page"
    assert again not in ada.get("/Home").text
    ada.post("/Home/watch", {**ada.form("/Home/watch"), "do": "page"})
    assert again in ada.get("/Home").text
    assert again not in ada.get("/Docs~2FIntro").text
    assert again not in web.get("/Home").text
    assert again not in web.signed_in("Bob").get("/Home").text
    ada.post("/-/watches", {"csrf": ada.form("/-/watches")["csrf"], "below": "DOCS"})
    assert again in ada.get("/Docs~2FIntro").text
    ada.post("/Home/watch", {**ada.form("/Home/watch"), "end": ada.form_of(ada.get("/Home/watch"))["end"]})
    assert again not in ada.get("/Home").text
    monkeypatch.setattr(watching, "TARGETS_KEPT", 1)
    for _ in range(2):
        assert again in ada.get("/Docs~2FIntro").text, "what is not kept is read"


def test_kept_targets_are_bounded_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5
    rows = MemoryRows()
    own = Watching(rows, lambda: now)  # type: ignore[arg-type]
    for account in (b"ada", b"bob"):
        for name in "ABC":
            own.begin(account, below_target(name), name, DEFAULT)
    assert own.kept(b"ada", b"") == frozenset(), "an account that never watched anything costs no call"
    assert own.kept(b"ada", b"1") == {b"ba", b"bb", b"bc"}
    rows.data.clear()
    assert len(own.kept(b"ada", b"1")) == 3, "they are kept"
    assert own.kept(b"ada", b"2") == frozenset(), "another stamp"
    own.begin(b"ada", below_target("D"), "D", DEFAULT)
    assert own.kept(b"ada", b"2") == frozenset(), "no new stamp: a crash came before it"
    now += watching.WATCHES_KEPT_MS
    assert own.kept(b"ada", b"2") == {b"bd"}
    monkeypatch.setattr(watching, "TARGETS_KEPT", 4)
    own.begin(b"bob", below_target("D"), "D", DEFAULT)
    assert own.kept(b"bob", b"1") == {b"bd"}
    own.begin(b"cam", below_target("D"), "D", DEFAULT)
    assert own.kept(b"cam", b"1") == {b"bd"}
    rows.data.clear()
    assert [len(own.kept(one, b"1")) for one in (b"cam", b"bob")] == [1, 1]
    assert own.kept(b"ada", b"2") == frozenset(), "it gave way"
