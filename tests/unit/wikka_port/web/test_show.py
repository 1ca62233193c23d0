"""Pages as their readers see them."""

from __future__ import annotations

import gzip
import logging

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.search.nearest import MOST

NAMES = {
    "HomePage": "/HomePage",
    "A/B": "/A~2FB",
    "edit": "/edit",
    "Foo/edit": "/Foo~2Fedit",
    "Ünï cödé": "/%C3%9Cn%C3%AF_c%C3%B6d%C3%A9",
    "100%": "/100~25",
    "a?b#c": "/a%3Fb%23c",
    "..": "/~2E~2E",
    "health": "/~68ealth",
    "-/recentchanges": "/-~2Frecentchanges",
}


@pytest.fixture
def web() -> WikiClient:
    return WikiClient()


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_saved_shown_and_listed(web: WikiClient, name: str) -> None:
    path = NAMES[name]
    saved = web.save(path, f"the text of {name}")
    assert (saved.status_code, saved.headers["Location"]) == (303, path)
    shown = web.get(path)
    assert shown.status_code == 200
    assert "the text of" in shown.text
    assert web.wiki.page(name) is not None
    for handler in ("edit", "revisions", "history", "diff", "raw", "backlinks", "revert?revision=1"):
        assert web.get(f"{path}/{handler}").status_code == 200, handler
    for place in ("/-/recentchanges", "/-/pageindex", "/-/orphanedpages"):
        assert f'href="{path}"' in web.get(place).text
    assert web.get("/api/titles").text == name + "\n"


def test_typed_addresses_lead_to_the_canonical_one(web: WikiClient) -> None:
    for typed, canonical in {"/A/B": "/A~2FB", "/My page": "/My_page", "/X/show": "/X", "/X/": "/X"}.items():
        answer = web.get(typed, query_string={"revision": "2"})
        assert (answer.status_code, answer.headers["Location"]) == (302, canonical + "?revision=2"), typed
    elsewhere = web.get("/", environ_overrides={"PATH_INFO": "//evil.example/x"})
    assert elsewhere.headers["Location"] == "/evil.example~2Fx", "never to another host"


def test_a_missing_page_offers_to_be_created(web: WikiClient) -> None:
    answer = web.get("/Nothing_here")
    assert answer.status_code == 404
    assert 'href="/Nothing_here/edit"' in answer.text
    assert "noindex" in answer.headers["X-Robots-Tag"]
    for handler in ("revisions", "history", "diff", "revert", "raw"):
        assert web.get("/Nothing_here/" + handler).status_code == 404, handler


@pytest.mark.parametrize(
    "typed", ["/homepage", "/home_page", "/HomePgae", "/HomePage~2Fedti", "/Homep", "/homepage/diff"]
)
def test_a_missing_page_names_those_that_may_be_meant(web: WikiClient, typed: str) -> None:
    for name in ("HomePage", *(f"Other{n}" for n in range(9))):
        web.wiki.save(name, "x", author="a", base=0)
    answer = web.get(typed)
    assert answer.status_code == 404
    assert '<a href="/HomePage">HomePage</a>' in answer.text
    assert 'href="/Other' not in answer.text
    assert web.get("/Other").text.count('<li><a href="/Other') == MOST


def test_a_page_that_is_there_costs_no_look_for_near_names(web: WikiClient) -> None:
    web.wiki.save("HomePage", "x", author="a", base=0)
    web.get("/homepage")
    assert web.wiki.calls.count("nearest") == 1
    for path in ("/HomePage", "/HomePage/edit", "/Nowhere/edit", "/-/search?q=homepage"):
        web.get(path)
    assert web.wiki.calls.count("nearest") == 1


def test_the_root_page_stands_at_the_root(web: WikiClient) -> None:
    web.wiki.save("HomePage", "hello", author="a", base=0)
    assert "hello" in web.get("/").text
    assert WikiClient(root_page="Other").get("/").status_code == 404


def test_links_know_what_exists_by_one_call(web: WikiClient) -> None:
    web.wiki.save("There", "x", author="a", base=0)
    web.wiki.save("HomePage", "[[There]] [[Not there]] [[There]]", author="a", base=0)
    web.wiki.calls.clear()
    text = web.get("/HomePage").text
    assert web.wiki.calls == ["page", "existing"]
    assert '<a href="/There">There</a>' in text
    assert '<a href="/Not_there/edit" class="missing"' in text


def test_a_redirect_is_followed_once_and_says_so(web: WikiClient) -> None:
    web.wiki.save("Old", "#REDIRECT [[New]]", author="a", base=0)
    web.wiki.save("New", "#REDIRECT [[Old]] the new text", author="a", base=0)
    followed = web.get("/Old")
    assert followed.status_code == 200
    assert "the new text" in followed.text
    assert 'Redirected from <a href="/Old?redirect=no">Old</a>' in followed.text
    assert '<link rel="canonical" href="/New">' in followed.text
    itself = web.get("/Old?redirect=no").text
    assert "the new text" not in itself
    assert 'href="/New"' in itself


def test_a_redirect_to_nowhere_or_to_itself_is_shown(web: WikiClient) -> None:
    web.wiki.save("Nowhere", "#REDIRECT [[Gone]]", author="a", base=0)
    web.wiki.save("Self", "#REDIRECT [[Self]]", author="a", base=0)
    assert "/Gone/edit" in web.get("/Nowhere").text
    assert web.get("/Self").status_code == 200


def test_the_same_answer_is_not_sent_twice(web: WikiClient) -> None:
    web.wiki.save("HomePage", "text WantedOne", author="a", base=0)
    tag = web.get("/HomePage").headers["ETag"]
    again = web.get("/HomePage", headers={"If-None-Match": tag})
    assert (again.status_code, again.data) == (304, b"")
    assert "Content-Security-Policy" in again.headers
    web.wiki.save("WantedOne", "now it exists", author="a", base=0)
    assert web.get("/HomePage", headers={"If-None-Match": tag}).status_code == 200
    raw = web.get("/HomePage/raw")
    assert web.get("/HomePage/raw", headers={"If-None-Match": raw.headers["ETag"]}).status_code == 304


def test_old_revisions_by_number_and_time(web: WikiClient) -> None:
    first = web.wiki.save("P", "text one", author="Ada", base=0)
    web.wiki.save("P", "text two", author="Bob", base=1)
    for query in (
        "revision=1",
        f"time={first.time_ms}",
        "time=2025-06-15T15:07:41",
        "time=2025-06-15T17:07:41%2B02:00",
    ):
        answer = web.get(f"/P?{query}")
        assert answer.status_code == 200, query
        assert "text one" in answer.text
        assert "This is an old revision" in answer.text
        assert "noindex" in answer.headers["X-Robots-Tag"]
        assert 'name="robots"' in answer.text
    assert web.get("/P?revision=2").headers["Location"] == "/P"
    assert web.get("/P?time=9999999999999").headers["Location"] == "/P"
    for nonsense in (
        "revision=9",
        "revision=x",
        "time=x",
        "time=1",
        "time=",
        "time=9999-99-99",
        "revision=" + "9" * 40,
    ):
        assert web.get(f"/P?{nonsense}").status_code == 404, nonsense


def test_only_the_newest_shown_revision_is_for_search_engines(web: WikiClient) -> None:
    web.wiki.save("P", "one", author="a", base=0)
    web.wiki.save("P", "two", author="a", base=1)
    assert "X-Robots-Tag" not in web.get("/P").headers
    assert 'name="robots"' not in web.get("/P").text
    places = ["/P/edit", "/P/revisions", "/P/history", "/P/diff", "/P/raw", "/P/backlinks", "/P?revision=1", "/Nope"]
    lists = ["recentchanges", "recentchanges.xml", "pageindex", "wantedpages", "orphanedpages", "search?q=P"]
    for place in [*places, *("/-/" + each for each in lists), "/api/titles", "/P/revert?revision=1"]:
        assert "noindex" in web.get(place).headers["X-Robots-Tag"], place


def test_a_page_with_its_own_title_has_one_large_heading(web: WikiClient) -> None:
    web.wiki.save("WithTitle", "======A title======\ntext", author="a", base=0)
    web.wiki.save("Without", "=====Section=====\ntext", author="a", base=0)
    assert web.get("/WithTitle").text.count("<h1") == 1
    assert "<title>A title" in web.get("/WithTitle").text
    assert '<h1 class="page-title"><a href="/Without">' in web.get("/Without").text


def test_imported_pages_show_where_they_are_from(web: WikiClient) -> None:
    web.wiki.save("P", "CamelCase", author="a", base=0, autolink=False, attribution="From a <wiki>, CC BY-SA")
    text = web.get("/P").text
    assert "From a &lt;wiki&gt;, CC BY-SA" in text
    assert "/CamelCase/edit" not in text


def test_the_store_is_away(web: WikiClient) -> None:
    web.wiki.away = True
    for place in ("/", "/P/history", "/-/recentchanges", "/api/titles"):
        answer = web.get(place)
        assert answer.status_code == 503, place
        assert int(answer.headers["Retry-After"]) > 0
    assert web.get("/health").status_code == 503
    web.wiki.away = False
    assert web.get("/health").text == "ok\n"


def test_a_mistake_of_ours_is_answered_and_logged(web: WikiClient, caplog: pytest.LogCaptureFixture) -> None:
    web.wiki.page = lambda name: 1 / 0  # type: ignore[method-assign,return-value]
    answer = web.get("/P")
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_a_mistake_of_an_author_is_said_on_the_page_and_in_no_log(
    web: WikiClient, caplog: pytest.LogCaptureFixture
) -> None:
    web.wiki.save("P", '{{calendar year="never"}}', author="Ann", base=0)
    caplog.set_level(logging.INFO)
    for _ in range(3):
        assert "should be a number from 1 to 9998" in web.get("/P").text
    assert "calendar" not in caplog.text


def test_refused_methods_and_names(web: WikiClient) -> None:
    assert web.client.post("/P").status_code == 405
    assert web.client.delete("/P/edit").status_code == 405
    assert web.client.post("/-/recentchanges").status_code == 405
    assert web.client.head("/Nope").status_code == 404
    for name in ("/a%00b", "/%7F", "/" + "x" * 1021, "/_"):
        assert web.get(name).status_code == 400, name


def test_static_files_are_kept_for_ever_under_their_own_hash(web: WikiClient) -> None:
    text = web.get("/Nope").text
    start = text.index("/-/static/")
    path = text[start : text.index('"', start)]
    answer = web.get(path)
    assert answer.status_code == 200
    assert "immutable" in answer.headers["Cache-Control"]
    assert "immutable" not in web.get("/-/static/other/wiki.css").headers["Cache-Control"]
    assert web.get("/-/static/x/nothing.css").status_code == 404
    assert web.get("/favicon.ico").status_code == 200
    assert "Disallow" in web.get("/robots.txt").text


def test_a_name_with_a_tilde_and_two_hexadecimal_digits_is_found_as_it_is_typed() -> None:
    web = WikiClient()
    web.wiki.save("X~aawiki", "text", author="a", base=0)
    answer = web.get("/X~aawiki", follow_redirects=True)
    assert (answer.status_code, answer.request.path) == (200, "/X~7Eaawiki")


def test_an_action_that_is_not_run_is_a_note_for_editors_and_nothing_for_readers(web: WikiClient) -> None:
    web.wiki.save("P", "before {{feedback}} behind\n\n{{nosuchaction}}", author="a", base=0, owner="Olga")
    web.wiki.save("Around", '{{include page="P"}}', author="a", base=0)
    web.wiki.rights.change("P", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    olga, rita = web.signed_in("Olga"), web.signed_in("Rita")
    shown = olga.get("/P").text
    assert (
        '<p class="notice">The action feedback is not here: readers write comments, or suggest a change of the page.'
        in shown
    )
    assert '<p class="notice">There is no action nosuchaction.' in shown
    for other in (web, rita):
        assert "notice" not in other.get("/P").text
    for path in ("/P/print", "/P/html", "/Around"):
        assert "notice" not in olga.get(path).text, path


def test_on_an_open_wiki_a_visitor_without_an_account_is_a_reader(web: WikiClient) -> None:
    web.wiki.save("P", "{{nosuchaction}}", author="a", base=0)
    assert "notice" not in web.get("/P").text
    assert "There is no action nosuchaction." in web.signed_in("Rita").get("/P").text


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [("gzip, deflate, br", True), ("br;q=1, gzip;q=0.5", True), ("gzip;q=0", False), ("br", False), ("", False)],
)
def test_styles_and_scripts_are_compressed_for_who_takes_that(
    web: WikiClient, accepted: str, is_compressed: bool
) -> None:
    plain = web.get("/-/static/x/wiki.css")
    answer = web.get("/-/static/x/wiki.css", headers={"Accept-Encoding": accepted})
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers.get("Content-Encoding") == ("gzip" if is_compressed else None)
    assert (gzip.decompress(answer.data) if is_compressed else answer.data) == plain.data
    assert len(answer.data) == int(answer.headers["Content-Length"])
    assert (3 * len(answer.data) < len(plain.data)) == is_compressed
