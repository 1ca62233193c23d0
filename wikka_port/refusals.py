"""Refusals: the visitor is not allowed to, there is no such page, or the store is unavailable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from werkzeug.wrappers import Response

from wikka_port.confusable_names import Confusable, find_confusable, similar_names
from wikka_port.local_time import local_time, zone_label
from wikka_port.rights.blocks import Block
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site
from wikka_port.store import NotPrepared, StoreUnavailable
from wikka_port.texts import N_, _
from wikka_port.urls import page_path, page_url

_SENTENCES: Final[Mapping[Privilege, str]] = {
    Privilege.READ: N_("You may not read this page."),
    Privilege.WRITE: N_("You may not edit this page."),
    Privilege.COMMENT_READ: N_("You may not read the comments on this page."),
    Privilege.COMMENT_POST: N_("You may not comment on this page."),
    Privilege.CHANGE_RIGHTS: N_("Only the owner of this page and administrators may change its rights."),
    Privilege.CLAIM: N_("You cannot become the owner of this page."),
    Privilege.RENAME: N_("You cannot rename this page: only a user who may edit it can."),
    Privilege.DELETE: N_("Only the owner of this page and administrators may delete it."),
    Privilege.ADMINISTER: N_("This is for administrators."),
}
_UNAVAILABLE: Final = N_("The wiki cannot reach its store at the moment.")
_NOT_PREPARED: Final = N_(
    'This wiki is not prepared for its new version yet: somebody who runs it has to call "wikka prepare" once.'
)
# 503 and not 404: a program that keeps a copy of the files must not take the file for removed.
LOST_STATUS: Final = 503
LOST: Final = N_(
    "The store has lost the content of this file, and that has been logged. It is back as soon as somebody uploads the "
    "same file again, here or on another page."
)
_SIGN_IN: Final = N_("Perhaps you may when you are signed in.")
GROUP: Final = N_(
    "No new page can have this name: lists of rights mean a group by it, and its text would say who is in it. "
    "An administrator can make the page."
)


def block_sentence(site: Site, block: Block) -> str:
    """Return to a blocked visitor who blocks, why, and until when."""
    zone = site.visitor.settings.zone_info
    until = f"{local_time(block.until_ms, zone)} {zone_label(block.until_ms, zone)}" if block.until_ms else ""
    values = {"target": block.target, "by": block.by, "until": until, "reason": block.reason or _("no reason is given")}
    if until:
        return _("{target} is blocked until {until}, by {by}: {reason}. You may read, and write nothing.", **values)
    return _("{target} is blocked for good, by {by}: {reason}. You may read, and write nothing.", **values)


def sentence(site: Site, refused: NotAllowed) -> str:
    if refused.decision.block is not None:
        return block_sentence(site, refused.decision.block)
    said = _(_SENTENCES[refused.privilege])
    return f"{said} {_(_SIGN_IN)}" if site.visitor.name is None else said


def unavailable(error: StoreUnavailable) -> str:
    return _(_NOT_PREPARED if isinstance(error, NotPrepared) else _UNAVAILABLE)


def forbidden(site: Site, refused: NotAllowed) -> Response:
    """Return a page with status 403, which tells the visitor nothing of the name but what he typed."""
    reads = refused.privilege not in (Privilege.READ, Privilege.ADMINISTER)
    response = site.html(
        "forbidden.html",
        status=403,
        title=_("Not allowed"),
        message=sentence(site, refused),
        back=page_url(refused.name) if reads else "",
        source=page_path(refused.name, "raw") if refused.privilege is Privilege.WRITE else "",
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def missing_file(site: Site, name: str, file: str) -> Response:
    """Return a page with status 404."""
    message = _("The page has no file {file}.", file=file[:200])
    back = page_path(name, "files")
    return site.html("error.html", status=404, title=_("No such file"), message=message, back=back)


def missing_page(site: Site, name: str) -> Response:
    """Return a page with status 404.

    To signed-in visitors who may undelete, it offers to bring back a deleted page of the name; that costs a call of
    the store.
    """
    deleted = site.visitor.is_active and site.wiki.moves.may_undelete_any(name)
    nearest = site.wiki.nearest(name, pages=site.rough_page_count.get())
    return site.html("missing.html", status=404, page_name=name, deleted=deleted, nearest=nearest)


def no_revision(site: Site, name: str) -> Response:
    message = _("The page has no revision of that number or time.")
    return site.html("error.html", status=404, title=_("No such revision"), message=message, back=page_url(name))


def name_refusal(site: Site, name: str, *, leaving: str = "") -> str:
    """Return why a page cannot get the name, as a sentence for the visitor, or "" if it can.

    ``leaving`` is the page's present name.  The sentence names no page that the visitor may not read.
    """
    if site.wiki.access.would_be_group(name):
        return _(GROUP)
    like = find_confusable(name)
    others = [one for one in similar_names(name) if one != leaving] if like is None else []
    found = sorted(site.wiki.existing(others)) if others else []
    if like is None and found:
        shown = [other for other in found if other in site.wiki.access.readable(found)]
        if not shown:
            return _("No new page can have this name: it looks like the name of another page.")
        like = Confusable(shown[0], _("that is another page"))
    return "" if like is None else f"{_('No new page can have this name.')} {like}"
