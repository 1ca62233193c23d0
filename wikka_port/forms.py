"""Answers that hold a form which changes something: the token in it, the cookie that goes with it."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from wikka_port import cookies
from wikka_port.security import is_visitor, new_visitor
from wikka_port.site import Site

STALE_FORM = "This form could not be checked: it was open for very long, or cookies are off. Please send it again."


def form_page(site: Site, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """``template`` with a fresh ``csrf``; never kept by any cache."""
    browser = site.browser or cookies.cookie(request, cookies.BROWSER)
    browser = browser if is_visitor(browser) else new_visitor()
    token = site.tokens.issue(browser, site.visitor.session)
    response = site.html(template, status=status, csrf=token, **values)
    response.headers["Cache-Control"] = "no-store"
    if browser != cookies.cookie(request, cookies.BROWSER):
        cookies.set_cookie(response, request, cookies.BROWSER, browser)
    return response


def is_genuine(site: Site, request: Request) -> bool:
    """The form was ours, and was given to this browser in this session."""
    browser = cookies.cookie(request, cookies.BROWSER)
    return site.tokens.accepts(request.form.get("csrf", ""), browser, site.visitor.session)
