"""The steps of one visitor: view a page, or fetch an edit form and post it back.

A visit always returns samples, also if it is cut off.  The
visitor keeps no state between visits; the cookies of an edit live as long as the edit.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_plus, urljoin

from .http.answer import Answer, NoAnswer
from .http.pool import Wire
from .latency import Sample
from .limits import DRAIN_S, OPEN_REQUESTS, REDIRECTS, TIMEOUT_S
from .outcome import Kind, Outcome, classify
from .pacing import Planned
from .targets.bodies import edit_body, is_of_a_replay
from .targets.forms import EditForm, find_edit_form
from .targets.paths import Layout, page_name
from .targets.target import Target
from .trace.lines import Request


@dataclass(frozen=True, slots=True)
class Load:
    """The content of requests and their target; ``limits`` explains the defaults."""

    target: Target
    layout: Layout = field(default_factory=Layout)
    seed: int = 1
    names: Sequence[str] = ()  # of pages that edits link to
    expect_404: bool = False  # the trace does not know which pages exist
    headers: tuple[tuple[str, str], ...] = ()
    allow_edits: bool = False  # of pages with foreign texts
    planned_s: float = 0.0  # intended starts end here
    warm_up_s: float = 0.0  # requests intended before this are sent but not counted
    timeout_s: float = TIMEOUT_S
    open_requests: int = OPEN_REQUESTS
    drain_s: float = DRAIN_S
    first_edit: int = 1  # numbers of edits are this one and on, in steps: workers have different ones
    edit_step: int = 1
    hopeless_s: float | None = None  # end as "overloaded" once a request is sent this late

    def edit_number(self, count: int) -> int:
        """Return the number of the ``count``-th edit of this process."""
        return self.first_edit + (count - 1) * self.edit_step


def kind_of(request: Request) -> Kind:
    """Return the kind under which the first exchange of a visit is counted."""
    if request.is_save:
        return Kind.EDIT_FORM
    return Kind.MISSING if request.is_missing else Kind.PAGE


class Visitor:
    """A visitor, who makes the visits of one replay."""

    def __init__(self, load: Load, wire: Wire, now_s: Callable[[], float], ended_early: Callable[[], bool]) -> None:
        self._load = load
        self._wire = wire
        self._now_s = now_s
        self._ended_early = ended_early

    async def view(self, planned: Planned, sent_s: float) -> list[Sample]:
        """View a page and return its sample; redirects within the site are followed and are part of the view."""
        kind, origin = kind_of(planned.request), self._load.target.origin + "/"
        url = self._load.target.url(self._load.layout.path(planned.request.url))
        outcome, why, size = Outcome.BROKEN, f"more than {REDIRECTS} redirects", 0
        try:
            for _ in range(REDIRECTS + 1):
                answer = await self._wire.exchange("GET", url)
                if isinstance(answer, NoAnswer):
                    outcome, why = answer.outcome, answer.why
                    break
                size += answer.size_bytes
                onward = urljoin(url, answer.location).partition("#")[0] if answer.location else ""
                status = classify(kind, answer.status, expect_404=self._load.expect_404)
                if status is not Outcome.REDIRECT or not onward.startswith(origin):
                    outcome, why = status, f"status {answer.status}"
                    break
                url = onward
        except asyncio.CancelledError:
            outcome, why = self._cut_off()
        return [Sample(kind, outcome, planned.start_s, sent_s, self._now_s(), size, url, why)]

    async def edit(self, planned: Planned, sent_s: float, number: int) -> list[Sample]:
        """Fetch the form, post the save if there is one, and return both samples; ``number`` counts all edits."""
        load = self._load
        page = load.layout.page(planned.request.url)
        url = load.target.url(load.layout.edit_path(page))
        answer = await self._cancellable(self._wire.exchange("GET", url, keep=True))
        read_s = self._now_s()
        outcome, why, form = _read_form(answer)
        size = answer.size_bytes if isinstance(answer, Answer) else 0
        first = Sample(Kind.EDIT_FORM, outcome, planned.start_s, sent_s, read_s, size, url, why)
        if form is None or not isinstance(answer, Answer):
            return [first]
        if not load.allow_edits and form.body.strip() and not is_of_a_replay(form.body):
            why = "not sent: the page holds a text that no replay wrote; --allow-edits overwrites it"
            return [first, Sample(Kind.EDIT_SAVE, Outcome.BROKEN, read_s, read_s, read_s, 0, url, why)]
        # making the body is the generator's work: the save begins after it
        data = form.filled(self._body(planned.request, page, number))
        action = urljoin(url, form.action) if form.action else url
        return [first, await self._save(action, url, data, answer.cookies)]

    async def _save(self, action: str, referer: str, data: bytes, cookies: str) -> Sample:
        origin = self._load.target.origin
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin, "Referer": referer}
        if cookies:
            headers["Cookie"] = cookies
        sent_s = self._now_s()
        if not action.startswith(origin + "/"):
            why = "the form posts to another site; not sent"
            return Sample(Kind.EDIT_SAVE, Outcome.BROKEN, sent_s, sent_s, sent_s, 0, action, why)
        answer = await self._cancellable(self._wire.exchange("POST", action, data=data, headers=headers))
        if isinstance(answer, NoAnswer):
            outcome, why, size = answer.outcome, answer.why, 0
        else:
            outcome, why, size = classify(Kind.EDIT_SAVE, answer.status), f"status {answer.status}", answer.size_bytes
            if outcome is Outcome.BROKEN:
                why += " where a save is answered by a redirect"
        return Sample(Kind.EDIT_SAVE, outcome, sent_s, sent_s, self._now_s(), size, action, why)

    def _body(self, request: Request, page: str, number: int) -> str:
        """Return the text that the trace has for the edit, or a text made from (seed, page, number)."""
        _, bar, given = request.flag.partition("|")
        if bar:
            return unquote_plus(given)
        name = page_name(page)
        return edit_body(random.Random(f"{self._load.seed}\n{name}\n{number}"), name, number, self._load.names)

    async def _cancellable(self, exchange: Coroutine[object, object, Answer | NoAnswer]) -> Answer | NoAnswer:
        try:
            return await exchange
        except asyncio.CancelledError:
            return NoAnswer(*self._cut_off())

    def _cut_off(self) -> tuple[Outcome, str]:
        """Return outcome and reason of a visit that was cancelled by the user or by the end of the drain."""
        if self._ended_early():
            return Outcome.INTERRUPTED, "the replay was ended first"
        return Outcome.TIMEOUT, "no answer when the drain ended"


def _read_form(answer: Answer | NoAnswer) -> tuple[Outcome, str, EditForm | None]:
    if isinstance(answer, NoAnswer):
        return answer.outcome, answer.why, None
    outcome, why = classify(Kind.EDIT_FORM, answer.status), f"status {answer.status}"
    if outcome is Outcome.REDIRECT:
        return Outcome.BROKEN, f"{why} where the edit form was expected", None
    if outcome is not Outcome.OK:
        return outcome, why, None
    form = find_edit_form(answer.body)
    if form is None:
        return Outcome.BROKEN, 'no form with <textarea name="body"> in the answer', None
    return outcome, why, form
