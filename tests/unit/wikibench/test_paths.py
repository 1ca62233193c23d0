"""From the addresses of a trace to those of the wiki under test."""

from __future__ import annotations

import pytest

from wikibench.addresses.paths import Layout, address_path, host_of, name_path, page_name, parse_rewrite
from wikibench.errors import PlanError, TargetError, UnsafeTargetError
from wikibench.targets.map_files import load_map
from wikibench.targets.target import Target, parse_target, require_loopback


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://en.wikipedia.org/wiki/Judge_Me_Tender", "/wiki/Judge_Me_Tender"),
        ("http://en.wikipedia.org", "/"),
        ("wiki/Main_Page", "/wiki/Main_Page"),
        ("", "/"),
        ("http://h/a?b=c&d#e", "/a?b=c&d"),
        ("http://h/%C4%81%2F", "/%C4%81%2F"),
        ("http://h/ā", "/%C4%81"),
        ("http://h/caf\udce9", "/caf%E9"),  # bytes of a trace that are no UTF-8
        ('http://h/"<x>', "/%22%3Cx%3E"),
    ],
)
def test_paths(url: str, path: str) -> None:
    assert address_path(url) == path


@pytest.mark.parametrize("name", ["Page", "Two words", "ā/b", "100%", "a?b#c", "C++", "Žemē: (x)"])
def test_names_and_paths(name: str) -> None:
    assert page_name("/" + name_path(name)) == name
    assert address_path("http://w/" + name_path(name)) == "/" + name_path(name)


def test_prefixes_are_exchanged_and_saves_find_their_page() -> None:
    layout = Layout((parse_rewrite("/wiki/=/"), parse_rewrite("/w/=/x/")))
    assert layout.path("http://en.wikipedia.org/wiki/A_b") == "/A_b"
    assert layout.path("http://en.wikipedia.org/w/load.php?x") == "/x/load.php?x"
    assert layout.page("http://en.wikipedia.org/w/index.php?title=A+b%2Fc&action=submit") == "/A_b/c"
    assert layout.page("http://w/Page/edit") == "/Page"
    assert layout.page("http://w/Page?action=edit") == "/Page"
    assert layout.edit_path("/Page") == "/Page/edit"
    assert Layout(edit="/e{page}").edit_path("/Page") == "/e/Page"
    with pytest.raises(PlanError):
        parse_rewrite("wiki")


def test_a_map_makes_addresses_of_its_own_and_edits_go_to_its_form() -> None:
    layout = Layout((parse_rewrite("/pages/=/"),), map=load_map("mediawiki"))
    for url in ("http://w/two_words", "http://w/pages/Two%20words?x", "/w/index.php?title=Two+words&action=submit"):
        assert layout.name(url) == "Two words"
        assert layout.path(url) == "/index.php/Two_words"
        assert layout.page(url) == "/Two_words"
    assert layout.edit_path("/Two_words") == "/index.php?title=Two_words&action=edit"
    assert Layout(map=load_map("dokuwiki")).page("http://w/doku.php?id=Wiki:A_b") == "/wiki:a_b"
    assert Layout(map=load_map("mediawiki"), edit="{page}?action=edit").edit_path("/A") == "/index.php/A?action=edit"
    assert Layout(edit="/form/{title}").edit_path("/A%20b") == "/form/A_b"
    assert Layout().name("http://w/A_b/edit?x") == "A b"


def test_hosts() -> None:
    assert host_of("http://En.wikipedia.org/x") == "en.wikipedia.org"
    assert host_of("wiki/x") is None


def test_targets() -> None:
    assert parse_target("http://127.0.0.1:8080/") == Target("http://127.0.0.1:8080")
    assert parse_target("localhost:81/w/") == Target("http://localhost:81", "/w")
    assert parse_target("http://[::1]:80").origin == "http://[::1]:80"
    assert parse_target("http://h/w").url("/Page") == "http://h/w/Page"
    for bad in ("ftp://x", "http://", "http://x:99999", "", "http://h/w?token=abcdef", "http://h/#abcdef"):
        with pytest.raises(TargetError):
            parse_target(bad)
    with pytest.raises(TargetError) as caught:
        parse_target("http://h/w?token=abcdef")
    assert "abcdef" not in str(caught.value)


def test_only_this_machine_is_loaded_unasked() -> None:
    require_loopback(parse_target("http://127.0.0.1:8080"))
    require_loopback(parse_target("http://127.9.9.9"))
    require_loopback(parse_target("http://[::1]:80"))
    for other in ("http://192.0.2.1", "http://[2001:db8::1]", "http://0.0.0.0"):
        with pytest.raises(UnsafeTargetError, match="--allow-remote"):
            require_loopback(parse_target(other))
