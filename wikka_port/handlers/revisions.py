"""The list of a page's revisions, newest first; any two can be chosen and compared; and as a feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.making import public_address
from wikka_port.accounts.networks import networks_of
from wikka_port.feed_answers import feed_answer
from wikka_port.feeds import Entry
from wikka_port.groupings import page_of
from wikka_port.handlers.show import missing
from wikka_port.pages import Revision
from wikka_port.site import Site, number
from wikka_port.texts import _w
from wikka_port.urls import page_path

FEED_ROWS = 30


def handle_feed(site: Site, request: Request, name: str) -> Response:
    found = site.wiki.revisions(name, limit=FEED_ROWS)
    if not found:
        return missing(site, name)
    base = public_address(site.config)
    entries = [
        Entry(
            title=_w("{name}: revision {number}", name=name, number=revision.number),
            url=base + page_path(name, revision=revision.number),
            updated_ms=revision.time_ms,
            author=revision.author,
            summary=revision.note or (_w("New page") if revision.number == 1 else _w("Changed")),
        )
        for revision in found
    ]
    title = f"{site.config.site_name}: {name}"
    return feed_answer(request, base, title, page_path(name, "revisions.xml"), page_path(name, "revisions"), entries)


def handle(site: Site, request: Request, name: str) -> Response:
    below = number(request, "below")
    rows = site.visitor.settings.revisions
    found, more = page_of(site.wiki.revisions(name, below=below, limit=rows + 1), rows)
    if not found and below is None:
        return missing(site, name)
    onward = page_path(name, "revisions", below=found[-1].number) if more else ""
    networks = _networks(site, name, found)
    newest = below is None
    return site.html("revisions.html", page_name=name, revisions=found, onward=onward, newest=newest, networks=networks)


def _networks(site: Site, name: str, found: Sequence[Revision]) -> Mapping[int, str]:
    """Networks of visitors without an account, for administrators."""
    numbers = [one.number for one in found if one.signed == "visitor"] if site.visitor.admin else []
    return networks_of(site.accounts.rows, name, numbers) if numbers else {}
