"""Submissions of requests: who sends what with which form, as the judge sees it, and what follows from its verdict.

    verdict = judged(site, request, "page", old, new, note)     before the save; counts a text that others add, too
    words_refusal(site, request, note, alt)                     words that have no text: of a file, a revert, a rename
    note_accepted(site)                                         after the save, of an account that is not trusted yet

A new name, of a page that is made or renamed or of a file, is judged with either.

An account's edits are counted in its row, up to TRUSTED_EDITS.  Two saves at once may count as one.

A request without a form (the API) is judged by its text alone.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from urllib.parse import urlsplit

from werkzeug.wrappers import Request

from wikka_port.accounts.tables import EDITS, NAME, USERS, user_row
from wikka_port.antispam.additions import host_of
from wikka_port.antispam.judging import (
    ACCEPTED,
    FIRST,
    TRUSTED_EDITS,
    Author,
    FormTrace,
    Kind,
    Submission,
    Verdict,
    judge,
)
from wikka_port.antispam.stored_policy import read_policy
from wikka_port.forms import form_age_s
from wikka_port.limits import SAME_TEXT_CHARS_MIN
from wikka_port.site import Site
from wikka_port.store import StoreUnavailable
from wikka_port.visitors import Visitor

log = logging.getLogger(__name__)
TRAP = "homepage"  # the field that people do not see
_ANSWER = "answer_question"


def author_of(visitor: Visitor, now_ms: int) -> Author:
    if not visitor.is_active:
        return Author()
    return Author(
        has_account=True,
        administers=visitor.admin,
        age_s=(now_ms - visitor.account_ms) / 1_000,
        edits=visitor.edits,
    )


def judged(
    site: Site,
    request: Request,
    kind: Kind,
    old: str,
    new: str,
    note: str = "",
    *,
    name: str = "",
    has_form: bool = True,
) -> Verdict:
    """Return the judgement on what a request sends; ``name`` is that of a new page.  Raises StoreUnavailable."""
    author = author_of(site.visitor, site.accounts.clock_ms())
    if author.is_trusted:
        return ACCEPTED
    submission = Submission(
        kind,
        old,
        new,
        author,
        note,
        form=_trace(site, request) if has_form else None,
        own_hosts=_own_hosts(site, request),
        name=name,
    )
    policy = read_policy(site.accounts.rows).policy
    verdict = judge(submission, policy)
    if verdict.action == "accept" and _is_repeated(site, submission):
        verdict = judge(replace(submission, is_repeated=True), policy)
    return verdict


def _trace(site: Site, request: Request) -> FormTrace:
    form = request.form
    return FormTrace(form_age_s(site, request), form.get(TRAP, ""), form.get(_ANSWER, ""))


def _own_hosts(site: Site, request: Request) -> frozenset[str]:
    return frozenset({host_of(site.config.public_url), urlsplit(request.host_url).hostname or ""} - {""})


def _is_repeated(site: Site, submission: Submission) -> bool:
    """Count what a submission adds to the text; return whether that was added several times before."""
    text = " ".join(submission.words_of_text)
    if len(text) < SAME_TEXT_CHARS_MIN:
        return False
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return site.pace.same_text.wait_s(digest) > 0


def words_refusal(
    site: Site, request: Request, *words: str, name: str = "", former_name: str = "", is_account: bool = False
) -> str:
    """Return why words beside a change are refused, such as the note of a file, or "" if they are not.

    ``name`` is a new one, of a file, an account, or a page that was called ``former_name``.  Words have no text with
    which they could wait for an administrator, so what would have to wait is refused; an author whose first edits wait
    may write them.  Costs a call of the store for words of who is not trusted yet.
    """
    author = author_of(site.visitor, site.accounts.clock_ms())
    text = "\n".join(filter(None, map(str.strip, words)))
    if not (text or name) or author.is_trusted:
        return ""
    hosts = _own_hosts(site, request)
    given = Submission("comment", "", "", author, text, own_hosts=hosts, name=name, former_name=former_name)
    submission = replace(given, is_account=is_account)
    verdict = judge(submission, read_policy(site.accounts.rows).policy)
    return " ".join(str(one) for one in verdict.reasons if one.code != FIRST)


def note_accepted(site: Site) -> None:
    """Count an accepted edit of an account.  A failure is only logged, since the edit is on disk."""
    visitor = site.visitor
    if visitor.name is None or visitor.edits >= TRUSTED_EDITS:
        return
    row, name = user_row(visitor.name), visitor.name.encode()
    try:
        site.accounts.rows.change(USERS, row, {NAME: name}, {EDITS: b"%d" % (visitor.edits + 1)})
    except StoreUnavailable as away:
        log.warning("an edit of %s was not counted: %s", visitor.name, away)


def guard_fields(site: Site, request: Request) -> dict[str, str]:
    """Return the values of the template ``guard_fields.html``."""
    return {
        "question": _question_for(site),
        "answer": request.form.get(_ANSWER, "") if request.method == "POST" else "",
    }


def _question_for(site: Site) -> str:
    """Return the site's question if the visitor has to answer it, else ""; "" while the store is unavailable."""
    if site.visitor.name is not None:
        return ""
    try:
        return read_policy(site.accounts.rows).policy.question
    except StoreUnavailable:
        return ""
