"""The page that leads administrators to all that they have beside others."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.site import Site


def handle(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()
    return site.html("administration.html")
