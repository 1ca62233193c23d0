"""Deleting a page: readers and lists do not see it any more; it can be brought back until it is purged."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.show import missing
from wikka_port.limits import REASON_CHARS_MAX
from wikka_port.moving.refusals import NotMoved
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, redirect
from wikka_port.texts import _
from wikka_port.urls import page_path


def handle(site: Site, request: Request, name: str) -> Response:
    """GET asks, POST does it."""
    page = site.wiki.page(name)
    if page is None:
        return missing(site, name)
    site.wiki.require(name, Privilege.DELETE)
    if request.method != "POST":
        return _form(site, request, name)
    if not is_genuine(site, request):
        return _form(site, request, name, status=403, problem=_(STALE_FORM))
    try:
        site.wiki.moves.delete(name, request.form.get("reason", "")[:REASON_CHARS_MAX])
    except NotMoved as refused:
        return _form(site, request, name, status=409, problem=str(refused))
    site.wiki.settle("", site.config.settle_s)
    return redirect(page_path(name, "undelete"))


def _form(site: Site, request: Request, name: str, *, status: int = 200, problem: str = "") -> Response:
    values = {
        "reason": request.form.get("reason", "")[:REASON_CHARS_MAX],
        "linking": site.wiki.backlinks(name, limit=6),
    }
    return form_page(site, request, "delete.html", status=status, page_name=name, problem=problem, **values)
