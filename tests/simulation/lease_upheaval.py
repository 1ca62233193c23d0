"""The upheaval of the simulated world of leases: pauses, deaths, cuts, outages, fences on request, and clean stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.agenda import MS, Process
from tests.simulation.lease_nodes import Machine, SimulatedNode

if TYPE_CHECKING:
    from tests.simulation.lease_world import LeaseWorld


class LeaseUpheaval:
    def __init__(self, world: LeaseWorld) -> None:
        self._world = world
        self._rng = world.rng
        self._agenda = world.agenda
        world.agenda.later(None, 1 * MS, self._next)

    def _next(self) -> None:
        kind, weight = zip(*_UPHEAVALS, strict=True)
        chosen = self._rng.choices(kind, weight)[0]
        self._world.seen[chosen.__name__.strip("_")] += 1
        chosen(self)
        self._agenda.later(None, self._agenda.drawn(100 * MS, 1_500 * MS), self._next)

    def _lasting(self) -> int:
        """Draw how long something lasts: mostly about as long as a lease."""
        top_ms = self._rng.choice((600, 1_700, 2_600, 5_000))
        return self._agenda.drawn(50 * MS, top_ms * MS)

    def pause(self, process: Process, node: SimulatedNode | None) -> None:
        if process.is_dead or process.is_stopped:
            return
        self._world.tell(f"{process} is stopped")
        self._agenda.stop(process)

        def wake() -> None:
            if node is not None:
                node.impaired_us = self._agenda.now_us
            if not process.is_dead:
                self._agenda.go_on(process)

        self._agenda.later(None, self._lasting(), wake)

    def after_request(self, node: SimulatedNode) -> None:
        """Now and then stop the supervisor of a node that was fenced on request, and let the leader resign.

        So the next leader finds no record, and the lease is not over.
        """
        if self._rng.random() < 0.5:
            self.pause(node.supervisor, node)
            self._agenda.later(None, self._agenda.drawn(1 * MS, 300 * MS), self._resign_candidate)

    def _pause_supervisor(self) -> None:
        node = self._rng.choice(self._world.running)
        self.pause(node.supervisor, node)

    def _pause_server(self) -> None:
        self.pause(self._rng.choice(self._world.running).server, None)

    def _pause_node(self) -> None:
        self._world.pause_node(self._rng.choice(self._world.running))

    def _pause_candidate(self) -> None:
        self.pause(self._rng.choice(self._world.candidates).process, None)

    def _kill_node(self) -> None:
        node = self._rng.choice(self._world.running)
        self._world.tell(f"{node.supervisor} is killed")
        node.end()

    def _kill_candidate(self) -> None:
        self._world.end_candidate(self._rng.choice(self._world.candidates), "is killed")

    def _resign_candidate(self) -> None:
        """Let a candidate stop cleanly, preferably the leader."""
        leading = [one for one in self._world.candidates if one.leads()]
        self._rng.choice(leading or self._world.candidates).resign()

    def _step_down_candidate(self) -> None:
        """Let the leader leave its place to others; it goes on as a candidate."""
        for candidate in self._world.candidates:
            if candidate.leads():
                candidate.step_down()

    def _withdraw_node(self) -> None:
        self._rng.choice(self._world.running).withdraw()

    def _cut(self, machine: Machine, node: SimulatedNode | None) -> None:
        if machine.loses_requests or machine.loses_answers:
            return
        machine.loses_requests, machine.loses_answers = self._rng.choice(((True, True), (True, False), (False, True)))
        self._world.tell(f"{'a candidate' if node is None else node.supervisor} is cut off")

        def heal() -> None:
            machine.loses_requests = machine.loses_answers = False
            if node is not None:
                node.impaired_us = self._agenda.now_us

        self._agenda.later(None, self._lasting(), heal)

    def _cut_node(self) -> None:
        node = self._rng.choice(self._world.running)
        self._cut(node.machine, node)

    def _cut_candidate(self) -> None:
        self._cut(self._rng.choice(self._world.candidates).machine, None)

    def _outage(self) -> None:
        if self._world.is_out:
            return
        self._world.is_out = True
        self._world.tell("the service is away")

        def recover() -> None:
            self._world.is_out = False
            self._world.tell("the service is back")
            waiting = self._world.take_waiting()
            for step in waiting:
                self._agenda.later(None, self._agenda.drawn(0, 20 * MS), step)

        self._agenda.later(None, self._lasting(), recover)

    def _request_fence(self) -> None:
        node = self._rng.choice(self._world.running)
        for candidate in self._world.candidates:
            if candidate.leads() and not candidate.process.is_stopped:
                self._world.requested.add(node.record.key)
                candidate.candidate.members.request_fence(node.record.key)


_UPHEAVALS: tuple[tuple[Callable[[LeaseUpheaval], None], int], ...] = (
    (LeaseUpheaval._pause_supervisor, 3),
    (LeaseUpheaval._pause_server, 2),
    (LeaseUpheaval._pause_node, 5),
    (LeaseUpheaval._pause_candidate, 2),
    (LeaseUpheaval._kill_node, 2),
    (LeaseUpheaval._kill_candidate, 1),
    (LeaseUpheaval._cut_node, 5),
    (LeaseUpheaval._cut_candidate, 2),
    (LeaseUpheaval._outage, 4),
    (LeaseUpheaval._request_fence, 1),
    (LeaseUpheaval._resign_candidate, 1),
    (LeaseUpheaval._withdraw_node, 1),
    (LeaseUpheaval._step_down_candidate, 1),
)
