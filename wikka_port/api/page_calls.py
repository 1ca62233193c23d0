"""Operations on one page: its text, its revisions, its name and its rights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from werkzeug.wrappers import Response

from wikka_port.accounts.factory import public_address
from wikka_port.accounts.sign_in_form import client_of
from wikka_port.antispam.judging import Verdict
from wikka_port.antispam.submissions import judged, note_accepted, words_refusal
from wikka_port.api.call import Call, Rejected, answer, missing, no_content
from wikka_port.api.preconditions import Precondition, precondition_in
from wikka_port.api.records import (
    Deleted,
    DeletedPage,
    ErasedRevision,
    Moved,
    NewName,
    NewRights,
    NewText,
    OfPage,
    OneRevision,
    PageRecord,
    RevisionRecord,
    Revisions,
    Rights,
    SomeRevisions,
    TextUnderReview,
    page_etag,
)
from wikka_port.drafts import FormDraft, complaint, draft_of
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.editing.suggestions import TooMany
from wikka_port.files.conditional import is_unmodified
from wikka_port.forms import take_edit
from wikka_port.handlers.deletion import BAD_REASON, SURE_TO_ERASE
from wikka_port.handlers.judgement import RETRY_S, keep_text, marked
from wikka_port.handlers.moves import BAD_NAME, begin_jobs
from wikka_port.handlers.saving import save_whole, settle
from wikka_port.moving.journal import Move
from wikka_port.moving.refusals import OtherRevision
from wikka_port.names import normalise
from wikka_port.page_languages import known
from wikka_port.page_rows import Page, StoredPage, is_revision
from wikka_port.refusals import name_refusal
from wikka_port.rights.acl import BadList
from wikka_port.rights.erasing import GuardedErasure
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import LISTED, NO_OWNERS, PUBLIC, Privilege
from wikka_port.rights.stored import RightsChanged
from wikka_port.site import Site
from wikka_port.texts import N_, _
from wikka_port.urls import site_path

_NO_PRECONDITION: Final = N_(
    "A change says what it begins from: If-Match with the ETag of what it changes, or If-None-Match: * for a new page."
)
_CHANGED: Final = N_("The page was changed meanwhile.")
_NO_PAGE: Final = N_("There is no page of this name.")


def existing_page(site: Site, name: str) -> Page:
    """Return a page.  Raises Rejected (404), NotAllowed."""
    page = site.wiki.page(name)
    if page is None:
        raise missing()
    return page


def read_page(call: Call) -> Response:
    given: OfPage = call.parameters
    page = existing_page(call.site, given.name)
    etag = page_etag(page)
    if is_unmodified(call.request.headers.get("If-None-Match", ""), etag):
        return no_content(304, etag)
    return answer(PageRecord.of(page), etag=etag)


# --- saving --------------------------------------------------------------------------------------


def precondition_of(call: Call, *, takes_new: bool) -> Precondition:
    """Return the request's precondition.  Raises Rejected (428)."""
    found = precondition_in(call.request.headers.get("If-Match"), call.request.headers.get("If-None-Match"))
    if found is None or (found.is_for_new and not takes_new):
        raise Rejected(428, _(_NO_PRECONDITION))
    return found


def _base_of(before: Precondition, page: Page | None) -> tuple[int, str]:
    """Return number and token of the revision that a change begins from; 0 for a new page.  Raises Rejected (412)."""
    if before.is_for_new:
        return 0, ""
    if page is None:
        raise Rejected(412, _(_NO_PAGE))
    named = (page.number, page.token) if before.is_for_any else before.revision
    if named is None:
        raise Rejected(412, _(_CHANGED), PageRecord.of(page))
    return named


def _stored(site: Site, name: str, before: Precondition) -> StoredPage:
    """Return the page, or the place of a new one; a page that is hidden is refused as one that is not there.

    Raises Rejected (412), and NotAllowed for a new page.
    """
    try:
        return site.wiki.stored_page(name)
    except NotAllowed:
        if before.is_for_new:
            raise
        raise Rejected(412, _(_NO_PAGE)) from None


def write_page(call: Call) -> Response:
    """Save a text; the same request sent twice saves once.  A text that the page has already makes no revision."""
    site, name = call.site, normalise(call.parameters.name)
    given: NewText = call.body
    before = precondition_of(call, takes_new=True)
    stored = _stored(site, name, before)
    base, token = _base_of(before, stored.page)
    draft = replace(
        draft_of({"body": given.text, "note": given.note}),
        base=base,
        base_token=token,
        markup=given.format or "",
        minor=given.minor,
        language=_language(given, stored.page),
        language_was=stored.page.language if stored.page else "",
    )
    refused = complaint(draft, site.config)
    if refused is not None:
        raise Rejected(422 if refused[0] == 400 else refused[0], refused[1])
    take_edit(call.site, call.request)
    former = stored.page.body if stored.page else ""
    site.wiki.access.require(name, Privilege.WRITE)
    new_name = "" if stored.page else name
    verdict = judged(site, call.request, "page", former, draft.body, draft.note, name=new_name, has_form=False)
    if verdict.action == "review":
        return _under_review(call, name, draft, stored.page, verdict)
    if verdict.action != "accept":
        raise Rejected(422, str(verdict))
    saved = save_whole(site, name, marked(site, draft, verdict), stored, was_stored=False)
    if saved is not None:
        note_accepted(site)
        settle(site, saved)
    page = existing_page(site, name)
    return answer(PageRecord.of(page), 201 if saved is not None and saved.number == 1 else 200, page_etag(page))


def _under_review(call: Call, name: str, draft: FormDraft, page: Page | None, verdict: Verdict) -> Response:
    """Keep an edit for an administrator, and say where its author sees what becomes of it; sent twice, it is one."""
    site = call.site
    same = hashlib.sha256(f"{name}\n{draft.base}\n{draft.base_token}\n{draft.body}".encode("utf-8", "replace"))
    draft = replace(draft, id=same.hexdigest()[:16])
    owner = owner_of_account(site.visitor.name or "")
    try:
        kept = keep_text(site, call.request, name, draft, page, verdict, owner=owner)
    except TooMany as many:
        raise Rejected(429, str(many), wait_s=RETRY_S) from None
    return review_answer(site, name, kept.id, verdict)


def review_answer(site: Site, name: str, review_id: str, verdict: Verdict) -> Response:
    place = public_address(site.config) + site_path("held", page=name, id=review_id)
    reasons = [str(one) for one in verdict.reasons]
    response = answer(TextUnderReview(page=name, id=review_id, url=place, reasons=reasons), 202)
    response.headers["Location"] = place
    return response


def _language(given: NewText, page: Page | None) -> str:
    """Return the language of a new text.  Raises Rejected (422) if the wiki does not know it."""
    if given.language is None:
        return page.language if page else ""
    if given.language and not known(given.language):
        raise Rejected(422, _("This wiki knows no language {code}.", code=given.language))
    return given.language


# --- moving --------------------------------------------------------------------------------------


def _require_current(call: Call, page: Page, before: Precondition) -> None:
    """Raise Rejected (412) if the page is not the one of the precondition."""
    named = _base_of(before, page)
    if not is_revision(page, *named):
        raise Rejected(412, _(_CHANGED), PageRecord.of(page))


def _newest_of(before: Precondition, page: Page) -> tuple[int, str] | None:
    """Return number and token of the revision to be moved, or None for whichever there is."""
    return None if before.is_for_any else (page.number, page.token)


def _unless_changed(call: Call, page: Page, move: Callable[[], Move]) -> Move:
    """Move a page.  Raises Rejected (412), with the page as it is, if it was saved since it was read."""
    try:
        return move()
    except OtherRevision as changed:
        raise Rejected(412, str(changed), PageRecord.of(existing_page(call.site, page.name))) from changed


def delete_page(call: Call) -> Response:
    """Delete a page; it can be brought back in a browser."""
    given: DeletedPage = call.parameters
    before = precondition_of(call, takes_new=False)
    page = existing_page(call.site, given.name)
    _require_current(call, page, before)
    take_edit(call.site, call.request)
    if why := words_refusal(call.site, call.request, given.reason):
        raise Rejected(422, _(BAD_REASON, why=why))
    newest = _newest_of(before, page)
    move = _unless_changed(call, page, lambda: call.site.wiki.moves.delete(page.name, given.reason, newest=newest))
    call.site.wiki.settle("", call.site.config.settle_s)
    return answer(Deleted(name=move.source))


def move_page(call: Call) -> Response:
    """Rename a page; with ``links`` and ``subpages`` a job of the caller does the rest after the answer."""
    site, given = call.site, call.body
    assert isinstance(given, NewName)
    before = precondition_of(call, takes_new=False)
    page, new = existing_page(site, call.parameters.name), normalise(given.to)
    _require_current(call, page, before)
    odd = name_refusal(site, new, leaving=page.name)
    if odd:
        raise Rejected(422, odd)
    take_edit(call.site, call.request)
    if why := words_refusal(site, call.request, given.reason, name=new, former_name=page.name):
        raise Rejected(422, _(BAD_NAME, why=why))
    newest = _newest_of(before, page)

    def rename() -> Move:
        return site.wiki.moves.rename(page.name, new, redirect=given.redirect, reason=given.reason, newest=newest)

    move = _unless_changed(call, page, rename)
    wanted = {"subpages" if given.subpages else "", "links" if given.links else ""} - {""}
    job = begin_jobs(site, wanted, move) if wanted else ""
    return answer(Moved(name=new, job=job or None))


# --- revisions -----------------------------------------------------------------------------------


def list_revisions(call: Call) -> Response:
    given: SomeRevisions = call.parameters
    existing_page(call.site, given.name)
    found = call.site.wiki.revisions(given.name, below=given.below, limit=given.limit + 1)
    kept, more = found[: given.limit], len(found) > given.limit
    records = [RevisionRecord.of(one) for one in kept]
    return answer(Revisions(revisions=records, next=kept[-1].number if more else None))


def read_revision(call: Call) -> Response:
    given: OneRevision = call.parameters
    existing_page(call.site, given.name)
    found = call.site.wiki.revision(given.name, given.number)
    if found is None or found.body is None:
        raise Rejected(404, _("The page has no revision of that number or time."))
    return answer(RevisionRecord.of(found))


def check_sure(call: Call, *, is_sure: bool) -> None:
    """Check that the caller administers the wiki and says that it is sure.  Raises NotAllowed, Rejected (409)."""
    call.site.wiki.moves.require_site()
    if not is_sure:
        raise Rejected(409, f"{_(SURE_TO_ERASE)} (sure=true)")


def erase_revision(call: Call) -> Response:
    """Erase a revision for good, for administrators; a second call changes nothing."""
    given: ErasedRevision = call.parameters
    page = existing_page(call.site, given.name)
    check_sure(call, is_sure=given.sure)
    take_edit(call.site, call.request)
    GuardedErasure(call.site.wiki.moves).erase_revision(page.name, given.number, reason=given.reason)
    call.site.wiki.settle("", call.site.config.settle_s)
    return no_content()


# --- rights --------------------------------------------------------------------------------------


def _rights_of(page: Page) -> Rights:
    lists = {one: page.rights.lists.get(one) for one in LISTED}
    return Rights(
        name=page.name,
        owner=page.rights.owner,
        read=lists[Privilege.READ],
        write=lists[Privilege.WRITE],
        comment_read=lists[Privilege.COMMENT_READ],
        comment_post=lists[Privilege.COMMENT_POST],
        etag=f'"{page.rights.revision.decode(errors="replace")}"',
    )


def read_rights(call: Call) -> Response:
    given: OfPage = call.parameters
    page = existing_page(call.site, given.name)
    call.site.wiki.access.require(given.name, Privilege.CHANGE_RIGHTS)
    rights = _rights_of(page)
    return answer(rights, etag=rights.etag)


def write_rights(call: Call) -> Response:
    """Set the page's own lists and its owner, whatever the caller loses by it."""
    site, given = call.site, call.body
    assert isinstance(given, NewRights)
    page = existing_page(site, call.parameters.name)
    site.wiki.access.require(page.name, Privilege.CHANGE_RIGHTS)
    before, now = precondition_of(call, takes_new=False), _rights_of(page)
    if not before.is_for_any and before.match != now.etag:
        raise Rejected(412, _("Somebody else changed the rights of this page meanwhile."))
    owner = given.owner
    if owner not in (*NO_OWNERS, PUBLIC, page.rights.owner) and not site.wiki.rights.users([owner]):
        raise Rejected(422, _("There is no user “{owner}”.", owner=owner))
    texts = {one: getattr(given, str(one)) for one in LISTED}
    lists = {one: text for one, text in texts.items() if text is not None}
    take_edit(call.site, call.request)
    try:
        rights = site.wiki.rights.change(page.name, page.rights, owner, lists)
    except BadList as bad:
        raise Rejected(422, str(bad)) from None
    except RightsChanged:
        raise Rejected(412, _("Somebody else changed the rights of this page meanwhile.")) from None
    by, network = site.visitor.name or "", client_of(call.request).network
    site.accounts.audit.note("rights", user=by, note=page.name, network=network)
    changed = _rights_of(replace(page, rights=rights))
    return answer(changed, etag=changed.etag)
