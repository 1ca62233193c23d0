"""``{{wantedpages limit="50"}}``: pages that are linked to and do not exist yet, the most wanted first."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.groupings import page_of
from wikka_port.urls import site_path


def run(call: ActionCall) -> str:
    rows = call.number("limit", 50, 200)
    wanted, more = page_of(call.site.most_wanted.get(), rows)
    return call.site.fragment("wanted.html", wanted=wanted, onward=site_path("wantedpages") if more else "")
