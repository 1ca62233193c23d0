"""Operations on the comments of a page."""

from __future__ import annotations

import secrets
from typing import Final

from werkzeug.wrappers import Response

from wikka_port.antispam.submissions import judged, note_accepted
from wikka_port.api import records
from wikka_port.api.call import Call, Rejected, answer, no_content
from wikka_port.api.page_calls import existing_page
from wikka_port.api.records import CommentRecord, Comments
from wikka_port.comments.stored_comments import NewComment
from wikka_port.comments.threads import OLDEST
from wikka_port.drafts import draft_of
from wikka_port.handlers.comments import text_complaint, wait_before_comment_s
from wikka_port.page_rows import Page
from wikka_port.rights.guarded_comments import GuardedComments
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


def _require_accepted(call: Call, former: str, text: str) -> None:
    """Raise Rejected (422), with what to change, if antispam does not accept the text."""
    verdict = judged(call.site, call.request, "comment", former, text, has_form=False)
    if verdict.action != "accept":
        raise Rejected(422, str(verdict))


def add_comment(call: Call) -> Response:
    """Add a comment, once for each ``id``."""
    given: records.NewComment = call.body
    page, comments = _comments(call)
    comments.require_post()
    text = _checked_text(given.text, page)
    wait_s = wait_before_comment_s(call.site, call.request)
    if wait_s:
        said = _("These were many comments in a short time. The next one can come in {wait_s} s.", wait_s=wait_s)
        raise Rejected(429, said, wait_s=wait_s)
    _require_accepted(call, "", text)
    visitor = call.site.visitor
    made = comments.add(
        NewComment(
            text=text,
            author=visitor.signature,
            signed=visitor.signed,
            form=f"{visitor.signature} key {given.id or secrets.token_hex(_ID_BYTES)}",
            markup=page.markup,
            parent=given.answers or 0,
        )
    )
    note_accepted(call.site)
    call.site.wiki.settle("", call.site.config.settle_s)
    return answer(CommentRecord.of(made, page.markup), 201)


def edit_comment(call: Call) -> Response:
    """Replace the text of the caller's own comment, for as long as its author may."""
    given: records.CommentText = call.body
    page, comments = _comments(call)
    text = _checked_text(given.text, page)
    _require_accepted(call, comments.comment_at(call.parameters.number).text, text)
    comments.edit(call.parameters.number, text, call.site.accounts.clock_ms())
    page, comments = _comments(call)
    return answer(CommentRecord.of(comments.comment_at(call.parameters.number), page.markup))


def remove_comment(call: Call) -> Response:
    """Remove a comment; its answers stay, and a browser brings it back."""
    given: records.OneComment = call.parameters
    _page, comments = _comments(call)
    comments.remove(given.number)
    return no_content()
