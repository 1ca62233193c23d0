"""What a text links to, and markup written by program."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.well_nested import check
from wikka_port.markup.document import parse, render
from wikka_port.markup.links import links, redirect_target
from wikka_port.markup.writing import forced_link, link_to, literal
from wikka_port.names import InvalidName, normalise

characters = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
marked = st.sampled_from([*list("[]|{}&#:/@%~*_'\"=+-<>`£¥(); ab1A"), "&#58;", "http://", "[[", "]]", "&amp;"])


def valid(name: str) -> bool:
    try:
        normalise(name)
    except InvalidName:
        return False
    return True


names = (st.lists(marked, max_size=12).map("".join) | st.text(alphabet=characters, max_size=20)).filter(valid)


def test_links_in_order_each_once() -> None:
    text = "[[B]] [[A_x|y]] WikiPage [[b]] [[ B ]] [[A x]] ==WikiPage==\n||[[C]]||\n~-[[D]]\n<<[[E]]"
    assert links(text) == ["B", "A x", "WikiPage", "b", "C", "D", "E"]
    assert links(text, autolink=False) == ["B", "A x", "b", "C", "D", "E"]


@pytest.mark.parametrize(
    "text",
    [
        "%%[[A]] WikiPage%%",
        '""[[A]] WikiPage""',
        "/* [[A]] */",
        "``[[A]]``",
        "http://x.org/WikiPage",
        "[[http://x.org/WikiPage WikiPage]]",
        "[[mailto:a@b.cd]]",
        "[[WikiPedia:WikiPage]] WikiPedia:WikiPage",
        "[[#A]]",
        '{{image url="WikiPage" alt="[[A]]"}}',
        '<map><node TEXT="WikiPage"></map>',
    ],
)
def test_what_is_no_page_link(text: str) -> None:
    assert links(text) == []


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ('{{redirect target="A_b"}}', "A b"),
        ("some words {{redirect to='A'}}", "A"),
        ('{{Redirect page="A" temporary="1"}}', "A"),
        ("#REDIRECT [[A b]]", "A b"),
        ("\n #redirect: [[A|label]] rest", "A"),
        ("#REDIRECT[[A]]", "A"),
        ("words #REDIRECT [[A]]", None),
        ("[[B]] #REDIRECT [[A]]", None),
        ("#REDIRECT to [[A]]", None),
        ("#REDIRECT [[http://x.org]]", None),
        ('{{redirect target="http://x.org/"}}', None),
        ("{{redirect}}", None),
        ('%%{{redirect target="A"}}%%', None),
        ("#REDIRECT " + "x " * 5000 + "[[A]]", None),
        ("", None),
    ],
)
def test_redirects(text: str, target: str | None) -> None:
    assert redirect_target(text) == target
    assert parse(text).redirect == target
    if target:
        assert target in links(text)


@settings(max_examples=400)
@given(names, names)
def test_a_forced_link_leads_to_its_page_whatever_the_name(name: str, label: str) -> None:
    document = parse(forced_link(name, label))
    assert document.links == (normalise(name),)
    shown = check(render(document, existing={normalise(name)}))
    assert "".join(shown.text).split() == label.split()
    assert parse(forced_link(name)).links == parse(f"x {forced_link(name)} y").links == (normalise(name),)


def test_link_to_is_short_where_it_can_be() -> None:
    assert link_to("WikiPage") == "WikiPage"
    assert link_to("Main_Page") == "[[Main Page|]]"


@settings(max_examples=400)
@given(
    st.lists(
        st.sampled_from(["~", "\t", "    ", "-", "=", "WikiPage", "http:", "[[a]]", "\n", "mailto:a@b.cd"]) | marked
    ).map("".join)
    | st.text(alphabet=characters)
)
def test_literal_text_is_shown_as_it_is(text: str) -> None:
    document = parse(literal(text))
    shown = check(render(document, existing=set()))
    assert document.links == ()
    assert "".join("".join(shown.text).split()) == "".join(text.split())
    assert not shown.links
    assert "<strong>" not in render(document, existing=set())


def test_no_part_of_a_literal_word_becomes_a_link() -> None:
    for word in ("AWikiPage", "WikiPage", "ABCWikiPageTwo"):
        assert parse(literal(word)).links == ()


def test_literal_references_stay_references() -> None:
    assert render(parse(literal("&lt;b&gt;")), existing=set()).strip() == "<p>&amp;lt;b&amp;gt;</p>"
