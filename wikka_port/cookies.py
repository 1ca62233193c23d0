"""Names and attributes of the wiki's cookies.

Behind TLS a cookie's name begins with ``__Host-``: no other host, path or plain-text answer can set or replace such a
cookie.  Browsers refuse these names over plain HTTP, so there the prefix is left out: a wiki on loopback works, and
any other wiki without TLS is as open as its network is.  All cookies are HttpOnly and SameSite=Lax: no script reads
them, and a browser sends them with no form of a different site.
"""

from __future__ import annotations

from typing import Final

from werkzeug.wrappers import Request, Response

BROWSER: Final = "wikka_visitor"  # distinguishes browsers, for the tokens of forms
SESSION: Final = "wikka_session"  # signs in (``accounts.sessions``)
THEME: Final = "wikka_theme"  # of this browser (``handlers.settings``)
DRAFTS: Final = "wikka_drafts"  # of a browser without an account (``editing.edit_forms``)


def cookie(request: Request, name: str) -> str:
    return request.cookies.get(_full(request, name), "")


def set_cookie(response: Response, request: Request, name: str, value: str, *, max_age_s: int | None = None) -> None:
    """Set a cookie with the wiki's attributes; without ``max_age_s`` it lasts until the browser is closed."""
    response.set_cookie(
        _full(request, name), value, max_age=max_age_s, httponly=True, samesite="Lax", secure=request.is_secure
    )


def drop_cookie(response: Response, request: Request, name: str) -> None:
    set_cookie(response, request, name, "", max_age_s=0)


def _full(request: Request, name: str) -> str:
    return f"__Host-{name}" if request.is_secure else name
