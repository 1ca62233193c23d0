"""A page as its readers see it, with and without the wiki's frame."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from werkzeug.wrappers import Request, Response

from wikka_port.api.records import PageRecord
from wikka_port.comment_views import comments_below, order_address
from wikka_port.handlers.source import handle_raw
from wikka_port.markup.bounds import is_expensive
from wikka_port.markup.converting import to_markdown
from wikka_port.markup.document import Document
from wikka_port.markup.formats import MARKDOWN
from wikka_port.old_addresses import moment_ms, place_of_name
from wikka_port.page_rows import page_as_of
from wikka_port.pages import Page, Revision
from wikka_port.refusals import missing_page, no_revision
from wikka_port.rendering import page_document, page_html
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.site import Site, conditional, number, redirect, unindexed
from wikka_port.urls import page_path, page_url, with_query

# Parameters that actions in a page read, and that show its comments.
OF_ACTIONS: Final = frozenset({"year", "month", "letter", "phrase", "comments", "show_comments"})

QUIET_FROM: Final = 8  # links to missing pages, if they are most of a page's links: they are shown quieter
_LINK: Final = '<a href="/'
_MISSING_LINK: Final = '/edit" class="missing"'


def handle_show(site: Site, request: Request, name: str) -> Response:
    """Show the newest revision, or with ``?revision=N`` or ``?time=T`` an older one.

    A redirect is followed once, and the target names the redirecting page; ``?redirect=no`` shows the redirect itself.
    ``?raw=1`` answers with the text as it was typed.  ``?comments=threaded`` (or ``oldest``, ``newest``) shows the
    comments below the text, ``?comments=hide`` their number only.  A name without a page that ends in ".md" or ".json"
    means the page of the name before it, in that form.
    """
    path = page_url(name)
    if request.path not in (unquote(path), "/"):
        old = place_of_name(name)
        if old is not None and not site.wiki.existing([name]):
            return redirect(old, status=301)
        return redirect(with_query(path, request.args.to_dict()), status=302)
    if request.args.get("raw") == "1":
        return handle_raw(site, request, name)
    page = site.wiki.page(name)
    if page is None:
        return _other_form(site, request, name) or missing_page(site, name)
    if request.args and ("time" in request.args or "revision" in request.args):
        return _old(site, request, page)
    origin = ""
    document = page_document(site, request, page)
    if document.redirect and document.redirect != name and request.args.get("redirect") != "no":
        target = site.wiki.page(document.redirect)
        if target is not None:
            origin, page, document = name, target, page_document(site, request, target)
    edit = page_url(page.name, "edit") if document.headings and site.wiki.access.can(page.name).write else ""
    below = comments_below(site, request, page, document)
    existing = None if below is None else below.existing(document.links)
    values = {**_values(site, page, document, edit, request.args, existing), "merged": _merge_of(request, page)}
    values |= {"waiting": site.wiki.waiting(page.name), "comments": None if below is None else below.view()}
    values |= {"is_watched": _is_watched(site, page), "is_new": _is_new(site, page)}
    indexed = not (request.args and request.args.keys() & OF_ACTIONS)
    address = partial(order_address, page_path(page.name), "comments")
    response = site.html("show.html", indexed=indexed, **values, origin=origin, old=None, order_address=address)
    return conditional(request, response)


def _is_watched(site: Site, page: Page) -> bool:
    visitor = site.visitor
    return visitor.name is not None and site.wiki.notices.is_watched(page, visitor.watches)


def _is_new(site: Site, page: Page) -> bool:
    """Return whether somebody else changed the page since the visitor was here last."""
    after_ms = site.visitor.new_after_ms
    return 0 <= after_ms < page.time_ms and page.author != site.visitor.name


def _other_form(site: Site, request: Request, name: str) -> Response | None:
    """Return the page ``Name`` in Markdown for "Name.md", as the API has it for "Name.json"; None for other names."""
    base, dot, form = name.rpartition(".")
    page = site.wiki.page(base) if dot and base and form in ("md", "json") else None
    if page is None:
        return None
    if form == "json":
        response = unindexed(msgspec.json.encode(PageRecord.of(page)), "application/json")
    else:
        text = page.body
        if page.markup != MARKDOWN:
            if is_expensive(text, markup=page.markup):
                run_in_slow_lane(request.environ)
            text = to_markdown(text, autolink=page.autolink).text
        response = unindexed(text, "text/markdown")
    return conditional(request, response)


def _merge_of(request: Request, page: Page) -> tuple[int, int] | None:
    """Read ``?merged=3.5``: an edit of revision 3 was merged with the revisions between and saved as revision 5."""
    if not request.args:
        return None
    began, _, number_ = request.args.get("merged", "").partition(".")
    if not (began + number_).isascii() or not (began.isdigit() and number_.isdigit()) or len(began + number_) > 18:
        return None
    return (int(began), int(number_)) if 0 <= int(began) < int(number_) - 1 < page.number else None


def _values(
    site: Site,
    page: Page,
    document: Document,
    edit: str = "",
    parameters: Mapping[str, str] | None = None,
    existing: frozenset[str] | None = None,
) -> dict[str, Any]:
    heading = document.headings[0] if document.headings else None
    notes = site.visitor.is_active and site.wiki.access.can(page.name).write
    content = page_html(site, page, document, edit=edit, notes=notes, parameters=parameters, existing=existing)
    missing = content.count(_MISSING_LINK)
    return {
        "page_name": page.name,
        "page": page,
        "title": page.name if page.attribution else document.title or page.name,
        "has_heading": heading is not None and heading.level == 1,
        "empty": not page.body.strip(),
        "content": content,
        "files": sum(one.is_there for one in page.files.values()),
        "quiet": missing >= QUIET_FROM and 2 * missing > content.count(_LINK),
    }


def _old(site: Site, request: Request, newest: Page) -> Response:
    found = _wanted_revision(site, request, newest)
    page = None if found is None else page_as_of(newest, found)
    if page is None:
        return no_revision(site, newest.name)
    if page.number == newest.number:
        return redirect(page_url(newest.name), status=302)
    values = _values(site, page, page_document(site, request, page))
    values |= dict.fromkeys(("merged", "comments", "order_address", "is_new", "is_watched"))
    return site.html("show.html", **values, origin="", old=newest, waiting=0)


def _wanted_revision(site: Site, request: Request, newest: Page) -> Revision | None:
    wanted = number(request, "revision")
    if wanted is not None:
        return site.wiki.revision(newest.name, wanted)
    time_ms = moment_ms(request.args.get("time", ""), site.settings.old_zone)
    return site.wiki.revision_at(newest.name, time_ms) if time_ms is not None else None


def handle_html(site: Site, request: Request, name: str) -> Response:
    """Answer with the HTML of the page's body, without the frame."""
    found = _rendered(site, request, name, contents=True)
    if found is None:
        return missing_page(site, name)
    return conditional(request, unindexed(found["content"], "text/html"))


def handle_print(site: Site, request: Request, name: str) -> Response:
    """Answer with a document for printing."""
    found = _rendered(site, request, name, contents=False)  # a folded table of contents is useless on paper
    return missing_page(site, name) if found is None else conditional(request, site.html("print.html", **found))


def _rendered(site: Site, request: Request, name: str, *, contents: bool) -> dict[str, Any] | None:
    page = site.wiki.page(name)
    if page is None:
        return None
    document = page_document(site, request, page)
    heading = document.headings[0] if document.headings else None
    return {
        "page": page,
        "title": document.title or page.name,
        "has_heading": heading is not None and heading.level == 1,
        "content": page_html(site, page, document, contents=contents),
    }
