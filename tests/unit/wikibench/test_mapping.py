"""Maps: titles from addresses of logs, addresses from titles, and mistakes in a map's file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikibench.addresses.mapping import ESCAPES, Map, WikiRules, parse_map
from wikibench.errors import MapError
from wikibench.targets.map_files import SHIPPED, load_map
from wikka_port.urls import PAGE_HANDLERS, route

MAPS = {name: load_map(name) for name in SHIPPED}


@pytest.mark.parametrize(
    ("name", "method", "path", "kind", "title"),
    [
        ("mediawiki", "GET", "/wiki/Main_Page", "view", "Main Page"),
        ("mediawiki", "HEAD", "/wiki/main_Page?x=1", "view", "Main Page"),
        ("mediawiki", "GET", "/w/index.php/Caf%C3%A9%3F", "view", "Café?"),
        ("mediawiki", "GET", "/index.php?title=A+b_c%26d&redirect=no", "view", "A b c&d"),
        ("mediawiki", "GET", "/wiki/File:Cat.jpg", "view", "File:Cat.jpg"),
        ("mediawiki", "POST", "/w/index.php?title=A_b&action=submit", "save", "A b"),
        ("mediawiki", "POST", "/wiki/A_b", "other", ""),
        ("mediawiki", "GET", "/w/index.php?title=A&action=history", "other", ""),
        ("mediawiki", "GET", "/w/index.php?title=A&oldid=7", "other", ""),
        ("mediawiki", "GET", "/wiki/Special:RecentChanges", "other", ""),
        ("mediawiki", "GET", "/w/load.php?lang=en", "static", ""),
        ("mediawiki", "GET", "/favicon.ico", "static", ""),
        ("dokuwiki", "GET", "/doku.php?id=Wiki:Two%20words", "view", "wiki:two words"),
        ("dokuwiki", "GET", "/dokuwiki/doku.php/a:b", "view", "a:b"),
        ("dokuwiki", "POST", "/doku.php?id=a_b&do=edit", "save", "a b"),
        ("dokuwiki", "POST", "/doku.php?id=a_b", "save", "a b"),
        ("dokuwiki", "POST", "/doku.php?id=start&do=login", "other", ""),
        ("dokuwiki", "GET", "/doku.php?id=a&do=edit", "other", ""),
        ("dokuwiki", "GET", "/lib/exe/css.php?t=dokuwiki", "static", ""),
        ("wikka", "GET", "/wikka.php?wakka=HomePage", "view", "HomePage"),
        ("wikka", "POST", "/wikka.php?wakka=HomePage/edit", "save", "HomePage"),
        ("wikka", "GET", "/wikka.php?wakka=HomePage/history", "other", ""),
        ("columnar", "GET", "/Two_words?x", "view", "Two words"),
        ("columnar", "GET", "/A/b/revisions", "other", ""),
        ("columnar", "POST", "/A/b/edit", "save", "A/b"),
        ("columnar", "GET", "/-/static/84aadf/wiki.css", "static", ""),
        ("columnar", "GET", "/-/login", "other", ""),
        ("plain", "GET", "/a/b?c", "view", "a/b"),
        ("plain", "POST", "/a/edit", "save", "a"),
        ("plain", "DELETE", "/a", "other", ""),
    ],
)
def test_kinds_and_titles_of_a_log(name: str, method: str, path: str, kind: str, title: str) -> None:
    assert MAPS[name].kind_of(method, path) == (kind, title)


@pytest.mark.parametrize(
    ("name", "title", "path"),
    [
        ("mediawiki", "two words & more?", "/index.php/Two_words_%26_more%3F"),
        ("dokuwiki", "Wiki:Two words!", "/doku.php?id=wiki:two_words"),
        ("wikka", "HomePage", "/wikka.php?wakka=HomePage"),
        ("columnar", "Žemē: (x)", "/%C5%BDem%C4%93:_(x)"),
    ],
)
def test_addresses_of_titles(name: str, title: str, path: str) -> None:
    found = MAPS[name]
    assert found.view_path(title) == path
    assert found.kind_of("GET", path) == ("view", found.canonical(title))


@given(st.sampled_from(sorted(ESCAPES)), st.text(max_size=30))
def test_a_canonical_name_is_its_own_and_comes_back_from_its_address(escape: str, name: str) -> None:
    found = Map(wiki=WikiRules(view="/{title}", escape=escape))
    title = found.canonical(name)
    assert found.canonical(title) == title
    assert found.escaped(title) == found.escaped(name)
    if title.strip(" /") == title:
        assert found.title_of(found.view_path(name)) == title


ADDRESSES = (
    *("/", "/?from=feed", "/A", "/A/", "/A/B", "/A/B/", "/A?x=/edit", "/edit", "/Edit", "/files/x"),
    *("/api", "/api/", "/api/v1/page", "/api/titles", "/api/notes", "/api-notes", "/robots.txt", "/-/login"),
    *("/-/keys?x", "/health", "/healthy"),
    *("/A/files/Plan.pdf", "/A/files/", "/A/files/a/b"),
)
AROUND_A_HANDLER = ("/A/{}", "/A/B/{}/", "/A/{}?x=1", "/{}", "/A/{}-notes", "/A/{}/B", "/A/x{}")


@pytest.mark.parametrize("handler", [*sorted(PAGE_HANDLERS), ""])
def test_the_map_of_this_wiki_reads_addresses_as_the_wiki_does(handler: str) -> None:
    """``/A/history`` and 20 other handlers were views of pages "A/history", and ``/`` was no view at all."""
    for path in [one.format(handler) for one in AROUND_A_HANDLER] if handler else ADDRESSES:
        meant = route(path.partition("?")[0], "HomePage")
        is_view = (meant.kind, meant.handler) == ("page", "show")
        assert MAPS["columnar"].kind_of("GET", path) == (("view", meant.name) if is_view else ("other", "")), path
        is_edit = (meant.kind, meant.handler) == ("page", "edit")
        assert MAPS["columnar"].kind_of("POST", path) == (("save", meant.name) if is_edit else ("other", "")), path


def test_the_root_page_has_one_name_in_trace_and_target() -> None:
    found = MAPS["columnar"]
    assert found.title_of("/") == found.title_of("/HomePage") == "HomePage"
    assert found.view_path("") == "/HomePage"
    assert MAPS["mediawiki"].kind_of("GET", "/index.php") == ("other", ""), "a map without a root page drops it"
    chosen = load_map("columnar:root=Start_page")
    assert chosen.kind_of("GET", "/?x") == ("view", "Start page")
    assert chosen.title_of("/") == chosen.title_of("/Start_page") == "Start page"
    assert (chosen.view_path(""), chosen.kind_of("GET", "/HomePage")) == ("/Start_page", ("view", "HomePage"))
    for name in ("columnar:", "columnar:root=", "columnar:roots=Start", "columnar:root"):
        with pytest.raises(MapError, match="root=NAME, the page at /"):
            load_map(name)


def test_titles_of_addresses_of_the_wiki_and_of_any_trace() -> None:
    wiki = MAPS["mediawiki"]
    for path in ("/wiki/A_b", "/w/index.php?title=A_b&action=submit", "/A_b", "/a b?x"):
        assert wiki.title_of(path) == "A b"
    assert MAPS["dokuwiki"].title_of("/A_b") == "a b"


def test_plain_is_the_default() -> None:
    plain = MAPS["plain"]
    assert (plain.wiki, plain.form, plain.login) == (Map().wiki, Map().form, None)
    assert not plain.has_own_addresses


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("wiki = ", "no TOML"),
        ("[wikki]", "wiki, form, login, log, but no 'wikki'"),
        ("[wiki]\nvieuw = '/'", "no 'vieuw'"),
        ("[wiki]\nview = '/x'", "wiki.view needs {title} or {path}"),
        ("[wiki]\nedit = 'edit/{title}'", "begins with /"),
        ("[wiki]\nescape = 'html'", "wiki.escape is one of plain, percent"),
        ("[wiki]\ntitles_as = 'xml'", "wiki.titles_as is one of lines"),
        ("[wiki]\nview = 1", "wiki.view is a text in quotes"),
        ("wiki = 1", "wiki is a table"),
        ("[form]\nsaved = 302", "form.saved is a list of statuses"),
        ("[form]\nsaved = [true, 30]", "form.saved is a list of statuses"),
        ("[login]\nname = 'u'", "login needs page"),
        ("log = 1", "log is a list"),
        ("log = [ 1 ]", "each rule of log has match and kind"),
        ("[[log]]\nmatch = '('\nkind = 'view'", "no regular expression"),
        ("[[log]]\nmatch = '^/x'\nkind = 'view'", "(?P<title>...)"),
        ("[[log]]\nmatch = '^/x'\nkind = 'vieuw'", "log.kind is one of view"),
        ("[[log]]\nmatch = '^/x'\nkind = 'static'\nmethods = 'GET'", "no 'methods'"),
    ],
)
def test_mistakes_say_what_to_write(text: str, why: str) -> None:
    with pytest.raises(MapError) as caught:
        parse_map("my.toml", text)
    assert str(caught.value).startswith("--map my.toml: ")
    assert why in str(caught.value)


def test_the_map_of_the_page_is_one_of_this_wiki() -> None:
    page = (Path(__file__).parents[3] / "docs" / "wikibench.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    found, own = parse_map("mine.toml", text), MAPS["columnar"]
    assert found.form == own.form
    assert found.wiki == own.wiki
    for method, path in (("GET", "/A_b?x"), ("POST", "/A_b/edit"), ("GET", "/A_b/edit"), ("GET", "/-/static/x/y.css")):
        assert found.kind_of(method, path) == own.kind_of(method, path)


def test_maps_of_files(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text("[login]\npage='/in'\nname='n'\npassword='p'\nusers='users.csv'\n")
    login = load_map(str(path)).login
    assert login is not None
    assert login.users == str(tmp_path / "users.csv")
    with pytest.raises(MapError, match="neither one of columnar, mediawiki"):
        load_map(str(tmp_path / "none.toml"))
    path.write_bytes(b"\xff")
    with pytest.raises(MapError, match="UTF-8"):
        load_map(str(path))
