"""Pages whose names hold what was asked for; what is the very name of a page is shown first."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.groupings import page_of
from wikka_port.names import InvalidName, normalise
from wikka_port.site import Site, page_url, redirect

ROWS = 100


def handle(site: Site, request: Request, name: str) -> Response:
    """``?q=words``; with ``&go=1`` straight to the page of that name if there is one."""
    asked = " ".join(request.args.get("q", "").split())[:300]
    try:
        exact = normalise(asked)
    except InvalidName:
        exact = ""
    exists = bool(exact) and exact in site.wiki.existing([exact])
    if exists and request.args.get("go"):
        return redirect(page_url(exact), status=302)
    names, more = page_of(site.wiki.search_titles(asked, limit=ROWS + 1) if exact else [], ROWS)
    others = [found for found in names if found != exact]
    return site.html("search.html", asked=asked, exact=exact, exists=exists, names=others, more=more)
