"""Answers that hold a form which changes something: the token in it, the cookie that goes with it."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from wikka_port.security import VISITOR_COOKIE, is_visitor, new_visitor
from wikka_port.site import Site


def form_page(site: Site, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """``template`` with a fresh ``csrf``; never kept by any cache."""
    visitor = request.cookies.get(VISITOR_COOKIE, "")
    known = is_visitor(visitor)
    visitor = visitor if known else new_visitor()
    response = site.html(template, status=status, csrf=site.tokens.issue(visitor), **values)
    response.headers["Cache-Control"] = "no-store"
    if not known:
        response.set_cookie(VISITOR_COOKIE, visitor, httponly=True, samesite="Lax", secure=request.is_secure)
    return response


def is_genuine(site: Site, request: Request) -> bool:
    """The form was ours and was given to this browser."""
    return site.tokens.accepts(request.form.get("csrf", ""), request.cookies.get(VISITOR_COOKIE, ""))
