"""Becoming the owner of a page that belongs to nobody: asked first, since it gives a right over others."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.acls import note_change
from wikka_port.handlers.show import missing
from wikka_port.rights.rules import Privilege
from wikka_port.rights.stored import RightsChanged
from wikka_port.site import Site, redirect
from wikka_port.texts import _
from wikka_port.urls import page_url


def handle(site: Site, request: Request, name: str) -> Response:
    """GET asks, POST does it."""
    page = site.wiki.page(name)
    if page is None:
        return missing(site, name)
    site.wiki.require(name, Privilege.CLAIM)
    if request.method != "POST":
        return form_page(site, request, "claim.html", page_name=page.name, problem="")
    if not is_genuine(site, request):
        return form_page(site, request, "claim.html", status=403, page_name=page.name, problem=_(STALE_FORM))
    assert site.visitor.name is not None, "only who is signed in may claim"
    try:
        site.wiki.rights.change(page.name, page.rights, site.visitor.name, page.rights.lists)
    except RightsChanged:
        problem = _(
            "Somebody else changed the rights of this page at the same moment. Please look whether it is still free."
        )
        return form_page(site, request, "claim.html", status=409, page_name=page.name, problem=problem)
    note_change(site, request, page.name)
    return redirect(page_url(page.name))
