"""A worker slot: a worker process and the calls that are in it.

Two slots serve the triggers of a pool.  The first slot runs calls in parallel.  When its process dies, it is unknown
which call was the cause.  So these calls, and no others, run again one at a time in the second slot, the quarantine
(``is_quarantine``), where a death has a single suspect.  Other calls continue in the first slot meanwhile.

A call's time runs from when the worker says that it began, which it says of each call that takes longer than a moment;
if a module may have to be imported first, and in quarantine, it runs from when the call was sent.  A worker that says
nothing for longer than any of its calls may run has blocked threads (code that keeps the interpreter's lock): it
is ended, and its calls are suspects.  The clock of its silence starts when it last said something, or when it got
something to do; a call sent to a silent worker neither stops that clock nor counts among the calls that may be long.

Owned by the loop; the feeder decides which calls run, ``outcomes`` handles their outcomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from columnar.flows.applier import Job
from columnar.flows.delivery_state import Delivery
from columnar.flows.effect_contributions import ChangeContributions, Giver
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.runtime.planned_step import PlannedStep
from columnar.triggers.consumer import Consumer
from columnar.triggers.frames import FULL_FRAME_BYTES, size_of
from columnar.triggers.worker_link import Listener

RUNNING_BYTES: Final = 64 * 1024 * 1024  # of changes that run, or are being sent: no call begins beyond it
IMPORT_S: Final = 20.0  # a call whose module must be imported first has this long until it begins
SILENCE_S: Final = 5.0  # a worker with calls says something twice a second
# A call that blocks a worker was sent at most this long after its last frame: later, it would have said something.
BEGAN_S: Final = 1.0
AGAIN_S: Final = 0.1  # after an unexpected exception
LOOP: Final = "the lane of a trigger worker"


class Link(Protocol):
    @property
    def is_up(self) -> bool: ...

    def want(self) -> None: ...

    def send(self, *parts: Any) -> None: ...

    def kill(self) -> None: ...

    async def close(self) -> None: ...


MakeLink = Callable[[Listener], Link]


class Call:
    """A change in a worker, or a batch of changes."""

    __slots__ = (
        "consumer",
        "deliveries",
        "gives",
        "hops",
        "is_abandoned",
        "is_between_slices",
        "is_cold",
        "is_scheduled",
        "is_sent",
        "job",
        "number",
        "sent_s",
        "size_bytes",
        "stamps",
        "timer",
        "used_s",
        "worker_slot",
    )  # fmt: skip

    def __init__(self, slot: WorkerSlot, consumer: Consumer, deliveries: list[Delivery]) -> None:
        self.worker_slot = slot
        self.consumer = consumer
        self.deliveries = deliveries  # one, except for a batch
        self.number = 0  # in the worker slot; 0: it is in none
        self.size_bytes = 0  # of its changes
        self.stamps: list[int] = []  # of its changes, as they were sent
        self.hops: list[int] = []  # of its changes: how many led to each
        self.used_s = 0.0  # of its slices so far
        self.is_scheduled = False  # of its pool's ``fair``
        self.is_sent = False
        self.sent_s = 0.0  # when its slice was, by the loop's clock
        self.is_cold = False  # its module may have to be imported
        self.is_between_slices = False  # a slice is over and another is to come: it holds no place
        self.is_abandoned = False  # its consumer is gone: the answer is of no use, but the place is taken
        self.job: Job | None = None  # its effects that are being written
        self.gives: Giver | None = None  # its contributions to totals
        self.timer: asyncio.TimerHandle | None = None

    @property
    def module(self) -> str:
        return self.consumer.registration.module

    def contributions_of(self, at: int) -> ChangeContributions:
        """Return the contributions of one of its changes, for its effects on totals."""
        if self.gives is None:
            self.gives = Giver(self.consumer.registration.name)
        return ChangeContributions(self.gives, self.deliveries[at].row, self.deliveries[at].sequence)

    @property
    def timeout_s(self) -> float:
        return self.consumer.registration.timeout_ms / 1000

    @property
    def limit_s(self) -> float:
        return max(IMPORT_S, self.timeout_s) if self.is_cold else self.timeout_s

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class WorkerEvents(Protocol):
    """The feeder, as a worker slot sees it."""

    def answered(self, slot: WorkerSlot, frame: list[Any]) -> None: ...

    def worker_ready(self) -> None: ...

    def worker_exited(self, slot: WorkerSlot, how: str) -> None: ...

    def timed_out(self, call: Call) -> None: ...

    def silent(self, slot: WorkerSlot, seconds: float) -> None: ...


class WorkerSlot:
    """``Listener`` of its link."""

    def __init__(self, events: WorkerEvents, label: str = "", *, is_quarantine: bool = False) -> None:
        self.label = label  # of its pool; constant, as ``is_quarantine``
        self.is_quarantine = is_quarantine
        self.calls: dict[int, Call] = {}
        self.link: Link | None = None
        self._events = events
        self._last_number = 0
        self._warm: set[str] = set()  # modules that this process has imported
        self._outgoing: list[Any] = []
        self._outgoing_bytes = 0
        self._running_bytes = 0  # of calls that are not between slices
        self._why_ended = ""  # by the store; empty: the process ends by itself
        self._working = 0  # calls in the worker that are not between slices
        self._quiet_s = 0.0  # since when it owes a frame: its last one, or the first work that it got after a rest
        self._listening = PlannedStep(LOOP, self._listen)

    @property
    def has_room(self) -> bool:
        """Return whether one more call fits.  Calls between slices do not count: they could wait for each other."""
        return self._running_bytes < RUNNING_BYTES

    def wanted(self) -> bool:
        """Return whether calls may be sent now; starts the process if it is not there."""
        if self.link is None:
            return False
        if not self.link.is_up:
            self.link.want()
        return self.link.is_up

    # --- to the worker -------------------------------------------------------------------------------

    def admit(self, call: Call, changes: list[Any]) -> None:
        """The call has a place from now on, until ``remove``."""
        call.size_bytes = sum(map(size_of, changes))
        self._running_bytes += call.size_bytes
        self._last_number += 1
        call.number = self._last_number
        self.calls[call.number] = call

    def send(self, call: Call, changes: list[Any]) -> None:
        """Send the call with the next ``flush``, or before."""
        registration = call.consumer.registration
        function = registration.function
        call.is_cold = call.module not in self._warm
        if call.is_cold or self.is_quarantine:
            self._arm(call)
        first, is_batch = call.deliveries[0], registration.batch > 0
        progress = [first.progress, first.part] if first.progress else None
        parts = [call.number, registration.name, function, registration.side_by_side, changes, progress, is_batch]
        self._works(call)
        self._outgoing.append(parts)
        call.is_sent = True
        self._outgoing_bytes += call.size_bytes
        if self._outgoing_bytes >= FULL_FRAME_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._outgoing:
            outgoing, self._outgoing, self._outgoing_bytes = self._outgoing, [], 0
            try:
                self._send("run", outgoing)
            except UNEXPECTED:
                self._outgoing[:0] = outgoing  # with the next flush
                raise

    def _send(self, *parts: Any) -> None:
        """A worker that cannot be sent something is ended: what it should have done comes again, each call alone."""
        if self.link is not None and self.link.is_up:
            try:
                self.link.send(*parts)
            except Exception as fault:  # noqa: BLE001 - no other task would wait for the calls of the frame
                FAULTS.met(LOOP, fault)
                self.link.kill()

    def send_next_slice(self, call: Call) -> None:
        """The effects of its last slice are written: the next slice, or nothing more of an abandoned call."""
        call.is_between_slices = False
        self._running_bytes += call.size_bytes
        self._works(call)
        self._send("drop" if call.is_abandoned else "go", call.number)

    def rested(self, call: Call) -> None:
        """A slice of it is over, and another is to come."""
        call.is_between_slices = True
        self._running_bytes -= call.size_bytes
        self._working -= 1

    def remove(self, call: Call) -> None:
        """Remove the call, which is not between slices, from its place."""
        self._running_bytes -= call.size_bytes
        self._working -= call.is_sent
        del self.calls[call.number]
        if not self.calls:
            self._listening.cancel()

    # --- time ----------------------------------------------------------------------------------------

    def _arm(self, call: Call) -> None:
        call.end()
        call.timer = asyncio.get_running_loop().call_later(call.limit_s, self._timed_out, call)

    def began(self, number: int) -> None:
        """The worker runs the call, and has imported its function."""
        call = self.calls.get(number)
        if call is not None and not call.is_between_slices:
            self.imported(call.module)
            call.is_cold = False
            self._arm(call)

    def imported(self, module: str) -> None:
        """The process has the module: what was sent before runs from when it begins."""
        if module not in self._warm:
            self._warm.add(module)
            for call in self.calls.values():
                if call.is_cold and call.module == module and not self.is_quarantine:
                    call.is_cold = False
                    call.end()

    def has(self, module: str) -> bool:
        """Return whether the process has imported the module, as far as the store knows."""
        return module in self._warm

    def reloads(self) -> None:
        """Note that modules are imported again from now on."""
        self._warm.clear()

    def _timed_out(self, call: Call) -> None:
        try:
            self._events.timed_out(call)
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            if self.calls.get(call.number) is call and self.link is not None:
                self.link.kill()

    def _works(self, call: Call) -> None:
        """Note that the worker has this call to run; with all its calls between slices it had nothing to say."""
        call.sent_s = asyncio.get_running_loop().time()
        if not self._working:
            self._quiet_s = call.sent_s
        self._listening.after(SILENCE_S)
        self._working += 1  # last: a call that could not be sent does not count

    def came_too_late(self) -> list[Call]:
        """The calls that were sent when the worker was silent already: none of them holds it up."""
        began_s = self._quiet_s + BEGAN_S
        return [
            call
            for call in self.calls.values()
            if call.is_sent and not call.is_between_slices and call.sent_s > began_s
        ]

    def end_worker(self, why: str) -> None:
        """``worker_gone`` follows."""
        self._why_ended = why
        if self.link is not None:
            self.link.kill()

    def _listen(self) -> None:
        late = frozenset(self.came_too_late())
        calls = [call for call in self.calls.values() if call.is_sent and not call.is_between_slices]
        # Not ``limit_s``: an import takes long, but does not keep the interpreter for long.
        limits = [call.timeout_s for call in calls if call not in late]
        if not limits:
            return
        limit_s = max(SILENCE_S, *limits)
        quiet_s = asyncio.get_running_loop().time() - self._quiet_s
        if quiet_s >= limit_s:
            self._events.silent(self, quiet_s)
        else:
            self._listening.after(limit_s - quiet_s)

    # --- its end -------------------------------------------------------------------------------------

    def take_all(self) -> list[Call]:
        """The process is gone, or is being ended: its calls, which will not be answered."""
        calls = list(self.calls.values())
        for call in calls:
            call.end()
        self.calls = {}
        self._warm.clear()
        self._outgoing, self._outgoing_bytes, self._running_bytes, self._working = [], 0, 0, 0
        self._listening.cancel()
        return calls

    # --- worker_link.Listener ----------------------------------------------------------------------

    def answered(self, frame: list[Any]) -> None:
        self._quiet_s = asyncio.get_running_loop().time()
        try:
            self._events.answered(self, frame)
        except ValueError:
            raise
        except UNEXPECTED as fault:  # the rest of the frame is unknown: its calls are delivered again
            FAULTS.met(LOOP, fault)
            if self.link is not None:
                self.link.kill()

    def worker_ready(self) -> None:
        try:
            self._events.worker_ready()
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(AGAIN_S, self.worker_ready)

    def worker_gone(self, how: str) -> None:
        try:
            self._events.worker_exited(self, self._why_ended or how)
        except UNEXPECTED as fault:  # no other task would return its calls
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(AGAIN_S, self.worker_gone, how)
        else:
            self._why_ended = ""
