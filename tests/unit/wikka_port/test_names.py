"""Names: one form, one key, one way into a URL and back."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.names import MAX_NAME_BYTES, InvalidName, from_url, is_camel_case, normalise, page_key, url_path

anything = st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=40)


def valid(name: str) -> bool:
    try:
        normalise(name)
    except InvalidName:
        return False
    return True


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("HomePage", "HomePage"),
        ("Main_Page", "Main Page"),
        ("  two   blanks__here ", "two blanks here"),
        ("cafe\u0301", "caf\u00e9"),
        ("no\u00a0break", "no break"),
        ("C#/50% <a>?|[]", "C#/50% <a>?|[]"),
    ],
)
def test_a_name_has_one_form(typed: str, stored: str) -> None:
    assert normalise(typed) == stored


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("", "empty"),
        (" _ ", "empty"),
        ("a\nb", "U+000A"),
        ("a\x7f", "U+007F"),
        ("a\u2028b", "U+2028"),
        ("\ud800", "U+D800"),
        ("é" * (MAX_NAME_BYTES // 2 + 1), f"{MAX_NAME_BYTES} are the most"),
    ],
)
def test_what_cannot_be_a_name_says_why(typed: str, reason: str) -> None:
    with pytest.raises(InvalidName, match="cannot be the name of a page") as caught:
        normalise(typed)
    assert reason in str(caught.value)
    assert caught.value.name == typed


def test_the_longest_name_is_taken() -> None:
    assert len(normalise("a" * MAX_NAME_BYTES)) == MAX_NAME_BYTES


def test_the_key_is_the_md5_of_the_normal_form() -> None:
    assert page_key("Main_Page") == page_key(" Main  Page ")
    assert page_key("HomePage") != page_key("homepage")
    assert page_key("a") == b"0cc175b9c0f1b6a831c399e269772661"


@pytest.mark.parametrize("name", ["WikiPage", "HTMLPageOne", "PageOne2", "AaB"])
def test_camel_case(name: str) -> None:
    assert is_camel_case(name)


@pytest.mark.parametrize("name", ["Wiki", "HTMLPage", "wikiPage", "WIKI", "Wiki Page", "WikiPagé", ""])
def test_not_camel_case(name: str) -> None:
    assert not is_camel_case(name)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Main Page", "Main_Page"),
        ("A/edit", "A~2Fedit"),
        ("100%", "100~25"),
        ("C#", "C%23"),
        ("what?", "what%3F"),
        ("~x", "~7Ex"),
        ("..", "~2E~2E"),
        ("Rēzekne", "R%C4%93zekne"),
        ("Category:Towns", "Category:Towns"),
    ],
)
def test_a_name_in_a_url(name: str, path: str) -> None:
    assert url_path(name) == path


@settings(max_examples=300)
@given(anything.filter(valid))
def test_a_url_leads_back_to_its_name_raw_and_decoded_by_a_server(name: str) -> None:
    normal = normalise(name)
    path = url_path(name)
    assert path.isascii()
    assert "/" not in unquote(path)
    assert from_url(path) == from_url(unquote(path)) == from_url("/" + path) == normal
    assert normalise(normal) == normal


def test_what_people_type_into_the_address_bar_is_understood() -> None:
    assert from_url("/AC/DC") == "AC/DC"
    assert from_url("100%") == "100%"
    with pytest.raises(InvalidName):
        from_url("/a%00b")


@pytest.mark.parametrize("name", ["X~aawiki", "X~00y", "a~68b", "~zz", "x~2", "Ü~ffÜ"])
def test_a_tilde_that_is_typed_means_itself_unless_the_wiki_writes_it_so(name: str) -> None:
    assert from_url("/" + name) == name
    assert from_url(url_path(name)) == name


def test_what_the_wiki_writes_is_read() -> None:
    written = ("a~2Fb", "a~2fb~25", "~7E~5C", "~2E", "~2E~2E")
    assert [from_url(path) for path in written] == ["a/b", "a/b%", "~\\", ".", ".."]
    assert [from_url(path) for path in ("~68ealth", "~72obots.txt", "~66avicon.ico")] == [
        "health",
        "robots.txt",
        "favicon.ico",
    ]
