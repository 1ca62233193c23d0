"""The newest changes of the wiki, as a page and as a feed; with ``?minor=hide`` without minor edits."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.making import public_address
from wikka_port.change_lists import changes
from wikka_port.feed_answers import feed_answer
from wikka_port.feeds import Entry
from wikka_port.groupings import by_day
from wikka_port.site import Site
from wikka_port.texts import _w
from wikka_port.urls import page_path, site_path

FEED_ROWS = 50


def handle(site: Site, request: Request, name: str) -> Response:
    settings = site.visitor.settings
    minor = _with_minor(request)
    found, token = changes(site.wiki, minor=minor, before=request.args.get("before", ""), limit=settings.changes)
    onward = site_path("recentchanges", before=token, minor="" if minor else "hide") if token else ""
    return site.html("recentchanges.html", days=by_day(found, settings.zone_info), onward=onward, minor=minor)


def _with_minor(request: Request) -> bool:
    return request.args.get("minor", "") != "hide"


def handle_feed(site: Site, request: Request, name: str) -> Response:
    found, _ = changes(site.wiki, minor=_with_minor(request), limit=FEED_ROWS)
    base = public_address(site.config)
    entries = [
        Entry(
            title=change.name,
            url=base + page_path(change.name, revision=change.number),
            updated_ms=change.time_ms,
            author=change.author,
            summary=change.note or (_w("New page") if change.is_new else _w("Changed")),
        )
        for change in found
    ]
    title = _w("{site}: recent changes", site=site.config.site_name)
    return feed_answer(request, base, title, site_path("recentchanges.xml"), site_path("recentchanges"), entries)
