"""Single revisions that are not shown any more, for administrators: ``?revision=N``."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.show import missing
from wikka_port.limits import REASON_CHARS_MAX
from wikka_port.moving.refusals import NotMoved
from wikka_port.pages import Page
from wikka_port.site import Site, number, redirect
from wikka_port.texts import _
from wikka_port.urls import page_path


def handle(site: Site, request: Request, name: str) -> Response:
    """GET lists what is hidden and asks, POST hides a revision or shows it again."""
    site.wiki.moves.require_site()
    page = site.wiki.page(name)
    if page is None:
        return missing(site, name)
    if request.method != "POST":
        return _form(site, request, page)
    if not is_genuine(site, request):
        return _form(site, request, page, status=403, problem=_(STALE_FORM))
    form = request.form
    text = form.get("revision", "")
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    try:
        reason = form.get("reason", "")[:REASON_CHARS_MAX]
        site.wiki.moves.hide(name, wanted, hidden="show" not in form, reason=reason)
    except NotMoved as refused:
        return _form(site, request, page, status=409, problem=str(refused))
    site.wiki.settle("", site.config.settle_s)
    return redirect(page_path(name, "hide"))


def _form(site: Site, request: Request, page: Page, *, status: int = 200, problem: str = "") -> Response:
    values = {
        "hidden": sorted(page.hidden),
        "asked": request.form.get("revision", "") or number(request, "revision") or "",
        "reason": request.form.get("reason", "")[:REASON_CHARS_MAX],
    }
    return form_page(site, request, "hide.html", status=status, page_name=page.name, problem=problem, **values)
