"""From a text to the HTML of its page: parsed once, links and actions filled in at each view."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping

from werkzeug.wrappers import Request

from wikka_port.actions import ACTIONS, ActionCall
from wikka_port.actions.unsupported_actions import instead_of
from wikka_port.limits import ACTIONS_S, INCLUDED_CHARS_MAX, INCLUDES_MAX, QUICK_STEPS
from wikka_port.markup.bounds import is_expensive
from wikka_port.markup.document import Document, no_note, parse, render
from wikka_port.markup.fragments import ActionSlot, escape
from wikka_port.pages import Page, StoreUnavailable
from wikka_port.refusals import unavailable
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.slow_lane import run_in_slow_lane
from wikka_port.texts import _, figure
from wikka_port.urls import page_url

log = logging.getLogger(__name__)


def page_document(site: Site, request: Request, page: Page) -> Document:
    """Parsed, in the queue that the page belongs to.  Raises TooManyExpensiveRequests."""
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
    name: str,
    document: Document,
    *,
    edit: str = "",
    notes: bool = False,
    contents: bool = True,
    parameters: Mapping[str, str] | None = None,
) -> str:
    """``edit``: the path of the page's editor, where the headings have links to it (``document.render``).

    ``notes``: an action that is not run says so in its place, for an editor; readers see nothing there.
    ``parameters``: those of the page's address, for its actions.
    """
    run, note = _runner(site, name, parameters), _note if notes else no_note
    return render(
        document,
        existing=_existing(site, document),
        action=run,
        page_url=page_url,
        note=note,
        edit=edit,
        contents=contents,
    )


def _existing(site: Site, document: Document) -> frozenset[str]:
    return site.wiki.existing(document.links) if document.links else frozenset()


def preview_html(site: Site, name: str, text: str, *, autolink: bool, markup: str, whole: bool) -> str:
    """A preview never fails, and says which of its actions readers will not see.

    While the store is unavailable, links are shown as if their pages existed.  ``whole``: the text is a page, not a
    section.
    """
    document = parse(text, autolink=autolink, markup=markup)
    try:
        existing = _existing(site, document)
    except StoreUnavailable:
        existing = frozenset(document.links)
    run = _runner(site, name)
    return render(document, existing=existing, action=run, page_url=page_url, note=_note, contents=whole)


def _note(slot: ActionSlot) -> str:
    """Return the message to an author about an action that is not run."""
    if slot.refused:
        said = _("The action {name} is not run: {why}.", name=slot.name, why=slot.refused)
    else:
        said = instead_of(slot.name)
    tag = "p" if slot.block else "span"
    return f'<{tag} class="notice">{escape(said)}</{tag}>'


class _runner:  # noqa: N801 - a function with a memory
    """Runs the actions of one page; what goes wrong in one is shown in its place.

    The same call twice is run once.  Calls that begin after ACTIONS_S are not run.
    """

    def __init__(
        self,
        site: Site,
        name: str,
        parameters: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._site = site
        self._name = name
        self._query_parameters = parameters
        self._within: tuple[str, ...] = ()
        self._clock = clock
        self._until_s = clock() + ACTIONS_S
        self._includes = [INCLUDES_MAX]  # left; of all pages of this view together
        self._chars = [INCLUDED_CHARS_MAX]  # as well
        self._done: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}

    def __call__(self, action: str, arguments: Mapping[str, str]) -> str | None:
        if action not in ACTIONS:
            return None
        call = (action, tuple(sorted(arguments.items())))
        if call not in self._done:
            self._done[call] = self._run(action, arguments)
        return self._limit_included_html(self._done[call]) if action == "include" else self._done[call]

    def _limit_included_html(self, html: str) -> str:
        """Return the HTML of a page that is included once more."""
        self._chars[0] -= len(html)
        if self._chars[0] >= 0:
            return html
        most = figure(INCLUDED_CHARS_MAX)
        problem = _("all that is included would have more than {most} characters", most=most)
        return self._site.fragment("notice.html", action="include", problem=problem)

    def _included(self, page: Page, text: str) -> str:
        """``text``, which is that of ``page`` with the parameters of a call, as HTML; it may include others."""
        if self._includes[0] == 0:
            raise ValueError(_("{most} pages are included at most", most=INCLUDES_MAX))
        self._includes[0] -= 1
        runner = copy.copy(self)
        runner._name, runner._within, runner._done = page.name, (*self._within, self._name), {}
        if text == page.body:
            document = kept_document(self._site, page)
        else:
            document = parse(text, autolink=page.autolink, markup=page.markup)
        return render(
            document, existing=_existing(self._site, document), action=runner, page_url=page_url, contents=False
        )

    def _run(self, action: str, arguments: Mapping[str, str]) -> str:
        if self._clock() > self._until_s:
            problem = _(
                "the actions before it took more than {seconds} s; put some of them on another page",
                seconds=f"{ACTIONS_S:.0f}",
            )
            return self._site.fragment("notice.html", action=action, problem=problem)
        try:
            call = ActionCall(self._site, self._name, arguments, self._included, self._within, self._query_parameters)
            return ACTIONS[action].run(call)
        except NotAllowed:
            problem = _("it is about a page that you may not read")
            return self._site.fragment("notice.html", action=action, problem=problem)
        except (StoreUnavailable, ValueError, ArithmeticError, LookupError) as problem_:
            # what an author wrote is said on the page: an author could fill the log
            level = logging.DEBUG if isinstance(problem_, ValueError) else logging.WARNING
            log.log(level, "action %s of page %r: %s: %s", action, self._name, type(problem_).__name__, problem_)
            said = unavailable(problem_).rstrip(".") if isinstance(problem_, StoreUnavailable) else str(problem_)
            return self._site.fragment("notice.html", action=action, problem=said)
