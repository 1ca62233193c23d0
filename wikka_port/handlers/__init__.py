"""Handlers: what ``/Name/handler`` and ``/-/handler`` answer.  Each is a module, named as in WikkaWiki.

Each has ``handle(site, request, name) -> Response``; those of the whole wiki are given "" as name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.handlers import (
    account,
    acls,
    actions,
    administration,
    backlinks,
    claim,
    clone,
    confirm,
    delete,
    diff,
    draft,
    edit,
    grabcode,
    hide,
    history,
    html,
    login,
    logout,
    massrevert,
    moves,
    orphanedpages,
    pageindex,
    preview,
    raw,
    recentchanges,
    register,
    rename,
    reset,
    revert,
    revisions,
    search,
    sessions,
    settings,
    show,
    showcode,
    suggest,
    suggestion,
    undelete,
    wantedpages,
)
from wikka_port.site import Site
from wikka_port.urls import PAGE_HANDLERS, SITE_HANDLERS

Handler = Callable[[Site, Request, str], Response]

HANDLERS: Final[Mapping[str, Handler]] = {
    "account": account.handle,
    "acls": acls.handle,
    "actions": actions.handle,
    "administration": administration.handle,
    "backlinks": backlinks.handle,
    "claim": claim.handle,
    "confirm": confirm.handle,
    "clone": clone.handle,
    "delete": delete.handle,
    "deleted": massrevert.handle_deleted,
    "diff": diff.handle,
    "draft": draft.handle,
    "edit": edit.handle,
    "grabcode": grabcode.handle,
    "hide": hide.handle,
    "html": html.handle,
    "newpage": clone.handle_new,
    "history": history.handle,
    "login": login.handle,
    "logout": logout.handle,
    "massdelete": massrevert.handle_delete,
    "massrevert": massrevert.handle,
    "moves": moves.handle,
    "orphanedpages": orphanedpages.handle,
    "pageindex": pageindex.handle,
    "preview": preview.handle,
    "print": html.handle_print,
    "raw": raw.handle,
    "recentchanges": recentchanges.handle,
    "recentchanges.xml": recentchanges.handle_feed,
    "register": register.handle,
    "rename": rename.handle,
    "reset": reset.handle,
    "revert": revert.handle,
    "revisions": revisions.handle,
    "revisions.xml": revisions.handle_feed,
    "search": search.handle,
    "sessions": sessions.handle,
    "settings": settings.handle,
    "show": show.handle,
    "suggest": suggest.handle,
    "suggestion": suggestion.handle,
    "showcode": showcode.handle,
    "undelete": undelete.handle,
    "wantedpages": wantedpages.handle,
}
POSTABLE: Final = frozenset(
    {
        *("account", "acls", "claim", "confirm", "edit", "login", "logout", "register", "reset", "revert"),
        *("sessions", "settings", "draft", "preview", "suggestion"),
        *("delete", "hide", "massdelete", "massrevert", "moves", "rename", "undelete"),
    }
)
assert HANDLERS.keys() == PAGE_HANDLERS | SITE_HANDLERS, "urls.py decides which words are handlers"
