"""(pure) The formats of a page's text, and the function from a text in any format to its tokens.

HTML, links, headings, words, bounds and code blocks are made from these tokens, so they agree in every format.
"""

from __future__ import annotations

from typing import Final

from wikka_port.markup import lexer
from wikka_port.markup.tokens import Token
from wikka_port.texts import N_

WIKKA: Final = "wikka"
MARKDOWN: Final = "markdown"
FORMATS: Final = {WIKKA: N_("Wikka markup"), MARKDOWN: "Markdown"}  # the names shown to people


def is_format(value: str) -> bool:
    return value in FORMATS


def tokens(text: str, *, autolink: bool = True, markup: str = WIKKA) -> list[Token]:
    """Return the tokens of a text in the format ``markup``; with ``autolink`` CamelCase words are links.  Never raises.

    An unknown format, of a newer wiki, is read as Wikka markup.
    """
    if markup == MARKDOWN:
        from wikka_port.markup import markdown  # its parser takes 20 ms to load, and many wikis have no such page

        return markdown.tokens(text, autolink=autolink)
    return lexer.tokens(text, autolink=autolink)
