"""The open loop: every request is sent at its intended start, whatever happens to other requests.

Visitors also come while the wiki stalls. So the dispatcher never waits for an answer, unless OPEN_REQUESTS requests are
under way: then the next request waits, in order, and its wait counts in its response time. Nothing is dropped; requests
that cannot be sent before the drain ends are recorded as failed.

    dealt late from the intended start to the moment the request came from the controller, if there is one
    slot wait  from then to the moment a slot was free: the wiki's doing
    lateness   from max(intended start, dealt, moment a slot was free) to the actual send:
               the generator's own fault; small if the figures can be believed

These three and the service time are the response time of each request.  Requests come from a ``Source``, which may
have none for a moment, and may forbid to send.

An edit is two requests. The form is intended at the time of the trace, the save at the moment at which the form was
read, because that moment depends on the answer and cannot be planned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, Protocol

from .http.pool import Wire
from .latency import Figures, Sample
from .limits import INTERRUPT_GRACE_S
from .outcome import Outcome
from .pacing import Planned
from .request_log import RequestLog
from .visits import Load, Visitor, kind_of

TICK_S: Final = 0.001  # event loops wake no finer; less would only spin a core that the wiki may need
PAUSE_S: Final = 0.25  # longest sleep at a stretch, so that a stop is seen
BURST: Final = 32  # sends between two iterations of the event loop while catching up


class Source(Protocol):
    """The requests to send, by their starts."""

    @property
    def is_complete(self) -> bool:
        """Whether no more requests will come."""

    def first(self) -> Planned | None:
        """Return the next request; None if there is none now."""

    def take_first(self) -> Planned: ...

    def may_send(self) -> bool:
        """Return whether a request may be sent now."""

    async def changed(self) -> None:
        """Wait until requests have come, or may be sent, or until PAUSE_S have gone by."""


class PlanSource:
    """A plan in this process: it has all its requests, and all may be sent."""

    def __init__(self, plan: Iterable[Planned]) -> None:
        self._rest = iter(plan)
        self._first: Planned | None = None

    @property
    def is_complete(self) -> bool:
        return self._first is None

    def first(self) -> Planned | None:
        if self._first is None:
            self._first = next(self._rest, None)
        return self._first

    def take_first(self) -> Planned:
        first = self.first()
        assert first is not None
        self._first = None
        return first

    def may_send(self) -> bool:
        return True

    async def changed(self) -> None:
        await asyncio.sleep(0)


def wire_of(load: Load) -> Wire:
    origins, headers = [one.origin for one in load.target.addresses()], dict(load.headers)
    return Wire(*origins, timeout_s=load.timeout_s, headers=headers, connections=load.target.connections)


class Used(NamedTuple):
    """Time and processor time of a replay that has ended."""

    elapsed_s: float = 0.0
    cpu_s: float = 0.0


class Injector:
    """A replay of a trace.  It runs in one event loop; figures may be read between the loop's iterations."""

    def __init__(
        self,
        load: Load,
        clock: Callable[[], float] = time.perf_counter,
        connect: Callable[[Load], Wire] = wire_of,
        log: RequestLog | None = None,
    ) -> None:
        """Take a ``clock`` that counts seconds from any moment, at the same pace as the event loop's sleeps.

        Each request is a line of ``log``, whose owner closes it.
        """
        self.load = load
        self._log = log
        self._clock = clock
        self._connect = connect
        self.figures = Figures.empty(load.planned_s)
        self.finished = 0  # planned requests that have been recorded
        self.ending = "complete"  # or "interrupted", "overloaded", or why a controller ended it
        self.sent = 0
        self.open = 0
        self.most_open = 0
        self.used = Used()
        self._wire: Wire | None = None  # once the replay runs
        self._freed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._mistake: BaseException | None = None
        self._began = 0.0

    def now_s(self) -> float:
        """Return the seconds since the replay began."""
        return self._clock() - self._began

    @property
    def retried(self) -> int:
        return 0 if self._wire is None else self._wire.retried

    @property
    def connections(self) -> int:
        return 0 if self._wire is None else self._wire.opened

    def stop(self, ending: str = "interrupted") -> None:
        """Send nothing more; requests under way have a short time to end."""
        if self.ending == "complete":
            self.ending = ending
        self._freed.set()

    def take_figures(self) -> Figures:
        """Return the figures since the last call, and begin new ones."""
        found = self.figures
        self.figures = Figures.empty(self.load.planned_s)
        return found

    async def run(self, source: Source, begin_s: float | None = None) -> None:
        """Replay the plan until its end, a stop or the end of the drain.

        Starts count from ``begin_s`` of the clock, or else from now.
        """
        cpu = time.process_time()
        wire = self._wire = self._connect(self.load)
        self._visitor = Visitor(self.load, wire, self.now_s, lambda: self.ending != "complete")
        self._began = self._clock() if begin_s is None else begin_s
        try:
            await self._dispatch(source)
            await self._drain()
        finally:
            self.used = Used(self.now_s(), time.process_time() - cpu)
            await self._cut_off(set(self._tasks))  # none but where this task was cancelled
            await wire.close()
        if self._mistake is not None:
            raise self._mistake

    async def _dispatch(self, source: Source) -> None:
        deadline_s = self.load.planned_s + self.load.drain_s
        blocked_until_s = 0.0  # before this moment the wiki is to blame for all lateness, from it on the generator is
        burst = 0
        while (planned := await self._next(source)) is not None:
            burst += 1
            if burst % BURST == 0:
                await asyncio.sleep(0)
            if self.open >= self.load.open_requests:
                blocked_until_s = await self._slot(deadline_s)
            while not source.may_send() and self.ending == "complete":
                await source.changed()
            due_s = self._waited(planned, blocked_until_s)
            if self.load.hopeless_s is not None and self.now_s() - planned.start_s > self.load.hopeless_s:
                self.stop("overloaded")
            if self.ending != "complete":
                self._give_up(planned)
                break
            if self.open >= self.load.open_requests:
                self._unsent(planned, Outcome.UNSENT, "its turn had not come when the drain ended")
            else:
                self._start(planned, due_s)
        while self.ending != "complete" and (first := source.first()) is not None and self._is_due(first):
            planned = source.take_first()
            self._waited(planned, blocked_until_s)
            self._give_up(planned)

    async def _next(self, source: Source) -> Planned | None:
        """Return the next request once it is due; None at the end of the plan or after a stop."""
        while self.ending == "complete":
            first = source.first()
            if first is None:
                if source.is_complete:
                    return None
                await source.changed()
            elif self.now_s() >= first.start_s:
                return source.take_first()
            else:
                await asyncio.sleep(min(max(first.start_s - self.now_s(), TICK_S), PAUSE_S))
        return None

    def _is_due(self, planned: Planned) -> bool:
        return planned.start_s <= self.now_s()

    def _give_up(self, planned: Planned) -> None:
        """Record a request that was due and not sent when the replay was ended early."""
        outcome = Outcome.INTERRUPTED if self.ending == "interrupted" else Outcome.UNSENT
        self._unsent(planned, outcome, f"not sent: the replay was {self.ending}")

    async def _slot(self, deadline_s: float) -> float:
        """Wait until one more request may be open; return the moment from which lateness is the generator's fault."""
        while self.open >= self.load.open_requests and self.ending == "complete":
            left_s = deadline_s - self.now_s()
            if left_s <= 0:
                break
            self._freed.clear()
            try:
                async with asyncio.timeout(left_s):
                    await self._freed.wait()
            except TimeoutError:
                break
        return self.now_s()

    def _waited(self, planned: Planned, free_s: float) -> float:
        """Count the waits that are not the generator's; return the moment from which lateness is its own.

        ``free_s`` is when a slot was free, for this request or for an earlier one.
        """
        due_s, figures = planned.start_s, self.figures
        if planned.dealt_s > due_s:
            figures.dealt_late.record(round((planned.dealt_s - due_s) * 1e6))
            due_s = planned.dealt_s
        if free_s > due_s:
            figures.slot_wait.record(round((free_s - due_s) * 1e6))
            due_s = free_s
        return due_s

    def _unsent(self, planned: Planned, outcome: Outcome, why: str) -> None:
        now_s, start_s, request = self.now_s(), planned.start_s, planned.request
        self.finished += 1
        self._record(start_s, Sample(kind_of(request), outcome, start_s, now_s, now_s, 0, request.url, why))

    def _start(self, planned: Planned, due_s: float) -> None:
        self.sent += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        task = asyncio.get_running_loop().create_task(self._visit(planned, due_s))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _visit(self, planned: Planned, due_s: float) -> None:
        sent_s = self.now_s()
        self.figures.own_lateness.record(round((sent_s - due_s) * 1e6))
        if planned.request.is_save:
            samples = await self._visitor.edit(planned, sent_s)
        else:
            samples = await self._visitor.view(planned, sent_s)
        self.finished += 1
        for sample in samples:
            self._record(planned.start_s, sample)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.open -= 1
        self._freed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._mistake = error  # ours, not the wiki's: the figures would be wrong, so the replay ends
            self.stop()

    async def _drain(self) -> None:
        left_s = self.load.planned_s + self.load.drain_s - self.now_s()
        if self.ending != "complete":
            left_s = INTERRUPT_GRACE_S
        waiting = set(self._tasks)
        while waiting and left_s > 0:
            step_s = min(left_s, PAUSE_S)
            _, waiting = await asyncio.wait(waiting, timeout=step_s)
            left_s -= step_s
            if self.ending != "complete":
                left_s = min(left_s, INTERRUPT_GRACE_S)
        await self._cut_off(waiting)

    async def _cut_off(self, visits: Collection[asyncio.Task[None]]) -> None:
        """Cancel visits and wait for them: one that connects while the wire closes would keep it from closing."""
        for task in visits:
            task.cancel()
        if visits:
            await asyncio.wait(visits)

    def _record(self, start_s: float, sample: Sample) -> None:
        figures, is_warm_up = self.figures, start_s < self.load.warm_up_s
        (figures.warm_up if is_warm_up else figures.recorder).add(sample)
        if self._log is not None:
            self._log.add(sample, is_warm_up=is_warm_up)
