"""Bounds of a page: a text over one is cut at a place that hangs on the text alone, and nothing of it is lost."""

from __future__ import annotations

from html import unescape

import pytest

from tests.support.well_nested import check
from wikka_port.limits import ACTIONS_MAX, CELLS_MAX, LINKS_MAX, STEPS_MAX
from wikka_port.markup.bounds import is_dear, over_bounds
from wikka_port.markup.document import parse, render
from wikka_port.markup.lexer import tokens
from wikka_port.markup.links import links
from wikka_port.markup.tokens import Cell, Rest


def link_list(count: int) -> str:
    return " ".join(f"[[a{number}]]" for number in range(count))


def camel_list(count: int) -> str:
    return " ".join(f"AaB{number}x" for number in range(count))


def cells(count: int) -> str:
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
    text = cells(CELLS_MAX - 1)
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
    assert not is_dear("A sentence with a WikiWord, a [[link]] and: more.\n" * 400)
    assert not is_dear("Words of a long text without any markup " * 10_000)
    assert is_dear(link_list(LINKS_MAX))
    assert is_dear(camel_list(LINKS_MAX))
    assert is_dear("||a" * CELLS_MAX)
