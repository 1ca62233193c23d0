"""The steps of one visitor: view a page, or fetch an edit form and post it back.

A visit always returns samples, also if it is cut off.  The
visitor keeps no state between visits; the cookies of an edit live as long as the edit, besides those of the user who
signed in before the load.  Visits take turns among the addresses of the target, and edits among the users.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import cycle
from urllib.parse import unquote_plus, urljoin

from .addresses.paths import Layout, page_name
from .http.answer import Answer, NoAnswer
from .http.pool import Kept, Wire
from .latency import Sample
from .limits import DRAIN_S, OPEN_REQUESTS, REDIRECTS, TIMEOUT_S
from .outcome import Kind, Outcome, classify
from .pacing import Planned
from .targets.bodies import edit_body, is_of_a_replay
from .targets.forms import EditForm, find_edit_form, judge_save
from .targets.login import merged_cookies
from .targets.target import Target
from .trace.lines import Request


@dataclass(frozen=True, slots=True)
class Load:
    """The content of requests and their target; ``limits`` explains the defaults."""

    target: Target
    layout: Layout = field(default_factory=Layout)
    seed: int = 1
    names: tuple[str, ...] = ()  # of pages that edits link to
    expect_404: bool = False  # the trace does not know which pages exist
    headers: tuple[tuple[str, str], ...] = ()
    allow_edits: bool = False  # of pages with foreign texts
    planned_s: float = 0.0  # intended starts end here
    warm_up_s: float = 0.0  # requests intended before this are sent but not counted
    timeout_s: float = TIMEOUT_S
    open_requests: int = OPEN_REQUESTS
    drain_s: float = DRAIN_S
    hopeless_s: float | None = None  # end as "overloaded" once a request is sent this late


def kind_of(request: Request) -> Kind:
    """Return the kind under which the first exchange of a visit is counted."""
    if request.is_save:
        return Kind.EDIT_FORM
    return Kind.MISSING if request.is_missing else Kind.PAGE


@dataclass(frozen=True, slots=True)
class _Editor:
    """An edit's address and user, and the connections of its visit."""

    target: Target
    user: str  # the Cookie header; empty without a user
    kept: Kept


class Visitor:
    """A visitor, who makes the visits of one replay."""

    def __init__(self, load: Load, wire: Wire, now_s: Callable[[], float], ended_early: Callable[[], bool]) -> None:
        self._load = load
        self._wire = wire
        self._now_s = now_s
        self._ended_early = ended_early
        self._targets = cycle(load.target.addresses())
        self._users = cycle(load.target.users or ("",))

    async def view(self, planned: Planned, sent_s: float) -> list[Sample]:
        """View a page and return its sample; redirects within the site are followed and are part of the view."""
        request, target, kept = planned.request, next(self._targets), self._wire.begin_visit()
        kind, method = kind_of(request), "HEAD" if request.is_head else "GET"
        url = target.url(self._load.layout.path(request.url))
        outcome, why, size = Outcome.BROKEN, f"more than {REDIRECTS} redirects", 0
        answer: Answer | NoAnswer | None = None
        try:
            for _ in range(REDIRECTS + 1):
                answer = await self._wire.exchange(method, url, kept=kept)
                if isinstance(answer, NoAnswer):
                    outcome, why = answer.outcome, answer.why
                    break
                size += answer.size_bytes
                onward = urljoin(url, answer.location).partition("#")[0] if answer.location else ""
                status = classify(kind, answer.status, expect_404=self._load.expect_404)
                if status is not Outcome.REDIRECT or not onward.startswith(target.origin + "/"):
                    outcome, why = status, f"status {answer.status}"
                    break
                url = onward
        except asyncio.CancelledError:
            outcome, why = self._cut_off()
            answer = None
        ended_s = self._ended_s(answer)
        self._wire.end_visit(kept)
        return [Sample(kind, outcome, planned.start_s, sent_s, ended_s, size, url, why)]

    def _ended_s(self, answer: Answer | NoAnswer | None) -> float:
        """Return when the last byte was read.

        The visit continues later, because the loop reads all that has come before it wakes those who wait for it.
        """
        return self._now_s() - (self._wire.age_s(answer) if isinstance(answer, Answer) else 0.0)

    async def edit(self, planned: Planned, sent_s: float) -> list[Sample]:
        """Fetch the form, post the save if there is one, and return both samples."""
        load = self._load
        page = load.layout.page(planned.request.url)
        by = _Editor(next(self._targets), next(self._users), self._wire.begin_visit())
        url = by.target.url(load.layout.edit_path(page))
        headers = {"Cookie": by.user} if by.user else None
        answer = await self._cancellable(self._wire.exchange("GET", url, headers=headers, keep=True, kept=by.kept))
        read_s = self._ended_s(answer)
        outcome, why, form = self._read_form(answer)
        size = answer.size_bytes if isinstance(answer, Answer) else 0
        first = Sample(Kind.EDIT_FORM, outcome, planned.start_s, sent_s, read_s, size, url, why)
        if form is None or not isinstance(answer, Answer):
            self._wire.end_visit(by.kept)
            return [first]
        if not load.allow_edits and form.body.strip() and not is_of_a_replay(form.body):
            self._wire.end_visit(by.kept)
            why = "not sent: the page holds a text that no replay wrote; --allow-edits overwrites it"
            return [first, Sample(Kind.EDIT_SAVE, Outcome.BROKEN, read_s, read_s, read_s, 0, url, why)]
        # making the body is the generator's work: the save begins after it
        data = form.filled(self._body(planned.request, page, planned.edit))
        action = urljoin(url, form.action) if form.action else url
        second = await self._save(action, url, data, merged_cookies(by.user, answer.cookies), by)
        self._wire.end_visit(by.kept)
        return [first, second]

    async def _save(self, action: str, referer: str, data: bytes, cookies: str, by: _Editor) -> Sample:
        rules, origin = self._load.layout.map, by.target.origin
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin, "Referer": referer}
        if cookies:
            headers["Cookie"] = cookies
        sent_s = self._now_s()
        if not action.startswith(origin + "/"):
            why = "the form posts to another site; not sent"
            return Sample(Kind.EDIT_SAVE, Outcome.BROKEN, sent_s, sent_s, sent_s, 0, action, why)
        keep = bool(rules.form.conflict_text)
        answer = await self._cancellable(
            self._wire.exchange("POST", action, data=data, headers=headers, keep=keep, kept=by.kept)
        )
        ended_s = self._ended_s(answer)
        if isinstance(answer, NoAnswer):
            outcome, why, size = answer.outcome, answer.why, 0
        else:
            outcome, why = judge_save(answer.status, answer.location, answer.body, rules.form, rules.login)
            size = answer.size_bytes
        return Sample(Kind.EDIT_SAVE, outcome, sent_s, sent_s, ended_s, size, action, why)

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

    def _read_form(self, answer: Answer | NoAnswer) -> tuple[Outcome, str, EditForm | None]:
        if isinstance(answer, NoAnswer):
            return answer.outcome, answer.why, None
        outcome, why = classify(Kind.EDIT_FORM, answer.status), f"status {answer.status}"
        if outcome is Outcome.REDIRECT:
            return Outcome.BROKEN, f"{why} where the edit form was expected{self._sign_in()}", None
        if outcome is not Outcome.OK:
            return outcome, why, None
        rules = self._load.layout.map.form
        form = find_edit_form(answer.body, rules)
        if form is not None and not form.is_read_only:
            return outcome, why, form
        if rules.locked_text and rules.locked_text in answer.body:
            return Outcome.CONFLICT, "somebody else is editing the page", None
        if form is not None:
            return Outcome.BROKEN, f"the edit form is only for reading{self._sign_in()}", None
        return Outcome.BROKEN, f'no form with <textarea name="{rules.text}"> in the answer{self._sign_in()}', None

    def _sign_in(self) -> str:
        if self._load.target.users or self._load.layout.map.login is None:
            return ""
        return " (edits may need users: --users)"
