"""The deleted pages of a name: brought back by who may, purged by administrators.

A visitor who may see none of them gets what a name without a page gets: nothing shows that there was one.
"""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.editing.new_names import refusal
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.show import missing
from wikka_port.moving.journal import Deleted
from wikka_port.moving.refusals import NotMoved
from wikka_port.names import MAX_NAME_BYTES, InvalidName, normalise
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, redirect
from wikka_port.texts import _, _n
from wikka_port.urls import page_path


def handle(site: Site, request: Request, name: str) -> Response:
    """GET lists them, POST brings one back or purges it."""
    site.wiki.require(name, Privilege.READ)
    found = site.wiki.moves.deleted(name)
    if not found:
        return missing(site, name)
    if request.method != "POST":
        return _form(site, request, name, found)
    if not is_genuine(site, request):
        return _form(site, request, name, found, status=403, problem=_(STALE_FORM))
    row = request.form.get("row", "").encode("utf-8", "replace")
    one = next((one for one in found if one.row == row), None)
    if one is None:
        return _form(site, request, name, found, status=409, problem=_("It is not there any more. Please look again."))
    new = request.form.get("new", "").strip()
    try:
        if "purge" in request.form:
            return _purged(site, request, name, found, one, new)
        odd = refusal(site, normalise(new)) if new and normalise(new) != one.name else ""
        if odd:
            return _form(site, request, name, found, status=400, problem=odd)
        move = site.wiki.moves.undelete(one, new)
    except InvalidName as invalid:
        return _form(site, request, name, found, status=400, problem=str(invalid))
    except NotAllowed:
        return _form(site, request, name, found, status=403, problem=_("You may not make a page of that name."))
    except NotMoved as refused:
        return _form(site, request, name, found, status=409, problem=str(refused))
    site.wiki.settle("", site.config.settle_s)
    return redirect(page_path(move.target))


def _purged(site: Site, request: Request, name: str, found: list[Deleted], one: Deleted, new: str) -> Response:
    if new and normalise(new) != one.name:
        problem = _("Nothing is purged: you typed a new name, with which a page is brought back. Press one of the two.")
        return _form(site, request, name, found, status=400, problem=problem)
    if request.form.get("sure") != "yes":
        problem = _("Say that you are sure: what is purged cannot be brought back by anybody.")
        return _form(site, request, name, found, status=400, problem=problem)
    count = site.wiki.moves.purge(one)
    left = [other for other in found if other.row != one.row]
    done = _n("{n} revision is gone for good.", "{n} revisions are gone for good.", count)
    return _form(site, request, name, left, done=done)


def _form(
    site: Site,
    request: Request,
    name: str,
    found: list[Deleted],
    *,
    status: int = 200,
    problem: str = "",
    done: str = "",
) -> Response:
    typed = request.form if problem else {}
    values = {
        "found": found,
        "problem": problem,
        "done": done,
        "page_name": name,
        "typed": {typed.get("row", "").encode("utf-8", "replace"): typed.get("new", "")[:MAX_NAME_BYTES]},
        "is_sure": typed.get("sure") == "yes",
    }
    return form_page(site, request, "undelete.html", status=status, **values)
