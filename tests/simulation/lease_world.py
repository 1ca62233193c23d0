"""Leases in virtual time: nodes that hold one, candidates that fence them, and a service that they may lose.

Each machine has a clock of its own rate, within 4.5 % of true time.  A seed draws pauses and deaths of supervisors,
servers and candidates, cuts of one machine (requests, answers or both), outages of the service, lost and late
messages, and fences on request.  The state machines are ``columnar.coordination``'s own, over a store in memory.

The law, checked at each step:
    an acknowledged answer rests on work that was done before its node was fenced
    no node is fenced for its silence that lived and was not cut off, and none ends while its record stands
    a record is deleted only by the candidate whose leader's record stands
    two candidates never hold the leader's lease at once, and an epoch is above all that were given before
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.election import LEADER, Candidate, CandidateState
from columnar.coordination.lease import (
    Answer,
    DeleteRecord,
    Failed,
    HolderState,
    LeaseHolder,
    LeaseTimes,
    PollRecords,
    ReadRecord,
    Request,
)
from columnar.coordination.lease_requests import PolledRecords, make_request
from columnar.coordination.node_record import LeaderRecord, NodeRecord, encode_record, nonce_and_epoch
from tests.simulation.agenda import MS, Agenda, Process, Step
from tests.simulation.lease_faults import candidate_of, holder_of, times_of

NODES = 3
CANDIDATES = 2
TIMEOUT_MS = 600  # of a call, by the caller's clock
LOST = 0.004  # of messages
LATE = 0.004
LATE_FENCE = 0.3  # of deletions: they arrive when another may lead
DRIFT = 0.045
SILENCE_US = 2_600 * MS  # a cut that ended so long ago excuses no fence: two calls that time out, and a renewal
SECONDS = 20.0


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
        self.holder: LeaseHolder = holder_of(world, self.record.key, self.record.nonce)
        self.page_ms = 0  # the end of the lease, as the server reads it
        self.fenced_us: int | None = None
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

    # --- the supervisor ------------------------------------------------------------------------------

    def _renew(self) -> None:
        request = self.holder.next_request(self.machine.now_ms)
        if request is not None:
            self.machine.call(self.supervisor, request, partial(encode_record, self.record), self._heard)

    def _heard(self, answer: Answer) -> None:
        self.holder.on_answer(answer, self.machine.now_ms)
        if self.holder.state is HolderState.LOST:
            self._world.lost(self, has_joined=self.page_ms > 0)
            self.page_ms = 0
            self.end()
            return
        self.page_ms = self.holder.until_ms
        self._world.agenda.later(self.supervisor, self.machine.until_us(self.holder.due_ms), self._renew)

    # --- the server ----------------------------------------------------------------------------------

    def _holds(self) -> bool:
        return self.machine.now_ms < self.page_ms

    def _serve(self) -> None:
        agenda = self._world.agenda
        if self._world.fault == "before":
            step: Step = partial(self._answer_checked, self._holds())
        else:
            step = partial(self._answer, agenda.now_us)
        agenda.later(self.server, agenda.drawn(200, 4 * MS), step)

    def _answer(self, worked_us: int) -> None:
        self._send(worked_us, self._holds())

    def _answer_checked(self, held: bool) -> None:
        self._send(self._world.agenda.now_us, held)

    def _send(self, worked_us: int, held: bool) -> None:
        self._world.seen["answers" if held else "withheld"] += 1
        if held:
            assert self.fenced_us is None or worked_us < self.fenced_us, (
                f"{self.record.key} was fenced at {self.fenced_us} and acknowledged work of {worked_us}"
            )
        self._world.agenda.later(self.server, self._world.agenda.drawn(2 * MS, 30 * MS), self._serve)


class SimulatedCandidate:
    def __init__(self, world: LeaseWorld, number: int) -> None:
        self._world = world
        self.number = number
        self.machine = Machine(world)
        self.process = Process(f"c{number}")
        self.candidate: Candidate = candidate_of(world)
        self._noted: set[str] = set()
        world.agenda.later(self.process, 1, self._pump)

    def leads(self) -> bool:
        return not self.process.is_dead and self.candidate.leads(self.machine.now_ms)

    def _pump(self) -> None:
        candidate, machine = self.candidate, self.machine
        request = candidate.next_request(machine.now_ms)
        if request is None:
            if not candidate.is_waiting:
                self._world.agenda.later(self.process, machine.until_us(candidate.due_ms), self._pump)
            return
        if isinstance(request, DeleteRecord):
            self._world.fence_was_sent(self, request)
        record = LeaderRecord(candidate.nonce, self.process.name, candidate.epoch, "")
        machine.call(self.process, request, partial(encode_record, record), self._heard)

    def _heard(self, answer: Answer) -> None:
        was_leading = self.candidate.state is CandidateState.LEADING
        self.candidate.on_answer(answer, self.machine.now_ms)
        is_leading = self.candidate.state is CandidateState.LEADING
        if is_leading and not was_leading and self.leads():  # not if it was stopped until its lease was over
            self._world.elected(self.candidate.epoch)
        self._world.seen["deposed"] += was_leading and not is_leading
        for key in self.candidate.members.ended.keys() - self._noted:
            self._noted.add(key)
            self._world.ended(key, self.machine.true_us(self.candidate.members.ended[key].over_ms))
        self._pump()


class LeaseWorld:
    def __init__(self, seed: int, fault: str | None, tell: Callable[[str], None]) -> None:
        self.rng = Random(f"lease {seed}")
        self.fault = fault
        self.times: LeaseTimes = times_of(fault)
        self.agenda = Agenda(self.rng)
        self.seen: Counter[str] = Counter()
        self.is_out = False
        self._deleters: dict[DeleteRecord, str] = {}  # the nonce of the leader who sent it
        self._unexcused: set[DeleteRecord] = set()  # the node lived and was connected when the leader decided
        self.requested: set[str] = set()  # fences of nodes that renew
        self._tell = tell
        self._epoch = 0  # of the last leader
        self._waiting: list[Step] = []  # requests that a server has taken during an outage
        self._store = CasMemory()
        self._count = 0
        self.nodes: dict[str, SimulatedNode] = {}  # by key, those of the past too
        self.running = [self._start(f"n{number}") for number in range(NODES)]
        self.candidates = [SimulatedCandidate(self, number) for number in range(CANDIDATES)]
        self.agenda.after_step = self._check
        self.agenda.later(None, 1 * MS, self._upheaval)

    def nonce(self) -> str:
        self._count += 1
        return f"{self._count:032x}"

    def tell(self, text: str) -> None:
        self._tell(f"{self.agenda.now_us / 1e6:9.4f} {text}")

    # --- the service ---------------------------------------------------------------------------------

    def latency(self, request: Request | None) -> int:
        draw = self.rng.random()
        share = LATE_FENCE if isinstance(request, DeleteRecord) else LATE
        if request is not None and draw < share:
            return self.agenda.drawn(100 * MS, 4_000 * MS)
        return self.agenda.drawn(500, 8 * MS) if draw < 0.97 else self.agenda.drawn(20 * MS, 150 * MS)

    def at_recovery(self, step: Step) -> None:
        self._waiting.append(step)

    def take(self, request: Request, value: bytes, polled: PolledRecords) -> Answer:
        """Let the request take effect; a deletion is held against the law."""
        if not isinstance(request, DeleteRecord):
            return make_request(self._store, request, lambda: value, polled)
        conditions = {"leader": False, "blind": False}.get(self.fault or "", True)
        asked = request if conditions else DeleteRecord(request.key, request.version, None)
        found = self._store.read_key(request.key)
        if self.fault == "blind" and found is not None:
            asked = DeleteRecord(request.key, found.version, None)
        answer = make_request(self._store, asked, lambda: value, polled)
        if not isinstance(answer, Failed):
            self._deleted(request)
        return answer

    def _deleted(self, request: DeleteRecord) -> None:
        self.seen["fences"] += 1
        node, leader = self.nodes[request.key], self._store.read_key(LEADER)
        self.tell(f"{request.key} is fenced")
        assert leader is not None
        assert nonce_and_epoch(leader.value)[0] == self._deleters[request], "a former leader has fenced"
        if request.key in self.requested:
            return
        node.fenced_us = self.agenda.now_us
        assert request not in self._unexcused, f"{request.key} lived, was not cut off and is fenced"

    def elected(self, epoch: int) -> None:
        self.seen["elected"] += 1
        assert epoch > self._epoch, f"epoch {epoch} is given after {self._epoch}"
        self._epoch = epoch

    def lost(self, node: SimulatedNode, *, has_joined: bool) -> None:
        """Hold a node that ends by itself against the law; before it has joined its first record may yet arrive."""
        self.seen["lost"] += 1
        found = self._store.read_key(node.record.key)
        is_own = found is not None and nonce_and_epoch(found.value)[0] == node.record.nonce
        assert not (has_joined and is_own), f"{node.record.key} ends though its record stands"

    def ended(self, key: str, over_us: int) -> None:
        """A candidate counts on it that the holder acknowledges nothing from then on."""
        node = self.nodes[key]
        node.fenced_us = over_us if node.fenced_us is None else min(node.fenced_us, over_us)

    def _check(self) -> None:
        leading = [one for one in self.candidates if one.leads()]
        assert len(leading) <= 1, f"{[one.process for one in leading]} lead at once"

    # --- upheavals -----------------------------------------------------------------------------------

    def _start(self, name: str) -> SimulatedNode:
        self._count += 1
        node = SimulatedNode(self, name, self._count)
        self.nodes[node.record.key] = node
        return node

    def replace(self, node: SimulatedNode) -> None:
        self.running[self.running.index(node)] = self._start(node.record.node)

    def fence_was_sent(self, candidate: SimulatedCandidate, request: DeleteRecord) -> None:
        """Note who decided, and on what; now and then stop the leader, so that its deletion arrives under another."""
        self._deleters[request] = candidate.candidate.nonce
        if self.nodes[request.key].lived_and_was_connected():
            self._unexcused.add(request)
        if self.rng.random() < 0.3:
            self._pause(candidate.process, None)

    def _upheaval(self) -> None:
        kind, weight = zip(*_UPHEAVALS, strict=True)
        chosen = self.rng.choices(kind, weight)[0]
        self.seen[chosen.__name__.strip("_")] += 1
        chosen(self)
        self.agenda.later(None, self.agenda.drawn(100 * MS, 1_500 * MS), self._upheaval)

    def _lasting(self) -> int:
        """Draw how long something lasts: mostly about as long as a lease."""
        top_ms = self.rng.choice((600, 1_700, 2_600, 5_000))
        return self.agenda.drawn(50 * MS, top_ms * MS)

    def _pause(self, process: Process, node: SimulatedNode | None) -> None:
        if process.is_dead or process.is_stopped:
            return
        self.tell(f"{process} is stopped")
        self.agenda.stop(process)

        def wake() -> None:
            if node is not None:
                node.impaired_us = self.agenda.now_us
            if not process.is_dead:
                self.agenda.go_on(process)

        self.agenda.later(None, self._lasting(), wake)

    def _pause_supervisor(self) -> None:
        node = self.rng.choice(self.running)
        self._pause(node.supervisor, node)

    def _pause_server(self) -> None:
        self._pause(self.rng.choice(self.running).server, None)

    def _pause_node(self) -> None:
        node = self.rng.choice(self.running)
        self._pause(node.supervisor, node)
        self._pause(node.server, None)

    def _pause_candidate(self) -> None:
        self._pause(self.rng.choice(self.candidates).process, None)

    def _kill_node(self) -> None:
        node = self.rng.choice(self.running)
        self.tell(f"{node.supervisor} is killed")
        node.end()

    def _kill_candidate(self) -> None:
        candidate = self.rng.choice(self.candidates)
        self.tell(f"{candidate.process} is killed")
        self.agenda.kill(candidate.process)
        self.candidates[self.candidates.index(candidate)] = SimulatedCandidate(self, candidate.number)

    def _cut(self, machine: Machine, node: SimulatedNode | None) -> None:
        if machine.loses_requests or machine.loses_answers:
            return
        machine.loses_requests, machine.loses_answers = self.rng.choice(((True, True), (True, False), (False, True)))
        self.tell(f"{'a candidate' if node is None else node.supervisor} is cut off")

        def heal() -> None:
            machine.loses_requests = machine.loses_answers = False
            if node is not None:
                node.impaired_us = self.agenda.now_us

        self.agenda.later(None, self._lasting(), heal)

    def _cut_node(self) -> None:
        node = self.rng.choice(self.running)
        self._cut(node.machine, node)

    def _cut_candidate(self) -> None:
        self._cut(self.rng.choice(self.candidates).machine, None)

    def _outage(self) -> None:
        if self.is_out:
            return
        self.is_out = True
        self.tell("the service is away")

        def recover() -> None:
            self.is_out = False
            self.tell("the service is back")
            waiting, self._waiting = self._waiting, []
            for step in waiting:
                self.agenda.later(None, self.agenda.drawn(0, 20 * MS), step)

        self.agenda.later(None, self._lasting(), recover)

    def _request_fence(self) -> None:
        node = self.rng.choice(self.running)
        for candidate in self.candidates:
            if candidate.leads() and not candidate.process.is_stopped:
                self.requested.add(node.record.key)
                candidate.candidate.members.request_fence(node.record.key)

    def summary(self) -> str:
        return counted(self.seen)


_UPHEAVALS: tuple[tuple[Callable[[LeaseWorld], None], int], ...] = (
    (LeaseWorld._pause_supervisor, 3),
    (LeaseWorld._pause_server, 2),
    (LeaseWorld._pause_node, 3),
    (LeaseWorld._pause_candidate, 2),
    (LeaseWorld._kill_node, 2),
    (LeaseWorld._kill_candidate, 1),
    (LeaseWorld._cut_node, 5),
    (LeaseWorld._cut_candidate, 2),
    (LeaseWorld._outage, 2),
    (LeaseWorld._request_fence, 1),
)


def counted(seen: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(seen.items()))


def _untold(_text: str) -> None:
    pass


def run(seed: int, seconds: float = SECONDS, fault: str | None = None, *, is_verbose: bool = False) -> LeaseWorld:
    """AssertionError: the law was broken; its text begins with the seed."""
    world = LeaseWorld(seed, fault, print if is_verbose else _untold)
    try:
        world.agenda.run(int(seconds * 1e6))
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, at {world.agenda.now_us / 1e6:.4f} s: {error}") from error
    return world


def seen_in(seed: int, seconds: float = SECONDS) -> Counter[str]:
    return run(seed, seconds).seen


def first_found(fault: str, seeds: range, seconds: float = SECONDS) -> str | None:
    """Return the law that the first seed finds broken; None: no seed does."""
    for seed in seeds:
        try:
            run(seed, seconds, fault)
        except AssertionError as error:
            return str(error)
    return None
