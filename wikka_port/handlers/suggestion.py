"""Suggested changes: readers who may not write a page suggest them, and writers of the page take or refuse them.

    GET                  a form with the text for readers; the pending suggestions for writers
    GET ?id=             a suggestion as a difference, for its author and for writers; a refused one for writers, its
                         author is led to it among the own texts (``review``)
    POST preview         show the text as the page would show it
    POST send            suggest the text
    POST take            save the suggestion as an edit of the writer who takes it, with its author's name in the
                         note; merged like other edits
    POST refuse          refuse the suggestion, with words to its author, whose text is kept (``Suggestions.refuse``);
                         its author withdraws it by the same button, and it is deleted

Words and ``take`` together decide nothing, as for texts under review.

Each request judges rights from the present page; ``take`` judges them again in the step that writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from werkzeug.wrappers import Request, Response

from wikka_port.antispam.judging import Verdict
from wikka_port.antispam.submissions import guard_fields, judged
from wikka_port.diffs import rows
from wikka_port.drafts import FormDraft, complaint, draft_of
from wikka_port.editing.edit_forms import owner_to_keep, owners_of, remember, with_id
from wikka_port.editing.suggestions import SUGGESTION, Suggestion, TooMany
from wikka_port.forms import form_page, is_genuine
from wikka_port.handlers.edit import submit
from wikka_port.handlers.editor_page import STALE, later, other_person, unavailable_text
from wikka_port.handlers.judgement import RETRY_S, keep_text, supersede
from wikka_port.handlers.review import WORDS_LEFT
from wikka_port.handlers.waiting_files import NOTHING_CHOSEN
from wikka_port.limits import ANTISPAM_ENTRY_CHARS, SUGGESTED_BY_ONE
from wikka_port.markup.bounds import is_expensive
from wikka_port.markup.formats import FORMATS
from wikka_port.page_rows import is_revision
from wikka_port.pages import Page, StoreUnavailable
from wikka_port.refusals import missing_page
from wikka_port.rendering import preview_html
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, redirect, wait_before_s
from wikka_port.texts import N_, _, _w
from wikka_port.urls import page_path, page_url, site_path

EMPTY = N_("The suggestion is the page as it is: please change the text first.")
OTHER_PAGE = N_(
    "This name has another page by now than the one that your text was made from. Your text is below: "
    "please compare it with the page, then send it again."
)


def handle_suggestion(site: Site, request: Request, name: str) -> Response:
    try:
        return _answer(site, request, name)
    except StoreUnavailable as away:
        if "send" not in request.form:
            raise
        return later(
            _form(site, request, name, None, draft_of(request.form), status=503, problem=unavailable_text(away)), 5
        )


def _answer(site: Site, request: Request, name: str) -> Response:
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    writer = site.wiki.access.can(name).write
    if request.method == "POST":
        if "send" in request.form:
            return _send(site, request, page)
        if "preview" in request.form:
            return _previewed(site, request, page)
        return _decided(site, request, page, writer)
    wanted = request.args.get("id", "")
    if wanted:
        found = _seen(site, request, page, wanted, writer)
        if found is None:
            return _refused_one(site, request, page, wanted, writer)
        return _suggestion_page(site, request, page, found, writer)
    if not writer:
        _require_to_suggest(site, name)
        return _form(site, request, name, page, _of_page(page), sent="sent" in request.args)
    return _listed(site, request, page)


def _of_page(page: Page) -> FormDraft:
    return FormDraft(page.body, base=page.number, base_token=page.token)


def _require_to_suggest(site: Site, name: str) -> None:
    """Raise NotAllowed if the visitor may write the page, or is blocked."""
    if not site.wiki.access.can(name).suggest:
        raise NotAllowed(name, Privilege.WRITE, site.wiki.access.decision(name, Privilege.WRITE))


def _previewed(site: Site, request: Request, page: Page) -> Response:
    draft = draft_of(request.form)
    if not is_genuine(site, request):
        return _form(site, request, page.name, page, draft, status=403, problem=_(STALE))
    _require_to_suggest(site, page.name)
    if is_expensive(draft.body, markup=page.markup):
        run_in_slow_lane(request.environ)
    preview = preview_html(site, page.name, draft.body, autolink=page.autolink, markup=page.markup, whole=True)
    return _form(site, request, page.name, page, draft, preview=preview)


def _send(site: Site, request: Request, page: Page) -> Response:
    draft = draft_of(request.form)
    problem = other_person(site, draft) or ("" if is_genuine(site, request) else _(STALE))
    if problem:
        return _form(site, request, page.name, page, draft, status=403, problem=problem)
    _require_to_suggest(site, page.name)
    refused = complaint(draft, site.config)
    if refused is not None:
        return _form(site, request, page.name, page, draft, status=refused[0], problem=refused[1])
    if draft.body == page.body:
        return _form(site, request, page.name, page, draft, status=400, problem=_(EMPTY))
    wait_s = wait_before_s(site.pace.edits, site, request)
    if wait_s > 0:
        problem = _("These were many edits in a short time. Please wait {wait_s} s, then send it again.", wait_s=wait_s)
        return later(_form(site, request, page.name, page, draft, status=429, problem=problem), wait_s)
    verdict = judged(site, request, "suggestion", page.body, draft.body, draft.note)
    if verdict.action == "refuse":
        return _form(site, request, page.name, page, draft, status=400, problem=str(verdict))
    is_newest = is_revision(page, draft.base, draft.base_token)
    began = page if is_newest else site.wiki.revision(page.name, draft.base, draft.base_token)
    if began is None:
        draft = replace(_of_page(page), body=draft.body, note=draft.note)
        return _form(site, request, page.name, page, draft, status=409, problem=_(OTHER_PAGE))
    owner, cookie = owner_to_keep(site, request)
    if verdict.action == "review":
        return _under_review(site, request, page, draft, verdict, owner, cookie)
    made = Suggestion(
        who=site.visitor.signature,
        owner=owner,
        signed=site.visitor.signed,
        time_ms=site.accounts.clock_ms(),
        base=began.number,
        base_token=began.token,
        markup=began.markup,
        text=draft.body,
        note=draft.note,
    )
    try:
        site.wiki.suggestions(page.name).add(page.name, made)
    except TooMany as too_many:
        return _form(site, request, page.name, page, draft, status=429, problem=str(too_many))
    supersede(site, request, page.name, SUGGESTION, draft.id)
    response = redirect(page_path(page.name, "suggestion", sent=1))
    remember(request, response, cookie)
    return response


def _under_review(
    site: Site, request: Request, page: Page, draft: FormDraft, verdict: Verdict, owner: str, cookie: str
) -> Response:
    """Keep a suggestion until an administrator has looked at it, and lead its author to it."""
    try:
        kept = keep_text(site, request, page.name, with_id(draft), page, verdict, owner=owner, kind=SUGGESTION)
    except TooMany as many:
        return later(_form(site, request, page.name, page, draft, status=429, problem=str(many)), RETRY_S)
    response = redirect(site_path("held", page=page.name, id=kept.id))
    remember(request, response, cookie)
    return response


def _seen(site: Site, request: Request, page: Page, wanted: str, writer: bool) -> Suggestion | None:
    """Return the suggestion to its author or to a writer of the page, else None."""
    found = site.wiki.suggestions(page.name).one(page.name, wanted)
    if found is None or not (writer or found.owner in owners_of(site, request)):
        return None
    return found


def _refused_one(site: Site, request: Request, page: Page, wanted: str, writer: bool) -> Response:
    """Return a suggestion that a writer has refused to the writers, and lead its author to the own texts."""
    found = site.wiki.reviews.reviewed(page.name, wanted)
    if found is None or not found.refused_by:
        return _gone(site, page.name)
    if writer:
        return _suggestion_page(site, request, page, found, writer)
    if found.owner in owners_of(site, request):
        return redirect(site_path("held", page=page.name, id=found.id))
    return _gone(site, page.name)


def _decided(site: Site, request: Request, page: Page, writer: bool) -> Response:
    found = _seen(site, request, page, request.form.get("id", ""), writer)
    if found is None:
        return _gone(site, page.name)
    draft = draft_of(request.form)
    problem = _doubt(site, request, draft)
    if problem:
        return _suggestion_page(site, request, page, found, writer, status=403, problem=problem)
    takes = "take" in request.form
    if takes == ("refuse" in request.form):
        return _suggestion_page(site, request, page, found, writer, status=400, problem=_(NOTHING_CHOSEN))
    kept = site.wiki.suggestions(page.name)
    if not takes:
        return _refused(site, request, page, found, writer)
    if _words(request):
        return _suggestion_page(site, request, page, found, writer, status=400, problem=_(WORDS_LEFT))
    site.wiki.access.require(page.name, Privilege.WRITE)
    note = _w("Suggested by {who}", who=found.who)
    note = (f"{note}: {found.note}" if found.note else note)[: site.config.max_note_chars]
    taken = FormDraft(
        found.text or "",
        note,
        signed_as=draft.signed_as,
        base=found.base,
        base_token=found.base_token,
        markup=found.markup,
    )
    response = submit(site, request, page.name, taken)
    if response.status_code == 303:
        kept.delete_suggestion(page.name, found.id)
    return response


def _refused(site: Site, request: Request, page: Page, found: Suggestion, writer: bool) -> Response:
    """Refuse a suggestion, or withdraw one's own."""
    kept = site.wiki.suggestions(page.name)
    if found.owner in owners_of(site, request):
        kept.delete_suggestion(page.name, found.id)
    elif not kept.refuse(page.name, found, site.visitor.signature, _words(request)):
        return _gone(site, page.name)
    return redirect(page_path(page.name, "suggestion") if writer else page_url(page.name))


def _words(request: Request) -> str:
    """Return the words to the author."""
    return request.form.get("said", "").strip()[:ANTISPAM_ENTRY_CHARS]


def _doubt(site: Site, request: Request, draft: FormDraft) -> str:
    """Return why the form of a decision is refused, or "" if it is accepted."""
    name = site.visitor.name or ""
    if draft.signed_as != name:
        return _("You are signed in as {name} by now.", name=name) if name else _("You are not signed in any more.")
    if is_genuine(site, request):
        return ""
    return _("This form could not be checked: it was open for very long, or cookies are off.")


def _gone(site: Site, name: str) -> Response:
    message = _("There is no such suggestion: it was taken or withdrawn, or it is 30 days old.")
    return site.html("error.html", status=404, title=_("No suggestion"), message=message, back=page_url(name))


def _suggestion_page(
    site: Site, request: Request, page: Page, found: Suggestion, writer: bool, *, status: int = 200, problem: str = ""
) -> Response:
    old, is_outdated = page.body, not is_revision(page, found.base, found.base_token)
    if is_outdated:
        began = site.wiki.revision(page.name, found.base, found.base_token)
        old = began.body or "" if began is not None else ""
    values: dict[str, Any] = {
        "one": found,
        "review": found.review,
        "writer": writer,
        "is_author": found.owner in owners_of(site, request),
        "problem": problem,
        "behind": is_outdated,
        "said": _words(request),
    }
    return form_page(
        site,
        request,
        "suggestion.html",
        status=status,
        page_name=page.name,
        rows=rows(old, found.text or ""),
        spoken=page.language,
        **values,
    )


def _listed(site: Site, request: Request, page: Page) -> Response:
    kept = site.wiki.suggestions(page.name)
    found, refused = kept.of(page.name), kept.refused_of(page.name)
    return form_page(site, request, "suggestions.html", page_name=page.name, suggestions=found, refused=refused)


def _form(
    site: Site,
    request: Request,
    name: str,
    page: Page | None,
    draft: FormDraft,
    *,
    status: int = 200,
    problem: str = "",
    sent: bool = False,
    preview: str | None = None,
) -> Response:
    """Return the form of a suggestion; ``page`` is None while the store is unavailable."""
    if page is not None:
        draft = replace(draft, written=page.markup)  # for the editor's script
    owners = owners_of(site, request)
    there = site.wiki.suggestions(name).of(name) if owners and page is not None else []
    own = [one for one in there if one.owner in owners]
    return form_page(
        site,
        request,
        "suggest.html",
        status=status,
        page_name=name,
        page_language=page.language if page is not None else None,
        draft=with_id(draft),
        problem=problem,
        preview=preview,
        own=own,
        most=SUGGESTED_BY_ONE,
        sent=sent,
        **guard_fields(site, request),
        format_name=_(FORMATS[page.markup] if page is not None else N_("the format of the page")),
    )
