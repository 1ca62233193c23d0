"""The section of a place: the same headings and ids as the page has, whatever its text is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikka_port.markup.document import parse
from wikka_port.markup.formats import MARKDOWN, WIKKA
from wikka_port.search.page_text import Places, headings

PARTS = (
    *("== One ==\n", "===One===\n", "====Two **bold** [[HomePage x]]====\n", "======Top======\n", "text "),
    *(
        "\n",
        "%%",
        '""',
        "``",
        "/*",
        "*/",
        "{{toc}}",
        "{{",
        "}}",
        "<map>",
        "</map>",
        "||",
        " == in line == ",
        "[^",
        "^]",
    ),
    *("# One\n", "## Two *it*\n", "Under\n===\n", "```\n", "> ", "- ", "[^1]", "[^1]: note\n", "**", "''", "\r\n"),
)
TEXTS = st.lists(st.sampled_from(PARTS), max_size=25).map("".join)


@given(TEXTS, st.sampled_from([WIKKA, MARKDOWN]))
def test_headings_are_those_of_the_page(text: str, markup: str) -> None:
    assert tuple(headings(text, markup=markup)) == parse(text, markup=markup).headings


@given(TEXTS, TEXTS, st.sampled_from([WIKKA, MARKDOWN]))
def test_a_place_stands_below_the_last_heading_of_the_page_before_it(begin: str, rest: str, markup: str) -> None:
    body, at = f"{begin}here {rest}", len(begin)
    every = parse(body, markup=markup).headings
    before = [heading for heading in every if 0 <= heading.start <= len(begin.replace("\r", ""))]
    expected = before[-1] if before and before[-1].text else None
    if expected is not None and expected == every[0] and expected.level == 1:
        expected = None
    assert Places(10_000).heading_at(body, at, autolink=True, markup=markup) == expected


BODY = "======Title======\nabove\n\n==== One ====\nfirst\n\n==== One ====\nsecond %%\n==== none ====\n%% third\n"


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("above", None),
        ("first", "s-one"),
        ("second", "s-one-2"),
        ("none", "s-one-2"),
        ("third", "s-one-2"),
        ("Title", None),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_the_id_is_that_of_the_rendered_heading(word: str, place: str | None, ends: str) -> None:
    body = BODY.replace("\n", ends)
    found = Places(1_000).heading_at(body, body.index(word), autolink=True, markup=WIKKA)
    assert (found.id if found else None) == place


def test_so_much_is_read_for_one_answer_and_no_more() -> None:
    places = Places(2 * len(BODY))
    at = BODY.index("third")
    found = [places.heading_at(BODY, at, autolink=True, markup=WIKKA) for _ in range(3)]
    assert [heading is not None for heading in found] == [True, True, False]
    assert places.heading_at("plain text", 3, autolink=True, markup=WIKKA) is None
