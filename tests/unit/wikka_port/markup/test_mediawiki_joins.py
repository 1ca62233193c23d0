"""Marks of our markup that stand on both sides of something that shows nothing, or something else, in MediaWiki's text.

Every mark is cut at every place; between the halves stands every kind of thing that an import hides or finishes first.
The reader sees the author's signs, and what follows them keeps its markup.
"""

from __future__ import annotations

import html
import os
import random
import re
from collections.abc import Callable, Iterable
from typing import Final

import pytest

from tests.support.seeds import seed
from wikka_port.markup.document import parse, render
from wikka_port.markup.mediawiki import Dialect, convert

SEED = seed(3303)
DIALECT = Dialect.of({"": 0, "File": 6, "Template": 10, "Category": 14})

MARKS: Final = (
    *('""', '"""', "**", "***", "//", "__", "##", "++", "''", "%%", "#%", "%#", "££", "¥¥", "@@", "``", "/*", "*/"),
    *("---", "----", "~~", "[[", "]]", "[^", "^]", "{{", "}}", "||", "|=|", "|?|", "|!|", "<<", ">>", "==", "==="),
    *("<map>", "::c::", "&amp;amp;", "&amp;#65;", "w:Foo", "http://a.b/c", "mailto:a@b.cd", "%%(css)", "/**/", "``a``"),
    *("//a//", '""<b>x</b>""'.replace("<", "&lt;"), "1) x", "- x", "(c:red)", "~- x", "[^n^]", "p;", "Foo"),
)
# What is shown in its place.
NOTHING: Final = {
    "template": "{{clear}}",
    "template with values": "{{clear|a|b=c}}",
    "template without words": "{{nowrap|}}",
    "sort key": "{{DEFAULTSORT:Key}}",
    "parameter with a default": "{{{1|}}}",
    "category": "[[Category:C]]",
    "category with a key": "[[Category:C|*]]",
    "other language": "[[de:Y]]",
    "magic word": "__NOTOC__",
    "nowiki alone": "<nowiki/>",
    "empty nowiki": "<nowiki></nowiki>",
    "span": "<span></span>",
    "style": '<templatestyles src="x" />',
    "section": "<section begin=x />",
}
SOMETHING: Final = {
    "note": '<ref name="r" />',
    "file": "[[File:A.jpg]]",
    "page": "[[Page]]",
    "words": "{{nowrap|x}}",
    "star": "{{nowrap|x*}}",
    "plus": "{{nowrap|+}}",
    "percent": "{{nowrap|%}}",
    "underscore": "{{nowrap|_}}",
    "ampersand": "{{nowrap|&}}",
    "bar": "{{nowrap|{{!}}}}",
    "quote": '{{nowrap|"}}',
    "quoted": '{{lang|fr|"x"}}',
    "slash": "{{nowrap|/}}",
    "colon": "{{nowrap|:}}",
    "hash": "{{nowrap|x#}}",
    "code": "<code>x</code>",
    "bold": "'''x'''",
    "formula": "<math>x</math>",
    "nowiki": "<nowiki>*</nowiki>",
    "dash": "{{ndash}}",
    "sub": "<sub>x</sub>",
    "raised link": "<sup>[[Page]]</sup>",
    "raised nothing": "<sup>{{clear}}</sup>",
    "less": "{{nowrap|<}}",
    "parameter": "{{{1}}}",
    "last words": "{{unknown|a|x*}}",
    "last sign": "{{unknown|+}}",
    "name": "{{unknown|b=c}}",
    "default of a parameter": "{{{1|x}}}",
    "struck": "<del>x</del>",
    "key": "<kbd>x</kbd>",
    "reference": "{{nowrap|&am}}",
    "letter": "{{nowrap|w}}",
    "other wiki": "{{nowrap|w:}}",
}
SHOWN: Final = {
    "note": "1",
    "page": "Page",
    "raised link": "Page",
    "raised nothing": "",
    "star": "x*",
    "plus": "+",
    "percent": "%",
    "underscore": "_",
    "ampersand": "&",
    "bar": "|",
    "quote": '"',
    "quoted": '"x"',
    "slash": "/",
    "colon": ":",
    "hash": "x#",
    "nowiki": "*",
    "dash": "–",
    "file": "[image: A.jpg]",
    "less": "<",
    "parameter": "{{{1}}}",
    "last words": "x*",
    "last sign": "+",
    "name": "[unknown]",
    "reference": "&am",
    "letter": "w",
    "other wiki": "w:",
}
PLACES: Final = {
    "paragraph": "{}",
    "item": "* {}",
    "numbered": "# {}",
    "indented": ":{}",
    "definition": "; t : {}",
    "heading": "== {} ==",
    "cell": "{{|\n| {}\n|}}",
    "line of a cell": "{{|\n|\n{}\n|}}",
    "header": "{{|\n! {}\n|}}",
    "caption": "{{|\n|+ {}\n|-\n| a\n|}}",
    "bold": "'''{}'''",
    "raised": "<sup>{}</sup>",
    "footnote": "x<ref>{}</ref>",
    "words": "{{{{small|{}}}}}",
    "box": "{{{{Infobox|\n a = {}\n| b = c\n}}}}",
    "picture": "[[File:B.jpg|thumb|{}]]",
    "gallery": "<gallery>\nFile:B.jpg|{}\n</gallery>",
}
SHARES: Final = {"paragraph": 0.15}
_BAR_ENDS: Final = frozenset({"cell", "header", "caption", "words", "box", "picture", "gallery"})
_IN_BRACES: Final = frozenset({"words", "box"})


def is_clear(mark: str, thing: str, place: str) -> bool:
    """Whether MediaWiki reads neither sign nor thing as anything else there."""
    if "|" in mark and place in _BAR_ENDS:
        return False
    if (place in _IN_BRACES and set(mark) & set("={}")) or (place in _IN_BRACES and "=" in thing):
        return False
    if "{{!}}" in thing and place in _BAR_ENDS:
        return False
    if "{" in thing and set(mark) & set("{}"):
        return False
    if "[" in thing and set(mark) & set("[]"):
        return False
    if place == "picture" and set(mark) & set("[]"):
        return False
    if place == "gallery" and ("[[File" in thing or "|" in thing):
        return False
    if place == "footnote" and "<ref" in thing:
        return False
    if "'" in thing + place and "'" in mark:
        return False
    return not (thing == "__NOTOC__" and (set(mark) & set("_'") or "http" in mark))


def cut(mark: str) -> list[tuple[str, str]]:
    """At all places; not within a reference to a character."""
    whole = [found.span() for found in re.finditer(r"&\w+;", mark)]
    around = 0 if mark != "''" else 1  # which is emphasis there, too
    places = [n for n in range(around, len(mark) + 1 - around) if not any(start < n < end for start, end in whole)]
    return [(mark[:n], mark[n:]) for n in places]


def words(page: str) -> str:
    """All that a reader sees, without blanks."""
    return without_blanks(html.unescape(re.sub("<[^>]+>", "", page)))


def without_blanks(text: str) -> str:
    return re.sub(r"\s", "", text)


def converted(text: str) -> str:
    return convert(text, namespaces=DIALECT, title="T").text


def failures(place: str, kinds: Iterable[str], chosen: Callable[[], bool]) -> list[tuple[str, str]]:
    failed = []
    for kind in kinds:
        thing = NOTHING.get(kind) or SOMETHING[kind]
        shown = "" if kind in NOTHING else SHOWN.get(kind, "x")
        shown = "[1]" if kind == "note" and place == "heading" else shown  # where the wiki's own form cannot stand
        for mark in MARKS:
            for left, right in cut(mark) if is_clear(mark, thing, place) else ():
                for blank in (" ", ""):
                    if chosen() and not holds(place, left, thing, right, shown, blank):
                        failed.append((PLACES[place].format(left + thing + right), blank))
    return failed


def holds(place: str, left: str, thing: str, right: str, shown: str, blank: str) -> bool:
    begin = "BEGIN" if blank else "BEGIN."
    there, here = f"{blank}{left}{thing}{right}{blank}", f"{html.unescape(left)}{shown}{html.unescape(right)}"
    text = PLACES[place].format(f"{begin}{there}MIDDLE{there}END")
    page = render(parse(converted(f"{text}\n\n== H ==\n''it''\n"), autolink=False), existing=set())
    return without_blanks(f"{begin}{here}MIDDLE{here}END") in words(page) and "<em>it</em>" in page


@pytest.mark.parametrize("place", PLACES)
def test_signs_around_it_are_the_authors_and_end_no_markup(place: str) -> None:
    """A part of all, drawn by COLUMNAR_SEED; all of it with COLUMNAR_JOINS=all, a few minutes."""
    rng = random.Random(f"{SEED} {place}")
    share = 1.0 if os.environ.get("COLUMNAR_JOINS") == "all" else SHARES.get(place, 0.02)
    failed = failures(place, [*NOTHING, *SOMETHING], lambda: rng.random() < share)
    assert not failed, f"COLUMNAR_SEED={SEED}: {len(failed)}, as {failed[:5]}"


@pytest.mark.parametrize("gone", ["<!-- c -->", "<!---->", "<noinclude>", "</noinclude>", "<onlyinclude />"])
def test_what_mediawiki_takes_out_first_parts_nothing(gone: str) -> None:
    for mark in [*MARKS, "'''", "''x''"]:
        for left, right in cut(mark):
            if left and right and not set(mark) & set("[{<"):
                assert converted(f"a {left}{gone}{right} b ''i''") == converted(f"a {left}{right} b ''i''"), mark


@pytest.mark.parametrize(
    ("first", "behind"),
    [
        *(("&", "amp;"), ("&", "#65;"), ("&#", "65;"), ("&#x", "41;"), ("&a", "mp;"), ("<", "map>"), ("w:", "Foo")),
        *(("w", ":Foo"), ("&CounterClockwiseContourIntegra", "l;")),
    ],
)
def test_letters_behind_a_sign_that_needs_them_are_letters(first: str, behind: str) -> None:
    """The sign alone is no markup, and the letters alone are none."""
    one, other = f"{{{{nowrap|{first}}}}}", f"{{{{nowrap|{behind}}}}}"
    for joined in (one + behind, first + other, one + other, f"'''{first}'''{behind}", f"'''{one}'''{other}"):
        for text in (joined, f"a {joined}", f"* {joined}", f"== {joined} =="):
            page = words(render(parse(converted(text), autolink=False), existing=set()))
            assert page.removesuffix("#").endswith(first + behind), text


@pytest.mark.parametrize("behind", ["letters", "s", "ä"])
def test_letters_behind_what_is_no_link_to_a_page_are_kept(behind: str) -> None:
    for thing in ("[[File:A.jpg]]", "[[File:A.jpg|thumb|words]]", "[[Category:C]]", "[[de:Y]]", "[[http://a.b words]]"):
        assert behind in words(render(parse(converted(f"x {thing}{behind} y")), existing=set())), thing
