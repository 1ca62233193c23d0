"""The open loop: every request is sent at its intended start, whatever happens to other requests.

Visitors also come while the wiki stalls. So the dispatcher never waits for an answer, unless OPEN_REQUESTS requests are
under way: then the next request waits, in order, and its wait counts in its response time. Nothing is dropped; requests
that cannot be sent before the drain ends are recorded as failed.

    lateness  from max(intended start, moment a slot was free) to the actual send:
              the generator's own fault; small if the figures can be believed
    slot wait from the intended start to the moment a slot was free: the wiki's doing

An edit is two requests. The form is intended at the time of the trace, the save at the moment at which the form was
read, because that moment depends on the answer and cannot be planned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Final, Literal

from gauge.histogram import Histogram

from .http.pool import Wire
from .latency import Recorder, Sample
from .limits import INTERRUPT_GRACE_S
from .outcome import Outcome
from .pacing import Planned
from .visits import Load, Visitor, kind_of

TICK_S: Final = 0.001  # event loops wake no finer; less would only spin a core that the wiki may need
PAUSE_S: Final = 0.25  # longest sleep at a stretch, so that a stop is seen
BURST: Final = 32  # sends between two iterations of the event loop while catching up

Ending = Literal["complete", "interrupted", "overloaded"]


def wire_of(load: Load) -> Wire:
    origins, headers = [one.origin for one in load.target.addresses()], dict(load.headers)
    return Wire(*origins, timeout_s=load.timeout_s, headers=headers, connections=load.target.connections)


class Injector:
    """A replay of a trace.  It runs in one event loop; figures may be read between the loop's iterations."""

    def __init__(
        self, load: Load, clock: Callable[[], float] = time.perf_counter, connect: Callable[[Load], Wire] = wire_of
    ) -> None:
        """Take a ``clock`` that counts seconds from any moment, at the same pace as the event loop's sleeps."""
        self.load = load
        self._clock = clock
        self._connect = connect
        self.recorder = Recorder(load.planned_s)
        self.warm_up = Recorder(load.planned_s)
        self.own_lateness = Histogram()
        self.slot_wait = Histogram()
        self.ending: Ending = "complete"
        self.sent = 0
        self.open = 0
        self.most_open = 0
        self.edits = 0
        self.elapsed_s = 0.0
        self.cpu_s = 0.0
        self.retried = 0
        self.connections = 0
        self._freed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._mistake: BaseException | None = None
        self._began = 0.0

    def now_s(self) -> float:
        """Return the seconds since the replay began."""
        return self._clock() - self._began

    def stop(self, ending: Ending = "interrupted") -> None:
        """Send nothing more; requests under way have a short time to end."""
        if self.ending == "complete":
            self.ending = ending
        self._freed.set()

    async def run(self, plan: Iterable[Planned], begin_s: float | None = None) -> None:
        """Replay the plan until its end, a stop or the end of the drain.

        Starts count from ``begin_s`` of the clock, or else from now.
        """
        cpu = time.process_time()
        wire = self._connect(self.load)
        self._visitor = Visitor(self.load, wire, self.now_s, lambda: self.ending != "complete")
        self._began = self._clock() if begin_s is None else begin_s
        try:
            await self._dispatch(plan)
            await self._drain()
        finally:
            self.elapsed_s = self.now_s()
            self.cpu_s = time.process_time() - cpu
            self.retried, self.connections = wire.retried, wire.opened
            await wire.close()
        if self._mistake is not None:
            raise self._mistake

    async def _dispatch(self, plan: Iterable[Planned]) -> None:
        deadline_s = self.load.planned_s + self.load.drain_s
        blocked_until_s = 0.0  # before this moment the wiki is to blame for all lateness, from it on the generator is
        rest = iter(plan)
        for burst, planned in enumerate(rest, start=1):
            if burst % BURST == 0:
                await asyncio.sleep(0)
            await self._until(planned.start_s)
            if self.open >= self.load.open_requests:
                blocked_until_s = await self._slot(planned, deadline_s)
            else:
                self._waited(planned, blocked_until_s)
            if self.load.hopeless_s is not None and self.now_s() - planned.start_s > self.load.hopeless_s:
                self.stop("overloaded")
            if self.ending != "complete":
                due = list(takewhile(self._is_due, rest))
                for other in due:
                    self._waited(other, blocked_until_s)
                self._give_up([planned, *due])
                return
            if self.open >= self.load.open_requests:
                self._unsent(planned, Outcome.UNSENT, "its turn had not come when the drain ended")
            else:
                self._start(planned, max(planned.start_s, blocked_until_s))

    async def _until(self, start_s: float) -> None:
        while (wait := start_s - self.now_s()) > 0 and self.ending == "complete":  # noqa: ASYNC110  it is time that passes, not an event
            await asyncio.sleep(min(max(wait, TICK_S), PAUSE_S))

    def _is_due(self, planned: Planned) -> bool:
        return planned.start_s <= self.now_s()

    def _give_up(self, waiting: list[Planned]) -> None:
        """Record the requests that were due and not sent when the replay was ended early."""
        outcome = Outcome.INTERRUPTED if self.ending == "interrupted" else Outcome.UNSENT
        for planned in waiting:
            if self._is_due(planned):
                self._unsent(planned, outcome, f"not sent: the replay was {self.ending}")

    async def _slot(self, planned: Planned, deadline_s: float) -> float:
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
        free_s = self.now_s()
        self._waited(planned, free_s)
        return free_s

    def _waited(self, planned: Planned, free_s: float) -> None:
        """Count the wait of a request that was due before a slot was free at ``free_s``, first in the queue or not."""
        if planned.start_s < free_s:
            self.slot_wait.record(round((free_s - planned.start_s) * 1e6))

    def _unsent(self, planned: Planned, outcome: Outcome, why: str) -> None:
        now_s, start_s, request = self.now_s(), planned.start_s, planned.request
        self._record(start_s, Sample(kind_of(request), outcome, start_s, now_s, now_s, 0, request.url, why))

    def _start(self, planned: Planned, due_s: float) -> None:
        self.sent += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        if planned.request.is_save:
            self.edits += 1
        task = asyncio.get_running_loop().create_task(self._visit(planned, due_s, self.load.edit_number(self.edits)))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _visit(self, planned: Planned, due_s: float, number: int) -> None:
        sent_s = self.now_s()
        self.own_lateness.record(round((sent_s - due_s) * 1e6))
        if planned.request.is_save:
            samples = await self._visitor.edit(planned, sent_s, number)
        else:
            samples = await self._visitor.view(planned, sent_s)
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
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting)

    def _record(self, start_s: float, sample: Sample) -> None:
        (self.warm_up if start_s < self.load.warm_up_s else self.recorder).add(sample)
