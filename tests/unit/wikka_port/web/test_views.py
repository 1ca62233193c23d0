"""Other views of a page: source, code blocks, body alone, paper, feeds; and a new page made from it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.support.wiki_client import WikiClient

CODE = "======Tide======\n<b> %%one%% and\n%%(python;3;tide <x>.py)\nprint('ü')\n%%"


@pytest.fixture
def web() -> WikiClient:
    client = WikiClient()
    client.wiki.save("P q", "old", author="Ada", base=0)
    client.wiki.save("P q", CODE, author="<Eve>", note="a & b", base=1)
    return client


def test_the_source_is_shown_with_its_code_blocks(web: WikiClient) -> None:
    text = web.get("/P_q/showcode").text
    assert "&lt;b&gt; %%one%% and" in text
    assert 'href="/P_q/grabcode?block=2&amp;revision=2" download>tide &lt;x&gt;.py</a>' in text


def test_a_code_block_is_a_file(web: WikiClient) -> None:
    answer = web.get("/P_q/grabcode?block=2")
    assert answer.text == "print('ü')\n"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="tide-x-.py"'
    assert web.get("/P_q/grabcode").text == "one\n"
    assert web.get("/P_q/grabcode").headers["Content-Disposition"] == 'attachment; filename="code.txt"'
    for path in (
        "/P_q/grabcode?block=3",
        "/P_q/grabcode?block=0&revision=1",
        "/P_q/grabcode?revision=9",
        "/X/grabcode",
    ):
        assert web.get(path).status_code == 404, path


def test_raw_by_a_parameter(web: WikiClient) -> None:
    assert web.get("/P_q?raw=1").text == CODE
    assert web.get("/P_q?raw=1&revision=1").text == "old"
    assert web.get("/P_q?raw=1").headers["Content-Type"] == "text/plain; charset=utf-8"


def test_the_body_alone_and_the_page_for_paper(web: WikiClient) -> None:
    body = web.get("/P_q/html")
    assert body.text.startswith('<h1 id="s-tide">Tide')
    assert "<html" not in body.text
    paper = web.get("/P_q/print")
    assert "<h1" in paper.text
    assert "<nav" not in paper.text
    assert "revision 2, saved" in paper.text
    for answer in (body, paper):
        assert answer.headers["X-Robots-Tag"] == "noindex"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert web.get("/X/html").status_code == web.get("/X/print").status_code == 404


def test_a_page_has_a_feed_of_its_revisions(web: WikiClient) -> None:
    answer = web.get("/P_q/revisions.xml")
    assert answer.headers["Content-Type"] == "application/atom+xml; charset=utf-8"
    entries = ElementTree.fromstring(answer.data).findall("{http://www.w3.org/2005/Atom}entry")
    assert [entry.findtext("{http://www.w3.org/2005/Atom}title") for entry in entries] == [
        "P q: revision 2",
        "P q: revision 1",
    ]
    assert web.get("/P_q/revisions.xml", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
    assert web.get("/X/revisions.xml").status_code == 404


@pytest.mark.parametrize("path", ["/P_q/revisions.xml", "/-/recentchanges.xml"])
def test_feeds_are_rss_where_it_is_asked_for(web: WikiClient, path: str) -> None:
    answer = web.get(path + "?format=rss")
    assert answer.headers["Content-Type"] == "application/rss+xml; charset=utf-8"
    feed = ElementTree.fromstring(answer.data)
    assert feed.get("version") == "2.0"
    items = feed.findall("channel/item")
    assert [item.findtext("description") for item in items] == ["<Eve>: a & b", "Ada: New page"]
    assert items[0].findtext("link") == items[0].findtext("guid") == "http://127.0.0.1:8080/P_q?revision=2"
    assert (items[0].findtext("pubDate") or "").endswith("GMT")


def test_a_page_is_copied_into_the_editor_of_a_new_one(web: WikiClient) -> None:
    assert 'action="/P_q/clone"' in web.get("/P_q/clone").text
    answer = web.get("/P_q/clone?name=New_one")
    assert answer.headers["Location"] == "/New_one/edit?like=P+q"
    editor = web.get("/New_one/edit?like=P+q").text
    assert "print(&#39;ü&#39;)" in editor
    assert 'value="Copy of P q"' in editor
    assert 'name="base" value="0"' in editor
    assert web.wiki.page("New one") is None
    web.wiki.save("New one", "mine", author="a", base=0)
    assert "print(" not in web.get("/New_one/edit?like=P+q").text, "the text of a page that is there stays"
    assert web.get("/X/clone").status_code == 404
    assert web.get("/P_q/clone?name=%00").status_code == 400


def test_a_new_page_is_begun_by_its_name(web: WikiClient) -> None:
    assert web.get("/-/newpage?name=P+q").headers["Location"] == "/P_q"
    assert web.get("/-/newpage?name=Brand+new").headers["Location"] == "/Brand_new/edit"
    assert web.get("/-/newpage?name=//x.example").headers["Location"].startswith("/~2F~2Fx.example")
    assert web.get("/-/newpage").status_code == 400


def test_pages_with_code_bring_the_script_that_copies_it(web: WikiClient) -> None:
    assert "wiki.js" in web.get("/P_q").text
    web.wiki.save("Plain", "words", author="a", base=0)
    assert "wiki.js" not in web.get("/Plain").text
