"""Clients of the simulated cluster: registers, counters and scans, one call at a time, with their answers.

Each row's history is judged at the end (``tests.proofs.linearizability``).  A call of unknown outcome may have taken
effect at the one moment at which an owner carried it out, or never: the world knows that moment.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from columnar.model.region_info import RegionInfo
from tests.proofs.linearizability import NO_ANSWER, Event, judge
from tests.simulation.agenda import MS, Process
from tests.simulation.stores import Value

if TYPE_CHECKING:
    from tests.simulation.server import Server
    from tests.simulation.world import World

TABLE = "t"
PATIENCE_US = 4_000 * MS
NOT_SERVED = "not served"  # an answer: nothing was done, and it is not known when the region is served again
State = tuple[int, int]  # register, counter


class Op:
    """An operation: get, put, add, check (put if the register is ``expected``) or scan (the rows of one region)."""

    __slots__ = ("applied_at", "argument", "began", "expected", "kind", "row", "settled_at", "world")

    def __init__(self, world: World, kind: str, row: bytes, argument: int = 0, expected: int = 0) -> None:
        self.world = world
        self.kind = kind
        self.row = row  # of a scan: where it goes on
        self.argument = argument
        self.expected = expected
        self.began = world.tick()
        self.applied_at = 0  # 0: by no owner
        self.settled_at = 0

    def __repr__(self) -> str:
        return f"{self.kind} {self.row.decode()} {self.argument} #{self.began}"

    @property
    def is_write(self) -> bool:
        return self.kind in ("put", "add", "check")

    @property
    def call(self) -> tuple[str, int, int]:
        return self.kind, self.argument, self.expected

    def rows_in(self, info: RegionInfo) -> list[bytes]:
        if self.kind == "scan":
            return [row for row in self.world.rows if row >= self.row and info.contains_row(row)]
        return [self.row]

    def changed(self, value: Value, version: int) -> tuple[Hashable, Value | None]:
        answer, after = step((value.register, value.counter), self.call)
        if after == (value.register, value.counter) and self.kind == "check":
            return answer, None
        return answer, Value(*after, version)

    def applied(self) -> None:
        self.applied_at, self.settled_at = self.world.tick(), self.world.tick()


def step(state: State, call: tuple[str, int, int]) -> tuple[Hashable, State]:
    kind, argument, expected = call
    register, counter = state
    if kind == "put":
        return None, (argument, counter)
    if kind == "add":
        return counter + argument, (register, counter + argument)
    if kind == "check":
        return (True, (argument, counter)) if register == expected else (False, state)
    return state, state


class Client:
    def __init__(self, world: World, number: int) -> None:
        self.process = Process(f"client {number}")
        self.is_stopped = False
        self.server: Server | None = None
        self.asked = 0
        self._world = world
        self._agenda = world.agenda
        self._op: Op | None = None

    def think(self) -> None:
        low, high = self._world.settings.think_ms
        self._agenda.later(self.process, self._agenda.drawn(low * MS, high * MS), self._next)

    def _next(self) -> None:
        if self.is_stopped or self._op is not None:
            return
        server = self.server
        if server is None or server.process.is_dead:
            self.server = server = self._world.accepted(self)
        if server is None:
            self.think()
            return
        self._ask(server, self._drawn())

    def _drawn(self) -> Op:
        world, rng = self._world, self._world.rng
        rows = world.rows if rng.random() < 0.5 else world.rows[:2]
        row, chance = rows[int(rng.random() * len(rows))], rng.random()
        if chance < 0.35:
            return Op(world, "get", row)
        if chance < 0.60:
            return Op(world, "put", row, world.next_argument())
        if chance < 0.80:
            return Op(world, "add", row, 1)
        if chance < 0.90:
            return Op(world, "check", row, world.next_argument(), world.last_argument(row))
        return Op(world, "scan", b"")

    def _ask(self, server: Server, op: Op) -> None:
        self._op = op
        self.asked += 1
        self._agenda.send(self.process, server.process, lambda: server.gateway.called(op, self))
        self._agenda.later(self.process, PATIENCE_US, lambda: self._gives_up(op))

    def read(self, row: bytes) -> bool:
        """Begin a read; return False if the client is busy, or there is no server."""
        self.server = server = self.server or self._world.accepted(self)
        if self._op is not None or server is None:
            return False
        self._ask(server, Op(self._world, "get", row))
        return True

    def server_ended(self, server: Server) -> None:
        if self.server is server:
            self.server = None
            if self._op is not None:
                self._unsure(self._op)

    def answered(self, op: Op, answer: Any) -> None:
        if self._op is not op:
            return
        world = self._world
        if answer == NOT_SERVED:
            self.refused(op)
            return
        if op.kind == "scan":
            self._scanned(op, answer)
            return
        if op.kind == "get":
            value = answer[1][op.row]
            answer = (value.register, value.counter)
        world.note(op.row, Event(op.began, world.tick(), op.call, answer, str(self.process)))
        self._ends()

    def _scanned(self, op: Op, answer: Any) -> None:
        info, found = answer
        ended = self._world.tick()
        for row, value in found.items():
            # A read of each row; beginnings and ends of one history must differ, not those of two.
            got = (value.register, value.counter)
            self._world.note(row, Event(op.began, ended, ("get", 0, 0), got, f"{self.process} scans"))
        server = self.server
        if info.end and server is not None:
            self._op = None
            self._ask(server, Op(self._world, "scan", info.end))
        else:
            self._ends()

    def refused(self, op: Op) -> None:
        """Note a refused operation, which changed nothing."""
        if self._op is op:
            self._world.laws.refused(op)
            self._ends()

    def unsure(self, op: Op) -> None:
        if self._op is op:
            self._unsure(op)

    def _gives_up(self, op: Op) -> None:
        if self._op is op:
            server, self.server = self.server, None
            if server is not None:
                self._agenda.send(self.process, server.process, lambda: server.gateway.client_went(op))
            self._unsure(op)

    def _unsure(self, op: Op) -> None:
        if op.is_write:
            self._world.unsure.append((op, self._world.tick()))
        self._ends()

    def _ends(self) -> None:
        self._op = None
        self.think()

    @property
    def is_idle(self) -> bool:
        return self._op is None


def unsure_events(unsure: list[tuple[Op, int]]) -> list[tuple[bytes, Event]]:
    """Return the events of unsure calls; a call that no owner carried out had no effect, and is left out."""
    carried_out = [(op, ended) for op, ended in unsure if op.applied_at]
    return [
        (op.row, Event(op.began, max(ended, op.settled_at), op.call, NO_ANSWER, "unsure")) for op, ended in carried_out
    ]


def judged(row: bytes, history: list[Event]) -> str | None:
    """Return why no order explains the row's history, or None if one does."""
    found = judge(history, step, [(0, 0)])
    if found.is_linearizable:
        return None
    before = [str(one) for one in sorted(history, key=lambda one: one.ended) if one.ended <= found.stuck_at.ended][-12:]  # type: ignore[union-attr]
    return f"row {row.decode()}: nothing explains {found.stuck_at}; possible before: {set(found.states)}\n  " + (
        "\n  ".join(before)
    )
