"""``{{category page="CategoryWiki" col="3" compact="1"}}``: the members of a category, which link to its page."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.groupings import page_of
from wikka_port.names import normalise
from wikka_port.texts import _
from wikka_port.urls import page_path


def run(call: ActionCall) -> str:
    name = normalise(call.arguments.get("page", "") or call.page)
    columns = call.number("col", 1, 6)
    names, more = page_of(call.site.wiki.backlinks(name, limit=501), 500)
    return call.site.fragment(
        "inline_names.html" if call.flag("compact") else "names.html",
        names=[member for member in names if member != call.page],
        columns=columns,
        onward=page_path(name, "backlinks") if more else "",
        empty=_("No page is in this category yet."),
    )
