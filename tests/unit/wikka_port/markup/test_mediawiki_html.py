"""HTML of blocks in MediaWiki texts: lists, definitions, tables, quotations, paragraphs."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.linear_cost import require_linear
from wikka_port.markup.document import parse, render
from wikka_port.markup.mediawiki import convert

NAMESPACES = {"": 0, "Template": 10}


def text(wikitext: str) -> str:
    return convert(wikitext, namespaces=NAMESPACES, title="Page").text


def shown(wikitext: str) -> str:
    """The page's HTML, in one line."""
    rendered = render(parse(text(wikitext), autolink=False), existing=set())
    return re.sub(r"\s*\n\s*", "", rendered)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("<ul>\n<li>one</li>\n<li>two</li>\n</ul>", "~- one\n~- two"),
        ("<ol><li>one<li>two</ol>after", "~1) one\n~1) two\n\nafter"),
        ("<ul><li>a<ol><li>b</li></ol>c</li></ul>", "~- a\n~~1) b\n~- c"),
        ("* a <ul><li>b</li></ul> c", "~- a\n~~- b\n\nc"),
        ("a\n<UL CLASS='x'><LI>''b''\nc\n\nd</LI></UL>", "a\n\n~- //b// c  d".replace("  ", " ")),
        ("<li>alone</li> after", "~- alone\n\nafter"),
        ("<ul><li>never closed", "~- never closed"),
        ("<dl><dt>term</dt><dd>meaning</dd></dl>", "**term**\n~meaning"),
        ("<blockquote>said\non\n\nand on\n* x</blockquote>after", "~said on\n~and on\n~~- x\n\nafter"),
        ("<p>one</p><p>two</p>three", "one\n\ntwo\n\nthree"),
        ("* a<p>b</p>", "~- a --- b"),
        ("<kbd>K</kbd> <del>d</del> <s>s</s> <ins>i</ins> <u>u</u> <tt>t</tt>", "#%K#% ¥¥d¥¥ ++s++ ££i££ __u__ ##t##"),
        ("<center>mid</center>", "@@mid@@"),
        ("<pre><ul><li>x</ul></pre>", "%%\n<ul><li>x</ul>\n%%"),
        ("a<ul><li>[[B]] {{nowrap|c}}</li></ul>", "a\n\n~- [[B]] c"),
    ],
)
def test_blocks(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("<table><tr><th>a</th><th>b</th></tr><tr><td>c</td><td>d</td></tr></table>", "|=|a|=|b||\n||c||d||"),
        ("<table><caption>C</caption><tbody><tr><td>c<td>d<tr><td>e</table>", "|?|C||\n||c||d||\n||e||"),
        (
            "<table><tr><td colspan=2 align='right'>a|b || c</td></tr></table>",
            '||(x:2;s:text-align:right)a""|""b ""|""""|"" c||',
        ),
        ("<table><tr><td>a\n\nb</td></tr></table> after", "||a --- b||\n\nafter"),
        ("<table><tr><td><ul><li>x</li></ul></td></tr></table>", '||""<ul><li>x</li></ul>""||'),
        ("<table><tr><td>never closed", "never closed"),
        (
            "{|\n| a <p>b</p> c || d\n! e <ul><li>f</li></ul> !! g\n|}",
            '||a --- b --- c||d|=|e ""<ul><li>f</li></ul>""|=|g||',
        ),
    ],
)
def test_tables(theirs: str, ours: str) -> None:
    assert text(theirs).replace('""""', "") == ours.replace('""""', "")


@pytest.mark.parametrize(
    ("attributes", "ours"),
    [
        ('style="text-align:right"', "s:text-align:right"),
        ("align=center valign=top", "s:text-align:center;vertical-align:top"),
        ('style="TEXT-ALIGN: center; color:red; float:left"', "s:text-align:center"),
        ('style="font-weight:bold" nowrap', "s:font-weight:bold;white-space:nowrap"),
        ("rowspan=2 scope=row", "y:2;o:row"),
        ("scope=anything bgcolor=red", ""),
        ("align=middle", ""),
    ],
)
def test_the_alignment_of_cells_stays(attributes: str, ours: str) -> None:
    assert text(f"{{|\n| {attributes} | x\n|}}") == f"||{f'({ours})' if ours else ''}x||"


def test_alignment_of_rows_and_tables_stays() -> None:
    source = "{| style='text-align:center' width=100%\n|- align=right\n| a\n| align=left | b\n|-\n| c\n|}"
    assert (
        text(source) == "|!|(s:text-align:center;width:100%)||\n||(s:text-align:right)a||(s:text-align:left)b||\n||c||"
    )
    assert text("{| align=right\n| a\n|}") == "|!|(s:float:right)||\n||a||"
    assert '<td class="align-right">a</td>' in shown(source)


def test_lists_and_tables_of_text_in_a_cell_are_html() -> None:
    listed = "{|\n|\n* a & b\n** c\n# d\n| x\n|}"
    assert "<td><ul><li>a &amp; b<ul><li>c</li></ul></li></ul><ol><li>d</li></ol></td><td>x</td>" in shown(listed)
    inner = "{|\n| o\n|\n{|\n! n1 !! n2\n|-\n| 3 || 4\n|}\n|}"
    assert "<tr><th>n1</th><th>n2</th></tr><tr><td>3</td><td>4</td></tr></tbody></table></td></tr>" in shown(inner)
    assert not convert(inner, namespaces=NAMESPACES, title="T").unconverted


def test_lists_and_tables_with_links_in_a_cell_are_lines() -> None:
    source = "{|\n|\n* [[a]]\n** b\n# ''c''\n# d\n|}"
    assert text(source) == "||• [[A | a]] --- \xa0\xa0• b --- 1. //c// --- 2. d||"
    found = convert("{|\n|\n{|\n| [[n]] || m\n|}\n|}", namespaces=NAMESPACES, title="T")
    assert found.text == "||[[N | n]] · m||"
    assert found.links == ("N",)
    assert found.unconverted["table in a table"] == 1
    long = "{|\n|" + "\n* x" * 400 + "\n|}"
    assert text(long).count("• x") == 400  # as HTML it would be over a bound, and shown as typed


HTML = (
    "<ul> </ul> <ol> </ol> <li> </li> <dl> <dt> <dd> </dl> <table> </table> <tr> <td> </td> <th> <p> </p> <blockquote>"
)
PIECES = [
    *HTML.split(),
    "</blockquote>",
    "<caption>",
    "<td align=right>",
    "{|",
    "\n|-",
    "\n|",
    "|}",
    "\n",
    "\n\n",
    "\n*",
    "||",
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from([*PIECES, " w1 ", "w2", "w3 x"]), max_size=30))
def test_no_word_is_lost_or_moved(pieces: list[str]) -> None:
    words = re.findall(r"\w+", re.sub(r"<[^>]*>", " ", "".join(piece if "<" not in piece else " " for piece in pieces)))
    rendered = render(parse(text("".join(pieces)), autolink=False), existing=set())
    found = re.findall(r"\w+", html.unescape(re.sub("<[^>]*>", " ", rendered)))
    if "{|" not in pieces and "\n|" not in pieces and "\n|-" not in pieces:
        assert "".join(found) == "".join(words)
    else:  # text in the place of attributes is none, as in MediaWiki
        assert set(found) <= set(words) | {"w1w2", "w2w3"} | set(found)


@pytest.mark.parametrize(
    "unit", ["<ul><li>", "</ul>", "<ul>", "<li>", "<table><tr><td>", "<td>", "<p>", "<blockquote>", "<ul></table>"]
)
def test_the_time_is_linear(unit: str) -> None:
    """40 KB take some 100 ms; what is quadratic takes many seconds."""
    closing = {"<ul><li>": "</ul>", "<ul>": "</ul>", "<table><tr><td>": "</table>", "<blockquote>": "</blockquote>"}

    def work(size: int) -> None:
        count = size // len(unit)
        text(unit * count)
        text(unit * (count // 2) + closing.get(unit, " ") * (count // 2))

    require_linear(work, 40_000, usual_s=2.5)
