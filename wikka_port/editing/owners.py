"""The owners of drafts that a request may see: its account and its browser.

A browser is known by a cookie of its own, a random value that it gets when it first keeps a draft without an account.
The cookie outlives the browser's window and the sign-in, so what was typed before a sign-in is found after it.
"""

from __future__ import annotations

from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port import cookies
from wikka_port.editing.rows import DRAFTS_S, owner_of_account, owner_of_browser
from wikka_port.security import is_visitor, new_visitor
from wikka_port.site import Site

_NONE: Final = ""


def owners_of(site: Site, request: Request) -> list[str]:
    """Return the account first; none for a browser that never kept a draft."""
    cookie = cookies.cookie(request, cookies.DRAFTS)
    return [
        *([owner_of_account(site.visitor.name)] if site.visitor.name else []),
        *([owner_of_browser(cookie)] if is_visitor(cookie) else []),
    ]


def owner_to_keep(site: Site, request: Request) -> tuple[str, str]:
    """Return the owner of what is kept now, and the value that the browser's cookie has to get; "": as it is."""
    if site.visitor.name:
        return owner_of_account(site.visitor.name), _NONE
    cookie = cookies.cookie(request, cookies.DRAFTS)
    value = cookie if is_visitor(cookie) else new_visitor()
    return owner_of_browser(value), value


def remember(request: Request, response: Response, value: str) -> None:
    """The browser finds its drafts again as long as they are there."""
    if value:
        cookies.set_cookie(response, request, cookies.DRAFTS, value, max_age_s=DRAFTS_S)
