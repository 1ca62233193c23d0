"""From a text to the HTML of its page: parsed once, links and actions filled in at each view."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from wikka_port.actions import ACTIONS, ActionCall
from wikka_port.markup.document import Document, parse, render
from wikka_port.pages import Page, StoreAway
from wikka_port.site import Site, page_url

log = logging.getLogger(__name__)


def page_document(site: Site, page: Page) -> Document:
    return site.documents.document(page.name, page.number, page.body, autolink=page.autolink)


def page_html(site: Site, name: str, document: Document) -> str:
    existing = site.wiki.existing(document.links) if document.links else frozenset()
    return render(document, existing=existing, action=_runner(site, name), page_url=page_url)


def preview_html(site: Site, name: str, text: str, *, autolink: bool) -> str:
    """A preview never fails: while the store is away links are shown as if their pages existed."""
    document = parse(text, autolink=autolink)
    try:
        return page_html(site, name, document)
    except StoreAway:
        return render(document, existing=frozenset(document.links), action=_runner(site, name), page_url=page_url)


class _runner:  # noqa: N801 - a function with a memory
    """Runs the actions of one page; what goes wrong in one is shown in its place."""

    def __init__(self, site: Site, name: str) -> None:
        self._site = site
        self._name = name

    def __call__(self, action: str, arguments: Mapping[str, str]) -> str | None:
        run = ACTIONS.get(action)
        if run is None:
            return None
        try:
            return run(ActionCall(self._site, self._name, arguments))
        except (StoreAway, ValueError, ArithmeticError, LookupError) as problem:
            log.warning("action %s of page %r: %s: %s", action, self._name, type(problem).__name__, problem)
            away = isinstance(problem, StoreAway)
            return self._site.fragment("notice.html", action=action, problem="" if away else str(problem))
