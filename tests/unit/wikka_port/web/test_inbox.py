"""Watches and the inbox in a browser without script, and the rights of what a notice says."""

from __future__ import annotations

import re

import pytest

from columnar.triggers.api import Put
from tests.support.memory_notices import RowsClient, change_of
from tests.support.memory_rows import MemoryRows
from tests.support.wiki_client import WikiClient
from wikka_port import schema
from wikka_port.accounts.settings import settings_of
from wikka_port.accounts.tables import USERS
from wikka_port.comments.comment_rows import (
    COMMENTS,
    COMMENTS_HEAD,
    COMMENTS_NAMED,
    STAGED,
    Comment,
    CommentsHead,
    comment_row,
)
from wikka_port.limits import MENTIONS_MAX, NOTICES_LISTED, NOTICES_SCANNED
from wikka_port.names import page_key
from wikka_port.notices import fan_out
from wikka_port.notices.mentions import mentioned
from wikka_port.notices.notice_rows import INBOX, Notice, inbox_row
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.schema import TOKEN_CHARS


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=10_000)
    made.wiki.save("Home", "A text.", author="Ann", base=0)
    made.wiki.save("Docs/Intro", "A text.", author="Ann", base=0)
    return made


def watch(browser: WikiClient, page: str = "/Home", do: str = "page") -> None:
    assert browser.post(f"{page}/watch", {**browser.form(f"{page}/watch"), "do": do}).status_code == 303


def act(browser: WikiClient, do: str, place: str) -> None:
    answer = browser.post("/-/inbox", {**browser.form("/-/inbox"), "do": do, "at": place})
    assert answer.status_code == 303


def entries(browser: WikiClient) -> list[str]:
    text = browser.get("/-/inbox").text
    found = re.findall(r'<li><span class="entry">(.*?)</span>\n', text, re.DOTALL)
    return [" ".join(re.sub("<.*?>", "", one).split()) for one in found]


def unread(browser: WikiClient, path: str = "/Home") -> str:
    found = re.search(r'aria-hidden="true">(\d+\+?)</span><span class="hidden"> \d', browser.get(path).text)
    return found[1] if found else ""


def comment(browser: WikiClient, page: str, text: str, answer: str = "") -> None:
    form = browser.form(f"{page}/comments" + (f"?answer={answer}" if answer else ""))
    browser.post(f"{page}/comments", {**form, "body": text, "send": "1"})


def test_edits_and_comments_of_others_come_to_the_inbox(web: WikiClient) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    watch(ada)
    ada.save("/Home", "Her own edit.")
    bob.save("/Home", "His edit.", note="why <b>")
    comment(bob, "/Home", "What a page.")
    assert sorted(entries(ada)) == ["new Home Bob commented What a page.", "new Home Bob edited why &lt;b&gt;"]
    assert (unread(ada), unread(bob), unread(web)) == ("2", "", "")
    place = web.form_of(ada.get("/-/inbox"))["at"]
    act(ada, "read", place)
    assert (unread(ada), sorted(entries(ada))[0]) == ("", "Home Bob commented What a page.")
    bob.save("/Home", "His other edit.")
    assert entries(ada)[0] == "new Home Bob edited"
    act(ada, "clear", place)
    assert entries(ada) == ["new Home Bob edited"], "what came after the page was shown stays"
    act(ada, "remove", web.form_of(ada.get("/-/inbox"))["at"])
    assert entries(ada) == []
    assert unread(ada) == ""


def test_a_notice_that_comes_between_the_page_and_its_button_stays_unread(web: WikiClient) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    watch(ada)
    bob.save("/Home", "His edit.")
    shown = web.form_of(ada.get("/-/inbox"))
    bob.save("/Home", "His other edit.", note="later")
    assert ada.post("/-/inbox", {**shown, "do": "read"}).status_code == 303
    assert unread(ada) == "1"
    assert entries(ada) == ["new Home Bob edited later", "Home Bob edited"]


def test_pages_below_and_the_end_of_a_watch(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    ada.post("/-/watches", {**ada.form("/-/watches"), "below": "Docs"})
    web.save("/Docs~2FNew", "A new page.")
    assert re.fullmatch(r"new Docs/New Visitor \w* ?wrote the page", entries(ada)[0])
    watch(ada, "/Docs~2FIntro")
    listed = ada.get("/-/watches").text
    assert "and all pages below it" in listed
    assert "You watch pages above this one" in ada.get("/Docs~2FIntro/watch").text
    for target in re.findall(r'name="end" value="([^"]+)"', listed):
        ada.post("/-/watches", {**ada.form("/-/watches"), "end": target})
    web.save("/Docs~2FIntro", "An edit.")
    assert len(entries(ada)) == 1
    assert "You watch nothing yet" in ada.get("/-/watches").text


def test_a_notice_of_a_page_that_may_not_be_read_any_more_tells_nothing(web: WikiClient) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    watch(ada)
    bob.save("/Home", "His edit.", note="WORTGEHEIM")
    comment(bob, "/Home", "WORTGEHEIM")
    assert (unread(ada, "/Docs~2FIntro"), len(entries(ada))) == ("2", 2)
    rights = web.wiki.rights
    rights.change("Home", PageRights(), "Bob", {Privilege.COMMENT_READ: "Bob"})
    assert (unread(ada, "/Docs~2FIntro"), [one.split()[2] for one in entries(ada)]) == ("1", ["Bob"])
    page = web.wiki.page("Home")
    assert page is not None
    rights.change("Home", page.rights, "Bob", {Privilege.READ: "Bob"})
    assert (unread(ada, "/Docs~2FIntro"), entries(ada)) == ("", [])
    assert "WORTGEHEIM" not in ada.get("/-/inbox").text
    assert ada.get("/Home/watch").status_code == 403
    bob.save("/Home", "A hidden edit.")
    assert (unread(ada, "/Docs~2FIntro"), entries(ada)) == ("", [])


def remove_comment(browser: WikiClient, page: str, number: int, do: str = "remove") -> None:
    path = f"{page}/comments"
    answer = browser.post(path, {**browser.form(f"{path}?{do}={number}"), do: str(number), "send": "1"})
    assert answer.status_code == 303


def test_what_the_inbox_does_not_show_is_not_counted(web: WikiClient) -> None:
    """A deleted comment and a hidden revision: neither number nor entry, and both again once they are back."""
    ada, bob, root = web.signed_in("Ada"), web.signed_in("Bob"), web.signed_in("Root", admin=True)
    watch(ada)
    comment(bob, "/Home", "An abusive comment.")
    bob.save("/Home", "An abusive edit.")
    assert (unread(ada, "/Docs~2FIntro"), len(entries(ada))) == ("2", 2)
    remove_comment(root, "/Home", 1)
    assert (unread(ada, "/Docs~2FIntro"), len(entries(ada))) == ("1", 1), "in the same second: nothing is kept of it"
    row = web.wiki.rows.data[schema.PAGES][page_key("Home")]
    row[schema.HIDDEN] = b"2"
    assert (unread(ada, "/Docs~2FIntro"), entries(ada)) == ("", [])
    assert "Mark all as read" not in ada.get("/-/inbox").text
    del row[schema.HIDDEN]
    remove_comment(root, "/Home", 1, "restore")
    assert (unread(ada, "/Docs~2FIntro"), len(entries(ada))) == ("2", 2)


def test_an_edit_whose_revision_is_gone_is_not_counted(web: WikiClient) -> None:
    """An import that merges a history gives revisions other numbers."""
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    watch(ada)
    bob.save("/Home", "His edit.")
    web.wiki.rows.data[schema.REVISIONS].clear()
    assert (unread(ada, "/Docs~2FIntro"), entries(ada)) == ("", [])


def test_a_damaged_comment_stops_no_page(web: WikiClient) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    watch(ada)
    comment(bob, "/Home", "A comment.")
    head = web.wiki.comments.find_commented("Home").head
    (cells,) = web.wiki.rows.data[COMMENTS].values()
    cells.clear()
    cells[STAGED + head.op] = b"no JSON"
    page = ada.get("/Docs~2FIntro")
    assert (page.status_code, unread(ada, "/Docs~2FIntro")) == (200, "")


def test_an_inbox_of_notices_that_may_not_be_read_leads_to_the_earlier_ones(web: WikiClient) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    watch(ada)
    bob.save("/Home", "His edit.")
    for number in range(NOTICES_SCANNED + NOTICES_LISTED):
        gone = Notice(1_900_000_000_000 + number, b"%016d" % number, "edit", "Gone", page_key("Gone"))
        cells = {b"i:kind": b"edit", b"i:page": b"Gone", b"i:history": page_key("Gone")}
        web.wiki.rows.put(INBOX, inbox_row(b"ada", gone), cells)
    first = ada.get("/-/inbox").text
    assert "There is no notice for you" not in first
    (onward,) = re.findall(r'class="onward"><a href="([^"]+)"', first)
    assert "Bob edited" in re.sub("<.*?>", "", ada.get(onward).text)


def test_pages_that_are_edited_can_be_watched_by_themselves(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    ada.save("/Home", "Her edit.")
    assert "You watch nothing yet" in ada.get("/-/watches").text
    form = ada.form("/-/settings")
    ada.post("/-/settings", {**form, "do": "looks", "watch": "1", "minor": "1", "changes": "50", "revisions": "50"})
    ada.save("/Home", "Her next edit.")
    assert "You watch nothing yet" not in ada.get("/-/watches").text
    web.save("/Home", "An edit.")
    assert len(entries(ada)) == 1


def test_a_visitor_is_led_to_the_sign_in_and_an_unknown_page_is_missing(web: WikiClient) -> None:
    for path in ("/-/inbox", "/-/watches", "/Home/watch"):
        assert "/-/login?next=" in web.get(path).headers["Location"]
    assert web.signed_in("Ada").get("/Nowhere/watch").status_code == 404


def test_settings_of_notices_are_off_unless_set() -> None:
    assert not settings_of({}).watch
    assert settings_of({"watch": "1"}).watch
    assert not settings_of({"watch": ""}, settings_of({"watch": "1"})).watch


def test_who_is_mentioned_gets_one_notice_if_the_page_may_be_read(web: WikiClient) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    bob.save("/Home", "For @Ada, @ADA, @Bob and @Nobody; mail to x@ada.example.")
    assert entries(ada) == ["new Home Bob edited and mentioned you"]
    assert entries(bob) == []
    bob.save("/Home", "For @Ada, @ADA, @Bob and @Nobody; mail to x@ada.example. More.")
    assert len(entries(ada)) == 1, "only what is added mentions"
    watch(ada)
    comment(bob, "/Home", "What do you think, @ada?")
    assert [one for one in entries(ada) if "commented" in one] == [
        "new Home Bob commented and mentioned you What do you think, @ada?"
    ]
    web.wiki.rights.change("Home", PageRights(), "Bob", {Privilege.READ: "Bob"})
    bob.save("/Home", "Again for @Ada? @Ada2 @Zoe")
    assert (entries(ada), unread(ada, "/Docs~2FIntro")) == ([], "")


def test_names_in_a_text() -> None:
    assert mentioned("(@Ada) @Öl-Fan. a@b @@c @x.y. @", "@ada") == ("ol-fan", "x.y")
    assert mentioned("@[Ada  Lovelace], a@[b] @[] @[ ] @[x\ny] @[Ada Lovelace", "@[Eve]") == ("ada lovelace",)
    assert mentioned("@[Bob] and @Bob", "") == ("bob",)
    assert len(mentioned(" ".join(f"@a{number}" for number in range(99)))) == MENTIONS_MAX


def test_an_answer_notifies_the_account_whose_comment_it_answers(web: WikiClient) -> None:
    ada, bob, eve = web.signed_in("Ada"), web.signed_in("Bob"), web.signed_in("Eve")
    comment(ada, "/Home", "What about ebb?")
    comment(bob, "/Home", "It follows.", answer="1")
    assert entries(ada) == ["new Home Bob commented It follows."]
    assert (entries(bob), entries(eve)) == ([], [])
    comment(ada, "/Home", "Thanks to me.", answer="1")
    comment(bob, "/Home", "@Ada: also see flood.", answer="1")
    assert entries(ada)[0] == "new Home Bob commented and mentioned you @Ada: also see flood."
    assert len(entries(ada)) == 2, "one's own answer is no news"
    web.wiki.rights.change("Home", PageRights(), "Bob", {Privilege.READ: "Bob"})
    assert entries(ada) == []


def test_a_time_to_come_marks_nothing_that_comes_until_then(web: WikiClient) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    watch(ada)
    bob.save("/Home", "His edit.")
    place = f"{0:013d}{'0' * 16}"
    act(ada, "read", place)
    assert unread(ada) == ""
    bob.save("/Home", "His next edit.")
    assert unread(ada) == "1"


@pytest.mark.parametrize(("do", "place"), [("remove", "nonsense"), ("read", ""), ("clear", "0" * 28), ("burn", None)])
def test_a_form_of_the_inbox_that_makes_no_sense_changes_nothing(web: WikiClient, do: str, place: str | None) -> None:
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    watch(ada)
    bob.save("/Home", "His edit.")
    form = ada.form("/-/inbox")
    answer = ada.post("/-/inbox", {**form, "do": do, "at": form["at"] if place is None else place})
    assert (answer.status_code, "Choose what to change." in answer.text) == (400, True)
    assert entries(ada) == ["new Home Bob edited"]


def change(browser: WikiClient, number: int, text: str) -> None:
    form = browser.form(f"/Home/comments?edit={number}")
    assert browser.post("/Home/comments", {**form, "body": text, "send": "1"}).status_code == 303


def test_a_change_of_a_comment_notifies_whom_it_mentions_newly_and_nobody_else(web: WikiClient) -> None:
    ada, bob, eve, cyd = (web.signed_in(name) for name in ("Ada", "Bob", "Eve", "Cyd"))
    comment(ada, "/Home", "What about ebb?")
    comment(bob, "/Home", "Ask @Cyd.", answer="1")
    watch(eve)
    assert (len(entries(ada)), len(entries(cyd)), entries(eve)) == (1, 1, [])
    change(bob, 2, "Ask @Cyd.  Or not.")
    assert (len(entries(ada)), len(entries(cyd)), entries(eve)) == (1, 1, []), "it mentions nobody newly"
    change(bob, 2, "Ask @Cyd or @Eve, @eve, says @Bob.")
    assert entries(eve) == ["new Home Bob commented and mentioned you Ask @Cyd or @Eve, @eve, says @Bob."]
    assert (len(entries(ada)), len(entries(cyd)), entries(bob)) == (1, 1, [])
    assert 'href="/Home/comments?at=2#c2"' in eve.get("/-/inbox").text
    change(bob, 2, "Ask @Cyd or @Eve again.")
    assert (len(entries(cyd)), len(entries(eve))) == (1, 1)
    web.wiki.rights.change("Home", PageRights(), "Bob", {Privilege.COMMENT_READ: "Bob\nCyd"})
    change(bob, 2, "Ask @Cyd, @Eve or @Ada.")
    assert (entries(ada), entries(eve), len(entries(cyd))) == ([], [], 1), "who may not read the comments is not told"


def test_a_comment_that_is_removed_or_brought_back_mentions_nobody_newly(web: WikiClient) -> None:
    bob, eve = web.signed_in("Bob"), web.signed_in("Eve")
    comment(bob, "/Home", "For @Eve.")
    for button in ("remove", "restore"):
        form = bob.form(f"/Home/comments?{button}=1")
        assert bob.post("/Home/comments", {**form, "send": "1"}).status_code == 303
    assert len(web.wiki.rows.data[INBOX]) == len(entries(eve)) == 1


def test_a_trigger_that_comes_late_tells_each_mention_once() -> None:
    """The text of a comment may have changed before the notices of its addition are written."""
    rows, history = MemoryRows(), page_key("Home")
    for name in (b"eve", b"cyd"):
        rows.put(USERS, name, {b"account:name": name, b"account:status": b"active"})
    now = Comment(1, 5, "Bob", "account", "For @Eve, @Cyd.", "0000001", "t", op=b"9:" + b"b" * TOKEN_CHARS)
    rows.put(COMMENTS, comment_row(history, 1), schema.cells_of(now))
    page = {schema.VERSIONCOUNT: b"1:" + b"c" * TOKEN_CHARS, schema.NAME: b"Home"}

    def told(before: CommentsHead, head: CommentsHead, named: bytes | None) -> list[bytes]:
        put = {COMMENTS_HEAD: head.pack(), **({COMMENTS_NAMED: named} if named is not None else {})}
        delivered = change_of(history, put, now={**page, **put}, before={COMMENTS_HEAD: before.pack()})
        effects = fan_out.notices(delivered, RowsClient(rows))  # type: ignore[arg-type]
        return [one.row.partition(b"\0")[0] for one in effects if isinstance(one, Put) and one.table == INBOX]

    none, first = CommentsHead(0, 0, 0, 1, b"a" * TOKEN_CHARS), CommentsHead(1, 1, 1, 5, b"a" * TOKEN_CHARS)
    second = CommentsHead(1, 1, 1, 9, b"b" * TOKEN_CHARS)
    assert told(none, first, b'["eve"]') == [b"eve"], "Cyd is mentioned by the change that follows"
    assert told(first, second, b'["cyd"]') == [b"cyd"]
    assert told(none, first, b"[]") == []
    assert told(first, second, None) == []
    assert told(none, first, None) == [b"cyd", b"eve"], "an older program has added it"
