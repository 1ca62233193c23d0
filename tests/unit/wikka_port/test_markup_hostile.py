"""What a hostile page can try: scripts, attributes, addresses, nesting, and texts made to be slow."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.deep import seeds
from tests.support.well_nested import check
from wikka_port.markup import lexer, wikka_html
from wikka_port.markup.document import parse, render
from wikka_port.markup.links import links, redirect_target

EVIL = [
    "<script>alert(1)</script>",
    "</p></div><script src=//e.org/x.js></script>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "&#106;avascript:alert(1)",
    "&#x6A;avascript&colon;alert(1)",
    "data:text/html;base64,PHNjcmlwdD4=",
    "vbscript:x",
    "//e.org/x",
    "\\\\e.org",
    "/\\e.org",
    'http://e.org/" onclick="x',
    "http://e.org/'><svg onload=alert(1)>",
    "<svg/onload=alert(1)>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<script>x</script>]]>",
    '<a href="javascript:alert(1)" style="color:red">x</a>',
    "<table><td background='javascript:x'>",
    "<b><i></b></i></table>",
    "<iframe srcdoc='<script>x</script>'>",
    "<form action=/x><input name=csrf>",
    "<p id=toc class=missing>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '<img src="javascript:alert(1)" srcset="x">',
    "<a><a><div><p><p></a>",
    'x:2;y:-1;c:a" onclick="x;s:width:expression(alert(1));t:" onfocus="x',
    "\x00<script\x00>",
    "\ud800\udfff",
]
PLACES: list[Callable[[str], str]] = [
    lambda x: x,
    lambda x: f'""{x}""',
    lambda x: f'a **b ""{x}"" c** d',
    lambda x: f'=="" {x} ""==',
    lambda x: f'~-""{x}""',
    lambda x: f'||""{x}""||{x}||',
    lambda x: f"[[{x}]]",
    lambda x: f"[[{x} label]]",
    lambda x: f"[[{x} | {x}]]",
    lambda x: f"[[http://x.org/{x} | y]]",
    lambda x: f"[[WikiPedia:{x}]]",
    lambda x: f"WikiPedia:{x}",
    lambda x: f"http://x.org/{x}.png",
    lambda x: f"[[#{x}]]",
    lambda x: f"[[/{x}]]",
    lambda x: f"=={x}==\n{{{{toc}}}}",
    lambda x: f'{{{{toc title="{x}"}}}}\n==a==',
    lambda x: f"{{{{toc title='{x}'}}}}\n==a==",
    lambda x: f'{{{{nosuch a="{x}"}}}}',
    lambda x: f"{{{{redirect target='{x}'}}}}",
    lambda x: f"||({x})a||",
    lambda x: f"||(t:{x};c:{x};l:{x};a:{x};x:{x})a||",
    lambda x: f"||{{color:{x}}}a||",
    lambda x: f"|!|(s:{x})||\n|?|(t:{x}){x}||\n|=|(o:{x})b||",
    lambda x: f"%%{x}%%",
    lambda x: f"%%({x};1;{x})\n{x}%%",
    lambda x: f"%%(html;1;{x})\n{x}%%",
    lambda x: f"%%(php)\n{x}%%",
    lambda x: f'<map><node TEXT="{x}"></map>',
    lambda x: f"<map>{x}</map>",
    lambda x: f"/* {x} */ `` {x} ``",
    lambda x: f"<<{x}",
]


@pytest.mark.parametrize("place", range(len(PLACES)))
def test_nothing_dangerous_comes_out(place: int) -> None:
    for evil in EVIL:
        text = PLACES[place](evil)
        document = parse(text)
        shown = render(document, existing=set())
        check(shown).text  # noqa: B018 - it raises
        assert "<script" not in shown.lower()
        shown.encode()
        assert links(text) == list(document.links)


PARTS = [
    "**", "//", "__", "##", "''", "++", "££", "¥¥", "#%", "@@", "==", "====", "----", "---", "~", "~-", "~1)", "~&",
    "\t", "    ", "<<", ">>", "::c::", '""', "/*", "*/", "``", "%%", "%%(python;1;f)", "[[", "]]", "|", "||", "|=|",
    "|?|", "|!|", "|[|", "|]|", "|#|", "|_|", "|-|", "(x:2;c:a)", "{color:red}", "{{", "}}", "{{toc}}", "{{list}}",
    "{{image}}", '{{redirect to="AbCd"}}', "\n", "\n\n", "\r", " ", "a", "b c", "WikiPage", "[[Foo Bar|x]]", "[[é]]",
    "http://x.org/a.png", "WikiPedia:X", "mailto:a@b.cd", "&copy;", "&", "<", ">", "<b>", "</b>", "<div>", "</div>",
    "<table><tr><td>", "<script>", "<map>", "</map>", '<node TEXT="a">', "</node>", "\0", "\ud800", "<a href=x>",
]  # fmt: skip


@settings(max_examples=seeds("examples of hostile markup", deep=400, short=100))
@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join) | st.text(max_size=200), st.booleans())
def test_any_text_becomes_well_nested_html_that_links_what_links_says(text: str, autolink: bool) -> None:
    document = parse(text, autolink=autolink)
    shown = render(
        document,
        existing=set(),
        action=lambda name, _: {"list": "<ul><li>x</li></ul>", "image": "<b>x</b>"}.get(name),
        page_url=lambda name: "/page/" + name.encode().hex(),
    )
    found = [href for href, _ in check(shown).links if href.startswith("/page/")]
    names = list(dict.fromkeys(bytes.fromhex(href.split("/")[2]).decode() for href in found))
    assert sorted(names) == sorted(document.links)  # a caption or a footer comes before what was typed before it
    assert links(text, autolink=autolink) == list(document.links)
    assert redirect_target(text, autolink=autolink) == document.redirect
    if "|" not in text:
        assert names == list(document.links)


UNITS = [
    "[[", "]]", "[[a|", "[[a]]", "{{", "}}", "{{a", '{{a b="', '{{a b="c" ', "**", "**//", "//**__", '""', '"" "', "||",
    "||(a:", "|| {a:", "|=|", "|!|", "|[|", "|_|", "|-|", "%%", "%%(", "%%(python)", "~", "~-\n", "\t", "    ", "\n",
    "/*", "/* */", "``", "<<", "<<>>", "==", "== a\n", "==a==\n", "---",
    "a ==b==", "a == ", "====a==b", "a ==%%==%%", "||a ==b", "==a\n======b", "**==a", "~-==a==b**\n", "a ---- ",
    "&", "&#1", "A", "Aa", "AaB", "http://",
    "http://)", "http://x)", "WikiPedia:", "mailto:", "a@b.c mailto:", ":", "::", "<map>", "<map ><node>", "|?|a\n",
    "~~-a\n~-b\n", "#%", "&pound;&pound;", "{{toc}}\n==a==\n", '""<b>""', '""<div>',
]  # fmt: skip


def steps(text: str) -> int:
    """Lines of Python that parsing takes: a measure of work that no clock disturbs."""
    count = 0

    def trace(frame: FrameType, event: str, _arg: object) -> Callable[..., object] | None:
        nonlocal count
        if "wikka_port" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        parse(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_steps_grow_with_the_text(unit: str) -> None:
    small, large = unit * (1_000 // len(unit)), unit * (4_000 // len(unit))
    assert steps(large) <= 6 * steps(small) + 500, (
        "four times the text must not take much more than four times the work"
    )


class Watched(str):
    """A text that counts the characters that ``find`` passes over."""

    scanned = 0

    def find(self, sub: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        stop = len(self) if end is None else end
        found = super().find(sub, start, stop)
        Watched.scanned += (found if found >= 0 else stop) - start
        return found


class WatchedPattern:
    """A compiled expression that counts the characters that its matches take."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern

    def match(self, *args: Any) -> re.Match[str] | None:
        found = self.pattern.match(*args)
        Watched.scanned += len(found.group()) if found else 1
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pattern, name)


@pytest.mark.parametrize("unit", UNITS)
def test_characters_looked_at_grow_with_the_text(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens inside the regex engine and ``find`` is no step of Python; it is counted here, at 60 KB."""
    for name, value in list(vars(lexer).items()):
        if isinstance(value, re.Pattern):
            monkeypatch.setattr(lexer, name, WatchedPattern(value))
    text = Watched(unit * (60_000 // len(unit)))
    Watched.scanned = 0
    lexer.tokens(text)
    assert Watched.scanned <= 12 * len(text)


@pytest.mark.parametrize("unit", UNITS)
def test_large_hostile_texts_are_rendered(unit: str) -> None:
    chars = seeds("characters of large hostile texts", deep=50_000, short=15_000)
    check(render(parse(unit * (chars // len(unit))), existing=set()))


def test_deep_nesting_stays_shallow() -> None:
    """A browser's parser and a screen reader's have stacks too."""
    items = "".join(f"{'~' * depth}-x\n" for depth in range(1, 300))
    html = render(parse(items + "<map>" + '<node TEXT="x">' * 1000 + "</map>"), existing=set())
    depth = most = 0
    for tag in re.findall(r"</?(?:ul|li)\b", html):
        depth += -1 if tag.startswith("</") else 1
        most = max(most, depth)
    assert most == 2 * wikka_html.MAP_DEPTH
    assert depth == 0


@pytest.mark.parametrize(
    "tag", ["b title={}", "FONT\ttitle={}", "i/title={}", 'b title="<{}"', "code title='>{}'", "a title={}"]
)
def test_unclosed_formatting_does_not_multiply(tag: str) -> None:
    """By HTML's rules each paragraph opens again what was left open before it: the square of what was typed."""
    piece = '""' + "".join(f"<p><{tag.format(n)}>" for n in range(900)) + '""'
    assert len(render(parse(piece), existing=set())) < 40 * len(piece)


def test_a_piece_with_too_many_tags_is_text() -> None:
    shown = render(parse('""' + "<div>" * 50_000 + '""'), existing=set())
    assert "<div" not in shown
    assert "&lt;div&gt;" in shown
