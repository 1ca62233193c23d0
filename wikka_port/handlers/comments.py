"""The comments of a page: shown, written, answered, changed and removed; without script.

    GET /Name/comments             a part of the comments (``order``, ``part``, ``after``, ``at``) and the form for one
        ?answer=N ?edit=N          the form for an answer, or with the text of one's own comment
        ?remove=N ?restore=N       the form that removes a comment, or brings it back
    POST preview                   the text as it would be shown
    POST send                      add the comment, or with ``edit`` change it
    POST signin                    the same after a sign-in by the fields beside the text
    POST remove, restore           the same for a whole comment

A refused form comes back with its text: 400 (empty), 403 (rights, or an expired or foreign form), 409 (the comment
that it answers is gone, the form has sent another text before, or too late), 413 (too long), 429 (too many), 503 (the
store is unavailable).
"""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.sign_in_form import client_of, enter
from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.submissions import guard_fields, judged, note_accepted
from wikka_port.comment_views import (
    CommentsView,
    comment_document,
    comment_html,
    comments_view,
    documents,
    is_expensive,
    links_of,
    order_address,
)
from wikka_port.comments.comment_rows import Comment
from wikka_port.comments.refusals import AlreadySent, CommentRefused, NoPageToComment, NoSuchComment, ParentGone
from wikka_port.comments.stored_comments import NewComment
from wikka_port.comments.threads import ORDERS, THREADED, Part
from wikka_port.drafts import draft_of, number_in
from wikka_port.editing.edit_forms import owner_to_keep, owners_of, remember
from wikka_port.editing.kept_drafts import ID_BYTES, is_id
from wikka_port.editing.suggestions import COMMENT, Review, Suggestion, TooMany
from wikka_port.forms import form_page, is_genuine
from wikka_port.handlers.editor_page import KEPT, SIGNED_IN, later, unavailable_text
from wikka_port.handlers.judgement import supersede
from wikka_port.handlers.review_decisions import packed_reasons
from wikka_port.limits import COMMENT_CHARS_MAX
from wikka_port.markup.bounds import over_bounds
from wikka_port.page_rows import Page
from wikka_port.pages import StoreUnavailable
from wikka_port.refusals import block_sentence, missing_page, sentence
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.rights.guarded_comments import GuardedComments, NotYours
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site, number, redirect, wait_before_s
from wikka_port.texts import N_, _, figure
from wikka_port.urls import page_path, site_path

log = logging.getLogger(__name__)

EMPTY: Final = N_("There is nothing to send yet: the comment is empty.")
STALE: Final = N_(
    "This form could not be checked: it was open for very long, or cookies are off. "
    "Your text is below: please look it over and send it again."
)
SIGNED_OUT: Final = N_(
    "You are not signed in any more. Your text is below: sign in beside it to send it under your name, or send it as "
    "{name}."
)
NOT_SIGNED: Final = N_(
    "Nothing is sent yet. You typed a password, but the button sends the text as {name}: sign in and send, or press it "
    "again."
)
TOO_MANY: Final = N_("These were many comments in a short time. Please wait {wait_s} s, then send it again.")
_TARGETS: Final = ("answer", "edit", "remove", "restore")
TOO_LONG: Final = N_("The comment is {size} characters long; {most} are the most.")


@dataclass(frozen=True, slots=True)
class CommentForm:
    """The fields of a form of a comment."""

    text: str = ""
    form: str = ""  # its id
    signed_as: str = ""
    before: int = 0  # the newest number when the form was made
    history: str = ""  # of the page for which the form was made
    answer: int = 0  # the comment that it answers
    edit: int = 0  # the comment that it changes
    remove: int = 0
    restore: int = 0

    @property
    def target(self) -> int:
        return self.edit or self.remove or self.restore or self.answer


def _form_of(request: Request) -> CommentForm:
    fields = request.form
    draft = draft_of(fields)  # the text and the name, cleaned as those of an edit
    return CommentForm(
        text=draft.body,
        form=fields["form"] if is_id(fields.get("form", "")) else "",
        signed_as=draft.signed_as,
        before=number_in(fields, "before"),
        history=fields.get("history", "")[:64],
        answer=number_in(fields, "answer"),
        edit=number_in(fields, "edit"),
        remove=number_in(fields, "remove"),
        restore=number_in(fields, "restore"),
    )


@dataclass(frozen=True, slots=True)
class _Answer:
    """A page with comments and a form, in the making."""

    site: Site
    request: Request
    page: Page
    comments: GuardedComments

    def page_with(
        self, form: CommentForm, *, status: int = 200, problem: str = "", preview: str | None = None
    ) -> Response:
        """Return the page with the form; if the comments cannot be read, with the form alone."""
        target: CommentsView | None = None
        view: CommentsView | None = None
        try:
            view = self._view()
            target = self._target(form)
        except StoreUnavailable:
            if not problem:
                raise
        except NoSuchComment as gone:
            if not problem:
                status, problem = 404, str(gone)
                form = replace(form, answer=0, edit=0, remove=0, restore=0)
        if form.target and target is None and not (form.text or problem):
            form = replace(form, answer=0, edit=0, remove=0, restore=0)
        values: dict[str, Any] = {
            "page_name": self.page.name,
            "page_language": self.page.language,
            "view": view,
            "target": target.comments[0] if target else None,
            "form": replace(
                form,
                form=form.form or secrets.token_hex(ID_BYTES),
                before=form.before if self.request.method == "POST" else self.comments.head.number,
                history=form.history or self.comments.history.decode(),
            ),
            "problem": problem,
            "preview": preview,
            "can_post": bool(form.text and problem) or view is None or view.can_post,
            **guard_fields(self.site, self.request),
            **_frame(self.site, self.request, self.page.name, form),
        }
        return form_page(self.site, self.request, "comments.html", status=status, **values)

    def _view(self) -> CommentsView:
        args = self.request.args
        part = self.comments.part(
            order=order_of(self.site, self.request) or self.site.visitor.settings.comments or THREADED,
            part=number(self.request, "part") or 1,
            after=args.get("after", ""),
            at=number(self.request, "at") or 0,
        )
        if is_expensive(part.comments):
            run_in_slow_lane(self.request.environ)
        parsed = documents(self.site, self.page, part.comments)
        names = links_of(parsed)
        existing = self.site.wiki.existing(names) if names else frozenset[str]()
        return comments_view(self.site, self.page, self.comments, part, parsed, existing)

    def _target(self, form: CommentForm) -> CommentsView | None:
        """Return the comment that the form is about.  Raises NoSuchComment."""
        if not form.target:
            return None
        one = self.comments.comment_at(form.target)
        parsed = documents(self.site, self.page, [one])
        part = Part([one], THREADED)
        existing = self.site.wiki.existing(links_of(parsed)) if links_of(parsed) else frozenset[str]()
        return comments_view(self.site, self.page, self.comments, part, parsed, existing)


def order_of(site: Site, request: Request, key: str = "order") -> str:
    """Return the order that the address names, or ""."""
    given = request.args.get(key, "")
    return given if given in ORDERS else ""


def handle_comments(site: Site, request: Request, name: str) -> Response:
    if request.method == "POST":
        return _posted(site, request, name)
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    answer = _Answer(site, request, page, site.wiki.comments_of(page, owners_of(site, request)))
    answers, edits, removes, restores = (number(request, one) or 0 for one in _TARGETS)
    form = CommentForm(answer=answers, edit=edits, remove=removes, restore=restores)
    block = answer.comments.block
    if block is not None:
        return answer.page_with(CommentForm(), problem=block_sentence(site, block))
    try:
        return answer.page_with(_requested(answer, form))
    except CommentRefused as refused:
        status = 404 if isinstance(refused, NoSuchComment) else 409
        return answer.page_with(CommentForm(), status=status, problem=str(refused))


def _requested(answer: _Answer, form: CommentForm) -> CommentForm:
    """Return the form that an address asks for, with the text of a comment that it changes.

    Raises CommentRefused if the visitor may not make the change, so that nobody types in vain.
    """
    comments = answer.comments
    if form.edit:
        return replace(form, text=comments.require_edit(form.edit, answer.site.accounts.clock_ms()).text)
    for target, may in ((form.remove, comments.can_remove), (form.restore, comments.can_restore)):
        if target and not may(comments.comment_at(target)):
            raise NotYours
    return form


def _posted(site: Site, request: Request, name: str) -> Response:
    form = _form_of(request)
    if "signin" in request.form and is_genuine(site, request):
        return _signed_in(site, request, name, form)
    return _received(site, request, name, form, _doubt(site, request, form))


def _signed_in(site: Site, request: Request, name: str, form: CommentForm) -> Response:
    """Handle a form with a sign-in beside the text: sign in and send; if that fails, return the form with its text."""
    run_in_slow_lane(request.environ)  # it hashes a password
    try:
        entered = enter(site, request)
    except Refused as refused:
        answer = _received(site, request, name, form, (refused.status, str(refused)))
        return later(answer, refused.wait_s) if refused.wait_s else answer
    except StoreUnavailable as away:
        return later(_form_alone(site, request, name, form, 503, unavailable_text(away)), 5)
    return entered.let_in(request, _received(entered.site, request, name, form, None))


def _received(site: Site, request: Request, name: str, form: CommentForm, doubt: tuple[int, str] | None) -> Response:
    try:
        page = site.wiki.page(name)
        if page is None:
            return _form_alone(site, request, name, form, 404, str(NoPageToComment(name)))
        answer = _Answer(site, request, page, site.wiki.comments_of(page, owners_of(site, request)))
    except NotAllowed as not_allowed:
        return _form_alone(site, request, name, form, 403, f"{sentence(site, not_allowed)} {_(KEPT)}")
    except StoreUnavailable as away:
        return later(_form_alone(site, request, name, form, 503, unavailable_text(away)), 5)
    refused = doubt or _complaint(site, form)
    if refused is not None:
        return answer.page_with(form, status=refused[0], problem=refused[1])
    if "preview" in request.form:
        return answer.page_with(form, preview=_preview(answer, form))
    wait_s = wait_before_s(site.pace.comments, site, request)
    if wait_s:
        return later(answer.page_with(form, status=429, problem=_(TOO_MANY, wait_s=wait_s)), wait_s)
    return _sent(answer, form)


def _sent(answer: _Answer, form: CommentForm) -> Response:
    try:
        if not (form.remove or form.restore):
            stopped = _stopped(answer, form)
            if stopped is not None:
                return stopped
        return _done(answer, form)
    except NotAllowed as not_allowed:
        problem = f"{sentence(answer.site, not_allowed)} {_(KEPT)}"
        return answer.page_with(form, status=403, problem=problem)
    except ParentGone as gone:
        return answer.page_with(replace(form, answer=0), status=409, problem=str(gone))
    except AlreadySent as sent:
        return answer.page_with(replace(form, form=""), status=409, problem=str(sent))
    except CommentRefused as refused:
        return answer.page_with(form, status=409, problem=str(refused))
    except StoreUnavailable as away:
        return later(answer.page_with(form, status=503, problem=unavailable_text(away)), 5)


def _stopped(answer: _Answer, form: CommentForm) -> Response | None:
    """Return the answer to a text that antispam does not accept, or None.  Raises NotAllowed, StoreUnavailable."""
    site, request = answer.site, answer.request
    answer.comments.require_post()
    former = ""  # of a page that was renamed since, whose comments nobody may read here: the commit judges the change
    if form.edit and not answer.comments.of_form(form.history.encode()).is_of_other_page:
        former = answer.comments.require_edit(form.edit, site.accounts.clock_ms()).text
    verdict = judged(site, request, "comment", former, form.text)
    if verdict.action == "accept":
        return None
    if verdict.action == "refuse":
        return answer.page_with(form, status=400, problem=str(verdict))
    owner, cookie = owner_to_keep(site, request)
    new = _new(answer, form, owner)
    review = Review(
        page=answer.page.name,
        kind=COMMENT,
        reasons=packed_reasons(verdict),
        network=client_of(request).network,
        form=new.form,
        parent=new.parent,
        edit=form.edit,
        history=form.history,
        browser=new.browser,
    )
    sent = Suggestion(
        who=new.author,
        owner=owner,
        signed=new.signed,
        time_ms=site.accounts.clock_ms(),
        base=form.before,
        markup=new.markup,
        text=form.text,
    )
    try:
        kept = site.wiki.reviews.add_for_review(sent, review)
    except TooMany as many:
        return later(answer.page_with(form, status=429, problem=str(many)), 3600)
    response = redirect(site_path("held", page=answer.page.name, id=kept.id))
    remember(request, response, cookie)
    return response


def _form_alone(site: Site, request: Request, name: str, form: CommentForm, status: int, problem: str) -> Response:
    """Return the form with its text and nothing of the page, which is not there or may not be read."""
    values: dict[str, Any] = {"view": None, "target": None, "preview": None, "can_post": True, "page_language": ""}
    values |= guard_fields(site, request)
    return form_page(
        site,
        request,
        "comments.html",
        status=status,
        page_name=name,
        form=form,
        problem=problem,
        **_frame(site, request, name, form),
        **values,
    )


def _frame(site: Site, request: Request, name: str, form: CommentForm) -> dict[str, Any]:
    """Return the values that the page has with and without comments.

    A sign-in stands beside the text that was typed while signed in, until somebody uses it.
    """
    fields = request.form if request.method == "POST" else {}
    offered = None if site.visitor.name else fields.get("user", form.signed_as or None)
    return {
        "most": COMMENT_CHARS_MAX,
        "order": order_of(site, request),
        "order_address": partial(order_address, page_path(name, "comments"), "order"),
        "sign_in": offered,
        "asked_unsigned": bool(fields.get("password")) and "signin" not in fields,
    }


def _doubt(site: Site, request: Request, form: CommentForm) -> tuple[int, str] | None:
    """Return why it is doubtful that the visitor sent the form, or None if it is not."""
    name = site.visitor.name or ""
    if form.signed_as != name:
        return 403, _(SIGNED_IN, name=name) if name else _(SIGNED_OUT, name=site.visitor.signature)
    if not is_genuine(site, request):
        return 403, _(STALE)
    if request.form.get("password") and not name and request.form.get("send") == "1":
        return 400, _(NOT_SIGNED, name=site.visitor.signature)
    return None


def _complaint(site: Site, form: CommentForm) -> tuple[int, str] | None:
    """Return why the form cannot be sent as it is, or None if it can."""
    return None if form.remove or form.restore else text_complaint(form.text, site.settings.markup)


def text_complaint(text: str, markup: str) -> tuple[int, str] | None:
    """Return a status and why the text cannot be a comment, or None if it can."""
    if not text.strip():
        return 400, _(EMPTY)
    if len(text) > COMMENT_CHARS_MAX:
        return 413, _(TOO_LONG, size=figure(len(text)), most=figure(COMMENT_CHARS_MAX))
    problem = over_bounds(text, markup=markup)
    return None if problem is None else (413, problem)


def _preview(answer: _Answer, form: CommentForm) -> str:
    site, page = answer.site, answer.page
    shown = Comment(0, 0, "", "", form.text, "", "", markup=page.markup)
    document = comment_document(site, page, shown)
    try:
        existing = site.wiki.existing(document.links) if document.links else frozenset[str]()
    except StoreUnavailable:
        existing = frozenset(document.links)
    return comment_html(site, page.name, document, existing, "preview")


def _done(answer: _Answer, form: CommentForm) -> Response:
    """Do what the form says, and lead to the comment."""
    site, comments, cookie = answer.site, answer.comments.of_form(form.history.encode()), ""
    place = form.target
    if form.remove:
        removed = comments.remove(form.remove)
        note_moderated(site, answer.request, "delete comment", comments.page, removed)
    elif form.restore:
        restored = comments.restore(form.restore)
        note_moderated(site, answer.request, "restore comment", comments.page, restored)
    elif form.edit:
        comments.edit(form.edit, form.text, site.accounts.clock_ms())
        with suppress(StoreUnavailable):  # a former change that still waits is refused as the older one
            site.wiki.reviews.supersede_changes(owners_of(site, answer.request), form.history, form.edit)
    else:
        owner, cookie = owner_to_keep(site, answer.request)
        new = _new(answer, form, owner)
        place = comments.add(new).number
        supersede(site, answer.request, comments.page, COMMENT, new.form)
        note_accepted(site)
    with suppress(StoreUnavailable):  # the comment is on disk
        site.wiki.settle("", site.config.settle_s)
    order = order_of(site, answer.request)
    response = redirect(f"{page_path(comments.page, 'comments', order=order, at=place)}#c{place}")
    remember(answer.request, response, cookie)
    return response


def note_moderated(site: Site, request: Request, what: str, page: str, comment: Comment | None) -> None:
    """Note in the audit that somebody else than its author has removed a comment, or brought it back; None: nobody has.

    A failure is only logged, since the change is on disk.
    """
    if comment is None:
        return
    by, place, network = site.visitor.signature, f"{page}#c{comment.number}", client_of(request).network
    try:
        site.accounts.audit.note(what, user=comment.author, by=by, note=place, network=network)
    except StoreUnavailable as away:
        log.warning("%s by %s (%s) is not in the audit: %s", what, by, place, away)


def _new(answer: _Answer, form: CommentForm, owner: str) -> NewComment:
    visitor = answer.site.visitor
    return NewComment(
        text=form.text,
        author=visitor.signature,
        signed=visitor.signed,
        form=f"{visitor.signature} {form.form or secrets.token_hex(ID_BYTES)}",
        markup=answer.page.markup,
        parent=form.answer,
        browser="" if visitor.name else owner,
        before=form.before,
    )
