"""The form of a page's rights: its lists in words and as text, its owner, and the rights of any user to be tried.

A stored list that the form does not change stays as it is, byte for byte, also with mistakes, which an import may have
brought; the form names them.  Before a change that takes a right from its author, or that ignores a typed list, the
form asks.  If the field "try as" has a new user, the form first shows that user's rights, since Enter in that field
presses "Save".  After any failure the form comes back as it was typed:

    400  a list with a mistake, or an unknown owner      409  somebody else changed the rights meanwhile
    403  the form was too old, or came from a different site      429  many edits in a short time
"""

from __future__ import annotations

import logging
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.forms import STALE_FORM, answer_form, form_page, is_genuine, take_edit
from wikka_port.handlers.editor_page import later
from wikka_port.pages import Page, StoreUnavailable
from wikka_port.refusals import missing_page
from wikka_port.rights.explaining import decisions, explained
from wikka_port.rights.judging import Guarded, group_names
from wikka_port.rights.proposal import (
    Proposal,
    complaint,
    complaints,
    kept_mistakes,
    losses,
    proposal_from,
    proposal_of,
)
from wikka_port.rights.rules import LISTED, NO_OWNERS, PUBLIC, PageRights, Privilege
from wikka_port.rights.stored import RightsChanged
from wikka_port.rights.words import TITLES, who_always
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _
from wikka_port.urls import page_url
from wikka_port.visitors import NOBODY, Visitor

log = logging.getLogger(__name__)

TYPED: Final = N_(
    "Nothing is saved yet. You typed a list for: {titles}. It counts only as a list of the page’s own, so that is "
    "chosen now: save again, or take the choice back."
)
TRIED_FIRST: Final = N_("Nothing is saved yet: this is what the lists would mean. Save again to make them count.")
CHANGED: Final = N_(
    "Somebody else changed the rights of this page meanwhile. Above is what counts now, below what you typed."
)
CLAIMED_AT_ONCE: Final = N_(
    "Somebody else changed the rights of this page at the same moment. Please look whether it is still free."
)


def handle_acls(site: Site, request: Request, name: str) -> Response:
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    site.wiki.access.require(name, Privilege.CHANGE_RIGHTS)
    counting = {
        one.privilege: one.access.text
        for one in explained(site.wiki.rights, page.name, page.rights, site.wiki.access.readable)
    }
    unchanged = proposal_from(page.rights, counting)
    if request.method == "POST":
        return _posted(site, request, page, proposal_of(request.form, unchanged))
    return _form(site, request, page, unchanged)


def _posted(site: Site, request: Request, page: Page, proposal: Proposal) -> Response:
    if not is_genuine(site, request):
        return _form(site, request, page, proposal, status=403, problem=_(STALE_FORM))
    typed = typed_lists(proposal)
    if typed and "try" not in request.form:
        return _form(site, request, page, proposal.with_typed_lists(), status=400, problem=typed)
    proposal = proposal.with_typed_lists()
    wrong = complaints(proposal)
    if wrong:
        return _form(site, request, page, proposal, status=400, problem=complaint(wrong), wrong=wrong)
    if "try" in request.form or proposal.tried_as not in ("", proposal.was_tried):
        notice = typed if "try" in request.form else _(TRIED_FIRST)
        return _form(site, request, page, proposal, tried=_tried(site, page, proposal), notice=notice)
    stranger = _stranger(site, page, proposal)
    if stranger:
        return _form(site, request, page, proposal, status=400, problem=stranger)
    lost = losses(site.visitor, _guarded(site, page, page.rights, proposal), proposal)
    if not lost.keys() <= proposal.confirmed:
        return _form(site, request, page, proposal, lost=lost)
    if proposal.revision.encode() != page.rights.revision:
        return _form(site, request, page, proposal.onto(page.rights.revision), status=409, problem=_(CHANGED))
    try:
        take_edit(site, request)
        site.wiki.rights.change(page.name, page.rights, proposal.owner, proposal.lists)
    except Refused as many:
        return later(_form(site, request, page, proposal, status=429, problem=str(many)), many.wait_s)
    except RightsChanged:
        current = site.wiki.page(page.name)  # raises NotAllowed if the author lost his right by that
        site.wiki.access.require(page.name, Privilege.CHANGE_RIGHTS)
        if current is None:
            return missing_page(site, page.name)
        return _form(site, request, current, proposal.onto(current.rights.revision), status=409, problem=_(CHANGED))
    _note_change(site, request, page.name)
    return redirect(page_url(page.name))


def typed_lists(proposal: Proposal) -> str:
    """Return a sentence on the lists that were typed but would not count, or "" if there are none."""
    if not proposal.ignored:
        return ""
    return _(TYPED, titles=", ".join(_(TITLES[one]) for one in LISTED if one in proposal.ignored))


def _note_change(site: Site, request: Request, name: str) -> None:
    """Note a change of rights in the audit; the change itself is on disk already."""
    by = site.visitor.name or ""
    try:
        site.accounts.audit.note("rights", user=by, note=name, network=client_of(request).network)
    except StoreUnavailable as away:
        log.warning("the change of rights of %s by %s is not in the audit: %s", name, by, away)


def _stranger(site: Site, page: Page, proposal: Proposal) -> str:
    """Return why the typed owner is refused, or "" if the page can have this owner."""
    owner = proposal.owner
    if owner in NO_OWNERS or owner in (PUBLIC, page.owner) or site.wiki.rights.users([owner]):
        return ""
    return _(
        "There is no user “{owner}”. The owner is a registered user, {public}, or nobody.", owner=owner, public=PUBLIC
    )


def _guarded(site: Site, page: Page, rights: PageRights, proposal: Proposal, visitor: Visitor | None = None) -> Guarded:
    """Return the page for a decision, with the groups of its present lists and of the proposed ones."""
    rules = site.wiki.rights.rules()
    proposed = PageRights(proposal.owner, proposal.lists, page.rights.revision)
    wanted = group_names(visitor or site.visitor, [(page.name, page.rights), (page.name, proposed)], rules)
    return Guarded(page.name, rights, True, rules, site.wiki.rights.members(wanted))


def _tried(site: Site, page: Page, proposal: Proposal) -> dict[str, Any]:
    """Return the meaning of the proposal for the user named in the form."""
    visitor, known = visitor_named(site, proposal.tried_as)
    proposed = PageRights(proposal.owner, proposal.lists, page.rights.revision)
    found = decisions(site.wiki.rights, visitor, Guarded(page.name, proposed, True, site.wiki.rights.rules()))
    titles = {**TITLES, Privilege.CHANGE_RIGHTS: N_("Change its rights")}
    return {
        "who": proposal.tried_as or _("A visitor who is not signed in"),
        "known": known,
        "decisions": [(_(titles[privilege]), decision) for privilege, decision in found.items()],
    }


def visitor_named(site: Site, name: str) -> tuple[Visitor, bool]:
    """Return the user of that name and True, or a newly registered user of the name and False if there is none."""
    if not name:
        return NOBODY, True
    account = site.accounts.directory.account(name)
    if account is None:
        return Visitor(name, name, "active", False, ""), False
    return Visitor(account.name, account.name, account.status, account.admin, ""), True


def _form(
    site: Site, request: Request, page: Page, proposal: Proposal, *, status: int = 200, problem: str = "", **values: Any
) -> Response:
    shown = {"lost": {}, "tried": None, "notice": "", **values}
    shown["wrong"] = {**kept_mistakes(proposal), **values.get("wrong", {})}
    return form_page(
        site,
        request,
        "acls.html",
        status=status,
        page_name=page.name,
        page=page,
        explained=explained(site.wiki.rights, page.name, page.rights, site.wiki.access.readable),
        always=who_always(page.owner),
        proposal=proposal,
        privileges=[(privilege, _(TITLES[privilege])) for privilege in LISTED],
        problem=problem,
        **shown,
    )


def handle_claim(site: Site, request: Request, name: str) -> Response:
    """Make the visitor the owner of a page without an owner.

    The form asks before, since an owner decides on the rights of other people.
    """
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    site.wiki.access.require(name, Privilege.CLAIM)

    def form(status: int, problem: str) -> Response:
        return form_page(site, request, "claim.html", status=status, page_name=page.name, problem=problem)

    def claim() -> Response:
        assert site.visitor.name is not None, "only who is signed in may claim"
        take_edit(site, request)
        try:
            site.wiki.rights.change(page.name, page.rights, site.visitor.name, page.rights.lists)
        except RightsChanged:
            raise Refused(_(CLAIMED_AT_ONCE), 409) from None
        _note_change(site, request, page.name)
        return redirect(page_url(page.name))

    return answer_form(site, request, form, claim)
