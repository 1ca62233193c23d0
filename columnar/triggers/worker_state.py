"""(pure) Worker slots and their calls: the calls that each worker process has, and how long they may take.

    call    WAITING --sent--> RUNNING --rest--> RESTING --resume--> RUNNING
               |                 |
               +---- removed, or the worker's end ----> OVER

A call has one change, a batch, or a run.  Changes of a run are sent together and run one after the other; each has a
number, an outcome and a time limit of its own.  The outcomes of a run come in order, except for changes that take long:
each of these becomes a call of its own (``find``), and the rest of the run continues without it.

A call's timeout counts from the worker's report that the call began, which the worker sends for each call that takes
longer than a moment.  If a module may have to be imported first, and in quarantine, it counts from the sending.

A worker that sends nothing for longer than any of its calls may run has blocked threads (code that keeps the
interpreter's lock).  The worker is ended, and its calls are suspects.  Silence counts from the worker's last frame, or
from when an idle worker got work.  A call sent to a silent worker does not end the silence, and its timeout does not
lengthen the silence that is allowed.

Invariant:
    I1. ``calls`` has each call by the number of its first open change; the numbers of all open changes differ.

Knows nothing of processes, frames, effects and clocks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from columnar.flows.delivery_state import Delivery
from columnar.flows.effect_contributions import ChangeContributions, Giver
from columnar.triggers.delivery_source import NEVER, DeliverySource

RUNNING_BYTES: Final = 64 * 1024 * 1024  # of changes that run or are being sent: beyond it no call begins
IMPORT_S: Final = 20.0  # a call whose module must be imported first has this long until it begins
SILENCE_S: Final = 5.0  # a worker with calls sends a frame twice a second
# A call that blocks a worker was sent at most this long after the worker's last frame: it sends frames more often.
BEGAN_S: Final = 1.0
WAITING, RUNNING, RESTING, OVER = range(4)


class CallChanges(NamedTuple):
    """The changes of a call, as they were read."""

    kept: list[Delivery]  # changes that can be sent
    gone: list[Delivery]  # changes whose records are gone, or which need no call any more
    damaged: list[tuple[Delivery, str]]  # changes that cannot be sent, and why
    rest: list[Delivery]  # changes that would make the call too large
    size_bytes: int
    origins: list[Origin]  # of ``kept``


class Origin(NamedTuple):
    """The stamp and the hops of a change, which its effects bear."""

    stamp: int
    hops: int  # how many changes led to it


class Call:
    def __init__(self, slot: WorkerSlot, source: DeliverySource, deliveries: list[Delivery]) -> None:
        self.slot = slot
        self.source = source
        self.deliveries: list[Delivery | None] = [*deliveries]  # None: the change is a call of its own now
        self.first = 0  # place of the first open change
        self.origins: list[Origin] = []  # of its changes
        self.number = 0  # of the first open change; 0: the call was never in the slot
        self.size_bytes = 0  # of its open changes
        self.contributions: Giver | None = None  # to totals, by all its slices
        self.used_s = 0.0  # of its slices so far
        self.stage = WAITING
        self.is_cold = False  # its module may have to be imported
        self.is_abandoned = False  # its further outcomes are not wanted, but it still has its place
        self.sent_s = 0.0  # when its slice was sent
        self.ends_s = NEVER  # when its timeout is over

    @property
    def open_deliveries(self) -> list[Delivery]:
        return [one for one in self.deliveries[self.first :] if one is not None]

    @property
    def is_run(self) -> bool:
        return len(self.deliveries) > 1 and not self.source.registration.batch

    @property
    def places(self) -> int:
        """The number of places of ``fair`` that the call takes."""
        return 1 if self.source.registration.batch else len(self.open_deliveries)

    @property
    def module(self) -> str:
        return self.source.registration.module

    @property
    def timeout_s(self) -> float:
        return self.source.registration.timeout_ms / 1000

    @property
    def limit_s(self) -> float:
        return max(IMPORT_S, self.timeout_s) if self.is_cold else self.timeout_s

    def contributions_of(self, at: int) -> ChangeContributions:
        """Return the contributions of the change at ``at``, for its effects on totals.

        All slices of a call and all changes of a batch share a ``Giver``; each change of a run has a new one.
        """
        delivery = self.deliveries[at]
        assert delivery is not None, "a call of its own has its contributions"
        giver = self.contributions
        if giver is None or self.is_run:
            giver = self.contributions = Giver(self.source.registration.name)
        return ChangeContributions(giver, delivery.row, delivery.sequence)

    # --- its life; the slot keeps the sums -----------------------------------------------------------

    def enter(self, number: int, size_bytes: int, origins: list[Origin]) -> None:
        self.number, self.size_bytes, self.origins = number, size_bytes, origins

    def run(self, now_s: float) -> None:
        self.stage, self.sent_s = RUNNING, now_s

    def rest(self) -> None:
        self.stage, self.ends_s = RESTING, NEVER

    def time_until(self, ends_s: float, *, is_cold: bool) -> None:
        self.ends_s, self.is_cold = ends_s, is_cold

    def add_time(self, used_s: float) -> None:
        self.used_s += used_s
        self.ends_s = NEVER

    def is_planned_at(self, at_s: float) -> bool:
        return self.ends_s == at_s

    def abandon(self) -> None:
        self.is_abandoned = True

    def end(self) -> None:
        self.stage, self.ends_s = OVER, NEVER

    def pass_changes(self, count: int) -> int:
        """Note that ``count`` changes from the first open one on are over; return their bytes."""
        open_count = len(self.open_deliveries)
        released = self.size_bytes * count // open_count
        self.size_bytes -= released
        self._go_to(self.first + count)
        return released

    def _go_to(self, at: int) -> None:
        while at < len(self.deliveries) and self.deliveries[at] is None:
            at += 1
        self.number += at - self.first
        self.first = at

    def split(self, at: int) -> Call:
        """Take an open change out of the run; return it as a call of its own."""
        delivery = self.deliveries[at]
        assert delivery is not None, "it is open"
        part = Call(self.slot, self.source, [delivery])
        part.enter(self.number + at - self.first, self.size_bytes // len(self.open_deliveries), [self.origins[at]])
        part.run(self.sent_s)
        if self.is_abandoned:
            part.abandon()
        self.size_bytes -= part.size_bytes
        self.deliveries[at] = None
        self._go_to(self.first)
        return part


class WorkerSlot:
    def __init__(self, label: str = "", *, is_quarantine: bool = False) -> None:
        self.label = label  # of its pool; constant, as ``is_quarantine``
        self.is_quarantine = is_quarantine
        self.calls: dict[int, Call] = {}
        self.running_bytes = 0  # of calls that do not rest
        self.working = 0  # calls that run
        self.listens_s = NEVER  # when its silence is checked
        self._last_number = 0
        self._warm: set[str] = set()  # modules that this process has imported
        self._quiet_s = 0.0  # since when it owes a frame: its last frame, or its first work after a rest

    @property
    def has_room(self) -> bool:
        """Whether one more call fits.  Resting calls do not count: if they did, they could wait for each other."""
        return self.running_bytes < RUNNING_BYTES

    # --- calls ---------------------------------------------------------------------------------------

    def admit(self, call: Call, size_bytes: int, origins: list[Origin]) -> None:
        """Give the call a place, until ``remove_call``."""
        call.enter(self._last_number + 1, size_bytes, origins)
        self._last_number += len(origins)
        self.running_bytes += size_bytes
        self.calls[call.number] = call

    def send(self, call: Call, now_s: float) -> None:
        """Note that the call is sent to the worker, and set its timeout if that counts from now."""
        call.time_until(NEVER, is_cold=call.module not in self._warm)
        if call.is_cold or self.is_quarantine:
            call.time_until(now_s + call.limit_s, is_cold=call.is_cold)
        self._run(call, now_s)

    def _run(self, call: Call, now_s: float) -> None:
        """Run the call; if all other calls rest, the worker's silence counts from now."""
        call.run(now_s)
        if not self.working:
            self._quiet_s = now_s
        if self.listens_s == NEVER:
            self.listens_s = now_s + SILENCE_S
        self.working += 1

    def resume(self, call: Call, now_s: float) -> None:
        """Run the next slice of a resting call; if the call is abandoned, the slice only ends it."""
        self.running_bytes += call.size_bytes
        self._run(call, now_s)

    def rest(self, call: Call) -> None:
        """Note that a slice of the call is over, and that a further one follows."""
        call.rest()
        self.running_bytes -= call.size_bytes
        self.working -= 1

    def remove_call(self, call: Call) -> None:
        """Remove a call, which must not rest, and free its place."""
        self.running_bytes -= call.size_bytes
        self.working -= call.stage == RUNNING
        call.end()
        del self.calls[call.number]
        if not self.calls:
            self.listens_s = NEVER

    def end_changes(self, call: Call, count: int) -> None:
        """Note that ``count`` changes of a run are over, from its first open change on."""
        number = call.number
        released = call.pass_changes(count)
        if call.first == len(call.deliveries):
            call.enter(number, released, call.origins)
            self.remove_call(call)
        else:
            self.running_bytes -= released
            del self.calls[number]
            self.calls[call.number] = call

    def find(self, number: int) -> Call | None:
        """Return the call of the change ``number``; None if it was given up.

        A change of a run becomes a call of its own first, so that the call has no other changes unless it is a batch.
        """
        call = self.calls.get(number)
        if call is not None and not call.is_run:
            return call
        for run in self.calls.values() if call is None else (call,):
            at = number - run.number + run.first
            is_open = run.first <= at < len(run.deliveries) and run.deliveries[at] is not None
            if run.is_run and run.stage == RUNNING and is_open:
                return self._split(run, at)
        return None

    def _split(self, run: Call, at: int) -> Call:
        number, part = run.number, run.split(at)
        del self.calls[number]
        self.calls[part.number] = part
        if run.first < len(run.deliveries):
            self.calls[run.number] = run
            self.working += 1
        else:
            run.end()
        return part

    def take_all(self) -> list[Call]:
        """Remove and return all calls, because the process has ended or is being ended and answers no more."""
        calls = list(self.calls.values())
        self.calls = {}
        self._warm.clear()
        self.running_bytes = self.working = 0
        self.listens_s = NEVER
        return calls

    # --- time ----------------------------------------------------------------------------------------

    def is_planned_at(self, at_s: float) -> bool:
        return self.listens_s == at_s

    def heard(self, now_s: float) -> None:
        """Note that the worker has sent a frame."""
        self._quiet_s = now_s

    def began(self, number: int, now_s: float) -> Call | None:
        """Note that the worker has imported the change's function and runs it: its timeout counts from now."""
        call = self.find(number)
        if call is None or call.stage != RUNNING:
            return None
        self.imported(call.module)
        call.time_until(now_s + call.timeout_s, is_cold=False)
        return call

    def imported(self, module: str) -> None:
        """Note that the process has imported the module: timeouts of calls sent before count from their beginning."""
        if module not in self._warm:
            self._warm.add(module)
            for call in self.calls.values():
                if call.is_cold and call.module == module and not self.is_quarantine:
                    call.time_until(NEVER, is_cold=False)

    def has(self, module: str) -> bool:
        """Return whether the process has imported the module, as far as the store knows."""
        return module in self._warm

    def reloads(self) -> None:
        """Note that modules are imported again from now on."""
        self._warm.clear()

    def latecomers(self) -> list[Call]:
        """Return the calls that were sent when the worker was already silent, so that none of them blocks it."""
        began_s = self._quiet_s + BEGAN_S
        return [call for call in self.calls.values() if call.stage == RUNNING and call.sent_s > began_s]

    def silence_s(self, now_s: float) -> float | None:
        """Check the worker at ``listens_s``; return how long it has been silent if that is too long, else None."""
        self.listens_s = NEVER
        late = frozenset(self.latecomers())
        # Not ``limit_s``: an import takes long, but does not keep the interpreter for long.
        limits = [one.timeout_s for one in self.calls.values() if one.stage == RUNNING and one not in late]
        if not limits:
            return None
        limit_s, quiet_s = max(SILENCE_S, *limits), now_s - self._quiet_s
        if quiet_s >= limit_s:
            return quiet_s
        self.listens_s = now_s + limit_s - quiet_s
        return None

    def check_invariants(self) -> None:
        """Check the invariants, for tests."""
        assert self.running_bytes == sum(one.size_bytes for one in self.calls.values() if one.stage != RESTING)
        assert self.working == sum(one.stage == RUNNING for one in self.calls.values())
        assert all(number == one.number and one.stage != OVER for number, one in self.calls.items()), "I1"
        places = [one.number + at - one.first for one in self.calls.values()
                  for at in range(one.first, len(one.deliveries)) if one.deliveries[at] is not None]  # fmt: skip
        assert len(places) == len(set(places)), "I1"
