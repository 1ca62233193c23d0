"""The processes of the simulated world of leases: nodes that hold a lease, candidates that fence, each on a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from columnar.coordination.election import Candidate, CandidateState
from columnar.coordination.lease import (
    Answer,
    DeleteRecord,
    Failed,
    HolderState,
    LeaseHolder,
    PollRecords,
    ReadRecord,
    Request,
    WasRead,
)
from columnar.coordination.lease_requests import PolledRecords
from columnar.coordination.node_record import LeaderRecord, NodeRecord, encode_record
from tests.simulation.agenda import MS, Process, Step
from tests.simulation.lease_faults import candidate_of, holder_of
from tests.simulation.lease_takeover import HolderLog

if TYPE_CHECKING:
    from tests.simulation.lease_world import LeaseWorld

TIMEOUT_MS = 600  # of a call, by the caller's clock
LOST = 0.004  # of messages
PAUSED_AMID = 0.0004  # of answers: their node stops between check and work
DRIFT = 0.045
SILENCE_US = 2_600 * MS  # a cut that ended so long ago excuses no fence: two calls that time out, and a renewal
WITHDRAWN_MS = 1_000  # a withdrawn node waits so long for a leader that deletes its record
LIFTED = 0.3  # of leaders find a higher epoch in the folder
KILLED = 0.2  # of these die before a record has it


class Machine:
    """A clock, and a way to the service that may be cut."""

    def __init__(self, world: LeaseWorld) -> None:
        self._world = world
        self._rate = world.rng.uniform(1 - DRIFT, 1 + DRIFT)
        self._offset_ms = world.rng.randrange(10**6)
        self.loses_requests = False
        self.loses_answers = False
        self.lost_us: list[int] = []  # messages by chance
        self._polled = PolledRecords()

    @property
    def now_ms(self) -> int:
        return self._offset_ms + int(self._world.agenda.now_us * self._rate / MS)

    def true_us(self, moment_ms: int) -> int:
        return int((moment_ms - self._offset_ms) * MS / self._rate)

    def until_us(self, moment_ms: int) -> int:
        """Return the true time from now to a moment of this clock, at least a microsecond."""
        return max(1, self.true_us(moment_ms) - self._world.agenda.now_us + 1)

    def call(
        self, process: Process, request: Request, compose: Callable[[], bytes], heard: Callable[..., None]
    ) -> None:
        """Send the request; ``heard`` gets one answer, the service's or a time-out's."""
        world, agenda = self._world, self._world.agenda
        is_over = False

        def end(answer: Answer) -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                heard(answer)

        is_write = not isinstance(request, ReadRecord | PollRecords)
        failure = Failed.UNKNOWN if is_write else Failed.UNAVAILABLE
        agenda.later(process, self.until_us(self.now_ms + TIMEOUT_MS), partial(end, failure))
        value = compose() if is_write else b""
        if world.is_out and world.rng.random() < 0.5:
            agenda.later(process, agenda.drawn(1 * MS, 5 * MS), partial(end, Failed.UNAVAILABLE))
        elif not self.loses_requests and not self._loses():
            arrive = partial(self._arrive, process, request, value, end)
            agenda.later(None, world.latency(request), arrive)

    def _arrive(self, process: Process, request: Request, value: bytes, end: Callable[[Answer], None]) -> None:
        world = self._world
        if world.is_out:
            if world.rng.random() < 0.5:  # a server has it in its queue
                world.at_recovery(partial(self._arrive, process, request, value, end))
            return
        answer = world.take(request, value, self._polled)
        if not self.loses_answers and not self._loses():
            world.agenda.later(process, world.latency(None), partial(end, answer))

    def _loses(self) -> bool:
        is_lost = self._world.rng.random() < LOST
        if is_lost:
            self.lost_us.append(self._world.agenda.now_us)
        return is_lost


class SimulatedNode:
    """One incarnation: a supervisor that renews, and a server that answers and reads the end of the lease."""

    def __init__(self, world: LeaseWorld, name: str, incarnation: int) -> None:
        self._world = world
        self.machine = Machine(world)
        self.supervisor = Process(f"{name}.{incarnation}")
        self.server = Process(f"{name}.{incarnation}/server")
        self.record = NodeRecord(world.nonce(), name, incarnation, "")
        self.log = HolderLog()
        self.holder: LeaseHolder = holder_of(world, self.record.key, self.record.nonce)
        self.page_ms = 0  # the end of the lease, as the server reads it
        self.fenced_us: int | None = None
        self.is_withdrawing = False
        self.impaired_us = world.agenda.now_us
        world.agenda.later(self.supervisor, 1, self._renew)
        world.agenda.later(self.server, world.agenda.drawn(1 * MS, 20 * MS), self._serve)

    @property
    def is_impaired(self) -> bool:
        process, machine = self.supervisor, self.machine
        return process.is_dead or process.is_stopped or machine.loses_requests or machine.loses_answers

    def lived_and_was_connected(self) -> bool:
        now_us = self._world.agenda.now_us
        losses = [at for at in self.machine.lost_us if at > now_us - SILENCE_US]
        return not self.is_impaired and now_us - self.impaired_us > SILENCE_US and len(losses) < 2

    def end(self) -> None:
        """Kill the supervisor; its server dies with it, a moment later, even if it is stopped.  Another one starts."""
        if self.supervisor.is_dead:
            return
        agenda = self._world.agenda
        agenda.kill(self.supervisor)
        agenda.later(None, 50 * MS, partial(agenda.kill, self.server))
        agenda.later(None, agenda.drawn(300 * MS, 2_000 * MS), partial(self._world.replace, self))

    def withdraw(self) -> None:
        """Stop cleanly: the server ends, then the record says so, then the supervisor ends."""
        if self.supervisor.is_dead or self.supervisor.is_stopped or self.page_ms == 0:
            return
        self._world.tell(f"{self.supervisor} withdraws")
        self.is_withdrawing = True
        if self._world.fault != "withdrawn-early":
            self._world.agenda.kill(self.server)
        self.holder.release(self.machine.now_ms)
        self._renew()

    # --- the supervisor ------------------------------------------------------------------------------

    def _renew(self) -> None:
        request = self.holder.next_request(self.machine.now_ms)
        if request is not None:
            record = replace(self.record, withdrawn=self.holder.is_releasing)
            self.machine.call(self.supervisor, request, partial(encode_record, record), self._heard)

    def _heard(self, answer: Answer) -> None:
        self.holder.on_answer(answer, self.machine.now_ms)
        if self.holder.state is HolderState.LOST:
            self._world.lost(self, has_joined=self.page_ms > 0)
            self.page_ms = 0
            self.end()
            return
        if self._world.fault != "withdrawn-early" or not self.holder.is_releasing:
            self.page_ms = self.holder.until_ms
        if self.holder.state is HolderState.RELEASED:
            self._await_deletion(self.machine.now_ms + WITHDRAWN_MS)
            return
        self._world.agenda.later(self.supervisor, self.machine.until_us(self.holder.due_ms), self._renew)

    def _await_deletion(self, end_ms: int) -> None:
        """Wait for a leader that deletes the record; then delete it, and end."""
        version = self.holder.version
        assert version is not None
        request: Request = ReadRecord(self.record.key)
        if self.machine.now_ms >= end_ms:
            request = DeleteRecord(self.record.key, version, None)

        def heard(answer: Answer) -> None:
            if answer == WasRead(None) or isinstance(request, DeleteRecord):
                self.end()
            else:
                again = partial(self._await_deletion, end_ms)
                self._world.agenda.later(self.supervisor, 50 * MS, again)

        self.machine.call(self.supervisor, request, bytes, heard)

    # --- the server ----------------------------------------------------------------------------------

    def _holds(self) -> bool:
        return self.machine.now_ms < self.page_ms

    def _serve(self) -> None:
        agenda = self._world.agenda
        number = self.log.append(agenda.now_us)
        if self._world.fault == "before":
            step: Step = partial(self._answer_checked, number, self._holds())
        else:
            step = partial(self._answer, number, agenda.now_us)
        agenda.later(self.server, agenda.drawn(200, 4 * MS), step)
        if agenda.rng.random() < PAUSED_AMID:
            self._world.pause_node(self)

    def _answer(self, number: int, worked_us: int) -> None:
        self._send(number, worked_us, self._holds())

    def _answer_checked(self, number: int, held: bool) -> None:
        self._send(number, self._world.agenda.now_us, held)

    def _send(self, number: int, worked_us: int, held: bool) -> None:
        self._world.seen["answers" if held else "withheld"] += 1
        if held:
            assert self.fenced_us is None or worked_us < self.fenced_us, (
                f"{self.record.key} was fenced at {self.fenced_us} and acknowledged work of {worked_us}"
            )
            self.log.acknowledge(number)
        self._world.agenda.later(self.server, self._world.agenda.drawn(2 * MS, 30 * MS), self._serve)


class SimulatedCandidate:
    def __init__(self, world: LeaseWorld, number: int) -> None:
        self._world = world
        self.number = number
        self.machine = Machine(world)
        self.process = Process(f"c{number}")
        self.candidate: Candidate = candidate_of(world, is_observer=number < world.observers)
        self._minimum = 0  # the epoch under which this candidate acts at the least; 0: it does not lead
        self._awaits_unlisted = False
        self._dies = False
        world.agenda.later(self.process, 1, self._pump)

    def leads(self) -> bool:
        return not self.process.is_dead and self.candidate.leads(self.machine.now_ms)

    def resign(self) -> None:
        if not self.process.is_dead and not self.process.is_stopped:
            self._world.tell(f"{self.process} resigns")
            self.candidate.resign(self.machine.now_ms)
            self._pump()

    def step_down(self) -> None:
        if not self.process.is_dead and not self.process.is_stopped:
            self._world.tell(f"{self.process} steps down")
            self.candidate.step_down(self.machine.now_ms)
            self._minimum = 0  # it acts no more, until it is elected again
            self._pump()

    def _pump(self) -> None:
        candidate, machine = self.candidate, self.machine
        if candidate.has_resigned and not candidate.is_waiting:
            end = partial(self._world.end_candidate, self, "has resigned")
            self._world.agenda.later(self.process, self._world.agenda.drawn(1 * MS, 2_000 * MS), end)
            return
        request = candidate.next_request(machine.now_ms)
        if request is None:
            if not candidate.is_waiting:
                self._world.agenda.later(self.process, machine.until_us(candidate.due_ms), self._pump)
            return
        if isinstance(request, DeleteRecord):
            self._world.fence_was_sent(self, request)
        self._world.seen["observed"] += isinstance(request, PollRecords) and not request.has_holders
        is_vacated = candidate.state is CandidateState.RESIGNING
        record = LeaderRecord(candidate.nonce, self.process.name, candidate.epoch, "", is_vacated)
        machine.call(self.process, request, partial(encode_record, record), self._heard)

    def _heard(self, answer: Answer) -> None:
        was_leading = self.candidate.state is CandidateState.LEADING
        self.candidate.on_answer(answer, self.machine.now_ms)
        is_leading = self.candidate.state is CandidateState.LEADING
        if not is_leading:
            self._world.seen["deposed"] += was_leading
            self._minimum = 0
        elif not self._minimum and self.leads():  # not if it was stopped until its lease was over
            self._elected()
        for key, ended in self.candidate.members.ended.items():
            self._world.ended(key, self.machine.true_us(ended.over_ms), is_by_time=ended.is_by_time)
        for key in self.candidate.members.take_ended(self.machine.now_ms):
            if self.leads():
                self._world.take_over(key)
        if self.leads() and self._minimum:
            self._lead()
        if self._dies:
            self._world.end_candidate(self, "is killed")
            return
        self._pump()

    def _elected(self) -> None:
        candidate, world = self.candidate, self._world
        world.seen["elected"] += 1
        self._awaits_unlisted = True
        self._minimum = candidate.epoch
        if world.rng.random() < LIFTED:
            world.seen["lifted"] += 1
            self._minimum += world.rng.randrange(1, 5)
            candidate.lift_epoch(self._minimum, self.machine.now_ms)
            self._dies = world.rng.random() < KILLED

    def _lead(self) -> None:
        """Act, once the epoch allows it."""
        candidate, world = self.candidate, self._world
        if candidate.written_epoch < self._minimum and world.fault != "lift-unwritten":
            return
        world.act(candidate.nonce, self._minimum)
        versions = candidate.members.versions
        world.named |= versions.keys()
        over_ms = candidate.unlisted_over_ms
        if world.fault == "unlisted" and over_ms is not None:
            over_ms = 0
        if self._awaits_unlisted and over_ms is not None and self.machine.now_ms >= over_ms:
            self._awaits_unlisted = False
            for key in world.named - versions.keys():
                world.ended(key, world.agenda.now_us, is_by_time=True)
                world.take_over(key)
