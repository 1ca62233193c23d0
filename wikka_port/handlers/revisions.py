"""The revisions of a page: listed, compared, and reverted to.

A revert saves the text of an older revision as a new one, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.audit import networks_of
from wikka_port.accounts.factory import public_address
from wikka_port.change_lists import page_of
from wikka_port.diffs import Row, rows
from wikka_port.drafts import draft_of
from wikka_port.feeds import Entry
from wikka_port.forms import form_page
from wikka_port.handlers.edit import submit
from wikka_port.page_rows import reverted_language
from wikka_port.pages import Page, Revision
from wikka_port.refusals import missing_page, no_revision
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, feed_answer, number, redirect
from wikka_port.texts import _w
from wikka_port.urls import page_path

FEED_ROWS: Final = 30
STEPS: Final = 10  # of a history on one page
ROWS_EACH: Final = 200  # of one difference; the whole of it is one click away
SHARE_EACH: Final = 0.2  # of the cost allowed for a whole difference


def handle_revisions_feed(site: Site, request: Request, name: str) -> Response:
    found = site.wiki.revisions(name, limit=FEED_ROWS)
    if not found:
        return missing_page(site, name)
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
    title = f"{site.settings.name}: {name}"
    return feed_answer(request, base, title, page_path(name, "revisions.xml"), page_path(name, "revisions"), entries)


def handle_revisions(site: Site, request: Request, name: str) -> Response:
    """List the revisions, newest first; any two can be chosen and compared."""
    below = number(request, "below")
    rows = site.visitor.settings.revisions
    found, more = page_of(site.wiki.revisions(name, below=below, limit=rows + 1), rows)
    if not found and below is None:
        return missing_page(site, name)
    onward = page_path(name, "revisions", below=found[-1].number) if more else ""
    networks = _networks(site, name, found)
    newest = below is None
    return site.html("revisions.html", page_name=name, revisions=found, onward=onward, newest=newest, networks=networks)


def _networks(site: Site, name: str, found: Sequence[Revision]) -> Mapping[int, str]:
    """Return the networks of authors without an account by revision number, but only to administrators."""
    numbers = [one.number for one in found if one.signed == "visitor"] if site.visitor.admin else []
    return networks_of(site.accounts.rows, name, numbers) if numbers else {}


def handle_history(site: Site, request: Request, name: str) -> Response:
    """Show the changes of the last revisions, one difference below the other."""
    below = number(request, "below")
    read = site.wiki.revisions(name, below=below, limit=STEPS + 1, bodies=True)
    found, more = page_of(read, STEPS)
    if not found and below is None:
        return missing_page(site, name)
    steps = [(new, old, _difference(new, old)) for new, old in zip_longest(found, read[1 : len(found) + 1])]
    onward = page_path(name, "history", below=found[-1].number) if more else ""
    return site.html("history.html", page_name=name, steps=steps, onward=onward)


def _difference(new: Revision, old: Revision | None) -> list[Row]:
    return rows(old.body or "" if old else "", new.body or "", max_rows=ROWS_EACH, share=SHARE_EACH)


def handle_diff(site: Site, request: Request, name: str) -> Response:
    """Show the difference of two revisions: ``?a=1&b=2``, side by side or with ``&style=inline`` in one column.

    The default of ``b`` is the newest revision, that of ``a`` the last visible one before ``b``, or with ``&since=T``
    (milliseconds) the newest one of that time.  Numbers have gaps: hidden revisions, and the revisions of a former page
    of the name.  So lists give only ``b`` in their links.
    """
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    b = number(request, "b")
    b = page.number if b is None else b
    a = number(request, "a")
    found = site.wiki.revisions(name, below=b + 1, limit=2, bodies=True)
    since_ms = number(request, "since")
    if a is None and since_ms is not None:
        old = site.wiki.revision_at(name, since_ms)  # None: the page began later
    elif a is None:
        old = found[1] if len(found) > 1 else None  # None: the page began with ``b``
    else:
        old = site.wiki.revision(name, a)
    if not found or found[0].number != b or (a is not None and old is None):
        return no_revision(site, name)
    new = found[0]
    style = "inline" if request.args.get("style") == "inline" else "side"
    return site.html(
        "diff.html",
        page_name=name,
        later=_later(page, b),
        old=old,
        new=new,
        style=style,
        rows=rows(old.body or "" if old else "", new.body or ""),
    )


def _later(page: Page, shown: int) -> int:
    """Return the number of the next visible revision after ``shown``, or 0 if there is none."""
    return next((one for one in range(shown + 1, page.number + 1) if one not in page.hidden), 0)


def handle_revert(site: Site, request: Request, name: str) -> Response:
    """Revert a page to an older revision: GET shows the difference and asks, POST reverts."""
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    if request.method != "POST":  # a POST is checked by the save
        site.wiki.access.require(name, Privilege.WRITE)
    wanted = number(request, "revision")
    old = _last_but_one(site, page) if wanted is None else site.wiki.revision(name, wanted)
    if old is None and wanted is None:
        return redirect(page_path(name, "revisions"), status=302)  # the page has one revision
    if old is None or old.body is None:
        return no_revision(site, name)
    note = _w("Back to revision {number}", number=old.number)
    if request.method == "POST":
        draft = draft_of(request.form)
        language = reverted_language(page, old)
        draft = replace(draft, body=old.body, markup=old.markup, written="", language=language, note=draft.note or note)
        return submit(site, request, name, draft, was_stored=True)
    return form_page(
        site,
        request,
        "revert.html",
        page_name=name,
        page=page,
        old=old,
        note=note,
        rows=rows(page.body, old.body),
    )


def _last_but_one(site: Site, page: Page) -> Revision | None:
    """Return the newest visible revision before the page's present one."""
    found = site.wiki.revisions(page.name, below=page.number, limit=1, bodies=True)
    return found[0] if found else None
