"""Rights of the whole site and of prefixes of names, and the groups in its lists, for administrators.

    GET  /-/rights                  all lists of the site and of prefixes, in words
    GET  /-/rights?of=site          the form of the site's lists; ?prefix=Vault/ that of a prefix
    POST save                       store them; a list that is not ticked is removed
    POST try                        what they would mean, and for a user; nothing is stored
    POST remove                     the same without lists
    GET  /-/groups                  the groups that lists name, with their members

The form is that of a page's rights (``handlers.rights``), and ``wikka acl`` does the same.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.forms import answer_form, form_page
from wikka_port.handlers.rights import TRIED_FIRST, typed_lists, visitor_named
from wikka_port.rights.acl import BadList
from wikka_port.rights.explaining import decisions, explained, words_of
from wikka_port.rights.groups import all_groups
from wikka_port.rights.judging import Guarded
from wikka_port.rights.proposal import Proposal, complaint, complaints, kept_mistakes, proposal_from, proposal_of
from wikka_port.rights.rules import LISTED, NO_RIGHTS, PREFIX_CHARS_MAX, PageRights, Privilege, Rules
from wikka_port.rights.stored import RightsChanged
from wikka_port.rights.words import TITLES
from wikka_port.site import Site, redirect
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_, _
from wikka_port.urls import site_path

log = logging.getLogger(__name__)
SITE: Final = "site"
CHANGED: Final = N_(
    "Somebody else changed lists of the site or of prefixes meanwhile. Above is what counts now, below what you typed."
)
REMOVED_FIRST: Final = N_("Nothing is saved yet: this is what it would mean without these lists. Save to remove them.")
NO_PREFIX: Final = N_("Type the beginning of names, or choose the whole site.")


def handle_groups(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()
    found, more = all_groups(site.accounts.rows, site.wiki.rights)
    there = site.wiki.existing([one.name for one in found])
    return site.html("groups.html", found=found, there=there, more=more)


def handle_rights(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()
    given = request.form if request.method == "POST" else request.args
    prefix, is_site = given.get("prefix", "")[: PREFIX_CHARS_MAX + 1], given.get("of") == SITE
    if not prefix and not is_site:
        return _listed(site, _(NO_PREFIX) if request.method == "POST" else "")
    prefix = "" if is_site else prefix
    rules = site.wiki.rights.present_rules()
    unchanged = _proposal(rules, prefix)

    def form(status: int, problem: str) -> Response:
        typed = request.method == "POST"
        proposal = proposal_of(request.form, unchanged) if typed else unchanged
        return _form(site, request, prefix, rules, proposal, status=status, problem=problem)

    def change() -> Response:
        return _posted(site, request, prefix, rules, proposal_of(request.form, unchanged))

    return answer_form(site, request, form, change)


def _listed(site: Site, problem: str) -> Response:
    rules = site.wiki.rights.present_rules()
    found = []
    for prefix in rules.prefixes():
        lists = rules.lists_of(prefix)
        words = [(_(TITLES[one]), words_of(site.wiki.rights, text)) for one, text in lists.items()]
        found.append((prefix, words))
    status = 400 if problem else 200
    return site.html("rights_list.html", status=status, found=found, most=PREFIX_CHARS_MAX, problem=problem)


def _proposal(rules: Rules, prefix: str) -> Proposal:
    """Return the form as it is first shown: the lists of the prefix, and those that count in the place of others."""
    name = rules.folded_prefix(prefix)
    counting = {one: rules.list_for(name, one)[0].text for one in LISTED}
    return proposal_from(PageRights("", rules.lists_of(prefix), rules.revision), counting)


def _posted(site: Site, request: Request, prefix: str, rules: Rules, proposal: Proposal) -> Response:
    if "remove" in request.form:
        gone = Proposal("", proposal.texts, frozenset(), proposal.revision, proposal.tried_as, proposal.tried_as)
        return _form(site, request, prefix, rules, gone, after=_after(rules, prefix, {}), notice=_(REMOVED_FIRST))
    typed = typed_lists(proposal)
    if typed and "try" not in request.form:
        return _form(site, request, prefix, rules, proposal.with_typed_lists(), status=400, problem=typed)
    proposal = proposal.with_typed_lists()
    wrong = complaints(proposal)
    if wrong:
        return _form(site, request, prefix, rules, proposal, status=400, problem=complaint(wrong), wrong=wrong)
    if "try" in request.form or proposal.tried_as not in ("", proposal.was_tried):
        after = _after(rules, prefix, proposal.lists)
        return _form(site, request, prefix, rules, proposal, after=after, notice=typed or _(TRIED_FIRST))
    if proposal.revision.encode() != rules.revision:
        raise Refused(_(CHANGED), 409)
    try:
        lists = {one: proposal.lists.get(one) for one in LISTED}
        site.wiki.rights.change_rules(prefix, lists, rules)
    except BadList as bad:
        raise Refused(str(bad), 400) from None
    except RightsChanged:
        raise Refused(_(CHANGED), 409) from None
    _note_change(site, request, prefix)
    return redirect(site_path("rights"))


def _after(rules: Rules, prefix: str, lists: Mapping[Privilege, str]) -> Rules:
    return rules.with_lists(prefix, {one: lists.get(one) for one in LISTED})


def _note_change(site: Site, request: Request, prefix: str) -> None:
    by = site.visitor.signature
    try:
        network = client_of(request).network
        site.accounts.audit.note("rights", user="", by=by, note=prefix or "(site)", network=network)
    except StoreUnavailable as away:
        log.warning("the change of rights of names that begin with %r by %s is not in the audit: %s", prefix, by, away)


def _form(
    site: Site,
    request: Request,
    prefix: str,
    rules: Rules,
    proposal: Proposal,
    *,
    status: int = 200,
    problem: str = "",
    notice: str = "",
    wrong: Mapping[Privilege, str] | None = None,
    after: Rules | None = None,
) -> Response:
    name, stored = rules.folded_prefix(prefix), site.wiki.rights
    values: dict[str, Any] = {
        "prefix": prefix,
        "title": _("Rights of names that begin with “{prefix}”", prefix=prefix) if prefix else _("Rights of the site"),
        "proposal": proposal.onto(rules.revision) if status == 409 else proposal,
        "privileges": [(privilege, _(TITLES[privilege])) for privilege in LISTED],
        "wrong": {**kept_mistakes(proposal), **(wrong or {})},
        "explained": explained(stored, name, NO_RIGHTS, rules=rules),
        "would": [] if after is None else explained(stored, name, NO_RIGHTS, rules=after),
        "tried": None if after is None else _tried(site, name, after, proposal),
        "problem": problem,
        "notice": notice,
    }
    return form_page(site, request, "rights_form.html", status=status, **values)


def _tried(site: Site, name: str, after: Rules, proposal: Proposal) -> dict[str, Any]:
    visitor, known = visitor_named(site, proposal.tried_as)
    found = decisions(site.wiki.rights, visitor, Guarded(name, NO_RIGHTS, True, after))
    return {
        "who": proposal.tried_as or _("A visitor who is not signed in"),
        "known": known,
        "decisions": [(_(TITLES[privilege]), found[privilege]) for privilege in LISTED],
    }
