"""The simulated master of several machines: servers outlive it, and it knows of them by their records.

It takes the catalogue's folder over, waits until every server with a record has said which regions it has, and then
plans.  An incarnation without a record has ended: reaped by its machine, or by time.  A master whose lease is over
sends nothing, and ends if a write of its catalogue has met that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from columnar.master.instructions import Fence
from columnar.master.placement_records import Phase
from columnar.model.owner import Incarnation
from tests.simulation.agenda import MS, Process
from tests.simulation.coordination import TIMES, Leased
from tests.simulation.master import Master, named_in
from tests.simulation.server import Server

if TYPE_CHECKING:
    from tests.simulation.world import World

OUTLIVES_US = 1_000 * MS  # until a bound server that lives is fenced


class LeadingMaster(Master):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        coordination = world.coordination
        self._coordination = coordination
        self._lease = Leased(
            world, self.process, lambda: coordination.leader if coordination.epoch == self.leader else None
        )
        self._records: set[Incarnation] = set()  # as it saw them last

    # --- starting ------------------------------------------------------------------------------------

    def start(self) -> None:
        self._lease.begin()
        for server in list(self._coordination.servers):
            self._see(server)
            self._awaited[server] = None
        named = {server for row in self.durable.values() for server in named_in(row)}
        for server in sorted({*named, *self.world.disk.logs, *self._sealed} - self._records):
            self._has_ended(server)
        if self.world.has("hellos unwaited"):
            for server in list(self._awaited):
                self._has_ended(server)
        for one in list(self.world.processes.values()):
            self.dial(one)
        self._look()
        self._begin_if_known()

    def dial(self, server: Server) -> None:
        """Let the server find this leader, when it runs."""
        delay_us = self._agenda.drawn(5 * MS, 200 * MS)
        self._agenda.later(server.process, delay_us, lambda: server.follow(self))

    def _see(self, server: Incarnation) -> None:
        if server not in self._records:
            self._records.add(server)
            self.event("joined", server)

    def _begin_if_known(self) -> None:
        if not self._awaited and not self._has_begun:
            self._begin()
            count = sum(place.phase is Phase.OPEN for place in self.state.current.places.values())
            self.world.seen["regions resumed"] += count
            self.catalogue.finish_drops()

    def linked(self, server: Server) -> None:
        """Publish tables and routes to a server that follows this leader, and ask which regions it has."""
        if server.me in self._coordination.servers:
            self._see(server.me)
            regions = set(self.catalogue.regions)
            self.post(server.process, lambda: server.settle(self, regions))
            self.region_changes.linked_again(server)

    def reset_link(self, server: Server) -> None:
        """End the link of a server that lives: it links again, or is fenced if it carries out a change."""
        if server.master is not self:
            return
        is_bound = self.region_changes.is_carried_by(server)
        server.leader_ended(self)
        self.world.seen["links reset amid a change" if is_bound else "links reset"] += 1
        if is_bound:
            self._agenda.later(self.process, OUTLIVES_US, lambda: self._unlinked(server))
        if not is_bound or self.world.has("bound relinked"):
            delay_us = self._agenda.drawn(1 * MS, 200 * MS)
            self._agenda.later(server.process, delay_us, lambda: server.link_again(self))

    def _unlinked(self, server: Server) -> None:
        if server.me in self._records:
            self.event("silent", server.me, "its link ended amid a change")

    def _is_known(self, server: Server) -> None:
        self._awaited.pop(server.me, None)
        self._begin_if_known()

    # --- ends ----------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Look at the records, and fence servers whose record stands still."""
        records = self._coordination.servers
        if not self._lease.is_over and self._coordination.epoch == self.leader:
            for server in list(records):
                self._see(server)
            for server in sorted(self._records):
                if server in records and self._coordination.is_over(records[server]):
                    del records[server]
                if server not in records:
                    self._records.remove(server)
                    self._has_ended(server)
                    self._begin_if_known()
        self._agenda.later(self.process, TIMES.poll_ms * MS, self._look)

    def _has_ended(self, server: Incarnation) -> None:
        self._awaited.pop(server, None)
        is_by_time = server not in self._coordination.reaped
        if is_by_time:
            self.world.ended_by_time(server)
        log = self.world.disk.logs.get(server)
        if is_by_time and log is not None and not self.world.has("log in place"):
            self.world.disk.logs[server] = log.renamed()
        self._is_over(server, is_by_time=is_by_time and not self.world.has("generation kept"))
        if server in self.world.started:
            self.region_changes.server_ended(self.world.started[server])

    def _fence(self, fence: Fence) -> None:
        """Have the machine kill the server; if it is stopped, its record stands still."""
        server = self.world.servers.get(fence.server)
        if server is not None:
            self._agenda.later(server.process, 5 * MS, lambda: self._kill(server))

    def has_started(self, server: Incarnation) -> bool:
        return False  # fenced writers that are not dead append by themselves

    # --- the lease -----------------------------------------------------------------------------------

    def post(self, receiver: Process, what: Callable[[], None]) -> None:
        def leave() -> None:
            self.world.laws.sends(self)
            self._agenda.send(self.process, receiver, what)

        self._lease.leave(leave)

    def may_end_amid_commit(self) -> bool:
        return self.world.happens("commit")

    def leads_after_write(self) -> bool:
        if not self._lease.is_over or self.world.has("write unchecked"):
            return True
        if self._coordination.is_cut_off(self.process):
            self.world.kill(self.process, "its lease was over at the end of a write")
            return False
        return self._lease.renewed(self._agenda.now_us)
