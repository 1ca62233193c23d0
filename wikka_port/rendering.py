"""From a page's text to its HTML: a text is parsed once; links and actions are filled in at each view."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from werkzeug.wrappers import Request

from wikka_port.actions import ACTIONS, ActionCall
from wikka_port.actions.files import OF_FILES
from wikka_port.actions.unsupported_actions import instead_of
from wikka_port.files.file_html import NO_FILES, Files, FilesFound, find_files
from wikka_port.limits import ACTIONS_S, INCLUDED_CHARS_MAX, INCLUDES_MAX, QUICK_STEPS
from wikka_port.markup.bounds import is_expensive
from wikka_port.markup.document import Document, no_files, no_note, parse, render
from wikka_port.markup.fragments import ActionSlot, FileSlot, escape
from wikka_port.pages import Page, StoreUnavailable
from wikka_port.refusals import unavailable
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.texts import _, figure
from wikka_port.urls import page_url

log = logging.getLogger(__name__)


def page_document(site: Site, request: Request, page: Page) -> Document:
    """Return the parsed page; an expensive page is parsed in the slow lane.  Raises TooManyExpensiveRequests."""
    kept = site.documents.kept(page.name, page.version, autolink=page.autolink, markup=page.markup)
    if kept is None and is_expensive(page.body, markup=page.markup):
        run_in_slow_lane(request.environ)
    document = kept_document(site, page)
    if document.steps > QUICK_STEPS:
        run_in_slow_lane(request.environ)
    return document


def kept_document(site: Site, page: Page) -> Document:
    return site.documents.document(page.name, page.version, page.body, autolink=page.autolink, markup=page.markup)


def page_html(
    site: Site,
    page: Page,
    document: Document,
    *,
    edit: str = "",
    notes: bool = False,
    contents: bool = True,
    parameters: Mapping[str, str] | None = None,
    existing: frozenset[str] | None = None,
) -> str:
    """Return the HTML of a parsed page.

    ``edit`` is the path of the page's editor, for links beside the headings; with "" there are none
    (``document.render``).  With ``notes``, for an editor, a note replaces each action that is not run; readers see
    nothing there.  ``parameters`` has the query parameters of the page's address, for the page's actions.
    ``existing`` has the links that are pages, if the caller has read them.
    """
    return render(
        document,
        existing=_existing(site, document) if existing is None else existing,
        action=_runner(site, page.name, page.files, parameters),
        page_url=page_url,
        note=_note if notes else no_note,
        edit=edit,
        contents=contents,
        file=_files(site, page.name, page.files, document),
        is_allowed=site.pictures.allows,
    )


def _existing(site: Site, document: Document) -> frozenset[str]:
    return site.wiki.existing(document.links) if document.links else frozenset()


def _files(site: Site, name: str, own: Files, document: Document) -> Callable[[FileSlot], str | None]:
    """Return the function that fills the slots of files.  Calls the store if the page lacks files that it names."""
    if not document.files:
        return no_files
    found = find_files(document.files, name, own, site.config.files.shared_page, site.wiki.files_of)
    return FilesFound(name, found).slot_html


def preview_html(
    site: Site,
    name: str,
    text: str,
    *,
    autolink: bool,
    markup: str,
    whole: bool,
    waiting: Callable[[], Files] = lambda: NO_FILES,
) -> str:
    """Return the HTML of a preview, with notes at the actions that are not run.  A preview never fails.

    While the store is unavailable, links are shown as if their pages existed.  ``whole`` tells a whole page from a
    section.  ``waiting`` returns the files of a page that is not saved yet, if the text names some.
    """
    document = parse(text, autolink=autolink, markup=markup)
    own: Files = {}
    file: Callable[[FileSlot], str | None] = no_files
    try:
        existing = _existing(site, document)
        if document.files or any(call.name in OF_FILES for call in document.actions):
            stored = site.wiki.files_of([name]).get(name)
            own = waiting() if stored is None else stored
            file = _files(site, name, own, document)
    except StoreUnavailable:
        existing = frozenset(document.links)
    return render(
        document,
        existing=existing,
        action=_runner(site, name, own),
        page_url=page_url,
        note=_note,
        contents=whole,
        file=file,
        is_allowed=site.pictures.allows,
    )


def _note(slot: ActionSlot) -> str:
    """Return the note for an author that an action is not run."""
    if slot.refused:
        said = _("The action {name} is not run: {why}.", name=slot.name, why=slot.refused)
    else:
        said = instead_of(slot.name)
    tag = "p" if slot.block else "span"
    return f'<{tag} class="notice">{escape(said)}</{tag}>'


class _RunPage(NamedTuple):
    name: str
    files: Files
    within: tuple[str, ...] = ()  # pages that include it, outermost first


class _runner:  # noqa: N801 - a function with a memory
    """Runs the actions of one page; the error of a failed action is shown in its place.

    Equal calls are run once.  No call begins after ACTIONS_S.
    """

    def __init__(
        self,
        site: Site,
        name: str,
        files: Files = NO_FILES,
        parameters: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._site = site
        self._page = _RunPage(name, files)
        self._query_parameters = parameters
        self._clock = clock
        self._until_s = clock() + ACTIONS_S
        self._includes = [INCLUDES_MAX]  # still allowed; shared by all pages of this view
        self._chars = [INCLUDED_CHARS_MAX]  # still allowed; shared by all pages of this view
        self._done: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}

    def __call__(self, action: str, arguments: Mapping[str, str]) -> str | None:
        if action not in ACTIONS:
            return None
        call = (action, tuple(sorted(arguments.items())))
        if call not in self._done:
            self._done[call] = self._run(action, arguments)
        return self._limit_included_html(self._done[call]) if action == "include" else self._done[call]

    def _limit_included_html(self, html: str) -> str:
        """Return the HTML of an included page, or a notice if all included HTML exceeds INCLUDED_CHARS_MAX."""
        self._chars[0] -= len(html)
        if self._chars[0] >= 0:
            return html
        most = figure(INCLUDED_CHARS_MAX)
        problem = _("all that is included would have more than {most} characters", most=most)
        return self._site.fragment("notice.html", action="include", problem=problem)

    def _included(self, page: Page, text: str) -> str:
        """Return an included page as HTML.  ``text`` is the page's, with the call's parameters, and may include pages.

        Raises ValueError if more than INCLUDES_MAX pages are included.
        """
        if self._includes[0] == 0:
            raise ValueError(_("{most} pages are included at most", most=INCLUDES_MAX))
        self._includes[0] -= 1
        runner = copy.copy(self)
        runner._page = _RunPage(page.name, page.files, (*self._page.within, self._page.name))
        runner._done = {}
        if text == page.body:
            document = kept_document(self._site, page)
        else:
            document = parse(text, autolink=page.autolink, markup=page.markup)
        return render(
            document,
            existing=_existing(self._site, document),
            action=runner,
            page_url=page_url,
            contents=False,
            file=_files(self._site, page.name, page.files, document),
            is_allowed=self._site.pictures.allows,
        )

    def _run(self, action: str, arguments: Mapping[str, str]) -> str:
        if self._clock() > self._until_s:
            problem = _(
                "the actions before it took more than {seconds} s; put some of them on another page",
                seconds=f"{ACTIONS_S:.0f}",
            )
            return self._site.fragment("notice.html", action=action, problem=problem)
        try:
            name, files, within = self._page
            call = ActionCall(self._site, name, arguments, self._included, files, within, self._query_parameters)
            return ACTIONS[action].run(call)
        except NotAllowed:
            problem = _("it is about a page that you may not read")
            return self._site.fragment("notice.html", action=action, problem=problem)
        except (StoreUnavailable, ValueError, ArithmeticError, LookupError) as problem_:
            # faults of authors are shown on the page and not logged as warnings: an author could fill the log
            level = logging.DEBUG if isinstance(problem_, ValueError) else logging.WARNING
            log.log(level, "action %s of page %r: %s: %s", action, self._page.name, type(problem_).__name__, problem_)
            said = unavailable(problem_).rstrip(".") if isinstance(problem_, StoreUnavailable) else str(problem_)
            return self._site.fragment("notice.html", action=action, problem=said)
