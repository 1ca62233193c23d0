"""The heading of the section in which a place of a page stands, with the id that a link leads to (pure).

Headings and their ids are those of the rendered page: its own compiler makes them, of the tokens of headings alone.
The text is read up to the line of the place, or as a whole where something that began before it may end after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wikka_port.markup.formats import MARKDOWN, WIKKA, tokens
from wikka_port.markup.fragments import Heading
from wikka_port.markup.html import Compiler
from wikka_port.markup.lexer import fit
from wikka_port.markup.nested_html import NestedCompiler
from wikka_port.markup.tokens import HEADING_END, HeadingStart, Token

_SAME: Final = ("%%", '""', "``")  # what spans lines and ends as it begins
_PAIRS: Final = (("/*", "*/"), ("{{", "}}"), ("<map", "</map>"))
_MARKS: Final = {WIKKA: ("==",), MARKDOWN: ("#", "==", "-")}  # without one of these there is no heading


class Places:
    """Finds the places of one answer; reads ``chars_left`` characters for them, and of a longer page nothing."""

    def __init__(self, chars_left: int) -> None:
        self.chars_left = chars_left

    def heading_at(self, body: str, at: int, *, autolink: bool, markup: str) -> Heading | None:
        """None: it stands above the first heading, or below the one that is the page's title, or is not searched."""
        text, at = fit(body), len(fit(body[:at]))
        end = text.find("\n", at)
        if end >= 0 and markup == WIKKA and not _spans_line_end(text, end):
            text = text[:end]
        if not any(mark in text for mark in _MARKS.get(markup, _MARKS[WIKKA])) or len(text) > self.chars_left:
            return None
        self.chars_left -= len(text)
        found = headings(text, autolink=autolink, markup=markup)
        before = [heading for heading in found if 0 <= heading.start <= at]
        if not before or not before[-1].text or (before[-1] == found[0] and found[0].level == 1):
            return None
        return before[-1]


def headings(body: str, *, autolink: bool = True, markup: str = WIKKA) -> list[Heading]:
    """As ``document.parse`` has them, some 60 % of its cost."""
    compiler = NestedCompiler() if markup == MARKDOWN else Compiler()
    compiler.compile(list(_of_headings(tokens(body, autolink=autolink, markup=markup))))
    return compiler.headings


def _of_headings(read: list[Token]) -> Iterator[Token]:
    is_inside = False
    for token in read:
        is_inside = is_inside or isinstance(token, HeadingStart)
        if is_inside:
            yield token
        if token is HEADING_END:
            is_inside = False


def _spans_line_end(text: str, end: int) -> bool:
    """Whether something that spans lines may begin before ``end`` and end after it."""
    if any(0 <= text.find(mark) < end <= text.rfind(mark) + 1 for mark in _SAME):
        return True
    for begin, close in _PAIRS:
        last = text.rfind(begin, 0, end)
        if last >= 0 and text.find(close, last, end) < 0 <= text.find(close, end):
            return True
    return False
