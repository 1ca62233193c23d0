"""``{{pageindex letter="A" limit="200"}}``: pages in alphabetical order, under their letters."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.groupings import by_letter, page_of
from wikka_port.urls import site_path


def run(call: ActionCall) -> str:
    rows = call.number("limit", 200, 500)
    prefix = call.arguments.get("letter", "").strip()
    names, more = page_of(call.site.wiki.names(prefix=prefix, limit=rows + 1), rows)
    onward = site_path("pageindex", letter=prefix) if more else ""
    return call.site.fragment("letters.html", letters=by_letter(names), onward=onward)
