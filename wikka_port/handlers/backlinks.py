"""The pages that link to a page, which need not exist itself."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.groupings import page_of
from wikka_port.site import Site
from wikka_port.urls import page_path


def handle(site: Site, request: Request, name: str) -> Response:
    size = site.config.list_rows
    names, more = page_of(site.wiki.backlinks(name, after=request.args.get("after", ""), limit=size + 1), size)
    onward = page_path(name, "backlinks", after=names[-1]) if more else ""
    return site.html("backlinks.html", page_name=name, names=names, onward=onward)
