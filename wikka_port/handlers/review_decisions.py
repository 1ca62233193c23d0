"""Edits, comments and suggestions under review: kept when antispam has doubts, accepted or refused by an administrator.

An accepted edit is saved as its author's, merged with what was saved since.  The author's rights are judged again in
the step that saves: an author who was blocked meanwhile, or may not write the page any more, gets nothing saved.

``accept_review`` saves first and notes the decision then.  Between the two a crash leaves a text that still waits;
accepting it again finds the page as it is (or the comment of the same form), and changes nothing.  The decision counts
an edit or a comment of an account, as a save without a review does (``antispam.submissions``), so that its first edits
come to an end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from wikka_port.accounts.audit import note_network
from wikka_port.accounts.sessions import visitor_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.judging import Reason, Verdict
from wikka_port.antispam.submissions import note_accepted
from wikka_port.comments.comment_rows import Comment
from wikka_port.comments.refusals import AlreadySent, ChangedSince, CommentRefused
from wikka_port.comments.stored_comments import NewComment
from wikka_port.drafts import FormDraft
from wikka_port.editing.suggestions import (
    ACCEPTED,
    COMMENT,
    REFUSED,
    SUGGESTION,
    WAITING,
    Review,
    Suggestion,
    TooMany,
)
from wikka_port.handlers.saving import Unmerged, save_edit, settle
from wikka_port.handlers.waiting_files import adopt
from wikka_port.names import InvalidName
from wikka_port.next_revision import PageTooBig
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.texts import N_, _
from wikka_port.visitors import Visitor, unregistered

OVERLAPS: Final = N_("The page was changed in the same place since: put the text in by hand, or refuse it.")
NOT_HIS: Final = N_("{who} may not write this any more, so nothing was saved.")
DECIDED: Final = N_("Somebody has decided on it already.")
OTHER_TEXT: Final = N_("Its author has changed the text since, so nothing is decided yet.")


class NotAccepted(Exception):
    """Nothing was saved, and the text still waits; ``str()`` is a sentence for the administrator."""


def packed_reasons(verdict: Verdict) -> tuple[tuple[str, dict[str, str | int]], ...]:
    return tuple((one.code, dict(one.values)) for one in verdict.reasons)


def sentences(review: Review) -> list[str]:
    """Return the reasons as sentences in the reader's language."""
    return [str(Reason(code, values)) for code, values in review.reasons]


@dataclass(frozen=True, slots=True)
class Decided:
    one: Suggestion
    review: Review
    place: str  # the page's name, or of a comment its name and number as "Page#c17"


def accept_review(site: Site, one: Suggestion) -> Decided:
    """Save what waits as its author's.  Raises NotAccepted, StoreUnavailable.

    The caller has checked that the visitor administers the site.
    """
    review = _waiting(one)
    author = site.for_visitor(_author(site, one, review))
    try:
        place = _KINDS.get(review.kind, _edit)(author, one, review)
    except NotAllowed:
        raise NotAccepted(_(NOT_HIS, who=one.who)) from None
    except Unmerged:
        raise NotAccepted(_(OVERLAPS)) from None
    except (Refused, PageTooBig, InvalidName, CommentRefused, TooMany) as refused:
        raise NotAccepted(str(refused)) from None
    is_new = _note_decision(site, one, review)
    if is_new and review.kind != SUGGESTION and not review.edit:
        note_accepted(author)
    _note(site, "review accepted", one, review)
    return Decided(one, review, place)


def _note_decision(site: Site, one: Suggestion, review: Review) -> bool:
    """Note that what waited is saved, even if somebody has decided otherwise meanwhile.

    A text that its author has sent meanwhile waits on.  Returns False if somebody has accepted it meanwhile.
    """
    reviews = site.wiki.reviews
    if reviews.decide(one, ACCEPTED):
        return True
    now = reviews.reviewed(review.page, one.id)
    if now is not None and now.version != one.version:
        return True
    if now is None or now.review is None or now.review.state == ACCEPTED:
        return False
    return reviews.decide(now, ACCEPTED)


def refuse_review(site: Site, one: Suggestion, said: str = "", state: str = REFUSED) -> Decided:
    """Refuse what waits; its text stays readable for its author.  Raises NotAccepted, StoreUnavailable."""
    review = _waiting(one)
    if not site.wiki.reviews.decide(one, state, said):
        now = site.wiki.reviews.reviewed(review.page, one.id)
        raise NotAccepted(_(DECIDED) if now is None or now.version == one.version else _(OTHER_TEXT))
    if state == REFUSED:
        _note(site, "review refused", one, review)
    return Decided(one, review, review.page)


def _waiting(one: Suggestion) -> Review:
    review = one.review
    if review is None or review.state != WAITING:
        raise NotAccepted(_(DECIDED))
    return review


def _author(site: Site, one: Suggestion, review: Review) -> Visitor:
    """Return the author as a visitor with the rights that the account has now.

    The first address of a network stands for the author's, so that a block of the network counts.
    """
    address = review.network.partition("/")[0]
    if one.signed == "visitor":
        return replace(unregistered(""), signature=one.who, address=address)
    account = site.accounts.directory.account(one.who)
    if account is None or account.status == "deleted":
        raise NotAccepted(_(NOT_HIS, who=one.who))
    return replace(visitor_of(account, ""), by_key=one.signed == "key", address=address)


def _edit(author: Site, one: Suggestion, review: Review) -> str:
    draft = FormDraft(
        one.text or "",
        one.note,
        base=one.base,
        base_token=one.base_token,
        markup=one.markup,
        language=review.language,
    )
    owners = [one.owner] if one.base == 0 else []
    outcome = save_edit(author, review.page, draft, was_stored=False, owners=owners)
    if owners:
        adopt(author, review.page, owners)
    if outcome.saved is not None:
        if author.visitor.name is None and review.network:
            note_network(author.accounts.rows, review.page, outcome.saved.number, review.network)
        settle(author, outcome.saved)
    return review.page


def _comment(author: Site, one: Suggestion, review: Review) -> str:
    page = author.wiki.page(review.page)
    if page is None:
        raise NotAccepted(_("There is no page {page} any more that could have comments.", page=review.page))
    comments = author.wiki.comments_of(page, [review.browser]).of_form(review.history.encode())
    if review.edit:

        def check(comment: Comment) -> None:
            if comment.edited_ms > one.time_ms:
                raise ChangedSince

        comments.edit(review.edit, one.text or "", one.time_ms, check)  # in time if it was when it was sent
        author.wiki.settle("", author.config.settle_s)
        return f"{comments.page}#c{review.edit}"
    new = NewComment(
        text=one.text or "",
        author=one.who,
        signed=one.signed,
        form=review.form,
        markup=one.markup,
        parent=review.parent,
        browser=review.browser,
        before=one.base,
    )
    try:
        made = comments.add(new)
    except AlreadySent:  # the form had added another text before this one waited
        once = hashlib.sha256(new.text.encode("utf-8", "replace")).hexdigest()[:16]
        made = comments.add(replace(new, form=f"{review.form} {once}"))
    author.wiki.settle("", author.config.settle_s)
    return f"{comments.page}#c{made.number}"


def _suggestion(author: Site, one: Suggestion, review: Review) -> str:
    """Suggest the change to the writers of the page; a second attempt finds the first one's row.

    A text that its form has sent later is a suggestion of its own: a writer may be looking at the first one.
    """
    page = author.wiki.page(review.page)
    if page is None:
        raise NotAccepted(_("There is no page {page} any more.", page=review.page))
    if not (author.wiki.access.can(page.name).suggest or author.wiki.access.can(page.name).write):
        raise NotAccepted(_(NOT_HIS, who=one.who))
    once = hashlib.sha256(f"suggestion {one.id} {one.version}".encode()).hexdigest()[:16]
    author.wiki.suggestions(page.name).add(page.name, replace(one, id=once, packed_review=""))
    return page.name


_KINDS: Final[Mapping[str, Callable[[Site, Suggestion, Review], str]]] = {COMMENT: _comment, SUGGESTION: _suggestion}


def _note(site: Site, what: str, one: Suggestion, review: Review) -> None:
    by = site.visitor.signature
    site.accounts.audit.note(what, user=one.who, by=by, note=review.page, network=review.network)
