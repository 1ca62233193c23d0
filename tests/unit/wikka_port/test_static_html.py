"""HTML of pages in a folder: addresses become paths or go, and everything else stays as it was."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from urllib.parse import unquote

import pytest

from wikka_port.exchange.paths import TakenPaths
from wikka_port.exchange.spool import spool_database
from wikka_port.exchange.static_html import in_folder
from wikka_port.exchange.static_places import StaticPlaces, file_paths
from wikka_port.files.file_rows import CurrentFile
from wikka_port.pages import Page
from wikka_port.urls import page_path

PAGE = Page("A", 1, 0, "Ann", "", "text")
CURRENT = CurrentFile(3, "00" * 8, "ab" * 32, 7, "application/pdf")


class Known:
    def link(self, address: str) -> str | None:
        return {"/A~2FB#part": "../A/B.html#part", "/A": "A.html"}.get(address)

    def picture(self, address: str) -> str | None:
        return "../x.png" if address == "/A/files/x.png?v=3" else None


@pytest.mark.parametrize(
    ("html", "becomes"),
    [
        ('<a href="/A~2FB#part" class="x">B &amp; &#39;</a>', '<a href="../A/B.html#part" class="x">B &amp; &#39;</a>'),
        ('<a href="/Gone/edit" class="missing" rel="nofollow">Gone</a>', "<span>Gone</span>"),
        ('<a href="#part">x</a> <a id="place"></a>', '<a href="#part">x</a> <a id="place"></a>'),
        ('<a href="HTTPS://other.example/">x</a>', '<a href="HTTPS://other.example/">x</a>'),
        ('<a href="//other.example/">x</a>', "<span>x</span>"),
        ('<a href="javascript:alert(1)">x</a>', "<span>x</span>"),
        (
            '<img src="/A/files/x.png?v=3" srcset="/A/files/x.png?w=320 320w" sizes="1vw" alt="&lt;x&gt;" width="3">',
            '<img src="../x.png" alt="&lt;x&gt;" width="3">',
        ),
        ('<img src="https://other.example/x.png" alt="a &lt; b">', "a &lt; b"),
        ('<p>a<form action="/-/search"><input name="q"><a href="/A">x</a></form>b</p>', "<p>ab</p>"),
        ('<a href="/A"><img src="/no" alt="x"></a><a href="/no"><a href="/A">y</a></a>',
         '<a href="A.html">x</a><span><a href="A.html">y</a></span>'),
        ('<td background="/x" onclick="y" class="z">a</td>', '<td class="z">a</td>'),
        ('<pre class="code">a &lt; b</pre><br>\u05d0', '<pre class="code">a &lt; b</pre><br>\u05d0'),
        ("a < b & c", "a < b & c"),
    ],
)  # fmt: skip
def test_addresses_become_paths_or_go(html: str, becomes: str) -> None:
    assert in_folder(html, Known()) == becomes


def test_names_that_a_disk_confuses_have_places_of_their_own() -> None:
    names = ("index", "Index", "INDEX", "files/x", "A.html/B", "A", "a", "CON", "x" * 300, "..", "Who?", "50 % / #1")
    with closing(spool_database()) as database:
        places = StaticPlaces(database, TakenPaths(database), "index")
        places.create_tables()
        for name in names:
            places.add_page(replace(PAGE, name=name), ("A", "index"))
        places.finish_adding()
        paths = [places.page_path(name) for name in names]
        assert len({path.casefold() for path in paths}) == len(names)
        assert all(re.fullmatch(r"pages/(?:[^/]+/)*[^/]+\.html", path) for path in paths)
        assert ".." not in "/".join(paths).split("/")
        assert places.start == "pages/index.html"
        assert places.target_of("/Who%3F", as_picture=False) == "pages/Who%253F.html"
        for name, path in zip(names, paths, strict=True):
            address = places.target_of(page_path(name) + "#part", as_picture=False)
            assert unquote(address.removesuffix("#part")) == path
        assert len(places.backlinks("A")[0]) == len(names) - 1, "a page is not among its own"


def test_files_that_a_browser_would_run_are_shown() -> None:
    with closing(spool_database()) as database:
        taken = TakenPaths(database)
        taken.create_table()
        assert file_paths(taken, "A", "x.html", "text/html") == ("files/A/x.html.txt",) * 2
        link, picture = file_paths(taken, "A", "x.html.txt", "text/plain")
        assert link == picture != "files/A/x.html.txt"
        assert file_paths(taken, "A", "x.svg", "image/svg+xml") == ("files/A/x.svg.txt", "files/A/x.svg")
        assert file_paths(taken, "A", "x.png", "image/png") == ("files/A/x.png",) * 2


def test_only_the_newest_version_of_a_file_is_there() -> None:
    with closing(spool_database()) as database:
        places = StaticPlaces(database, TakenPaths(database), "A")
        places.create_tables()
        places.add_page(PAGE, ())
        places.finish_adding()
        places.add_file("A", "My plan.pdf", CURRENT)
        for address, path in (
            ("/A/files/My%20plan.pdf?v=3", "files/A/My%20plan.pdf"),
            ("/A/files/my_plan.pdf", "files/A/My%20plan.pdf"),
            ("/A/files/My%20plan.pdf?v=2", ""),
            ("/A/files/Other.pdf", ""),
            ("/A/files", ""),
            ("/A?revision=2", ""),
            ("/", "pages/A.html"),
            ("/-/pageindex", "index.html"),
            ("/-/recentchanges", ""),
            ("/%00", ""),
        ):
            assert places.target_of(address, as_picture=False) == path, address
