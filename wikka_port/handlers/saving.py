"""A save as the editor makes it: what is looked at before it, the step itself, and what follows behind it."""

from __future__ import annotations

import logging

from werkzeug.wrappers import Request

from wikka_port.accounts.entering import client_of
from wikka_port.accounts.networks import note_network
from wikka_port.drafts import FormDraft
from wikka_port.editing.owners import owners_of
from wikka_port.look_alikes import LookAlike, look_alike, twins
from wikka_port.markup.bounds import REMEDY, over_bounds
from wikka_port.pages import Page, Saved, StoreAway
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site

log = logging.getLogger(__name__)


class NotSaved(ValueError):
    """The page cannot be saved so; ``str()`` is a sentence for its author."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def save(site: Site, name: str, draft: FormDraft, *, was_stored: bool) -> Saved | None:
    """None: the page has this text already, perhaps from a save whose answer was lost."""
    author, signed = site.visitor.signature, "account" if site.visitor.name else "visitor"
    page = site.wiki.page(name)
    if page is not None and page.body == draft.body and (page.number == draft.base or page.author == author):
        return None
    if page is None:
        _check_name(site, name)
    if not was_stored:
        _check_bounds(page, draft.body)
    return site.wiki.save(name, draft.body, author=author, note=draft.note, base=draft.base, signed=signed)


def _check_name(site: Site, name: str) -> None:
    """Raises NotSaved where a new page would look like another one."""
    like = look_alike(name)
    others = [] if like is not None else twins(name)
    found = sorted(site.wiki.existing(others)) if others else []
    if like is None and found:
        shown = [other for other in found if other in site.wiki.readable(found)]
        if not shown:
            raise NotSaved(400, "No new page can have this name: it looks like the name of another page.")
        like = LookAlike(shown[0], "that is another page")
    if like is not None:
        raise NotSaved(400, f"No new page can have this name. {like}")


def _check_bounds(page: Page | None, body: str) -> None:
    """Raises NotSaved.  A page that is over a bound already may be saved as long as it does not get longer."""
    autolink = page.autolink if page else True
    problem = over_bounds(body, autolink=autolink)
    if problem is None:
        return
    if page is None or len(body) > len(page.body) or over_bounds(page.body, autolink=autolink) is None:
        raise NotSaved(413, f"{problem} {REMEDY}")


def forget_draft(site: Site, request: Request, name: str, draft: FormDraft) -> None:
    """The draft of a form that is saved, or came too late to be needed; the edit is safe already."""
    if not draft.id:
        return
    try:
        for owner in owners_of(site, request):
            site.wiki.drafts(name).throw_away(name, owner, draft.id)
    except (NotAllowed, StoreAway) as problem:
        log.warning("the draft of a saved edit of %s was not thrown away: %s", name, problem)


def note_network_of(site: Site, request: Request, name: str, saved: Saved) -> None:
    """Note from where a visitor without an account wrote; the edit is safe already."""
    if site.visitor.name is None and request.remote_addr:
        try:
            note_network(site.accounts.rows, name, saved.number, client_of(request).network)
        except StoreAway as away:
            log.warning("the network of an edit of %s was not noted: %s", name, away)


def settle(site: Site, saved: Saved) -> None:
    """Wait until the lists know of the edit, but not for long: the edit itself is safe."""
    if saved.sequence:
        try:
            site.wiki.settle(saved.sequence, site.config.settle_s)
        except StoreAway:
            return
