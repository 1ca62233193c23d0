"""An edit before its save: antispam accepts it, gives its form back, or keeps its text for an administrator."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.judging import Verdict
from wikka_port.antispam.submissions import author_of, judged
from wikka_port.drafts import FormDraft
from wikka_port.editing.edit_forms import owner_to_keep, owners_of, remember, with_id
from wikka_port.editing.suggestions import EDIT, Review, Suggestion, TooMany
from wikka_port.handlers.editor_page import edit_form, later
from wikka_port.handlers.review_decisions import packed_reasons
from wikka_port.handlers.saving import whole_edit
from wikka_port.page_rows import Page, StoredPage
from wikka_port.pages import StoreUnavailable
from wikka_port.refusals import name_refusal
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, redirect
from wikka_port.texts import _w
from wikka_port.urls import site_path

log = logging.getLogger(__name__)

RETRY_S = 3600  # if very many texts wait


@dataclass(frozen=True, slots=True)
class JudgedEdit:
    draft: FormDraft  # to be saved
    stored: StoredPage | None = None  # the page, if it was read
    answer: Response | None = None  # in the place of a save: the form, or the way to the text under review


def judged_edit(site: Site, request: Request, name: str, draft: FormDraft) -> JudgedEdit:
    """Judge an edit; for one that is accepted it costs a call of the store, and none for authors who are trusted.

    Raises NotAllowed, Refused, StoreUnavailable.
    """
    if author_of(site.visitor, site.accounts.clock_ms()).is_trusted:
        return JudgedEdit(draft)
    stored = site.wiki.stored_page(name)
    page = stored.page
    site.wiki.access.require(name, Privilege.WRITE)
    edit = whole_edit(site, name, draft, page)
    if page is not None and edit.body == page.body:
        return JudgedEdit(draft, stored)
    former, new_name = ("", name) if page is None else (page.body, "")
    verdict = judged(site, request, "page", former, edit.body, edit.note, name=new_name)
    if verdict.action == "refuse":
        return JudgedEdit(draft, stored, edit_form(site, request, name, draft, status=400, problem=str(verdict)))
    if verdict.action == "review":
        return JudgedEdit(draft, stored, _kept(site, request, name, edit, page, verdict))
    return JudgedEdit(marked(site, draft, verdict), stored)


def supersede(site: Site, request: Request, name: str, kind: str, form: str) -> None:
    """Note that a text was saved by a form of which a former text may wait.  A failure is only logged: it is saved."""
    try:
        if form:
            site.wiki.reviews.supersede(name, kind, owners_of(site, request), form)
    except StoreUnavailable as away:
        log.warning("a former text for %s, which its author has saved anew, still waits: %s", name, away)


def marked(site: Site, draft: FormDraft, verdict: Verdict) -> FormDraft:
    """Return an accepted edit as it is saved: its note says so if it is one of an author's first."""
    if not verdict.is_marked:
        return draft
    note = f"{_w('First edits')}: {draft.note}" if draft.note else _w("First edits")
    return replace(draft, note=note[: site.config.max_note_chars])


def _kept(site: Site, request: Request, name: str, edit: FormDraft, page: Page | None, verdict: Verdict) -> Response:
    """Keep an edit for review, and lead its author to it.  Raises Refused."""
    edit = with_id(edit)
    owner, cookie = owner_to_keep(site, request)
    try:
        kept = keep_text(site, request, name, edit, page, verdict, owner=owner)
    except TooMany as many:
        return later(edit_form(site, request, name, edit, status=429, problem=str(many)), RETRY_S)
    response = redirect(site_path("held", page=name, id=kept.id))
    remember(request, response, cookie)
    return response


def keep_text(
    site: Site,
    request: Request,
    name: str,
    edit: FormDraft,
    page: Page | None,
    verdict: Verdict,
    *,
    owner: str,
    kind: str = EDIT,
) -> Suggestion:
    """Keep an edit or a suggestion of the whole page for review; one of the same ``id`` is kept once.

    Raises Refused (a name that no new page can have), TooMany, StoreUnavailable.
    """
    refused = name_refusal(site, name) if page is None else ""
    if refused:
        raise Refused(refused, 400)
    sent = Suggestion(
        who=site.visitor.signature,
        owner=owner,
        signed=site.visitor.signed,
        time_ms=site.accounts.clock_ms(),
        base=edit.base,
        base_token=edit.base_token,
        markup=edit.markup or (page.markup if page else site.settings.markup),
        text=edit.body,
        note=edit.note,
    )
    review = Review(
        page=name,
        kind=kind,
        reasons=packed_reasons(verdict),
        network=client_of(request).network,
        language=edit.new_language,
        form=edit.id,
    )
    return site.wiki.reviews.add_for_review(sent, review)
