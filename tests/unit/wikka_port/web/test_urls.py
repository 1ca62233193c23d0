"""Addresses: every name there and back, nothing taken for a handler that is none."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.names import InvalidName, normalise
from wikka_port.urls import PAGE_HANDLERS, RESERVED, Route, file_path, page_path, route, site_path, takes_upload

NAMES = [
    "HomePage", "A/B", "edit", "Foo/edit", "Foo/show", "Ünï cödé", "100%", "a?b#c", ".", "..", "-", "-/recentchanges",
    "-/static/x/wiki.css", "api/titles", "health", "robots.txt", "favicon.ico", "a%2Fb", "~2F", "~", "\\", "//x", "/",
    "a/", "/edit", "<script>", "&amp;", "日本語", "'\"", "+", "a;b=c", ":", "http://example.org/x", "%E4",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("handler", ["show", "edit", "diff"])
def test_each_name_comes_back(name: str, handler: str) -> None:
    path = page_path(name, handler)
    assert path.isascii()
    assert not path.startswith("//")
    assert route(unquote(urlsplit(path).path), "Root") == Route("page", normalise(name), handler)


@given(st.text(min_size=1, max_size=60), st.sampled_from(sorted(PAGE_HANDLERS)))
@settings(max_examples=300)
def test_any_name_comes_back(text: str, handler: str) -> None:
    try:
        name = normalise(text)
    except InvalidName:
        return
    assert route(unquote(page_path(name, handler)), "Root") == Route("page", name, handler)


@given(st.text(max_size=80))
@settings(max_examples=300)
def test_any_path_means_something_or_is_no_name(path: str) -> None:
    with suppress(InvalidName):
        assert route("/" + path, "Root").kind


@pytest.mark.parametrize(
    ("path", "meaning"),
    [
        ("/", Route("page", "Root", "show")),
        ("", Route("page", "Root", "show")),
        ("//", Route("page", "Root", "show")),
        ("/A/B", Route("page", "A/B", "show")),
        ("/A/edit", Route("page", "A", "edit")),
        ("/A/edit/", Route("page", "A", "edit")),
        ("/A/edit/B", Route("page", "A/edit/B", "show")),
        ("/edit", Route("page", "edit", "show")),
        ("/My_page", Route("page", "My page", "show")),
        ("/-/recentchanges", Route("site", "", "recentchanges")),
        ("/-/nothing", Route("page", "-/nothing", "show")),
        ("/A/recentchanges", Route("page", "A/recentchanges", "show")),
        ("/-/static/abc/wiki.css", Route("static", "wiki.css", "static")),
        ("/-/static/../../x", Route("static", "x", "static")),
    ],
)
def test_paths_that_people_type(path: str, meaning: Route) -> None:
    assert route(path, "Root") == meaning


def test_reserved_words_are_reachable_as_pages() -> None:
    for word in RESERVED:
        assert route("/" + word, "Root").kind == "reserved"
        assert route(page_path(word), "Root") == Route("page", word, "show")


def test_empty_parameters_are_left_out() -> None:
    assert site_path("pageindex", letter="", start="") == "/-/pageindex"
    assert site_path("pageindex", letter="", start="Ä b") == "/-/pageindex?start=%C3%84+b"


def test_a_file_has_a_path_below_its_page() -> None:
    assert file_path("HomePage", "Plan.pdf") == "/HomePage/files/Plan.pdf"
    assert file_path("A/B", "Ein Bild?&#%.png", v=3, w="") == "/A~2FB/files/Ein%20Bild%3F%26%23%25.png?v=3"
    assert file_path("health", "Ä.png") == "/~68ealth/files/%C3%84.png"


def test_uploads_are_known_by_method_and_path() -> None:
    for taken in (("POST", "/Page/files"), ("POST", "/A/B/files"), ("POST", "/Page/files/"), ("PATCH", "/-/upload")):
        assert takes_upload(*taken), taken
    for other in (
        *(("GET", "/Page/files"), ("POST", "/Page/edit"), ("POST", "/Page/files/a.png"), ("POST", "/-/files")),
        *(("POST", "/-/upload"), ("PATCH", "/Page/files"), ("PATCH", "/-/upload/x"), ("POST", "/Page")),
    ):
        assert not takes_upload(*other), other
