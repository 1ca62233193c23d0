"""Signing in; after it the page where the visitor was."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.entering import enter
from wikka_port.accounts.signing_in import Refused
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.site import Site, redirect
from wikka_port.texts import _


def handle(site: Site, request: Request, name: str) -> Response:
    """``?next=/Page`` is where a visitor continues; only addresses of this wiki are taken."""
    onward = within(request.values.get("next", ""))
    if request.method != "POST":
        return form(site, request, onward)
    if not is_genuine(site, request):
        return form(site, request, onward, status=403, problem=_(STALE_FORM))
    try:
        entered = enter(site, request)
    except Refused as refused:
        return form(site, request, onward, status=refused.status, problem=str(refused), wait_s=refused.wait_s)
    return entered.let_in(request, redirect(onward))


def form(
    site: Site,
    request: Request,
    onward: str = "/",
    *,
    status: int = 200,
    problem: str = "",
    wait_s: int = 0,
    done: str = "",
) -> Response:
    user = request.form.get("user", "")
    stays = request.form.get("keep") == "1"
    values = {"onward": onward, "problem": problem, "user": user, "stays": stays, "done": done}
    response = form_page(
        site,
        request,
        "login.html",
        status=status,
        registration=site.accounts.registration.policy,
        has_mail=site.accounts.registration.is_address_required,
        **values,
    )
    if wait_s:
        response.headers["Retry-After"] = str(wait_s)
    return response


def within(address: str) -> str:
    """Return a path of this wiki; "/" for what leads elsewhere, or is no path in ASCII."""
    if not (address.isascii() and address.isprintable()) or "\\" in address or not address.startswith("/"):
        return "/"
    return "/" if address.startswith("//") else address
