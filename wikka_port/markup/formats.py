"""The formats that a page's text can have, and the one function from a text to its tokens (pure).

HTML, links, headings, words, bounds and code blocks are made of these tokens, so they agree in every format.
"""

from __future__ import annotations

from typing import Final

from wikka_port.markup import lexer
from wikka_port.markup.tokens import Token
from wikka_port.texts import N_

WIKKA: Final = "wikka"
MARKDOWN: Final = "markdown"
FORMATS: Final = {WIKKA: N_("Wikka markup"), MARKDOWN: "Markdown"}  # what people call them


def is_format(value: str) -> bool:
    return value in FORMATS


def tokens(text: str, *, autolink: bool = True, markup: str = WIKKA) -> list[Token]:
    """The tokens of ``text``, of the format ``markup``; with ``autolink`` CamelCase words are links.  Never raises.

    A format that a newer wiki wrote and this one does not know is read as Wikka markup.
    """
    if markup == MARKDOWN:
        from wikka_port.markup import markdown  # its parser takes 20 ms to load, and many wikis have no such page

        return markdown.tokens(text, autolink=autolink)
    return lexer.tokens(text, autolink=autolink)
