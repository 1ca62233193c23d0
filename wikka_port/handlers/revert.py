"""Going back to an older revision: its text is saved as a new revision, so that nothing is lost."""

from __future__ import annotations

from dataclasses import replace

from werkzeug.wrappers import Request, Response

from wikka_port.diffs import rows
from wikka_port.drafts import draft_of
from wikka_port.forms import form_page
from wikka_port.handlers.edit import submit
from wikka_port.handlers.show import missing, no_revision
from wikka_port.page_rows import reverted_language
from wikka_port.pages import Page, Revision
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, number
from wikka_port.texts import _w


def handle(site: Site, request: Request, name: str) -> Response:
    """GET shows what would change and asks, POST does it."""
    page = site.wiki.page(name)
    if page is None:
        return missing(site, name)
    if request.method != "POST":  # what is posted is checked with the save
        site.wiki.require(name, Privilege.WRITE)
    wanted = number(request, "revision")
    old = _last_but_one(site, page) if wanted is None else site.wiki.revision(name, wanted)
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
    """Return the newest one before the page as it is that is shown."""
    found = site.wiki.revisions(page.name, below=page.number, limit=1, bodies=True)
    return found[0] if found else None
