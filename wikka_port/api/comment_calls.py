"""Operations on the comments of a page."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Final

from werkzeug.wrappers import Response

from wikka_port.accounts.sign_in_form import client_of
from wikka_port.antispam.judging import Verdict
from wikka_port.antispam.submissions import judged, note_accepted
from wikka_port.api import records
from wikka_port.api.call import Call, Rejected, answer, no_content
from wikka_port.api.page_calls import existing_page, precondition_of, review_answer
from wikka_port.api.preconditions import Precondition
from wikka_port.api.records import CommentRecord, Comments, comment_etag
from wikka_port.comments.comment_rows import Comment
from wikka_port.comments.stored_comments import NewComment
from wikka_port.comments.threads import OLDEST
from wikka_port.drafts import draft_of
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.editing.suggestions import COMMENT, Review, Suggestion, TooMany
from wikka_port.handlers.comments import note_moderated, text_complaint
from wikka_port.handlers.judgement import RETRY_S
from wikka_port.handlers.review_decisions import packed_reasons
from wikka_port.page_rows import Page
from wikka_port.pages import StoreUnavailable
from wikka_port.rights.guarded_comments import GuardedComments
from wikka_port.site import wait_before_s
from wikka_port.texts import _

_ID_BYTES: Final = 16


def _comments(call: Call) -> tuple[Page, GuardedComments]:
    """Return a page and its comments.  Raises Rejected (404), NotAllowed."""
    page = existing_page(call.site, call.parameters.name)
    return page, call.site.wiki.comments_of(page)


def list_comments(call: Call) -> Response:
    given: records.SomeComments = call.parameters
    page, comments = _comments(call)
    part = comments.part(order=OLDEST, part=given.part)
    found = [CommentRecord.of(one, page.markup) for one in part.comments] if given.part <= part.parts else []
    return answer(Comments(comments=found, count=comments.head.count, parts=part.parts))


def _checked_text(typed: str, page: Page) -> str:
    """Return the text of a comment as it is stored.  Raises Rejected."""
    text = draft_of({"body": typed}).body
    refused = text_complaint(text, page.markup)
    if refused is not None:
        raise Rejected(422 if refused[0] == 400 else refused[0], refused[1])
    return text


def _judged(call: Call, former: str, text: str) -> Verdict:
    """Return antispam's judgement: accepted, or to wait for an administrator.

    Raises Rejected (422), with what to change.
    """
    verdict = judged(call.site, call.request, "comment", former, text, has_form=False)
    if verdict.action == "refuse":
        raise Rejected(422, str(verdict))
    return verdict


def _under_review(
    call: Call, page: Page, history: bytes, new: NewComment, verdict: Verdict, *, edit: int = 0
) -> Response:
    """Keep a comment, or the change of the comment ``edit``, for an administrator; one of the same form is kept once.

    Raises Rejected (429).
    """
    site = call.site
    review = Review(
        page=page.name,
        kind=COMMENT,
        reasons=packed_reasons(verdict),
        network=client_of(call.request).network,
        form=new.form,
        parent=new.parent,
        edit=edit,
        history=history.decode(),
    )
    sent = Suggestion(
        who=new.author,
        owner=owner_of_account(site.visitor.name or ""),
        signed=new.signed,
        time_ms=site.accounts.clock_ms(),
        base=new.before,
        markup=new.markup,
        text=new.text,
    )
    try:
        kept = site.wiki.reviews.add_for_review(sent, review)
    except TooMany as many:
        raise Rejected(429, str(many), wait_s=RETRY_S) from None
    return review_answer(site, page.name, kept.id, verdict)


def _take_comment(call: Call) -> None:
    """Count a comment of the caller, or a change of one.  Raises Rejected (429)."""
    wait_s = wait_before_s(call.site.pace.comments, call.site, call.request)
    if wait_s:
        said = _("These were many comments in a short time. The next one can come in {wait_s} s.", wait_s=wait_s)
        raise Rejected(429, said, wait_s=wait_s)


def add_comment(call: Call) -> Response:
    """Add a comment, once for each ``id``."""
    given: records.NewComment = call.body
    page, comments = _comments(call)
    comments.require_post()
    text = _checked_text(given.text, page)
    _take_comment(call)
    verdict = _judged(call, "", text)
    new = _new(call, page, text, given.id or secrets.token_hex(_ID_BYTES), given.answers or 0)
    if verdict.action == "review":
        return _under_review(call, page, comments.history, new, verdict)
    made = comments.add(new)
    note_accepted(call.site)
    call.site.wiki.settle("", call.site.config.settle_s)
    return answer(CommentRecord.of(made, page.markup), 201, comment_etag(made))


def _check_state(before: Precondition, comment: Comment) -> None:
    """Raise Rejected (412) if the comment is not in the state of the precondition."""
    if not before.is_for_any and before.match != comment_etag(comment):
        raise Rejected(412, _("The comment was changed meanwhile."))


def _new(call: Call, page: Page, text: str, form: str, parent: int = 0) -> NewComment:
    visitor = call.site.visitor
    return NewComment(
        text=text,
        author=visitor.signature,
        signed=visitor.signed,
        form=f"{visitor.signature} key {form}",
        markup=page.markup,
        parent=parent,
    )


def edit_comment(call: Call) -> Response:
    """Replace the text of the caller's own comment, for as long as its author may.

    A text that the comment has already changes nothing, whatever the precondition says: so the same request may be sent
    twice.
    """
    given: records.CommentText = call.body
    before = precondition_of(call, takes_new=False)
    page, comments = _comments(call)
    text, number, now_ms = _checked_text(given.text, page), call.parameters.number, call.site.accounts.clock_ms()
    comments.require_post()
    _take_comment(call)
    former = comments.require_edit(number, now_ms)
    if former.text == text:
        return answer(CommentRecord.of(former, page.markup), etag=comment_etag(former))
    _check_state(before, former)
    verdict = _judged(call, former.text, text)
    if verdict.action == "review":
        new = _new(call, page, text, f"{comments.history.decode()} {number}")
        return _under_review(call, page, comments.history, new, verdict, edit=number)
    comments.edit(number, text, now_ms, lambda comment: _check_state(before, comment))
    with suppress(StoreUnavailable):  # a former change that still waits is refused as the older one
        owner = owner_of_account(call.site.visitor.name or "")
        call.site.wiki.reviews.supersede_changes([owner], comments.history.decode(), number)
    page, comments = _comments(call)
    changed = comments.comment_at(number)
    return answer(CommentRecord.of(changed, page.markup), etag=comment_etag(changed))


def remove_comment(call: Call) -> Response:
    """Remove a comment; its answers stay, and a browser brings it back."""
    given: records.OneComment = call.parameters
    before = precondition_of(call, takes_new=False)
    _page, comments = _comments(call)
    _take_comment(call)
    removed = comments.remove(given.number, lambda comment: _check_state(before, comment))
    note_moderated(call.site, call.request, "delete comment", comments.page, removed)
    return no_content()
