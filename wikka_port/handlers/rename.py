"""Renaming a page: the form says what goes along; links of others are rewritten after it, as edits of the visitor."""

from __future__ import annotations

import logging
from itertools import islice
from typing import Any

from werkzeug.wrappers import Request, Response

from wikka_port.editing.new_names import refusal
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.show import missing
from wikka_port.limits import JOB_PAGES_MAX, REASON_CHARS_MAX
from wikka_port.moving.jobs import LINKS, SUBPAGES, Jobs, new_job
from wikka_port.moving.journal import Move
from wikka_port.moving.mass import linking
from wikka_port.moving.refusals import NotMoved
from wikka_port.moving.runner import start
from wikka_port.names import MAX_NAME_BYTES, InvalidName, normalise
from wikka_port.pages import StoreUnavailable, clock_ms
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _
from wikka_port.urls import page_path, page_url, site_path

log = logging.getLogger(__name__)

NOT_ALONG = N_(
    "The page is {name} now. The store went away before its subpages were renamed, or links of other pages were led to "
    "the new name: rename it once more when the store is there, or change them by hand."
)


def handle(site: Site, request: Request, name: str) -> Response:
    """GET asks, POST does it."""
    page = site.wiki.page(name)
    if page is None:
        return missing(site, name)
    site.wiki.require(name, Privilege.RENAME)
    if request.method != "POST":
        return _form(site, request, name)
    if not is_genuine(site, request):
        return _form(site, request, name, status=403, problem=_(STALE_FORM))
    moves, form = site.wiki.moves, request.form
    try:
        new = normalise(form.get("new", ""))
        odd = refusal(site, new, leaving=page.name)
        if odd:
            return _form(site, request, name, status=400, problem=odd)
        leaves = "redirect" in form
        move = moves.rename(name, new, redirect=leaves, reason=form.get("reason", "")[:REASON_CHARS_MAX])
    except InvalidName as invalid:
        return _form(site, request, name, status=400, problem=str(invalid))
    except NotAllowed as refused:
        if refused.name == page.name:
            return _form(site, request, name, status=403, problem=_("You may not give this page that name."))
        return _form(site, request, name, status=403, problem=_("You may not make a page of that name."))
    except NotMoved as refused_:
        return _form(site, request, name, status=409, problem=str(refused_))
    try:
        last = _begin_jobs(site, request, move)
    except StoreUnavailable as away:
        if not {"subpages", "links"} & request.form.keys():
            return redirect(page_path(new))
        log.warning("the links to %s were not rewritten: %s", move.source, away)
        title, message = _("Renamed, and not all that goes along"), _(NOT_ALONG, name=move.target)
        return site.html("error.html", status=503, title=title, message=message, back=page_url(new))
    return redirect(site_path("moves", job=last) if last else page_path(new))


def _begin_jobs(site: Site, request: Request, move: Move) -> str:
    """Begin the work that was chosen; the page is moved already.  Id of the job to show, "": none.

    Raises StoreUnavailable.
    """
    wiki, visitor, old = site.wiki.moves.wiki, site.visitor, move.source
    given: dict[str, Any] = {"source": old, "target": move.target, "redirect": move.redirect, "history": move.history}
    jobs, last = Jobs(wiki.rows, clock_ms), b""
    wiki.settle("", site.config.settle_s)
    chosen = []
    if "subpages" in request.form:
        below = [one for one in wiki.names(prefix=f"{old}/", limit=JOB_PAGES_MAX) if one.startswith(f"{old}/")]
        chosen.append((SUBPAGES, below))
    if "links" in request.form:
        chosen.append((LINKS, [one for one in islice(linking(wiki, old), JOB_PAGES_MAX) if one != old]))
    for kind, found in chosen:
        names = sorted(site.wiki.listed(found))
        if names:
            job = new_job(kind, visitor.signature, "account", **given, along=last)
            jobs.begin(job, names)
            start(wiki, job)
            last = job.id
    return last.decode()


def _form(site: Site, request: Request, name: str, *, status: int = 200, problem: str = "") -> Response:
    given = request.form if request.method == "POST" else None
    values = {
        "new": given.get("new", "")[:MAX_NAME_BYTES] if given else name,
        "reason": given.get("reason", "")[:REASON_CHARS_MAX] if given else "",
        "leaves": given is None or "redirect" in given,
        "links": given is None or "links" in given,
        "subpages": given is not None and "subpages" in given,
        "below": site.wiki.names(prefix=f"{name}/", limit=5),
        "linking": site.wiki.backlinks(name, limit=6),
    }
    return form_page(site, request, "rename.html", status=status, page_name=name, problem=problem, **values)
