"""Leases in virtual time: nodes that hold one, candidates that fence them, and a service that they may lose.

Each machine has a clock of its own rate, within 4.5 % of true time.  A seed draws pauses and deaths of supervisors,
servers and candidates, cuts of one machine (requests, answers or both), outages of the service, lost and late
messages, and fences on request.  The state machines are ``columnar.coordination``'s own, over a store in memory.

The law, checked at each step:
    an acknowledged answer rests on work that was done before its node was fenced
    no node is fenced for its silence that lived and was not cut off, and none ends while its record stands
    a record is deleted only by the candidate whose leader's record stands
    two candidates never hold the leader's lease at once, and an epoch that a leader acts under is above all those that
    earlier leaders acted under
    a node that ended otherwise than by time has no server that runs
    the next owner of a region has what was acknowledged, and nothing that was written after it took over
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.election import LEADER
from columnar.coordination.lease import Answer, DeleteRecord, Failed, LeaseTimes, Request
from columnar.coordination.lease_requests import PolledRecords, make_request
from columnar.coordination.node_record import nonce_and_epoch
from tests.simulation.agenda import MS, Agenda, Step
from tests.simulation.lease_faults import times_of
from tests.simulation.lease_nodes import SimulatedCandidate, SimulatedNode
from tests.simulation.lease_takeover import Takeovers
from tests.simulation.lease_upheaval import LeaseUpheaval

NODES = 3
CANDIDATES = 2
LATE = 0.004  # of messages
LATE_FENCE = 0.3  # of deletions: they arrive when another may lead
SECONDS = 20.0


class LeaseWorld:
    def __init__(self, seed: int, fault: str | None, tell: Callable[[str], None]) -> None:
        self.rng = Random(f"lease {seed}")
        self.fault = fault
        self.observers = (0, 1, 0, 2)[seed % 4]  # of the candidates
        self.times: LeaseTimes = times_of(fault)
        self.agenda = Agenda(self.rng)
        self.seen: Counter[str] = Counter()
        self.is_out = False
        self._deleters: dict[DeleteRecord, str] = {}  # the nonce of the leader who sent it
        self._unexcused: set[DeleteRecord] = set()  # the node lived and was connected when the leader decided
        self.requested: set[str] = set()  # fences of nodes that renew
        self._tell = tell
        self._acted = ("", 0)  # nonce and epoch of the last leader that acted
        self.named: set[str] = set()  # nodes that a leader has seen, and may have given regions to
        self._waiting: list[Step] = []  # requests that a server has taken during an outage
        self._store = CasMemory()
        self._count = 0
        self.nodes: dict[str, SimulatedNode] = {}  # by key, those of the past too
        self.running = [self._start(f"n{number}") for number in range(NODES)]
        self.candidates = [SimulatedCandidate(self, number) for number in range(CANDIDATES)]
        self.agenda.after_step = self._check
        self._takeovers = Takeovers(self)
        self._upheaval = LeaseUpheaval(self)

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

    def take_waiting(self) -> list[Step]:
        """Return what waited for the end of an outage, and forget it."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def take(self, request: Request, value: bytes, polled: PolledRecords) -> Answer:
        """Let the request take effect; a deletion is held against the law."""
        if not isinstance(request, DeleteRecord) or request.also is None:
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
        if request.key in self.requested and not node.is_withdrawing:
            self._upheaval.after_request(node)
            return
        node.fenced_us = self.agenda.now_us
        assert request not in self._unexcused, f"{request.key} lived, was not cut off and is fenced"

    def act(self, nonce: str, epoch: int) -> None:
        """Let a leader act under an epoch."""
        last, last_epoch = self._acted
        if nonce != last:
            assert epoch > last_epoch, f"a leader acts under epoch {epoch} after another one did under {last_epoch}"
            self._acted = nonce, epoch

    def lost(self, node: SimulatedNode, *, has_joined: bool) -> None:
        """Hold a node that ends by itself against the law; before it has joined its first record may yet arrive."""
        self.seen["lost"] += 1
        found = self._store.read_key(node.record.key)
        is_own = found is not None and nonce_and_epoch(found.value)[0] == node.record.nonce
        assert not (has_joined and is_own), f"{node.record.key} ends though its record stands"

    def ended(self, key: str, over_us: int, *, is_by_time: bool) -> None:
        """Count on it that the holder acknowledges nothing from then on; a candidate does."""
        node = self.nodes[key]
        node.fenced_us = over_us if node.fenced_us is None else min(node.fenced_us, over_us)
        assert is_by_time or node.server.is_dead, f"{key} counts as withdrawn, and its server runs"

    def take_over(self, key: str) -> None:
        """Give the region of an ended node to the next owner."""
        self._takeovers.begin(self.nodes[key])

    def _check(self) -> None:
        leading = [one for one in self.candidates if one.leads()]
        assert len(leading) <= 1, f"{[one.process for one in leading]} lead at once"

    # --- processes -----------------------------------------------------------------------------------

    def _start(self, name: str) -> SimulatedNode:
        self._count += 1
        node = SimulatedNode(self, name, self._count)
        self.nodes[node.record.key] = node
        return node

    def replace(self, node: SimulatedNode) -> None:
        self.running[self.running.index(node)] = self._start(node.record.node)

    def end_candidate(self, candidate: SimulatedCandidate, what: str) -> None:
        """End the process of a candidate; another one starts."""
        self.tell(f"{candidate.process} {what}")
        self.agenda.kill(candidate.process)
        self.candidates[self.candidates.index(candidate)] = SimulatedCandidate(self, candidate.number)

    def pause_node(self, node: SimulatedNode) -> None:
        self._upheaval.pause(node.supervisor, node)
        self._upheaval.pause(node.server, None)

    def fence_was_sent(self, candidate: SimulatedCandidate, request: DeleteRecord) -> None:
        """Note who decided, and on what; now and then stop the leader, so that its deletion arrives under another."""
        self._deleters[request] = candidate.candidate.nonce
        node = self.nodes[request.key]
        if not node.is_withdrawing and node.lived_and_was_connected():
            self._unexcused.add(request)
        if self.rng.random() < 0.3:
            self._upheaval.pause(candidate.process, None)

    def summary(self) -> str:
        return counted(self.seen)


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


def first_found(fault: str, seeds: Iterable[int], seconds: float = SECONDS) -> str | None:
    """Return the law that the first seed finds broken; None: no seed does."""
    for seed in seeds:
        try:
            run(seed, seconds, fault)
        except AssertionError as error:
            return str(error)
    return None
