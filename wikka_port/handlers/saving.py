"""A save of the editor: the checks before it, the save with merging, and the steps after it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from werkzeug.wrappers import Request

from wikka_port.accounts.audit import note_network
from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.drafts import FormDraft, complaint
from wikka_port.editing.edit_forms import owners_of, whole
from wikka_port.markup.bounds import REMEDY, over_bounds
from wikka_port.markup.sections import unified
from wikka_port.merges import merged
from wikka_port.page_languages import known
from wikka_port.page_rows import is_revision
from wikka_port.pages import Conflict, Page, Saved, StoredPage, StoreUnavailable
from wikka_port.refusals import name_refusal
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.texts import N_, _

log = logging.getLogger(__name__)

MERGES_MAX: Final = 4  # attempts to merge an edit while others save
NO_SECTION: Final = N_(
    "The page has no such section any more, so its text has no place to go to. It is below: copy it, "
    "and put it into the page by its editor."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    saved: Saved | None  # None: the page has this text already, perhaps from a save whose answer was lost
    merged: str = ""  # "3.5": an edit of revision 3 was merged with others and is revision 5


class Unmerged(Exception):
    """Somebody else changed the same place meanwhile; nothing was written."""

    def __init__(self, draft: FormDraft, current: Page | None) -> None:
        super().__init__(f"an edit of revision {draft.base} has to be merged by hand")
        self.draft = draft  # of the whole page, after the merges that succeeded
        self.current = current  # None: there is no such page (any more)


def save_edit(
    site: Site,
    name: str,
    draft: FormDraft,
    *,
    was_stored: bool,
    stored: StoredPage | None = None,
    owners: Collection[str] = (),
) -> Outcome:
    """Save an edit, merged with later saves of others that changed different places.

    ``owners`` are those whose files the page gets afterwards.  ``stored`` is the page, if the caller has just read it.
    ``was_stored`` marks the text of an older revision, which is never merged.  Raises Unmerged, Refused, and the
    exceptions of ``GuardedWiki.save``.
    """
    stored = stored or site.wiki.stored_page(name)
    edit = whole_edit(site, name, draft, stored.page)
    began = edit.base
    for attempt in range(MERGES_MAX):
        try:
            stored = site.wiki.stored_page(name) if attempt else stored
            saved = save_whole(site, name, edit, stored, was_stored=was_stored, owners=owners)
        except Conflict as conflict:
            both = None if was_stored else _both(site, name, edit, conflict.current)
            if both is None:
                site.counters.edit_done("conflict")
                raise Unmerged(edit, conflict.current) from conflict
            edit = both
        else:
            is_merged = saved is not None and edit.base != began
            site.counters.edit_done("unchanged" if saved is None else "merged" if is_merged else "saved")
            return Outcome(saved, f"{began}.{saved.number}" if saved is not None and is_merged else "")
    site.counters.edit_done("conflict")
    raise Unmerged(edit, site.wiki.page(name))


def whole_edit(site: Site, name: str, draft: FormDraft, page: Page | None) -> FormDraft:
    """Return the draft of the whole page that the draft of a section stands for.  Raises Refused."""
    if not draft.section:
        return draft
    edit = whole(site, name, draft, page)
    if edit is None:
        raise Refused(_(NO_SECTION), 409)
    refused = complaint(edit, site.config)
    if refused is not None:
        raise Refused(refused[1], refused[0])
    return edit


def _both(site: Site, name: str, edit: FormDraft, current: Page | None) -> FormDraft | None:
    """Return the edit merged with the present page, or None if a person has to choose."""
    if current is None or not alike(edit, current):
        return None
    try:
        began = began_from(site, name, edit)
    except (NotAllowed, StoreUnavailable):
        return None  # the conflict page must be shown in any case
    both = None if began is None else merged(began, edit.body, unified(current.body))
    return None if both is None else replace(edit, body=both, base=current.number, base_token=current.token)


def alike(edit: FormDraft, current: Page) -> bool:
    """Return whether both texts have the same format, so that their lines can be compared."""
    return edit.markup in ("", current.markup)


def began_from(site: Site, name: str, edit: FormDraft) -> str | None:
    """Return the text that an edit began from, or None if it is not available (a different page may have the name).

    Raises NotAllowed, StoreUnavailable.
    """
    if edit.base == 0:
        return ""
    found = site.wiki.revision(name, edit.base, edit.base_token)
    return None if found is None or found.body is None else unified(found.body)


def save_whole(
    site: Site, name: str, draft: FormDraft, stored: StoredPage, *, was_stored: bool, owners: Collection[str] = ()
) -> Saved | None:
    """Save the whole page; return None if it has this text already.  Raises Conflict, Refused.

    ``owners`` are as for ``save_edit``.
    """
    author = site.visitor.signature
    page = stored.page
    markup = draft.markup or (page.markup if page else site.settings.markup)
    if (
        page is not None
        and page.body == draft.body
        and page.markup == markup
        and draft.new_language in ("", page.language)
        and (is_revision(page, draft.base, draft.base_token) or page.author == author)
    ):
        return None
    refused = name_refusal(site, name) if page is None else ""
    if refused:
        raise Refused(refused, 400)
    if not was_stored:
        _check_bounds(page, draft.body, markup, autolink=site.autolinks(page, markup))
    return site.wiki.save(
        name,
        draft.body,
        author=author,
        note=draft.note,
        base=draft.base,
        base_token=draft.base_token,
        signed=site.visitor.signed,
        markup=markup,
        autolink=site.autolinks(page, markup),
        language=draft.new_language or (None if page else known(site.config.language)),
        minor=draft.minor and page is not None and site.visitor.name is not None,
        stored=stored,
        owners=owners,
    )


def _check_bounds(page: Page | None, body: str, markup: str, *, autolink: bool) -> None:
    """Raise Refused if the text is over a bound, unless the page is over a bound already and does not get longer."""
    problem = over_bounds(body, autolink=autolink, markup=markup)
    if problem is None:
        return
    stored = None if page is None else over_bounds(page.body, autolink=page.autolink, markup=page.markup)
    if page is None or len(body) > len(page.body) or stored is None:
        raise Refused(f"{problem} {_(REMEDY)}", 413)


def forget_draft(site: Site, request: Request, name: str, draft: FormDraft) -> None:
    """Delete the draft of a saved form.  A failure is only logged, since the edit itself is on disk."""
    if not draft.id:
        return
    try:
        for owner in owners_of(site, request):
            site.wiki.drafts(name).delete_draft(name, owner, draft.id)
    except (NotAllowed, StoreUnavailable) as problem:
        log.warning("the draft of a saved edit of %s was not thrown away: %s", name, problem)


def note_network_of(site: Site, request: Request, name: str, saved: Saved) -> None:
    """Note the network of an author without an account.  A failure is only logged, since the edit is on disk."""
    if site.visitor.name is None and request.remote_addr:
        try:
            note_network(site.accounts.rows, name, saved.number, client_of(request).network)
        except StoreUnavailable as away:
            log.warning("the network of an edit of %s was not noted: %s", name, away)


def settle(site: Site, saved: Saved) -> None:
    """Wait until the lists have the edit, but at most ``settle_s``: the edit itself is on disk."""
    if saved.sequence:
        try:
            site.wiki.settle(saved.sequence, site.config.settle_s)
        except StoreUnavailable:
            return
