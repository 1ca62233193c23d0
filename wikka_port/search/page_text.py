"""The searched parts of a page (pure): its headings and its text, without markup.

The tokens are those that the page is rendered from.  Addresses of links and pictures and the arguments of actions are
no text.  The part after a bound of the markup is searched as it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from wikka_port.markup.formats import WIKKA, tokens
from wikka_port.markup.tokens import (
    HEADING_END,
    INLINE_KINDS,
    ActionCall,
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
    """Return the words of a name: TidalRivers is found as a whole, and by "tidal" and "rivers"."""
    parts = _HUMP.sub(" ", name)
    return name if parts == name else f"{name}\n{parts}"


class PageText(NamedTuple):
    headings: str  # one a line
    text: str


def page_text(body: str, *, autolink: bool = True, markup: str = WIKKA) -> PageText:
    """O(len(body))."""
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
    """Return the text that a reader sees of it, or a break that ends a word."""
    if isinstance(token, PageLink | Outside):
        return token.label or (token.name if isinstance(token, PageLink) else "")
    if isinstance(token, CodeBlock):
        return f"\n{token.filename}\n{token.body}\n"
    if isinstance(token, Embedded | MindMap):
        return _TAG.sub(" ", _NOTE_RETURN_LINK.sub(" ", token.source))
    if isinstance(token, Rest):
        return token.source
    if isinstance(token, Image):
        return f" {token.alt} "
    if isinstance(token, ActionCall | NoteMark | Task):
        return " "
    return "\n"
