"""Wikka markup as Markdown: what can be said is said, what cannot is named, and nothing is lost without a word."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.well_nested import check
from tests.unit.wikka_port.test_markup_hostile import PARTS
from wikka_port.first_pages import first_pages
from wikka_port.markup.converting import to_markdown
from wikka_port.markup.document import parse, render
from wikka_port.markup.formats import MARKDOWN
from wikka_port.markup.includes import parts as split
from wikka_port.markup.links import links


@pytest.mark.parametrize(
    ("wikka", "markdown"),
    [
        ("======Title======\ntext", "# Title\n\ntext\n"),
        ("**b** //i// ##c *d*## ++s++", "**b** *i* `c *d*` ~~s~~\n"),
        ("a **b **c", "a **b** c\n"),
        ("a **b //c** d// e", "a **b *c*** *d* e\n"),
        ("one\ntwo\n\nthree", "one\\\ntwo\n\nthree\n"),
        ("~- a\n~~- b\n~1) c", "- a\n    - b\n1. c\n"),
        ("|=|h|=|k||\n||a||b||", "| h | k |\n| --- | --- |\n| a | b |\n"),
        ("%%(python) x = 1\ny%%", "```python\n x = 1\ny\n```\n"),
        ("a----b", "a\n\n***\n\nb\n"),
        ("WikiWord [[Some page|words]] [[WikiWord]]s", "WikiWord [[Some page|words]] [[WikiWord]]s\n"),
        ("[[https://x.org words]] https://y.org", "[words](https://x.org) <https://y.org>\n"),
        ('""NoLink"" a_b *x* [y](z) `t`', "&#78;oLink a_b \\*x\\* \\[y\\](z) \\`t\\`\n"),
        ("costs $a*b*c$ or a$b", "costs \\$a\\*b\\*c$ or a\\$b\n"),
        ("# a\n1. b\n- c", "\\# a\\\n1\\. b\\\n\\- c\n"),
        ("text[^a **note**^]", "text[^1]\n\n[^1]: a **note**\n"),
        ('{{recentchanges}}{{redirect target="There"}}', '{{recentchanges}}\n\n{{redirect target="There"}}\n'),
    ],
)
def test_constructs(wikka: str, markdown: str) -> None:
    assert to_markdown(wikka) == (markdown, ())


@pytest.mark.parametrize(
    ("wikka", "said"),
    [
        ("{{table columns='2' cells='a;b'}}", "without headings"),
        ("__u__", "underlined"),
        ("''m''", "highlighted"),
        ("<<box<<", "boxes"),
        ('""<b>x</b>""', "HTML"),
        ("||a||", "without headings"),
        ("||(x:2)a||b||", "sizes and colours"),
        ("~a) x", "letters"),
        ("~x", "indented"),
        ("%%(python;7)x%%", "numbers of lines"),
        ("<map><node TEXT='a'></map>", "mind maps"),
    ],
)
def test_what_markdown_cannot_say_is_said(wikka: str, said: str) -> None:
    converted = to_markdown(wikka)
    assert any(said in one for one in converted.lost), converted


def test_the_pages_of_a_new_wiki_are_converted_without_a_loss_but_the_page_of_rules() -> None:
    for name, text in first_pages().items():
        converted = to_markdown(text)
        assert links(converted.text, markup=MARKDOWN) == links(text), name
        assert (name == "FormattingRules") == bool(converted.lost), (name, converted.lost)


@settings(max_examples=250, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join), st.booleans())
def test_no_link_changes_without_a_word(text: str, autolink: bool) -> None:
    converted = to_markdown(text, autolink=autolink)
    check(render(parse(converted.text, autolink=autolink, markup=MARKDOWN), existing=set()))
    if not converted.lost:
        assert set(links(converted.text, autolink=autolink, markup=MARKDOWN)) == set(links(text, autolink=autolink))


def test_the_action_table_becomes_a_table_and_no_word_of_it_is_lost() -> None:
    converted = to_markdown('a {{table columns="2" cells="A|x;*b*;###;1.;last"}} z', autolink=False)
    rows = ["|  |  |", "| --- | --- |", "| A\\|x | \\*b\\* |", "|  | 1. |", "| last |"]
    assert converted.text == "\n".join(["a", "", *rows, "", "z", ""])
    assert len(converted.lost) == 1, "the row of headings alone"


def test_parts_for_pages_that_include_this_one_stay_such_and_parameters_stay_parameters() -> None:
    text = "**{{{1|a_b}}}** {{x\n/*noinclude*/\n==Doc== {{{2}}}\n/*/noinclude*/\n/*includeonly\n~- {{{3}}} *x* -->\n*/"
    converted = to_markdown(text)
    parts = ["**{{{1|a_b}}}** \\{\\{x", "<!--noinclude-->", "##### Doc", "{{{2}}}", "<!--/noinclude-->"]
    last = "<!--includeonly\n- {{{3}}} \\*x\\* --&gt;\n-->"
    assert converted.text == "\n\n".join([*parts, last]) + "\n"
    for wikka, markdown in zip(split(text, "wikka"), split(converted.text, MARKDOWN), strict=False):
        assert wikka[0] == markdown[0]
