"""A simulated region server: one process with its log, its regions, its gateway and a control thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from columnar.model.owner import Incarnation
from tests.simulation.agenda import MS, Process
from tests.simulation.changing import Changing
from tests.simulation.committing import Committing
from tests.simulation.disk import LogFolder
from tests.simulation.gateway import Gateway
from tests.simulation.owning import Owning

if TYPE_CHECKING:
    from tests.simulation.master import Master
    from tests.simulation.world import World

REPORTS_US = 500 * MS


class Server:
    def __init__(self, world: World, me: Incarnation, master: Master) -> None:
        self.world = world
        self.me = me
        self.process = Process(str(me))
        self.log = world.disk.logs[me] = LogFolder(me)
        self.committing = Committing(self)
        self.owning = Owning(self)
        self.changing = Changing(self)
        self.gateway = Gateway(self)
        self._master = master

    def start(self) -> None:
        """Say hello, once the process is there."""
        self.world.agenda.later(self.process, self.world.agenda.drawn(20 * MS, 120 * MS), self._say_hello)

    def _say_hello(self) -> None:
        serving: dict[int, int] = self.owning.hosting.serving()
        self.to_master(lambda master: master.hello(self, serving, {}))
        self._report_life()

    def _report_life(self) -> None:
        """Report life as the control thread does; the loop iterates as long as the process runs."""
        iterations = self.world.agenda.steps
        self.to_master(lambda master: master.heard(self.me, iterations))
        self.world.agenda.later(self.process, REPORTS_US, self._report_life)

    def to_master(self, what: Callable[[Master], None]) -> None:
        master = self._master
        self.world.agenda.send(self.process, master.process, lambda: what(master))

    def report(self, kind: str, region: int, epoch: int, **about: Any) -> None:
        self.to_master(lambda master: master.event(kind, self.me, region, epoch, **about))

    def check(self) -> None:
        self.owning.check()
        self.changing.check()
