"""The main page of a dump's site becomes the root page: the wiki's own first text there becomes a redirect to it.

The page keeps its name, so that the dump's links, and a later dump, find it.  A root page that somebody has written is
left alone, and so is a missing one.
"""

from __future__ import annotations

import re
from typing import Final

from wikka_port.markup.formats import WIKKA
from wikka_port.names import InvalidName, normalise
from wikka_port.pages import Conflict, Wiki
from wikka_port.texts import _w

_OF_THE_WIKI: Final = "wiki"  # the kind of name that signs first pages
_DANGER: Final = re.compile(r"""["'{}\[\]|&:]""")


def lead_root_page(wiki: Wiki, root_page: str, main_page: str) -> str:
    """Let the page ``root_page`` redirect to ``main_page`` if the wiki itself wrote its text.

    Returns the name of the main page if it is here and is not the root page, else "".  Calling it again changes
    nothing.  Raises StoreUnavailable.
    """
    try:
        name, root_name = normalise(main_page), normalise(root_page)
    except InvalidName:
        return ""
    if name == root_name or wiki.page(name) is None:
        return ""
    body = f'{{{{redirect target="{_DANGER.sub(lambda found: f"&#{ord(found[0])};", name)}"}}}}'
    root = wiki.page(root_name)
    if root is not None and root.body == body:
        return ""
    if root is None or root.signed != _OF_THE_WIKI:
        return name
    try:
        note = _w("the main page of the import")
        wiki.save(
            root.name, body, author=root.author, note=note, base=root.number, signed=_OF_THE_WIKI, markup=WIKKA,
            autolink=False,
        )  # fmt: skip
    except Conflict:
        return name  # somebody has just written it
    return ""
