"""MediaWiki conversion of any text: never raises, linear, shows the author's text, makes no action."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.linear_cost import require_linear
from wikka_port.dump import DumpReader, Revision
from wikka_port.markup.mediawiki import Dialect, convert

DIALECT = Dialect.of({"": 0, "Kategoreja": 14, "Fails": 6})
SMALL = Path(__file__).parents[3] / "data" / "small-dump.xml"
SIGN_WORDS = (
    "[[ ]] {{ }} {{{ }}} ''' '' ''''' {| |} |- |+ | || ! !! = == === * # : ; ---- <ref> </ref> "
    "<ref/> <nowiki> </nowiki> "
    "<pre> </pre> <!-- --> <references> </references> <b> </b> <sub> </sub> <br/> [ ] [http://a "
    "http://a File: Category: : / {{:a }} User: PAGENAME fullurl: "
    "{{#if: {{#switch: {{#expr: {{#tag:ref| {{uc: {{plural: {{#replace: {{#sub: {{#urldecode:%02 {{#rel2abs:../ "
    '{{#ifexist: {{#time: {{#dateformat: {{CURRENTYEAR}} "Y | 2010-05-03 '
    'de: __TOC__ & &lt; &#65; &#99999999; ~ ** // __ ## "" %% << >> a b é 港 #REDIRECT name=x '
    "<gallery> </gallery> <math>"
)
SIGNS = SIGN_WORDS.split()
FRAGMENTS = st.lists(st.sampled_from([*SIGNS, "\n", " ", "\n ", "\n|", "\n{|", "\x02", "\x03", "\x020\x03", "\ud800"]))


def made(text: str) -> str:
    return convert(text, namespaces=DIALECT, title="T", time_ms=1_272_882_615_000).text


@settings(max_examples=600)
@given(FRAGMENTS.map("".join))
def test_it_never_raises_and_leaves_no_marks(source: str) -> None:
    text = made(source)
    assert "\x02" not in text
    assert "\x03" not in text


@settings(max_examples=200)
@given(st.text())
def test_it_never_raises_on_unicode(source: str) -> None:
    made(source)


@settings(max_examples=100)
@given(st.data())
def test_it_never_raises_on_pages_cut_and_shuffled(data: st.DataObject) -> None:
    with SMALL.open("rb") as stream:
        texts = [event.text for event in DumpReader(stream) if isinstance(event, Revision) and event.text]
    pieces = []
    for _ in range(3):
        source = data.draw(st.sampled_from(texts))
        start = data.draw(st.integers(0, len(source)))
        pieces.append(source[start : start + data.draw(st.integers(0, 200))])
    made("".join(pieces))


def shown(ours: str) -> str:
    """What a reader sees of text without markup: literals opened, the rest as it is."""
    parts = re.split(r'""(.*?)""', ours)
    return "".join(html.unescape(part) if number % 2 else part for number, part in enumerate(parts))


@settings(max_examples=500)
@given(st.text(alphabet="*/_#%'+£¥@\"{}[]|<>=~-`:c!;& (1)ab\n", max_size=30))
def test_what_the_author_wrote_literally_shows(source: str) -> None:
    ours = made("x<nowiki>" + html.escape(source, quote=False) + "</nowiki>y")
    assert re.sub(r"\s+", " ", shown(ours)) == re.sub(r"\s+", " ", f"x{source}y")
    bare = re.sub(r'""(.*?)""', "\x00", ours)
    assert not re.search(r"\*\*|//|__|##|%%|''|\+\+|££|¥¥|@@|\{\{|\[\[|---|~|<<|>>|``|/\*|#%", bare)


@settings(max_examples=500)
@given(FRAGMENTS.map("".join))
def test_no_action_but_an_include_comes_out_of_a_template(source: str) -> None:
    ours = re.sub(r'""(.*?)""|%%.*?%%', "", made(source), flags=re.DOTALL)
    assert set(re.findall(r"\{\{\s*(\w+)", ours)) <= {"toc", "redirect", "include"}
    assert set(re.findall(r"\{\{include.*?\}\}", ours)) <= set(re.findall(r'\{\{include page="[^"\'{}]+"\}\}', ours))


PATHOLOGICAL = [
    *("[[", "]]", "{{", "}}", "{{{", "'''", "''", "'", "{|", "{|\n", "{|\n|", "|-\n", "||", "\n|", "\n!"),
    *(
        "<ref>",
        "<ref",
        "<ref>x</ref>",
        "<references>",
        "<nowiki>",
        "<pre>",
        "<!--",
        "<!-- -->",
        "<sub>",
        "<b>",
        "<b></i>",
    ),
    *(
        "[http://a ",
        "[http://",
        "http://",
        "* ",
        "*",
        "=",
        "==\n",
        ":",
        ";a:",
        "~",
        "__",
        "&#",
        "&amp;",
        "\n ",
        "-",
        "a:",
    ),
    *(
        "[[a|",
        "[[a|[[b]]",
        "[[File:x|",
        "[[a\n",
        "[[ {{ ",
        "{{ [[ ",
        "{{a}}[[",
        "<ref>{{",
        "[[a]]b",
        "[[a|''",
        "[[x:",
        "(",
        "{{#if:",
        "{{#if:a|",
        "{{#switch:a|b=",
        "{{#expr:(",
        "{{lc:",
    ),
]


@pytest.mark.parametrize("unit", PATHOLOGICAL)
def test_pathological_texts_take_linear_time(unit: str) -> None:
    """40 KB take some 50 ms; what is quadratic takes many seconds."""
    closing = {"[[": "]]", "{{": "}}", "<r": "</ref>", "{|": "\n|}"}.get(unit[:2], " ")

    def work(size: int) -> None:
        count = size // len(unit)
        made(unit * count)
        made(unit * (count // 2) + closing * (count // 2))

    require_linear(work, 40_000, usual_s=2.5)


@pytest.mark.parametrize(
    "head", ["[http://a", "[http://a ", "<a b", "[[a", "[[File:x|1", "#REDIRECT ", "http://a", "a:", "<ref name", "{{a"]
)
@pytest.mark.parametrize("rest", ["a", " ", "1", "'", "="])
def test_long_runs_take_linear_time(head: str, rest: str) -> None:
    def work(size: int) -> None:
        made(head + rest * size)
        made(head + rest * size + "]]")

    require_linear(work, 40_000, usual_s=2.5)
