"""Edits and comments under review: administrators decide on them, and authors see what became of their own.

    GET /-/held                    what waits, for administrators; one's own texts, for everybody else
    GET /-/held?page=Name&id=ID    one of them as a difference, for its author and for administrators
    POST accept                    save it as its author's; with ``all``, everything of this author that waits
    POST refuse                    refuse it, with words to its author; ``all`` as above
    POST withdraw                  the author takes it back

Words and ``accept`` together decide nothing: Enter in the field of the words presses the first button, which accepts.
``seen`` names the text that the form was made for (``Suggestion.version``): the author may change what waits, and the
new one is shown before anybody decides on it.

The text stays readable for its author for 30 days, whatever was decided.  Everybody else gets the
answer of an address where nothing is.
"""

from __future__ import annotations

from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.signing_in import Refused
from wikka_port.comments.refusals import CommentRefused
from wikka_port.diffs import rows
from wikka_port.editing.edit_forms import owners_of
from wikka_port.editing.suggestions import COMMENT, WAITING, WITHDRAWN, Review, Suggestion
from wikka_port.forms import answer_form, form_page
from wikka_port.handlers.review_decisions import (
    OTHER_TEXT,
    NotAccepted,
    accept_review,
    refuse_review,
    sentences,
)
from wikka_port.handlers.waiting_files import NOTHING_CHOSEN
from wikka_port.limits import ANTISPAM_ENTRY_CHARS, REVIEWS_AT_ONCE
from wikka_port.names import InvalidName, normalise
from wikka_port.page_rows import Page, is_revision
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _, _n
from wikka_port.urls import page_path, site_path

LISTED: Final = 200
WORDS_LEFT: Final = N_(
    "Nothing is decided yet: you typed words, and its author gets them only if it is refused. Press “Refuse it”, or "
    "empty the field and accept it."
)


def handle_reviews(site: Site, request: Request, _name: str) -> Response:
    given = request.form if request.method == "POST" else request.args
    if not given.get("id"):
        if request.method == "POST" or site.visitor.administers:
            site.wiki.moves.require_site()
            return _listed(site, request)
        own = site.wiki.reviews.reviews_of(owners_of(site, request))
        shown = [(one, one.review, site_path("held", page=page_of(one), id=one.id)) for one in own]
        return site.html("held_own.html", found=shown)
    found = _found(site, request, given.get("page", ""), given["id"])
    if found is None:
        message = _("There is no such text: it was never here, or it is 30 days old.")
        return site.html("error.html", status=404, title=_("Nothing waits here"), message=message, back="")

    def form(status: int, problem: str) -> Response:
        return _one(site, request, found, status=status, problem=problem)

    return answer_form(site, request, form, lambda: _decided(site, request, found))


def _found(site: Site, request: Request, page: str, review_id: str) -> Suggestion | None:
    """Return the text under review for its author or an administrator, else None."""
    try:
        found = site.wiki.reviews.reviewed(normalise(page), review_id)
    except InvalidName:
        return None
    if found is None or not (site.visitor.administers or found.owner in owners_of(site, request)):
        return None
    return found


def _decided(site: Site, request: Request, found: Suggestion) -> Response:
    fields = request.form
    said, seen = fields.get("said", "")[:ANTISPAM_ENTRY_CHARS], fields.get("seen", "")
    if fields.get("as", "") != (site.visitor.name or ""):
        raise Refused(_("You are not the one any more for whom this form was made. Please look at it again."))
    try:
        if "withdraw" in fields and found.owner in owners_of(site, request):
            refuse_review(site, found, state=WITHDRAWN)
            return redirect(_place(found))
        site.wiki.moves.require_site()
        accepts = "accept" in fields
        if accepts == ("refuse" in fields):
            raise Refused(_(NOTHING_CHOSEN), 400)
        if accepts and said.strip():
            raise Refused(_(WORDS_LEFT), 400)
        if seen != found.version:
            raise NotAccepted(_(OTHER_TEXT))
        if "all" in fields:
            return _of_author(site, request, found, said, accepts=accepts)
        _decide(site, found, said, accepts=accepts)
    except NotAccepted as refused:
        raise Refused(str(refused), 409) from None
    return redirect(site_path("held"))


def page_of(one: Suggestion) -> str:
    review = one.review
    assert review is not None, "it is under review"
    return review.page


def _place(one: Suggestion) -> str:
    return site_path("held", page=page_of(one), id=one.id)


def _of_author(site: Site, request: Request, found: Suggestion, said: str, *, accepts: bool) -> Response:
    """Decide on everything that waits of the author, or of a visitor's network, REVIEWS_AT_ONCE at most."""
    of = [one for one in site.wiki.reviews.waiting() if is_of_same(one, found)][:REVIEWS_AT_ONCE]
    problems = []
    for one in of:
        review = one.review
        whole = site.wiki.reviews.reviewed(review.page, one.id) if review is not None else None
        try:
            if whole is not None:
                _decide(site, whole, said, accepts=accepts)
        except NotAccepted as refused:
            problems.append(f"{'' if review is None else review.page}: {refused}")
    n = len(of) - len(problems)
    accepted = _n("{n} text is accepted.", "{n} texts are accepted.", n) if accepts else ""
    done = accepted or _n("{n} text is refused.", "{n} texts are refused.", n)
    return _listed(site, request, done=done, problem=" ".join(problems[:3]))


def _decide(site: Site, one: Suggestion, said: str, *, accepts: bool) -> None:
    """Accept or refuse a text, with the words ``said`` to its author.  Raises NotAccepted, StoreUnavailable."""
    if accepts:
        accept_review(site, one)
    else:
        refuse_review(site, one, said)


def is_of_same(one: Suggestion, other: Suggestion) -> bool:
    """Return whether two texts are of one account, or of visitors of one network."""
    first, second = one.review, other.review
    if first is None or second is None or (one.signed == "visitor") != (other.signed == "visitor"):
        return False
    if one.signed != "visitor":
        return one.who == other.who
    return first.network == second.network if first.network else one.owner == other.owner


def _listed(site: Site, request: Request, *, done: str = "", problem: str = "") -> Response:
    waiting = site.wiki.reviews.waiting()
    found = [{"one": one, "review": one.review, "reasons": _reasons(one.review)} for one in waiting[:LISTED]]
    more = max(0, len(waiting) - LISTED)
    return form_page(site, request, "held.html", found=found, more=more, done=done, problem=problem)


def _reasons(review: Review | None) -> list[str]:
    return [] if review is None else sentences(review)


def _one(site: Site, request: Request, one: Suggestion, *, status: int, problem: str) -> Response:
    review = one.review
    assert review is not None, "it is under review"
    old, is_outdated, spoken = _former(site, one, review)
    values: dict[str, Any] = {
        "one": one,
        "review": review,
        "kind": review.kind,
        "reasons": sentences(review),
        "rows": rows(old, one.text or ""),
        "spoken": spoken,
        "outdated": is_outdated,
        "decides": site.visitor.administers,
        "is_author": one.owner in owners_of(site, request),
        "beside": [(other, _place(other)) for other in _beside(site, one, review)],
        "of_page": page_path(review.page),
        "problem": problem,
        "said": request.form.get("said", "")[:ANTISPAM_ENTRY_CHARS],
        "for_all": "all" in request.form,
    }
    return form_page(site, request, "held_text.html", status=status, **values)


def _beside(site: Site, one: Suggestion, review: Review) -> list[Suggestion]:
    return site.wiki.reviews.waiting_beside(one) if review.state == WAITING else []


def _former(site: Site, one: Suggestion, review: Review) -> tuple[str, bool, str | None]:
    """Return the text that an edit began from, whether the page has changed since, and the language of both texts.

    Without the right to read the page the text is "", and the language is None unless the author has chosen one.
    """
    try:
        page = site.wiki.page(review.page)
        spoken = review.language or (page.language if page is not None else "")
        if review.kind == COMMENT:
            return _former_comment(site, page, review), False, spoken
        if page is None or not one.base:
            return "", page is not None, spoken
        if is_revision(page, one.base, one.base_token):
            return page.body, False, spoken
        began = site.wiki.revision(review.page, one.base, one.base_token)
    except NotAllowed:
        return "", False, review.language or None
    return ("" if began is None else began.body or ""), True, spoken


def _former_comment(site: Site, page: Page | None, review: Review) -> str:
    """Return the present text of the comment that a change is about, "" of a new one.  Raises NotAllowed.

    ``review.history`` came with a form: a key that is not the page's names the comments of a page that nobody judged.
    """
    if page is None or not review.edit:
        return ""
    comments = site.wiki.comments_of(page, [review.browser])
    if comments.history != review.history.encode():
        return ""
    try:
        return comments.comment_at(review.edit).text
    except CommentRefused:
        return ""
