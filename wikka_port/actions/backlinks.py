"""``{{backlinks page="Other"}}``: the pages that link to this one, or to the page named."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.groupings import page_of
from wikka_port.names import normalise
from wikka_port.texts import _
from wikka_port.urls import page_path


def run(call: ActionCall) -> str:
    name = normalise(call.arguments.get("page", "") or call.page)
    rows = call.number("limit", 100, 500)
    names, more = page_of(call.site.wiki.backlinks(name, limit=rows + 1), rows)
    onward = page_path(name, "backlinks") if more else ""
    return call.site.fragment("names.html", names=names, columns=1, onward=onward, empty=_("No page links here."))
