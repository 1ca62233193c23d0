"""Marks and names of templates: what an including page gets, and that code has none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikka_port.markup.includes import filled, has_parts, included_text, parts
from wikka_port.markup.mediawiki_expansion import simple_body

GIVEN = {"who": "Ada", "1": "one"}
WIKKA_DOC = "/*noinclude*/doc/*/noinclude*/"
MARKDOWN_DOC = "<!--noinclude-->doc<!--/noinclude-->"


@pytest.mark.parametrize(
    ("markup", "text", "wanted"),
    [
        ("wikka", "{{{who}}} %%{{{who}}}%% {{{1}}}", "Ada %%{{{who}}}%% one"),
        ("wikka", "%%(python)\n{{{who}}}\n%%\n{{{who}}}", "%%(python)\n{{{who}}}\n%%\nAda"),
        ("wikka", "%%{{{who}}} and {{{1}}}", "%%Ada and one"),  # no code without an end
        ("wikka", '""%%"" {{{who}}} ""%%""', '""%%"" Ada ""%%""'),
        ("wikka", "/* %% */ {{{who}}} %%x%%", "/* %% */ Ada %%x%%"),
        ("wikka", "``%%`` {{{who}}} %%", "``%%`` Ada %%"),
        ("wikka", '""<b>{{{who}}}</b>"" ##{{{who}}}##', '""<b>Ada</b>"" ##Ada##'),  # HTML and typewriter are no code
        ("wikka", "{{{no|%%x%%}}}", "%%x%%"),
        ("wikka", "`{{{who}}}`", "`Ada`"),
        ("markdown", "{{{who}}} `{{{who}}}` {{{1}}}", "Ada `{{{who}}}` one"),
        ("markdown", "``a ` {{{who}}}`` {{{who}}}", "``a ` {{{who}}}`` Ada"),
        ("markdown", "`a\n{{{who}}}`", "`a\n{{{who}}}`"),
        ("markdown", "`a\n\n{{{who}}}`", "`a\n\nAda`"),
        ("markdown", "`a {{{who}}} ``", "`a Ada ``"),
        ("markdown", "\\`{{{who}}}`", "\\`Ada`"),
        ("markdown", "```\n{{{who}}}\n```\n{{{who}}}", "```\n{{{who}}}\n```\nAda"),
        (
            "markdown",
            "~~~~ x\n{{{who}}}\n~~~\n{{{who}}}\n~~~~~\n{{{1}}}",
            "~~~~ x\n{{{who}}}\n~~~\n{{{who}}}\n~~~~~\none",
        ),
        ("markdown", "> ```\n> {{{who}}}\n> ```\n{{{who}}}", "> ```\n> {{{who}}}\n> ```\nAda"),
        ("markdown", "- ```\n  {{{who}}}\n  ```\n{{{who}}}", "- ```\n  {{{who}}}\n  ```\nAda"),
        ("markdown", "{{{1}}}\n```\n{{{who}}}", "one\n```\n{{{who}}}"),
        ("markdown", "``` a ` b\n{{{who}}}", "``` a ` b\nAda"),
        ("markdown", "%%{{{who}}}%%", "%%Ada%%"),
        ("markdown", "{{{no|`x`}}}", "`x`"),
    ],
)
def test_names_in_code_are_as_typed(markup: str, text: str, wanted: str) -> None:
    assert filled(text, GIVEN, markup) == wanted


@pytest.mark.parametrize(
    ("markup", "text", "included"),
    [
        ("wikka", f"a {WIKKA_DOC} b", "a  b"),
        ("wikka", f"a %%{WIKKA_DOC}%% b", f"a %%{WIKKA_DOC}%% b"),
        ("wikka", "a %%/*includeonly x */%% b /*includeonly y*/", "a %%/*includeonly x */%% b  y"),
        ("wikka", "a /*noinclude*/ %%/*/noinclude*/%% c /*/noinclude*/ d", "a  d"),
        ("wikka", "a /*noinclude*/ %%/*/noinclude*/%% c", "a "),
        ("markdown", f"a {MARKDOWN_DOC} b", "a  b"),
        ("markdown", f"a `{MARKDOWN_DOC}` b", f"a `{MARKDOWN_DOC}` b"),
        ("markdown", f"```\n{MARKDOWN_DOC}\n```\n{MARKDOWN_DOC}", f"```\n{MARKDOWN_DOC}\n```\n"),
        ("markdown", "<!--noinclude--> `<!--/noinclude-->` c <!--/noinclude--> d", " d"),
    ],
)
def test_marks_in_code_are_as_typed(markup: str, text: str, included: str) -> None:
    assert included_text(text, markup) == included
    assert has_parts(text, markup) == (included != text)


PIECES = (
    *("%%", '""', "``", "`", "```", "~~~", "\n", "/*", "*/", "/*noinclude*/", "<!--", "{{{who}}}", "x", "> ", "\\"),
    *("<!--noinclude-->", "<!--/noinclude-->", "/*/noinclude*/", "/*includeonly"),
)


@given(st.lists(st.sampled_from(PIECES)))
def test_no_text_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    for markup in ("wikka", "markdown"):
        assert set("".join(part for _kind, part in parts(text, markup))) <= set(text)
        assert filled(text, {"who": "{{{who}}}"}, markup) == text


def test_hostile_texts_take_linear_time() -> None:
    began = time.process_time()
    runs = " ".join("`" * length for length in range(1, 315))
    units = (
        "%%",
        '""',
        "/*",
        "`",
        "``` \n",
        "~~~\n",
        "`` ` ",
        "/*noinclude*/",
        "<!--noinclude-->",
        "{{{a}}}`",
        "\n\n`",
    )
    for text in [runs, *(unit * (50_000 // len(unit)) for unit in units)]:
        for markup in ("wikka", "markdown"):
            filled(included_text(text + "{{{who}}}", markup), {}, markup)
    for unit in ("<nowiki>", "<!--", "<noinclude>", "<pre>", "<includeonly>", "<source ", "<nowiki/>"):
        simple_body(unit * (39_000 // len(unit)))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("theirs", "body"),
    [
        ("a<noinclude>b</noinclude>c", "ac"),
        ("a<nowiki><noinclude></nowiki>b<nowiki></noinclude></nowiki>c",
         "a<nowiki><noinclude></nowiki>b<nowiki></noinclude></nowiki>c"),
        ("<pre><includeonly>x</includeonly></pre><includeonly>y</includeonly>",
         "<pre><includeonly>x</includeonly></pre>y"),
        ("<source lang=xml><!-- c --></source><!-- d -->", "<source lang=xml><!-- c --></source>"),
        ("<nowiki/>a<noinclude>b</noinclude><nowiki>c", "<nowiki/>a<nowiki>c"),
        ("a<noinclude><nowiki></noinclude></nowiki>b", "a</nowiki>b"),
        ("<code><noinclude>x</noinclude></code>", "<code></code>"),  # not raw in MediaWiki
        ("a<noinclude>b", "a"),
        ("a<!-- b", "a"),
        ("x<onlyinclude>a<NoInclude>b</NOINCLUDE >c</onlyinclude>y", "ac"),
    ],
)  # fmt: skip
def test_marks_of_a_mediawiki_template_in_raw_text_are_as_typed(theirs: str, body: str) -> None:
    assert simple_body(theirs) == body
