"""Handlers that delete pages, hide revisions, bring them back and purge them.

A deleted page can be brought back until it is purged.  A visitor who may see no deleted page of a name gets the same
answer as for a name that never had a page, so that the answer does not reveal one.
"""

from __future__ import annotations

from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.submissions import words_refusal
from wikka_port.forms import answer_form, form_page, reason_in, take_edit
from wikka_port.moving.journal import Deleted
from wikka_port.names import MAX_NAME_BYTES, normalise
from wikka_port.page_rows import Page
from wikka_port.refusals import missing_page, name_refusal
from wikka_port.rights.erasing import GuardedErasure
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, number, redirect
from wikka_port.texts import N_, _, _n
from wikka_port.urls import page_path

BAD_REASON: Final = N_("Change the reason. {why}")
SURE_TO_ERASE: Final = N_("Say that you are sure: what is erased cannot be brought back.")


def handle_delete(site: Site, request: Request, name: str) -> Response:
    """Ask on GET, delete on POST; a page that was saved since the form was shown stays, and the form says so."""
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    site.wiki.access.require(name, Privilege.DELETE)

    def form(status: int, problem: str) -> Response:
        now = page if request.method != "POST" else site.wiki.page(name) or page
        return _delete_form(site, request, now, status=status, problem=problem)

    def delete() -> Response:
        take_edit(site, request)
        if why := words_refusal(site, request, reason_in(request)):
            raise Refused(_(BAD_REASON, why=why), 400)
        site.wiki.moves.delete(name, reason_in(request), newest=_seen_in(request))
        site.wiki.settle("", site.config.settle_s)
        return redirect(page_path(name, "undelete"))

    return answer_form(site, request, form, delete)


def _seen_in(request: Request) -> tuple[int, str]:
    """Return number and token of the revision that the form was made for; a form that names none has (0, "")."""
    text, token = request.form.get("base", ""), request.form.get("base_token", "")
    return (int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0), token


def _delete_form(site: Site, request: Request, page: Page, *, status: int, problem: str) -> Response:
    """Return the form for the page as it is; if a refused one was made for another revision, it shows the newest."""
    base, token = _seen_in(request) if request.method == "POST" else (page.number, page.token)
    has_changed = (base, token) != (page.number, page.token)
    values = {
        "reason": reason_in(request),
        "linking": site.wiki.backlinks(page.name, limit=6),
        "page": page,
        "has_changed": has_changed,
        "since": base if has_changed and base and site.wiki.revision(page.name, base, token) is not None else 0,
    }
    return form_page(site, request, "delete.html", status=status, page_name=page.name, problem=problem, **values)


def handle_undelete(site: Site, request: Request, name: str) -> Response:
    """Answer GET with the deleted pages of the name; on POST bring one back or purge it."""
    site.wiki.access.require(name, Privilege.READ)
    found = site.wiki.moves.deleted(name)
    if not found:
        return missing_page(site, name)

    def form(status: int, problem: str) -> Response:
        return _trash_form(site, request, name, found, status=status, problem=problem)

    def undelete_or_purge() -> Response:
        row = request.form.get("row", "").encode("utf-8", "replace")
        one = next((one for one in found if one.row == row), None)
        if one is None:
            raise Refused(_("It is not there any more. Please look again."), 409)
        new = request.form.get("new", "").strip()
        is_renamed = bool(new) and normalise(new) != one.name
        take_edit(site, request)
        try:
            if "purge" in request.form:
                done = _purge(site, request, one, is_renamed=is_renamed)
                return _trash_form(site, request, name, [other for other in found if other.row != row], done=done)
            odd = _new_name_refusal(site, request, one, normalise(new)) if is_renamed else ""
            if odd:
                raise Refused(odd, 400)
            move = site.wiki.moves.undelete(one, new)
        except NotAllowed:
            raise Refused(_("You may not make a page of that name.")) from None
        site.wiki.settle("", site.config.settle_s)
        return redirect(page_path(move.target))

    return answer_form(site, request, form, undelete_or_purge)


def _new_name_refusal(site: Site, request: Request, one: Deleted, new: str) -> str:
    """Return why the deleted page cannot come back by the name ``new``, or "" if it can."""
    odd = name_refusal(site, new)
    why = "" if odd else words_refusal(site, request, name=new, former_name=one.name)
    return _("Give the page another name. {why}", why=why) if why else odd


def _purge(site: Site, request: Request, one: Deleted, *, is_renamed: bool) -> str:
    """Purge a deleted page; return a sentence that says so.  Raises Refused."""
    if is_renamed:
        problem = _("Nothing is purged: you typed a new name, with which a page is brought back. Press one of the two.")
        raise Refused(problem, 400)
    if request.form.get("sure") != "yes":
        raise Refused(_("Say that you are sure: what is purged cannot be brought back by anybody."), 400)
    return _n("{n} revision is gone for good.", "{n} revisions are gone for good.", site.wiki.moves.purge(one))


def _trash_form(
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


def handle_deleted(site: Site, request: Request, _name: str) -> Response:
    """List all deleted pages, for administrators."""
    site.wiki.moves.require_site()
    return site.html("deleted.html", found=site.wiki.moves.deleted())


def handle_hide(site: Site, request: Request, name: str) -> Response:
    """Answer GET with the hidden revisions (``?revision=N`` fills in N); on POST hide, show or erase one.

    Only for administrators.
    """
    site.wiki.moves.require_site()
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)

    def form(status: int, problem: str) -> Response:
        values = {
            "hidden": sorted(page.hidden),
            "asked": request.form.get("revision", "") or number(request, "revision") or "",
            "reason": reason_in(request),
            "is_sure": request.form.get("sure") == "yes",
        }
        return form_page(site, request, "hide.html", status=status, page_name=page.name, problem=problem, **values)

    def hide() -> Response:
        text = request.form.get("revision", "")
        wanted = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
        if "erase" in request.form:
            if request.form.get("sure") != "yes":
                raise Refused(_(SURE_TO_ERASE), 409)
            GuardedErasure(site.wiki.moves).erase_revision(name, wanted, reason=reason_in(request))
        else:
            site.wiki.moves.hide(name, wanted, hidden="show" not in request.form, reason=reason_in(request))
        site.wiki.settle("", site.config.settle_s)
        return redirect(page_path(name, "hide"))

    return answer_form(site, request, form, hide)
