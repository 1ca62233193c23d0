"""The links of a text (pure): the same tokens that the page is rendered from, so the two agree.

``links`` is what the backlinks trigger calls for each saved revision; it does no HTML.  A page that another one
includes counts as linked to: it is missed where it is not there, and has to be led where it is renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from wikka_port.markup.formats import WIKKA, tokens
from wikka_port.markup.targets import included_page
from wikka_port.markup.tokens import NEWLINE, ActionCall, Open, PageLink, Token

_REDIRECT_WORD: Final = re.compile(r"#REDIRECT\s*:?\s*", re.IGNORECASE)
_REDIRECT_LENGTH: Final = 50  # characters; more than that before the link is no such beginning


def page_names(read: Iterable[Token]) -> list[str]:
    """Return the pages that these tokens link to: normalised names, each once, in order."""
    return list(dict.fromkeys(token.name for token in read if isinstance(token, PageLink)))


def _targets(read: Iterable[Token]) -> Iterator[str]:
    for token in read:
        if isinstance(token, PageLink):
            yield token.name
        elif isinstance(token, ActionCall) and (name := included_page(token)):
            yield name


def redirect_of(read: Iterable[Token]) -> str | None:
    """Return the page that a text with these tokens stands for.

    ``{{redirect target=".."}}`` says so anywhere, ``#REDIRECT [[..]]`` where nothing comes before it.
    """
    start: str | None = ""  # the text is nothing but this so far; None: it is more
    for token in read:
        if isinstance(token, PageLink):
            if token.redirect or (start is not None and _REDIRECT_WORD.fullmatch(start)):
                return token.name
            start = None
        elif start is not None and len(start) < _REDIRECT_LENGTH and isinstance(token, str):
            start = (start + token).lstrip()
        elif isinstance(token, Open) and token.kind == "p" and start == "":
            continue
        elif token is not NEWLINE or start:
            start = None
    return None


def links(text: str, *, autolink: bool = True, markup: str = WIKKA) -> list[str]:
    """Distinct normalised names of the pages that the HTML of ``text`` links to or includes, in order."""
    return list(dict.fromkeys(_targets(tokens(text, autolink=autolink, markup=markup))))


def redirect_target(text: str, *, autolink: bool = True, markup: str = WIKKA) -> str | None:
    """Return the page that ``text`` sends its reader to, or None."""
    return redirect_of(tokens(text, autolink=autolink, markup=markup))
