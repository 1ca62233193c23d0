"""Cookies of the wiki: their names and attributes, the same for all.

Behind TLS a name begins with ``__Host-``: no other host, path or plain-text answer can set or replace such a cookie.  A
browser refuses it over plain HTTP, so there the name goes without; a wiki on loopback works, and any other plain wiki
is as open as its network is.  All are HttpOnly and SameSite=Lax: no script reads them, and a form on another site
is sent without them.
"""

from __future__ import annotations

from typing import Final

from werkzeug.wrappers import Request, Response

BROWSER: Final = "wikka_visitor"  # distinguishes browsers, for the tokens of forms
SESSION: Final = "wikka_session"  # signs in (``accounts.sessions``)
DRAFTS: Final = "wikka_drafts"  # of a browser without an account (``editing.edit_forms``)


def cookie(request: Request, name: str) -> str:
    return request.cookies.get(_full(request, name), "")


def set_cookie(response: Response, request: Request, name: str, value: str, *, max_age_s: int | None = None) -> None:
    """``max_age_s`` None: until the browser is closed."""
    response.set_cookie(
        _full(request, name), value, max_age=max_age_s, httponly=True, samesite="Lax", secure=request.is_secure
    )


def drop_cookie(response: Response, request: Request, name: str) -> None:
    set_cookie(response, request, name, "", max_age_s=0)


def _full(request: Request, name: str) -> str:
    return f"__Host-{name}" if request.is_secure else name
