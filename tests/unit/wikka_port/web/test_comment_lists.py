"""Lists of comments, their feeds and actions: for who may read them, and nothing more."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.comments.stored_comments import NewComment
from wikka_port.rights.rules import PageRights, Privilege

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(public_url="https://wiki.example")
    for number, (page, author, text) in enumerate(
        [
            ("Home", "Ada", "first"),
            ("Secret", "Ada", "WORTGEHEIM"),
            ("Home", "Ben", "second"),
            ("Other", "Ada", "third"),
        ]
    ):
        if made.wiki.page(page) is None:
            made.wiki.save(page, "A text.", author="Ann", base=0, owner="Olga")
        made.wiki._now_ms += 1_000
        new = NewComment(text, author, "account", f"form {number}", "wikka")
        made.wiki.comments.add(page, b"", new, allow=lambda _name, _rights: None)
    made.wiki.rights.change("Secret", PageRights("Olga"), "Olga", {Privilege.COMMENT_READ: "Olga"})
    made.wiki.clock_s += 10
    return made


def listed(text: str) -> list[tuple[str, str]]:
    return re.findall(r'entry-name" href="/(\w+)/comments.*?change-note">(.*?)</q>', text)


def test_the_newest_comments_of_pages_whose_comments_one_may_read(web: WikiClient) -> None:
    assert listed(web.get("/-/recentcomments").text) == [("Other", "third"), ("Home", "second"), ("Home", "first")]
    assert listed(web.get("/-/recentcomments?by=ada").text) == [("Other", "third"), ("Home", "first")]
    olga = web.signed_in("Olga")
    assert ("Secret", "WORTGEHEIM") in listed(olga.get("/-/recentcomments").text)
    assert "WORTGEHEIM" not in web.get("/-/recentcomments?before=0").text
    assert web.get("/-/recentcomments?by=Nobody").status_code == 200


def test_a_list_goes_on_where_it_ended(web: WikiClient) -> None:
    first, token = web.application._site.wiki.recent_comments(limit=2)
    rest, end = web.application._site.wiki.recent_comments(before=token, limit=2)
    assert [one.comment.text for one in (*first, *rest)] == ["third", "second", "first"]
    assert (bool(token), end) == (True, "")


@pytest.mark.parametrize("path", ["/-/comments.xml", "/Home/comments.xml"])
def test_feeds(web: WikiClient, path: str) -> None:
    feed = ElementTree.fromstring(web.get(path).data)
    texts = [one.text for one in feed.iter(f"{ATOM}summary")]
    assert texts == (["second", "first"] if "Home" in path else ["third", "second", "first"])
    ids = [one.findtext(f"{ATOM}id") or "" for one in feed.iter(f"{ATOM}entry")]
    assert "https://wiki.example/Home/comments?at=1#c1" in ids
    assert ElementTree.fromstring(web.get(f"{path}?format=rss").data).tag == "rss"


def test_a_feed_of_comments_that_one_may_not_read(web: WikiClient) -> None:
    assert web.get("/Secret/comments.xml").status_code == 403
    assert web.get("/Nowhere/comments.xml").status_code == 404


def test_actions(web: WikiClient) -> None:
    calls = '{{countcomments}} {{recentcomments user="Ben"}} {{recentlycommented}} {{highscores rank="comments"}}'
    web.wiki.save("Lists", f"Number: {calls}", author="Ann", base=0)
    page = web.get("/Lists").text
    assert "Number: 3" in page
    assert listed(page) == [("Home", "second"), ("Other", "third"), ("Home", "second")]
    assert "WORTGEHEIM" not in page
    assert re.search(r'author">Ada</span></td><td>2<', page)
    assert "Number: 4" in web.signed_in("Olga").get("/Lists").text


def test_a_removed_comment_is_in_no_list(web: WikiClient) -> None:
    olga = web.signed_in("Olga")
    olga.post("/Home/comments", {**olga.form("/Home/comments?remove=1"), "send": "1"})
    assert listed(web.get("/-/recentcomments").text) == [("Other", "third"), ("Home", "second")]
    assert "first" not in web.get("/Home/comments.xml").text


def test_a_setting_shows_comments_below_pages(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    assert "comment-text" not in ada.get("/Home").text
    for order, expected in (("newest", ["2", "1"]), ("oldest", ["1", "2"]), ("", [])):
        ada.post("/-/settings", {**ada.form("/-/settings"), "do": "looks", "comments": order})
        assert re.findall(r'<li id="c(\d)"', ada.get("/Home").text) == expected
        assert re.findall(r'<li id="c(\d)"', ada.get("/Home?comments=hide").text) == []
