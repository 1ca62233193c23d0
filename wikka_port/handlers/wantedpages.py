"""Pages that are linked to and do not exist yet."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.groupings import page_of
from wikka_port.site import Site
from wikka_port.urls import site_path


def handle(site: Site, request: Request, name: str) -> Response:
    size = site.config.list_rows
    wanted, more = page_of(site.wiki.wanted(after=request.args.get("after", ""), limit=size + 1), size)
    onward = site_path("wantedpages", after=wanted[-1][0]) if more else ""
    return site.html("wantedpages.html", wanted=wanted, onward=onward)
