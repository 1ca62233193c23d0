"""``{{pageindex letter="A" limit="200"}}``: pages in alphabetical order, under their letters.

``{{pageindex showjustletters="Page"}}`` is the letters alone, each a link to that page, where ``{{pageindex}}`` shows
the names that begin so; where the name is 1, to the wiki's own list.  ``?letter=A`` of the page's address is obeyed
where the call says no letter.
"""

from __future__ import annotations

from typing import Final

from wikka_port.actions.call import ActionCall
from wikka_port.groupings import by_letter, page_of
from wikka_port.names import normalise
from wikka_port.urls import page_path, site_path

LETTER_CHARS: Final = 20  # of what an address names


def run(call: ActionCall) -> str:
    letters = call.arguments.get("showjustletters", "").strip()
    if letters:
        return _letters(call, "" if letters == "1" else normalise(letters))
    rows = call.number("limit", 200, 500)
    prefix = call.arguments.get("letter", "").strip() or (call.query_parameters or {}).get("letter", "")[:LETTER_CHARS]
    names, more = page_of(call.site.wiki.names(prefix=prefix, limit=rows + 1), rows)
    onward = site_path("pageindex", letter=prefix) if more else ""
    return call.site.fragment("letters.html", letters=by_letter(names), onward=onward)


def _letters(call: ActionCall, name: str) -> str:
    def path(letter: str) -> str:
        return page_path(name, letter=letter) if name else site_path("pageindex", letter=letter)

    return call.site.fragment(
        "alphabet.html", everything=path(""), alphabet=[(path(one), one.upper()) for one in call.site.initials.get()]
    )
