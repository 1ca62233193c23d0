"""The newest changes of the wiki, as a page and as a feed."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.making import public_address
from wikka_port.feed_answers import feed_answer
from wikka_port.feeds import Entry
from wikka_port.groupings import by_day
from wikka_port.site import Site
from wikka_port.urls import page_path, site_path

FEED_ROWS = 50


def handle(site: Site, request: Request, name: str) -> Response:
    settings = site.visitor.settings
    changes, token = site.wiki.changes(before=request.args.get("before", ""), limit=settings.changes)
    onward = site_path("recentchanges", before=token) if token else ""
    return site.html("recentchanges.html", days=by_day(changes, settings.zone_info), onward=onward)


def handle_feed(site: Site, request: Request, name: str) -> Response:
    changes, _ = site.wiki.changes(limit=FEED_ROWS)
    base = public_address(site.config)
    entries = [
        Entry(
            title=change.name,
            url=base + page_path(change.name, revision=change.number),
            updated_ms=change.time_ms,
            author=change.author,
            summary=change.note or ("New page" if change.is_new else "Changed"),
        )
        for change in changes
    ]
    title = f"{site.config.site_name}: recent changes"
    return feed_answer(request, base, title, site_path("recentchanges.xml"), site_path("recentchanges"), entries)
