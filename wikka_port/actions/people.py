"""Actions that list or count users and their pages: ``{{mypages}}``, ``{{countusers}}``, ``{{owner}}`` and the like.

Pages are named and counted only if the visitor may read them.  He sees only names of accounts that he can read as
authors of changes anyway (administrators see all): a list of all names would help somebody who guesses passwords.  The
number of accounts is no secret.

Cost: the store finds an owner's pages by a filtered scan of all pages, and accounts by a scan of all accounts.  So
these actions are expensive (``markup/document``).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Final

from wikka_port.actions.call import Action, ActionCall
from wikka_port.actions.lists import names_html
from wikka_port.change_lists import some_changes
from wikka_port.feeds import iso_time
from wikka_port.limits import LISTED_SCANNED, OWNED_MAX
from wikka_port.markup.fragments import escape
from wikka_port.rights.rules import NO_OWNERS, PUBLIC
from wikka_port.schema import OF_ACCOUNTS
from wikka_port.texts import N_, _, _n, figure
from wikka_port.urls import page_path

SIGN_IN: Final = N_("Sign in to see what is yours.")
AUTHORS_OF: Final = 2_000  # the newest changes, which are searched for names
CHANGES_LISTED: Final = 200  # the newest changes of one person


def mypages(call: ActionCall) -> str:
    """Return the pages that the visitor owns."""
    found = _owned(call)
    if found is None:
        return _said(_(SIGN_IN))
    names, more = found[:OWNED_MAX], len(found) > OWNED_MAX
    listed = names_html(call, names, _("You own no pages."))
    return listed + (_said(_("These are the first {n}.", n=figure(OWNED_MAX))) if more else "")


def mychanges(call: ActionCall) -> str:
    """Return the pages that the visitor changed, the last changed first, or with ``order="alpha"`` by name."""
    name = call.site.visitor.name
    if name is None:
        return _said(_(SIGN_IN))
    limit = call.number("limit", 50, CHANGES_LISTED)
    mine = some_changes(call.site.wiki, lambda one: one.author == name and one.signed in OF_ACCOUNTS, limit=limit)
    newest = {one.name: one for one in reversed(mine.changes)}
    ranked = sorted(newest.values(), key=lambda one: -one.time_ms)[:limit]
    names = [one.name for one in ranked]
    if call.word("order") == "alpha":
        names.sort(key=str.casefold)
    return names_html(call, names, _("You changed no page of late."))


def countowned(call: ActionCall) -> str:
    found = _owned(call)
    return "0" if found is None else _count(found)


def ownedpages(call: ActionCall) -> str:
    """Return the number of the visitor's pages, of all pages, and the share; of very many the first alone."""
    found = _owned(call)
    if found is None:
        return _said(_(SIGN_IN))
    counted = _readable_pages(call)
    if counted is None:
        many, n = len(found) > OWNED_MAX, len(found)
        more = _("You own more than {count} pages.", count=figure(OWNED_MAX))
        return _said(more if many else _n("You own {n} page.", "You own {n} pages.", n))
    total = max(1, counted, len(found))  # the kept number may be older than the visitor's last page
    share = 100 * min(len(found), total) / total
    values = {"total": figure(total), "share": figure(share, ",.1f")}
    if len(found) > OWNED_MAX:
        said = _("You own more than {count} of {total} pages ({share} %).", count=figure(OWNED_MAX), **values)
    else:
        said = _("You own {count} of {total} pages ({share} %).", count=figure(len(found)), **values)
    return _said(said)


def _readable_pages(call: ActionCall) -> int | None:
    """Count the pages that the visitor may read: kept if everybody may read all, else up to LISTED_SCANNED, or None."""
    wiki = call.site.wiki
    return call.site.page_count.get() if wiki.access.is_open() else wiki.count_few_pages(LISTED_SCANNED)


def countusers(call: ActionCall) -> str:
    """Return the number of accounts that can sign in."""
    return figure(sum(one.status == "active" for one in call.site.accounts.directory.all()))


def lastusers(call: ActionCall) -> str:
    """Return the ``max`` newest accounts with edits, with ``style="simple"`` only their names."""
    visitor = call.site.visitor
    active = (one for one in call.site.accounts.directory.all() if one.status == "active")
    if not (visitor.admin and visitor.is_active):
        changes, _more = call.site.wiki.changes(limit=AUTHORS_OF)
        authors = {change.author for change in changes if change.signed in OF_ACCOUNTS}
        active = (one for one in active if one.name in authors)
    newest = heapq.nlargest(call.number("max", 10, 100), active, key=lambda one: (one.created_ms, one.name))
    simple = call.word("style") == "simple"
    dates = {one.name: "" if simple else f" {iso_time(one.created_ms)[:10]}" for one in newest}
    rows = "".join(f'<li><span class="author">{escape(name)}</span>{date}</li>\n' for name, date in dates.items())
    return f'<ul class="authors">\n{rows}</ul>\n'


def owner(call: ActionCall) -> str:
    """Return the owner of this page, or of the one that ``page`` names."""
    return escape(_owner_of(call) or _("Nobody"))


def ownerlink(call: ActionCall) -> str:
    """Return the owner of the page in words, with a link to claim it if the visitor may."""
    owner = _owner_of(call)
    if owner:
        yours = call.site.visitor.name is not None and owner.casefold() == call.site.visitor.name.casefold()
        return _("You own this page") if yours else _("Owner: {owner}", owner=escape(owner))
    if call.site.wiki.access.can(call.page).claim:
        url = escape(page_path(call.page, "claim"))
        return _('Nobody owns this page (<a href="{url}" rel="nofollow">claim it</a>)', url=url)
    return _("Nobody owns this page")


def acls(call: ActionCall) -> str:
    """Return a link to the page's rights if the visitor may change them, else nothing."""
    call.site.wiki.page(call.page)
    if not call.site.wiki.access.can(call.page).change_rights:
        return ""
    label = call.label(_("Rights of this page"))
    return f'<a href="{escape(page_path(call.page, "acls"))}" rel="nofollow">{escape(label)}</a>'


def _owner_of(call: ActionCall) -> str:
    """Return the owner of the named page, or "" if it has none.  Raises NotAllowed."""
    page = call.site.wiki.page(call.named_page)
    owner = page.owner if page is not None else ""
    return "" if owner in NO_OWNERS or owner == PUBLIC else owner


def _owned(call: ActionCall) -> list[str] | None:
    """Return up to OWNED_MAX + 1 names of the visitor's pages, or None if he is not signed in."""
    visitor = call.site.visitor
    return call.site.wiki.owned(visitor.name, limit=OWNED_MAX + 1) if visitor.name and visitor.is_active else None


def _count(found: list[str]) -> str:
    return _("more than {count}", count=figure(OWNED_MAX)) if len(found) > OWNED_MAX else figure(len(found))


def _said(words: str) -> str:
    return f'<p class="hint">{escape(words)}</p>\n'


ACTIONS: Final[Mapping[str, Action]] = {
    "acls": Action(acls, ("label",)),
    "countowned": Action(countowned),
    "countusers": Action(countusers),
    "lastusers": Action(lastusers, ("style", "max")),
    "mychanges": Action(mychanges, ("limit", "order")),
    "mypages": Action(mypages),
    "ownedpages": Action(ownedpages),
    "owner": Action(owner, ("page",)),
    "ownerlink": Action(ownerlink, ("page",)),
}
