"""A simulated region server: one process with its log, its regions, its gateway and a control thread."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from columnar.model.owner import Incarnation
from tests.simulation.agenda import MS, Process
from tests.simulation.changing import Changing
from tests.simulation.committing import Committing
from tests.simulation.coordination import Leased
from tests.simulation.disk import LogFolder
from tests.simulation.gateway import Gateway
from tests.simulation.owning import Owning

if TYPE_CHECKING:
    from tests.simulation.master import Master
    from tests.simulation.world import World

REPORTS_US = 500 * MS


class Server:
    def __init__(self, world: World, me: Incarnation, master: Master | None) -> None:
        self.world = world
        self.me = me
        self.process = Process(str(me))
        self.log = world.disk.logs[me] = LogFolder(me)
        self.committing = Committing(self)
        self._master: Master | None = master
        self.owning = Owning(self)
        self.changing = Changing(self)
        self.gateway = Gateway(self)
        self._greeted: Master | None = None  # it knows the regions of this server
        self.lease: Leased | None = None  # of a machine of its own

    def start(self) -> None:
        """Say hello, once the process is there."""
        self.world.agenda.later(self.process, self.world.agenda.drawn(20 * MS, 120 * MS), self._say_hello)

    def _say_hello(self) -> None:
        self._greeted = self._master
        serving: dict[int, int] = self.owning.hosting.serving()
        self.to_master(lambda master: master.hello(self, serving, {}))
        self._report_life()

    def _report_life(self) -> None:
        """Report life as the control thread does; the loop iterates as long as the process runs."""
        iterations = self.world.agenda.steps
        self.to_master(lambda master: master.heard(self.me, iterations))
        self.world.agenda.later(self.process, REPORTS_US, self._report_life)

    def to_master(self, what: Callable[[Master], None], master: Master | None = None) -> None:
        """Send to the master that leads, or to the one that is waited for by its own ``what``."""
        target = self._master
        if target is not None and master in (None, target):
            self.post(target.process, lambda: what(target))

    def post(self, receiver: Process, what: Callable[[], None]) -> None:
        """Send ``what`` as soon as the lease allows it."""
        self.leave(lambda: self.world.agenda.send(self.process, receiver, what))

    def leave(self, what: Callable[[], None]) -> None:
        if self.lease is None:
            what()
        else:
            self.lease.leave(what)

    # --- leaders -------------------------------------------------------------------------------------

    def start_leased(self) -> None:
        """Join as a machine of its own; the leader finds the record."""
        self.world.coordination.join(self.me)
        self.lease = Leased(self.world, self.process, lambda: self.world.coordination.servers.get(self.me))
        self.lease.begin()

    @property
    def master(self) -> Master | None:
        return self._master

    def leader_ended(self, master: Master) -> None:
        """End the work of a leader whose link has ended."""
        if self._master is master:
            self._master = self._greeted = None
            self.changing.leader_ended(master.leader)

    def link_again(self, master: Master) -> None:
        """Link again to a leader that was followed, unless a newer one is."""
        if self._master is None and not master.process.is_dead and master.leader >= self.owning.hosting.leader:
            self._master = master
            self.to_master(lambda master: master.linked(self))

    def follow(self, master: Master) -> None:
        """Link to a newer leader, which then publishes its tables and asks for the regions."""
        before = self._master
        if before is not None and before.leader >= master.leader:
            return
        if before is not None:
            self.process.peers.pop(before.process, None)
            before.process.peers.pop(self.process, None)
            self.leader_ended(before)
        self._master = master
        self.world.agenda.link(self.process, master.process, lambda: None, lambda: self.leader_ended(master))
        self.to_master(lambda master: master.linked(self))

    def settle(self, master: Master, regions: Collection[int]) -> None:
        """Follow the published tables, then say which regions this server has."""
        if self._master is not master:
            return
        self.changing.settle_table(regions, master.leader)
        found = self.owning.hosting.holdings(master.leader)
        if found is None:
            return  # it follows another
        self._greeted = master
        closed = {region: (epoch, is_behind) for region, epoch, is_behind in found.closed}
        serving, leaving = dict(found.serving), dict(found.leaving)
        if self.world.has("holdings unasked"):
            rows = master.durable.items()
            serving, leaving, closed = {region: row.epoch for region, row in rows if row.server == self.me}, {}, {}
        self.to_master(lambda master: master.hello(self, serving, closed, leaving))

    def report(self, kind: str, region: int, epoch: int, **about: Any) -> None:
        """Answer the leader's request; answers to an earlier leader were lost with its link."""
        if self._greeted is self._master:
            self.to_master(lambda master: master.event(kind, self.me, region, epoch, **about))

    def check(self) -> None:
        self.owning.check()
        self.changing.check()
