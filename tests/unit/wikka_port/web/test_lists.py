"""Revisions, differences, lists of the whole wiki, the feed, the actions."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.handlers.lists import HEADINGS, MAX_SUGGESTIONS


@pytest.fixture
def web() -> WikiClient:
    client = WikiClient(list_rows=5)
    for n in range(1, 4):
        client.wiki.save("P", f"text {n} of the page", author=f"author{n}", note=f"note {n}", base=n - 1)
    return client


def test_revisions_and_their_pages(web: WikiClient) -> None:
    text = web.get("/P/revisions").text
    assert all(f"author{n}" in text for n in (1, 2, 3))
    assert 'href="/P/diff?b=3"' in text
    for n in range(3, 60):
        web.wiki.save("P", f"text {n + 1}", author="a", base=n)
    assert 'href="/P/revisions?below=11"' in web.get("/P/revisions").text
    last = web.get("/P/revisions?below=11").text
    assert "note 1" in last
    assert "below=" not in last


def test_history_shows_each_change(web: WikiClient) -> None:
    text = web.get("/P/history").text
    assert text.count('<section class="step">') == 3
    assert "<ins>3</ins>" in text
    for n in range(3, 15):
        web.wiki.save("P", f"text {n + 1}", author="a", base=n)
    assert 'href="/P/history?below=6"' in web.get("/P/history").text
    assert web.get("/P/history?below=1").status_code == 200


def test_differences(web: WikiClient) -> None:
    newest = web.get("/P/diff").text
    assert "<del>2</del>" in newest
    assert "<ins>3</ins>" in newest
    both = web.get("/P/diff?a=1&b=3&style=inline").text
    assert 'class="diff inline"' in both
    assert "<del>1</del>" in both
    assert "same text" in web.get("/P/diff?a=2&b=2").text
    for nonsense in ("a=9", "b=0", "a=1&b=99"):
        assert web.get(f"/P/diff?{nonsense}").status_code == 404, nonsense
    assert web.get("/P/diff?a=x&b=&style=<b>").status_code == 200


def test_raw_is_plain_text(web: WikiClient) -> None:
    web.wiki.save("R", "<b>ü</b>", author="a", base=0)
    answer = web.get("/R/raw")
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.text == "<b>ü</b>"
    assert web.get("/P/raw?revision=1").text == "text 1 of the page"
    assert web.get("/P/raw?revision=99").status_code == 404
    for none in ("/P/raw?source=1", "/P/raw?source=1&revision=1", "/P/raw?source=1&revision=99", "/Nope/raw?source=1"):
        assert web.get(none).status_code == 404, none
    assert "was not imported" in web.get("/P/raw?source=1").text


def walk(web: WikiClient, path: str) -> list[str]:
    """The texts of a list's pages, following "More"."""
    found = []
    while path:
        text = web.get(path).text
        found.append(text)
        before, marker, _ = text.partition('" rel="next">')
        path = before.rpartition('href="')[2].replace("&amp;", "&") if marker else ""
        assert len(found) < 20
    return found


def test_long_lists_go_on(web: WikiClient) -> None:
    for n in range(12):
        web.wiki.save(f"Source{n:02}", f"[[Target]] [[Wanted {n}]]", author="a", base=0)
    for path in ("/Target/backlinks", "/-/wantedpages", "/-/orphanedpages", "/-/pageindex", "/-/pageindex?letter=s"):
        pages = walk(web, path)
        assert len(pages) >= 3, path
        marker = "/Wanted_{}/edit" if "wanted" in path else "/Source{:02}"
        for n in range(12):
            hits = [page for page in pages if f'href="{marker.format(n)}"' in page]
            assert len(hits) == 1, (path, n)


def test_recent_changes_go_back_to_the_first(web: WikiClient) -> None:
    for n in range(150):
        web.wiki.save(f"Page{n}", "x", author="a", base=0)
    pages = walk(web, "/-/recentchanges")
    assert len(pages) == 2
    assert "note 1" in pages[1]
    assert web.get("/-/recentchanges?before=nonsense").status_code == 200


def test_the_feed(web: WikiClient) -> None:
    web.wiki.save("Ü <b>", "x", author="<i>", note="]]>&", base=0)
    answer = web.get("/-/recentchanges.xml")
    assert answer.content_type == "application/atom+xml; charset=utf-8"
    feed = ElementTree.fromstring(answer.data)
    entry = feed.find("{http://www.w3.org/2005/Atom}entry")
    assert entry is not None
    assert entry.findtext("{http://www.w3.org/2005/Atom}title") == "Ü <b>"
    assert entry.findtext("{http://www.w3.org/2005/Atom}summary") == "]]>&"
    assert web.get("/-/recentchanges.xml", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


def test_search(web: WikiClient) -> None:
    web.wiki.save("Spring tide", "x", author="a", base=0)
    assert 'href="/Spring_tide"' in web.get("/-/search?q=TIDE").text
    assert web.get("/-/search?q=spring_tide").status_code == 200
    assert web.get("/-/search?q=Spring+tide&go=1").headers["Location"] == "/Spring_tide"
    assert 'href="/New_thing/edit"' in web.get("/-/search?q=New+thing&go=1").text
    for nonsense in ("", "q=", "q=%00", "q=" + "x" * 5_000, "q=%ff"):
        assert web.get("/-/search?" + nonsense).status_code == 200, nonsense[:20]


def test_an_order_is_no_part_of_a_name(web: WikiClient) -> None:
    text = web.get("/-/search?q=New+thing+sort:name").text
    assert 'href="/New_thing/edit"' in text
    assert "sort:name" in text.partition('class="search-big"')[2][:300], "it stays in the field"
    assert web.get("/-/search?q=sort:name&go=1").status_code == 200


def test_titles_are_streamed_in_order() -> None:
    web = WikiClient()
    names = [f"Page {n:05}" for n in range(2_500)]
    for name in names:
        web.wiki.save(name, "", author="a", base=0)
    answer = web.get("/api/titles")
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.text.splitlines() == names
    assert web.wiki.calls.count("names") == 3


ACTIONS = {
    "{{recentchanges}}": "entry-name",
    '{{recentchanges limit="3"}}': "note 3",
    "{{pageindex}}": "letter-head",
    '{{pageindex letter="P"}}': 'href="/P"',
    '{{category page="Cat"}}': 'href="/Member"',
    '{{category page="Cat" col="3"}}': "columns-3",
    '{{category page="Cat" compact="1"}}': 'href="/Member"',
    "{{backlinks}}": "No page links here",
    '{{backlinks page="Cat"}}': 'href="/Member"',
    "{{wantedpages}}": 'href="/Cat/edit"',
    "{{orphanedpages}}": 'href="/P"',
    "There are {{countpages}} pages.": "There are 3 pages.",
    "{{toc}}\n====One====\n===Two===": '<nav class="toc"',
    '{{recentchanges limit="many"}}': "should be a number",
    '{{category col="99"}}': "should be a number",
    '{{backlinks page="_"}}': "could not be shown",
}


@pytest.mark.parametrize("typed", ACTIONS)
def test_actions(web: WikiClient, typed: str) -> None:
    web.wiki.save("Member", "[[Cat]]", author="a", base=0)
    web.wiki.save("Page", typed, author="a", base=0)
    answer = web.get("/Page")
    assert answer.status_code == 200
    assert ACTIONS[typed] in answer.text


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ('{{nosuchaction x="<b>"}}', "There is no action nosuchaction."),
        ("{{flash}}", "no browser shows Flash any more"),
        ("{{feedback}}", "The action feedback is not here: readers write comments, or suggest a change of the page."),
        ("=={{pageindex}}==", "it makes a block, which cannot stand in a heading or a footnote"),
    ],
)
def test_an_action_that_is_not_here_is_nothing_to_readers_and_a_note_to_editors(
    web: WikiClient, typed: str, told: str
) -> None:
    web.wiki.save("Page", f"before\n\n{typed}\n\nafter", author="a", base=0)
    shown = web.get("/Page").text
    assert "before" in shown
    assert "after" in shown
    article = shown.partition('<article class="content">')[2].partition("</article>")[0]
    assert "action" not in article
    assert "{{" not in article
    preview = web.post("/Page/edit", {**web.form("/Page/edit"), "body": typed, "preview": "1"}).text
    assert told in preview
    assert 'class="notice">' in preview


def test_the_most_wanted_page_comes_first(web: WikiClient) -> None:
    """Before, they stood in the order of their MD5."""
    for n in range(5):
        links = " ".join(f"[[Wanted {m}]]" for m in range(n, 5))
        web.wiki.save(f"Source{n}", links, author="a", base=0)
    text = "".join(walk(web, "/-/wantedpages"))
    places = [text.index(f"/Wanted_{n}/edit") for n in (4, 3, 2, 1, 0)]
    assert places == sorted(places)
    web.wiki.save("List", '{{wantedpages limit="2"}}', author="a", base=0)
    shown = web.get("/List").text
    assert "/Wanted_4/edit" in shown
    assert "/Wanted_2/edit" not in shown


def test_the_index_has_the_letters_that_names_begin_with(web: WikiClient) -> None:
    for name in ("Ёлка", "Ωmega", "日本", "Éire", "9 lives"):
        web.wiki.save(name, "x", author="a", base=0)
    text = web.get("/-/pageindex").text
    letters = re.findall(r'letter=[^"]+">([^<]+)</a>', text)
    assert letters == ["9", "E", "P", "Ω", "Е", "日"]
    place = re.search(r'href="(/-/pageindex\?letter=[^"]+)">Е<', text)
    assert place
    one = web.get(place[1]).text
    assert "Ёлка" in one
    assert "日本" not in one
    assert 'aria-current="true">Е<' in one


def test_pages_are_counted_now_and_then(web: WikiClient) -> None:
    web.wiki.save("Page", "{{countpages}} pages", author="a", base=0)
    assert "2 pages" in web.get("/Page").text
    web.wiki.save("Other", "x", author="a", base=0)
    assert "2 pages" in web.get("/Page").text
    assert web.wiki.calls.count("count_pages") == 1
    web.now += web.config.count_age_s + 1
    assert "3 pages" in web.get("/Page").text


def test_a_result_links_to_the_section_of_its_passage(web: WikiClient) -> None:
    body = "======Moon======\nintro\n==== Crew & <co> ====\nthe stowaway\n"
    web.wiki.save("Moon", body, author="a", base=0, language="de")
    text = web.get("/-/search?q=stowaway").text
    (linked,) = re.findall(r'Section <a href="/Moon#([^"]+)" lang="de">Crew &amp; &lt;co&gt;</a>', text)
    assert f'id="{linked}"' in web.get("/Moon").text
    assert "Section" not in web.get("/-/search?q=intro").text


def test_one_character_is_marked_where_it_stands(web: WikiClient) -> None:
    web.wiki.save("潮汐", "昔から赤潮が出る", author="a", base=0)
    web.wiki.save("Other", "moon", author="a", base=0)
    text = web.get("/-/search?q=潮").text
    assert "<mark>潮</mark>汐</a>" in text
    assert '<p class="passage">昔から赤<mark>潮</mark>が出る</p>' in text
    assert web.get("/api/v1/search?q=潮").get_json()["count"] == 1


def test_names_are_suggested_before_headings_which_say_their_pages(web: WikiClient) -> None:
    web.wiki.save("Crew/all", "x\n====Crew & 100%====", author="a", base=0)
    answer = web.get("/-/suggest?q=crew&headings=1").get_json()
    assert answer[0] == {"name": "Crew/all", "path": "/Crew~2Fall"}
    assert answer[1] == {"name": "Crew & 100%", "path": "/Crew~2Fall#s-crew-100", "page": "Crew/all"}
    for n in range(12):
        web.wiki.save(f"Crew {n:02}", "====Crew====", author="a", base=0)
    answer = web.get("/-/suggest?q=crew&headings=1").get_json()
    assert (len(answer), sum("page" in one for one in answer)) == (MAX_SUGGESTIONS, HEADINGS)
    names = web.get("/-/suggest?q=crew").get_json()
    assert (len(names), [one for one in names if "page" in one]) == (MAX_SUGGESTIONS, []), (
        "the editor completes names alone"
    )


def test_a_search_does_not_count_the_pages(web: WikiClient) -> None:
    """That takes the longer, the more there are: 3 s for 45,000 pages on a busy store."""
    web.wiki.save("Page", "some text", author="a", base=0)
    assert 'href="/Page"' in web.get("/-/search?q=text").text
    assert "count_pages" not in web.wiki.calls


def test_an_action_that_fails_does_not_take_the_page_along(web: WikiClient) -> None:
    from wikka_port.pages import StoreUnavailable

    web.wiki.save("Page", "before {{recentchanges}} after", author="a", base=0)

    def away(**_: object) -> None:
        raise StoreUnavailable("there", "it is away")

    web.wiki.changes = away  # type: ignore[method-assign,assignment]
    text = web.get("/Page").text
    assert "could not be shown" in text
    assert "before" in text
    assert "after" in text
