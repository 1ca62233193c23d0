"""The list of a page's revisions, newest first; any two can be chosen and compared."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.groupings import page_of
from wikka_port.handlers.show import missing
from wikka_port.site import Site, number
from wikka_port.urls import page_path

ROWS = 50


def handle(site: Site, request: Request, name: str) -> Response:
    below = number(request, "below")
    found, more = page_of(site.wiki.revisions(name, below=below, limit=ROWS + 1), ROWS)
    if not found and below is None:
        return missing(site, name)
    onward = page_path(name, "revisions", below=found[-1].number) if more else ""
    return site.html("revisions.html", page_name=name, revisions=found, onward=onward, newest=below is None)
