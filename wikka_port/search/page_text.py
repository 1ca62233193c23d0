"""(pure) The searched parts of a page: its headings and its text, without markup; and the section of a position.

The text comes from the same tokens as the rendered page.  Addresses of links and pictures and the arguments of actions
are no text, but for the cells of ``{{table}}`` and the values of ``{{include}}``.  The part after a bound of the markup
is searched as it was typed.  Headings and their ids are those of the rendered page: the page's compiler makes them,
from the tokens of headings only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from wikka_port.markup.document import compiled
from wikka_port.markup.formats import MARKDOWN, WIKKA, tokens
from wikka_port.markup.fragments import Heading
from wikka_port.markup.tables import rows_of_call
from wikka_port.markup.token_buffer import fit
from wikka_port.markup.tokens import (
    HEADING_END,
    INLINE_KINDS,
    ActionCall,
    Attributes,
    Close,
    CodeBlock,
    Embedded,
    HeadingStart,
    Image,
    MindMap,
    NoteMark,
    Open,
    Outside,
    PageLink,
    Rest,
    Task,
    Toggle,
    Token,
)

_TAG: Final = re.compile(r"<[^<>]{0,2000}>")
_NOTE_RETURN_LINK: Final = re.compile(
    r'<a id="note_[0-9]+" href="#[^"<>]{0,80}">↩</a>'
)  # of an imported note; no words


_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def title_text(name: str) -> str:
    """Return a name with its words: TidalRivers is found as a whole, and by "tidal" and by "rivers"."""
    parts = _HUMP.sub(" ", name)
    return name if parts == name else f"{name}\n{parts}"


class PageText(NamedTuple):
    headings: str  # one a line
    text: str


def page_text(body: str, *, autolink: bool = True, markup: str = WIKKA) -> PageText:
    """Return the headings and the text of a page.  O(len(body))."""
    return text_of(tokens(body, autolink=autolink, markup=markup))


def text_of(read: Iterable[Token]) -> PageText:
    headings: list[str] = []
    text: list[str] = []
    out = text
    for token in read:
        if isinstance(token, str):
            out.append(token)
        elif isinstance(token, Toggle) or (isinstance(token, Open | Close) and token.kind in INLINE_KINDS):
            continue  # a word continues over an emphasis that begins within it
        elif isinstance(token, HeadingStart):
            out = headings
        elif token is HEADING_END:
            headings.append("\n")
            out = text
        else:
            out.append(_said(token))
    return PageText("".join(headings), "".join(text))


def _said(token: Token) -> str:
    """Return the text of a token that a reader sees, or a break that ends a word."""
    if isinstance(token, PageLink | Outside):
        return token.label or (token.name if isinstance(token, PageLink) else "")
    if isinstance(token, CodeBlock):
        return f"\n{token.filename}\n{token.body}\n"
    if isinstance(token, Embedded | MindMap):
        return _TAG.sub(" ", _NOTE_RETURN_LINK.sub(" ", token.source))
    if isinstance(token, Attributes):
        return "\n".join(("", *(words for _, words in token.pairs), ""))
    if isinstance(token, Rest):
        return token.source
    if isinstance(token, Image):
        return f" {token.alt} "
    if isinstance(token, ActionCall):
        said = list(_words_of(token))
        return "\n".join(("", *said, "")) if said else " "
    if isinstance(token, NoteMark | Task):
        return " "
    return "\n"


def _words_of(call: ActionCall) -> Iterator[str]:
    """Yield the arguments of a call that readers see as they were typed."""
    if call.name == "include":
        yield from (value for name, value in call.arguments if name != "page")
    else:
        yield from (cell for row in rows_of_call(call) for cell in row)


_SAME: Final = ("%%", '""', "``")  # markup that may span lines and ends with its opening mark
_PAIRS: Final = (("/*", "*/"), ("{{", "}}"), ("<map", "</map>"))
_MARKS: Final = {WIKKA: ("==",), MARKDOWN: ("#", "==", "-")}  # without one of these there is no heading


class Places:
    """Finds the sections of the passages in one answer; parses whole pages, of at most ``chars_left`` characters."""

    def __init__(self, chars_left: int) -> None:
        self.chars_left = chars_left

    def heading_at(self, body: str, at: int, *, autolink: bool, markup: str) -> Heading | None:
        """Return the heading above the position ``at``, or None.

        Returns None if the position is above the first heading or below the page's title, or if the bound is reached.
        """
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
    """Return the headings that ``document.parse`` gives, at some 60 % of its cost."""
    read = list(_of_headings(tokens(body, autolink=autolink, markup=markup)))
    return compiled(read, markup).headings


def _of_headings(read: list[Token]) -> Iterator[Token]:
    is_inside = False
    for token in read:
        is_inside = is_inside or isinstance(token, HeadingStart)
        if is_inside:
            yield token
        if token is HEADING_END:
            is_inside = False


def _spans_line_end(text: str, end: int) -> bool:
    """Return whether markup that spans lines may begin before ``end`` and end after it."""
    if any(0 <= text.find(mark) < end <= text.rfind(mark) + 1 for mark in _SAME):
        return True
    for begin, close in _PAIRS:
        last = text.rfind(begin, 0, end)
        if last >= 0 and text.find(close, last, end) < 0 <= text.find(close, end):
            return True
    return False
