"""Pages with the words that were requested; a page of that very name is shown first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.groupings import page_of
from wikka_port.names import InvalidName, normalise
from wikka_port.search.query import QUERY_CHARS, parse
from wikka_port.search.searching import COUNTED, PER_PAGE
from wikka_port.site import Site, number, redirect
from wikka_port.urls import page_url

NAMES: Final = 20  # shown that have what was typed somewhere in them, where no page has its words
PAGES_MAX: Final = -(-COUNTED // PER_PAGE)


def handle(site: Site, request: Request, name: str) -> Response:
    """``?q=words&page=2``; with ``&go=1`` straight to the page of that name if there is one."""
    typed = " ".join(request.args.get("q", "").split())[: QUERY_CHARS + 1]
    page = min(max(1, number(request, "page") or 1), PAGES_MAX)
    try:
        exact = normalise(typed)
    except InvalidName:
        exact = ""
    is_name = bool(exact)
    exists = bool(exact) and exact in site.wiki.existing([exact])
    if request.args.get("go") and exists:
        return redirect(page_url(exact), status=302)
    if exact and exact not in site.wiki.readable([exact]):
        exact, exists = "", False  # not a word about it
    query = parse(typed, site.wiki.languages())
    found = site.wiki.search(query, page=page, pages=site.rough_page_count.get())
    names: Sequence[str] = ()
    if is_name and not found.hits and not query.is_empty:
        names, _ = page_of(site.wiki.search_titles(typed, limit=NAMES + 1), NAMES)
    return site.html(
        "search.html",
        asked=typed[:QUERY_CHARS],
        exact=exact,
        exists=exists,
        query=query,
        found=found,
        page=page,
        last=-(-found.count // PER_PAGE),
        names=[one for one in names if one != exact],
    )
