"""``{{orphanedpages limit="50"}}``: pages that no page links to."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.groupings import page_of
from wikka_port.texts import _
from wikka_port.urls import site_path


def run(call: ActionCall) -> str:
    rows = call.number("limit", 50, 200)
    names, more = page_of(call.site.wiki.orphaned(limit=rows + 1), rows)
    onward = site_path("orphanedpages") if more else ""
    empty = _("Every page is linked to.")
    return call.site.fragment("names.html", names=names, columns=1, onward=onward, empty=empty)
