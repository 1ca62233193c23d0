"""Pages that no other page links to."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.groupings import page_of
from wikka_port.site import Site
from wikka_port.urls import site_path


def handle(site: Site, request: Request, name: str) -> Response:
    size = site.config.list_rows
    names, more = page_of(site.wiki.orphaned(after=request.args.get("after", ""), limit=size + 1), size)
    onward = site_path("orphanedpages", after=names[-1]) if more else ""
    return site.html("orphanedpages.html", names=names, onward=onward)
