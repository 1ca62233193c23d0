"""Handlers: what ``/Name/handler`` and ``/-/handler`` answer.  One module each, named as in WikkaWiki.

Each has ``handle(site, request, name) -> Response``; those of the whole wiki are given "" as name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.handlers import (
    backlinks,
    diff,
    edit,
    history,
    orphanedpages,
    pageindex,
    raw,
    recentchanges,
    revert,
    revisions,
    search,
    show,
    wantedpages,
)
from wikka_port.site import Site
from wikka_port.urls import PAGE_HANDLERS, SITE_HANDLERS

Handler = Callable[[Site, Request, str], Response]

HANDLERS: Final[Mapping[str, Handler]] = {
    "backlinks": backlinks.handle,
    "diff": diff.handle,
    "edit": edit.handle,
    "history": history.handle,
    "orphanedpages": orphanedpages.handle,
    "pageindex": pageindex.handle,
    "raw": raw.handle,
    "recentchanges": recentchanges.handle,
    "recentchanges.xml": recentchanges.handle_feed,
    "revert": revert.handle,
    "revisions": revisions.handle,
    "search": search.handle,
    "show": show.handle,
    "wantedpages": wantedpages.handle,
}
POSTABLE: Final = frozenset({"edit", "revert"})
assert HANDLERS.keys() == PAGE_HANDLERS | SITE_HANDLERS, "urls.py decides which words are handlers"
