"""The draft of an edit: kept, compared with the page, deleted.  ``docs/wiki-editor.md`` describes it for scripts.

    POST                a script keeps the form's content; the answer is JSON
    POST with keep      the form's button keeps its content; the answer is the form
    POST with discard   delete the draft; the answer redirects to the page's editor
    GET ?draft=id       show the draft beside the present page

An answer says that a draft is kept only after the store has answered.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Request, Response

from wikka_port.diffs import rows
from wikka_port.drafts import FormDraft, complaint, draft_of
from wikka_port.editing.edit_forms import form_of, owner_to_keep, owners_of, remember, whole
from wikka_port.editing.kept_drafts import KeptDraft, Other, is_id
from wikka_port.forms import form_json, form_page, is_genuine
from wikka_port.handlers.editor_page import KEPT, STALE, edit_form, later, other_person, unavailable_text
from wikka_port.pages import StoreUnavailable
from wikka_port.refusals import sentence
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, redirect, wait_before_s
from wikka_port.texts import N_, _
from wikka_port.urls import page_path

log = logging.getLogger(__name__)

TOO_LARGE = N_("The text is larger than the wiki takes.")
RETRY_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class _Kept:
    time_ms: int
    others: list[Other]
    cookie: str  # the value of the cookie that the browser gets; "": none


@dataclass(frozen=True, slots=True)
class _NotKept:
    status: int
    problem: str
    retry_s: int = 0
    fresh: bool = False  # whether a new token for the form helps


def handle_draft(site: Site, request: Request, name: str) -> Response:
    if request.method != "POST":
        return _compare(site, request, name)
    try:
        form = request.form
    except RequestEntityTooLarge:
        return form_json(site, request, {"error": _(TOO_LARGE)}, status=413, fresh=False)
    draft = draft_of(form)
    if "discard" in form:
        return _discard_draft(site, request, name, draft)
    outcome = _keep(site, request, name, draft)
    return (_by_button if "keep" in form else _by_script)(site, request, name, draft, outcome)


def _by_script(site: Site, request: Request, name: str, draft: FormDraft, outcome: _Kept | _NotKept) -> Response:
    if isinstance(outcome, _NotKept):
        retry = {"retry": outcome.retry_s} if outcome.retry_s else {}
        values = {"error": outcome.problem, **retry}
        response = form_json(site, request, values, status=outcome.status, fresh=outcome.fresh)
        return later(response, outcome.retry_s) if outcome.retry_s else response
    others = [{"name": one.name, "since": one.since_ms // 1000} for one in outcome.others]
    response = form_json(site, request, {"kept": outcome.time_ms // 1000, "others": others}, status=200, fresh=False)
    remember(request, response, outcome.cookie)
    return response


def _by_button(site: Site, request: Request, name: str, draft: FormDraft, outcome: _Kept | _NotKept) -> Response:
    if isinstance(outcome, _NotKept):
        sign_in = draft.signed_as if outcome.status == 401 else None
        status = 403 if outcome.status == 401 else outcome.status
        response = edit_form(site, request, name, draft, status=status, problem=outcome.problem, sign_in=sign_in)
        return later(response, outcome.retry_s) if outcome.retry_s else response
    response = redirect(page_path(name, "edit", draft=draft.id, minor="1" if draft.minor else ""))
    remember(request, response, outcome.cookie)
    return response


def _keep(site: Site, request: Request, name: str, draft: FormDraft) -> _Kept | _NotKept:
    changed = other_person(site, draft)
    if changed:
        return _NotKept(403 if site.visitor.name else 401, changed, fresh=True)
    if not is_genuine(site, request):
        return _NotKept(403, _(STALE), fresh=True)
    refused = complaint(draft, site.config)
    if refused is not None and refused[0] == 413:
        return _NotKept(*refused)
    if not draft.id:
        return _NotKept(400, _("This form keeps no drafts: please open the editor of the page anew."))
    wait_s = wait_before_s(site.pace.drafts, site, request)
    if wait_s:
        problem = _("Drafts came very often. The next one can be kept in {wait_s} s.", wait_s=wait_s)
        return _NotKept(429, problem, wait_s)
    try:
        return _kept(site, request, name, draft)
    except NotAllowed as not_allowed:
        return _NotKept(403, f"{sentence(site, not_allowed)} {_(KEPT)}")
    except StoreUnavailable as away:
        log.warning("a draft of %s was not kept: %s", name, away)
        return _NotKept(503, unavailable_text(away), RETRY_AFTER_S)


def _kept(site: Site, request: Request, name: str, draft: FormDraft) -> _Kept | _NotKept:
    """Keep the draft.  Raises NotAllowed, StoreUnavailable."""
    drafts = site.wiki.drafts(name)
    owner, cookie = owner_to_keep(site, request)
    if site.visitor.name is None and not drafts.is_kept(name, owner, draft.id):
        wait_s = wait_before_s(site.pace.new_drafts, site, request)
        if wait_s:
            problem = _("Many drafts were begun. This one can be kept in {wait_s} s.", wait_s=wait_s)
            return _NotKept(429, problem, wait_s)
    now = site.accounts.clock_ms()
    others = drafts.others(name, {owner, *owners_of(site, request)}, now)
    kept = KeptDraft(
        id=draft.id,
        owner=owner,
        who=site.visitor.signature,
        since_ms=now,
        time_ms=now,
        base=draft.base,
        base_token=draft.base_token,
        section=draft.section,
        text=draft.body,
        note=draft.note[: site.config.max_note_chars],
        markup=draft.written or draft.markup,
        language=draft.new_language,
    )
    return _Kept(drafts.keep(name, kept).time_ms, others, cookie)


def _discard_draft(site: Site, request: Request, name: str, draft: FormDraft) -> Response:
    if other_person(site, draft) or not is_genuine(site, request):
        return form_page(
            site,
            request,
            "error.html",
            status=403,
            title=_("Not thrown away"),
            message=other_person(site, draft) or _(STALE),
            back=page_path(name, "edit"),
        )
    drafts = site.wiki.drafts(name)
    for owner in owners_of(site, request) if draft.id else ():
        drafts.delete_draft(name, owner, draft.id)
    return redirect(page_path(name, "edit"))


def _compare(site: Site, request: Request, name: str) -> Response:
    page = site.wiki.page(name)
    site.wiki.access.require(name, Privilege.WRITE)
    wanted = request.args.get("draft", "")
    own = site.wiki.drafts(name).own(name, owners_of(site, request)) if is_id(wanted) else []
    kept = next((one for one in own if one.id == wanted), None)
    if kept is None or kept.text is None:
        message = _("There is no such draft: it was saved or thrown away, or it is another browser's.")
        back = page_path(name, "edit")
        return site.html("error.html", status=404, title=_("No draft"), message=message, back=back)
    edit = whole(site, name, form_of(kept), page)
    changed = rows(page.body if page else "", kept.text if edit is None else edit.body)
    return form_page(site, request, "draft.html", page_name=name, kept=kept, page=page, rows=changed)
