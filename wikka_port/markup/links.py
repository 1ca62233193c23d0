"""(pure) The links of a text, from the same tokens as the rendered page, so that both agree.

The backlinks trigger calls ``links`` for each saved revision; it makes no HTML.  An included page counts as linked to:
if it is missing it is wanted, and if it is renamed the includes must be changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from wikka_port.limits import FILES_MAX
from wikka_port.markup.file_slots import slots_of_files
from wikka_port.markup.formats import WIKKA, tokens
from wikka_port.markup.fragments import FileReference
from wikka_port.markup.targets import included_page
from wikka_port.markup.tokens import NEWLINE, ActionCall, Open, PageLink, Token

_REDIRECT_WORD: Final = re.compile(r"#REDIRECT\s*:?\s*", re.IGNORECASE)
_REDIRECT_LENGTH: Final = 50  # characters before the link, at most; else the text is no redirect


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
    """Return the page to which a text with these tokens redirects, or None.

    ``{{redirect target=".."}}`` redirects anywhere in the text, ``#REDIRECT [[..]]`` only at its beginning.
    """
    start: str | None = ""  # the beginning of the text; None: too long or no plain text
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
    """Return the normalised names of the pages that the HTML of ``text`` links to or includes, in order, each once."""
    return names_linked(tokens(text, autolink=autolink, markup=markup))


def names_linked(read: Iterable[Token]) -> list[str]:
    """Return the names of the pages that these tokens link to or include, as ``links`` does."""
    return list(dict.fromkeys(_targets(read)))


def files_named(read: Iterable[Token]) -> list[FileReference]:
    """Return the files that the HTML of these tokens shows or links to if they are there, in order, each once.

    A link that may mean one of two files names both.
    """
    slots = islice(slots_of_files(read), FILES_MAX)
    return list(dict.fromkeys(choice.reference for slot in slots for choice in slot.choices))


def redirect_target(text: str, *, autolink: bool = True, markup: str = WIKKA) -> str | None:
    """Return the page to which ``text`` redirects, or None."""
    return redirect_of(tokens(text, autolink=autolink, markup=markup))
