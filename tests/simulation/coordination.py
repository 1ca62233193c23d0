"""The coordination of the simulated machines: records of living servers, the leader's record, and who holds a lease.

A holder renews its record; its lease ends LEASE_MS after the moment at which it sent the last renewal.  A record that
stood still for FENCE_MS is over: the holder can never renew it.  ``lease_world`` shows that leases keep this promise
amid failures; here they only keep it.

    Leased    a process that sends nothing while its lease is over: what it would have sent waits for the renewal
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from columnar.coordination.lease import LeaseTimes
from columnar.model.owner import Incarnation
from tests.simulation.agenda import MS, Agenda, Process

if TYPE_CHECKING:
    from tests.simulation.world import World

TIMES = LeaseTimes.of_lease()


@dataclass(slots=True)
class Record:
    sent_us: int  # the last renewal


class Coordination:
    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.servers: dict[Incarnation, Record] = {}
        self.reaped: set[Incarnation] = set()  # struck off by their machine, which has seen the end of their process
        self.leader: Record | None = None
        self.epoch = 0  # of the last leader
        self.hears_nothing: dict[Process, int] = {}  # cut off until then

    def is_cut_off(self, process: Process) -> bool:
        return self.hears_nothing.get(process, 0) > self._agenda.now_us

    def join(self, server: Incarnation) -> None:
        self.servers[server] = Record(self._agenda.now_us)

    def strike_off(self, server: Incarnation) -> None:
        if self.servers.pop(server, None) is not None:
            self.reaped.add(server)

    def elect(self, above: int) -> int:
        """Elect a new leader.  Returns its epoch, above that of every earlier one."""
        self.epoch = max(self.epoch, above) + 1
        self.leader = Record(self._agenda.now_us)
        return self.epoch

    def is_over(self, record: Record) -> bool:
        return self._agenda.now_us - record.sent_us > TIMES.fence_ms * MS


class Leased:
    """The lease of a process; ``renew`` returns the moment of a renewal, None if the record is gone."""

    def __init__(self, world: World, process: Process, find: Callable[[], Record | None]) -> None:
        self._world = world
        self._agenda = world.agenda
        self._process = process
        self._find = find
        self._until_us = self._agenda.now_us + TIMES.lease_ms * MS
        self._withheld: list[Callable[[], None]] = []

    @property
    def is_over(self) -> bool:
        return self._agenda.now_us >= self._until_us

    def begin(self) -> None:
        self._agenda.later(self._process, TIMES.renew_ms * MS, self._renew)

    def _renew(self) -> None:
        """Renew the lease, after the time that a request takes; the process ends if its record is gone."""
        sent_us = self._agenda.now_us

        def answered() -> None:
            if not self._world.coordination.is_cut_off(self._process):
                self.renewed(sent_us)
            self._agenda.later(self._process, TIMES.renew_ms * MS, self._renew)

        low, high = (MS, 10 * MS) if not self.is_over else (5 * MS, 120 * MS)  # links are made anew
        self._agenda.later(self._process, self._agenda.drawn(low, high), answered)

    def renewed(self, sent_us: int) -> bool:
        record = self._find()
        if record is None:
            self._world.kill(self._process, "it was fenced")
            return False
        record.sent_us = sent_us
        self._until_us = sent_us + TIMES.lease_ms * MS
        withheld, self._withheld = self._withheld, []
        for leave in withheld:
            self.leave(leave)
        return True

    def leave(self, what: Callable[[], None]) -> None:
        """Do what others will see: now, or when the lease is renewed."""
        if self.is_over and not self._world.has("lease unchecked"):
            self._world.seen["messages withheld"] += 1
            self._withheld.append(what)
        else:
            what()
