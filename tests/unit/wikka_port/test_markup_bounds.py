"""Bounds of a page: a text over one is cut at a place that hangs on the text alone, and nothing of it is lost."""

from __future__ import annotations

from html import unescape

import pytest

from tests.support.deep import cases
from tests.support.well_nested import check
from wikka_port.limits import ACTIONS_MAX, CELLS_MAX, LINKS_MAX, MARKDOWN_MARKS_MAX, STEPS_MAX
from wikka_port.markup import bounds, document
from wikka_port.markup.bounds import is_expensive, over_bounds
from wikka_port.markup.document import parse, render
from wikka_port.markup.formats import FORMATS
from wikka_port.markup.formats import tokens as tokens_of
from wikka_port.markup.lexer import tokens
from wikka_port.markup.links import links
from wikka_port.markup.tokens import Cell, Rest


def link_list(count: int) -> str:
    return " ".join(f"[[a{number}]]" for number in range(count))


def camel_list(count: int) -> str:
    return " ".join(f"AaB{number}x" for number in range(count))


def row_of_cells(count: int) -> str:
    return "||a" * count + "||"


def rest_of(text: str) -> Rest:
    last = tokens(text)[-1]
    assert isinstance(last, Rest), "it goes over no bound"
    return last


@pytest.mark.parametrize("listed", [link_list, camel_list])
def test_so_many_links_and_not_one_more(listed: object) -> None:
    assert callable(listed)
    text = listed(LINKS_MAX)
    assert over_bounds(text) is None
    assert len(links(text)) == LINKS_MAX
    longer = f"{text} [[one more]] and [[a0]]"
    assert rest_of(longer) == Rest("[[one more]] and [[a0]]", "links")
    assert len(links(longer)) == LINKS_MAX
    assert parse(longer).links == tuple(links(longer))
    assert "more than 5,000 pages" in (over_bounds(longer) or "")


def test_a_page_linked_twice_counts_once() -> None:
    text = link_list(LINKS_MAX)
    assert over_bounds(text + " " + text) is None


def test_so_many_cells_and_not_one_more() -> None:
    text = row_of_cells(CELLS_MAX - 1)
    assert sum(isinstance(token, Cell) for token in tokens(text)) == CELLS_MAX
    assert over_bounds(text) is None
    assert rest_of(text + "b||c").source == "||c"
    assert rest_of(text + "b||c").over == "cells"
    assert "cells" in (over_bounds(text + "b||c") or "")


@pytest.mark.parametrize(
    "unit",
    [":", "\n", "**a", "[[a]]", "{{a}}", '""<b>""', "%%a%%", "&amp;", "==a==\n", "~-a\n", "http://a.b ", "<<a", "[["],
)
def test_marks_and_tokens_have_a_bound_whatever_they_are(unit: str) -> None:
    text = unit * (2 * STEPS_MAX)
    read = tokens(text)
    assert len(read) <= STEPS_MAX + 2
    assert isinstance(read[-1], Rest)
    assert read[-1].over == "steps"
    assert text.endswith(read[-1].source)
    assert over_bounds(text) is not None


@pytest.mark.parametrize("text", ['""' + "<b>" * STEPS_MAX + '""', "%%(;1)" + "\n" * STEPS_MAX + "%%"])
def test_one_token_can_be_dear(text: str) -> None:
    assert rest_of("before " + text).over == "steps"
    assert len(render(parse("before " + text), existing=set())) < 10 * len(text)


def test_what_is_not_read_is_shown_as_typed_behind_a_note() -> None:
    text = "<<box\n~-item\n||" + link_list(LINKS_MAX) + " [[<b>]] **rest**"
    shown = render(parse(text), existing=set())
    check(shown).text  # noqa: B018 - it raises where tags are not nested
    head, _, rest = shown.partition('<pre class="rest">')
    assert "From here on it is shown as it was typed" in head
    assert unescape(rest.removesuffix("</pre>\n")) == "[[<b>]] **rest**"


def test_the_actions_of_a_page_are_counted() -> None:
    assert over_bounds("{{toc}}" + "{{pageindex}}" * ACTIONS_MAX) is None
    assert f"{ACTIONS_MAX} are the most" in (over_bounds("{{pageindex}}" * (ACTIONS_MAX + 1)) or "")


def test_a_page_that_people_write_is_not_dear() -> None:
    assert not is_expensive("A sentence with a WikiWord, a [[link]] and: more.\n" * 400)
    assert not is_expensive("Words of a long text without any markup " * 10_000)
    assert is_expensive(link_list(LINKS_MAX))
    assert is_expensive(camel_list(LINKS_MAX))
    assert is_expensive("||a" * CELLS_MAX)


# --- the same in each format -------------------------------------------------------------------

MEGABYTE = 1_000_000
# Running text that becomes links without a mark, and everything else that a page can have very often.
DENSE = {
    "one word of two": "AaB ",
    "lines of such words": "AaB AaB AaB AaB AaB\n",
    "paragraphs of such words": "AaB\n\n",
    "what looks like an address": "a:b ",
    "addresses": "http://a.b ",
    "mail addresses": "mailto:a@b.c ",
    "pages of other wikis": "Wikipedia:A ",
    "links": "[[a]] ",
    "actions": "{{toc}}",
    "emphasis": "**a** ",
    "characters by name": "&amp;",
    "cells": "||a|a",
    "items": "- a\n~-a\n",
    "headings": "# a\n==a==\n",
    "headings of such words": "# AaB\n",
    "items of such words": "- AaB\n",
    "numbered items of such words": "1. AaB\n",
    "items within quotations": "> - AaB\n",
    "footnotes of such words": "[^a]: AaB [^a]\n\n[^AaB^]\n",
}


IN_FORMATS = [(dense, markup) for dense in DENSE for markup in FORMATS]
ALTERNATING = [(dense, tuple(FORMATS)[number % len(FORMATS)]) for number, dense in enumerate(DENSE)]


@pytest.mark.parametrize(("dense", "markup"), cases("megabytes of markup", deep=IN_FORMATS, short=ALTERNATING))
def test_a_megabyte_of_anything_is_read_up_to_a_bound_in_each_format(
    dense: str, markup: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = DENSE[dense]
    text = unit * (MEGABYTE // len(unit))
    read = tokens_of(text, markup=markup)
    for module in (bounds, document):  # once is enough: each of them reads the same text in the same way
        monkeypatch.setattr(module, "tokens", lambda body, **_given: list(read) if body is text else tokens_of(body))
    assert len(read) <= STEPS_MAX + 5
    assert isinstance(read[-1], Rest)
    assert over_bounds(text, markup=markup) is not None
    assert is_expensive(text, markup=markup)
    assert len(render(parse(text, markup=markup), existing=set())) < 7 * len(text)


SIGNS = ["- ", "+ ", "* ", "12. ", "3) ", "# ", "### ", "> ", "> - ", "  - ", "\t1. "]


@pytest.mark.parametrize("sign", cases("signs of a line in Markdown", deep=SIGNS, short=["- ", "3) ", "### ", "> - "]))
def test_the_signs_of_items_and_headings_in_markdown_are_marks_as_their_line_ends_are(sign: str) -> None:
    line = f"{sign}word\n"
    read = tokens_of(line * MARKDOWN_MARKS_MAX, markup="markdown")
    assert isinstance(read[-1], Rest)
    assert read[-1].source.count(line) * 2 >= MARKDOWN_MARKS_MAX


def test_such_signs_within_a_line_are_no_marks() -> None:
    assert over_bounds("word - word + word 12. word # word\n" * (MARKDOWN_MARKS_MAX // 6), markup="markdown") is None


@pytest.mark.parametrize("markup", FORMATS)
def test_links_and_cells_have_the_same_bound_in_each_format(markup: str) -> None:
    for listed in (
        " ".join(f"AaB{n}x" for n in range(LINKS_MAX + 1)),
        "\n\n".join(map("[[a{}]]".format, range(LINKS_MAX + 1))),
    ):
        assert tokens_of(listed, markup=markup)[-1].over == "links"  # type: ignore[union-attr]
        assert "more than 5,000 pages" in (over_bounds(listed, markup=markup) or "")
    table = "|a|b|\n|--|--|\n" + "|a\n" * (CELLS_MAX // 2) if markup == "markdown" else row_of_cells(CELLS_MAX + 1)
    assert tokens_of(table, markup=markup)[-1].over == "cells"  # type: ignore[union-attr]
    actions = "{{pageindex}} " * (ACTIONS_MAX + 1)
    assert f"{ACTIONS_MAX} are the most" in (over_bounds(actions, markup=markup) or "")
