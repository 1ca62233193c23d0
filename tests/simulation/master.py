"""The simulated supervisor: the shell around ``ClusterState``, the catalogue's store, fences and new servers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import (
    Close,
    Fence,
    Merge,
    NotifyServer,
    Output,
    OwnerRequest,
    RemoveLog,
    Request,
    Split,
    Wake,
    Write,
)
from columnar.master.liveness import Liveness
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import Segments
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route, route_to
from tests.simulation.agenda import MS, Process
from tests.simulation.catalogue import Catalogue, Change
from tests.simulation.deliberate import lead_astray
from tests.simulation.disk import Pair
from tests.simulation.region_changes import RegionChanges
from tests.simulation.server import Server

if TYPE_CHECKING:
    from tests.simulation.world import World

HELLOS_WITHIN_US = 2_000 * MS
NUMBERS = 1_000  # of servers that one master starts
NOBODY = Incarnation("nobody", 0)


class Master:
    def __init__(self, world: World) -> None:
        """Read the disk, and raise the epoch of the leader there."""
        self.world = world
        self.process = Process("master" if not world.has_leases else f"master {world.coordination.epoch + 1}")
        self._agenda = world.agenda
        self.catalogue = Catalogue(world, self)
        self.leader = self.catalogue.leader
        self._sealed = self.catalogue.sealed()
        rows = [(info, self.durable.get(region)) for region, info in self.catalogue.regions.items()]
        self.state = ClusterState(
            rows,
            self._sealed,
            self.catalogue.wishes(),
            Random(world.rng.getrandbits(32)),
        )
        lead_astray(world, self.state)
        self._routes_number = self.leader * 1_000_000
        self._liveness = Liveness(self._agenda.now_ms)
        self._started = 0
        self._awaited: dict[Incarnation, None] = {}  # no hello yet; nothing is planned before the first of all
        self._has_begun = False
        self.region_changes = RegionChanges(self)
        self._asked = 0
        self.has_changed = False  # in this step: the state has taken an event in

    @property
    def durable(self) -> dict[int, Owner]:
        return self.catalogue.durable

    # --- starting ------------------------------------------------------------------------------------

    def start(self) -> None:
        named = {tenure for row in self.durable.values() for tenure in named_in(row)}
        for server in sorted({*named, *self.world.disk.logs, *self._sealed}):
            self._is_over(server)
        for number in range(self.world.settings.servers):
            self._awaited[self._start_server(f"s{number + 1}")] = None
        self._agenda.later(self.process, HELLOS_WITHIN_US, self._begin)
        self._look()

    def _start_server(self, name: str) -> Incarnation:
        self._started += 1
        server = Server(self.world, Incarnation(name, self.leader * NUMBERS + self._started), self)
        self.world.add_server(server)
        self._agenda.link(
            server.process,
            self.process,
            lambda: self._agenda.later(self.process, self._agenda.drawn(0, 10 * MS), lambda: self._reaped(server)),
            lambda: self.world.kill(server.process, "its parent is dead"),
        )
        self._liveness.joined(server.me, self._agenda.now_ms)
        self.event("joined", server.me)
        server.start()
        return server.me

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.event("begin_planning")

    def hello(
        self,
        server: Server,
        serving: dict[int, int],
        given_up: dict[int, tuple[int, bool]],
        leaving: dict[int, int] | None = None,
    ) -> None:
        self.event("hello", server.me, serving, given_up, leaving=leaving or {})
        self.routes_wanted(server)
        self._is_known(server)

    def _is_known(self, server: Server) -> None:
        self._awaited.pop(server.me, None)
        if not self._awaited:
            self._begin()

    # --- liveness and fences -------------------------------------------------------------------------

    def heard(self, server: Incarnation, iterations: int) -> None:
        self._liveness.heard(server, iterations, self._agenda.now_ms)

    def _look(self) -> None:
        now_ms = self._agenda.now_ms
        verdict = self._liveness.check_liveness(now_ms)
        for server, why in verdict.kill:
            self.event("silent", server, why)
        self._agenda.later(self.process, (verdict.wake_at_ms - now_ms) * MS, self._look)

    def _fence(self, fence: Fence) -> None:
        server = self.world.servers.get(fence.server)
        if server is None:
            return  # it has died by itself: its end is on the way
        if self.world.has("fence unwaited"):
            self._is_over(fence.server)
            self._agenda.later(None, self._agenda.drawn(20 * MS, 300 * MS), lambda: self._kill(server))
        else:
            self._kill(server)

    def _kill(self, server: Server) -> None:
        self.world.kill(server.process, "fenced")

    def _reaped(self, ended: Server) -> None:
        server = ended.me
        self._liveness.left(server)
        self._is_over(server)
        self.region_changes.server_ended(ended)
        delay_us = self._agenda.drawn(50 * MS, 400 * MS)
        self._agenda.later(self.process, delay_us, lambda: self._replace(server.name))

    def _replace(self, name: str) -> None:
        self._start_server(name)

    def _is_over(self, server: Incarnation, **about: Any) -> None:
        """Measure the dead server's log, which seals it, and read the log."""
        log = self.world.disk.logs.get(server)
        extents = self._sealed.get(server)
        if extents is None:
            extents = log.measured() if log is not None else ()
            self.world.laws.fenced(server, extents, self.durable)
            self._sealed[server] = extents
        named = {(int(region[1:]), epoch) for region, epoch in log.named(extents)} if log is not None else set()
        if self.world.has("no epochs"):
            named = {(region, epoch) for region, _ in named for epoch in range(self.world.highest_epoch(region) + 1)}
        self.event("fenced", server, extents, named, **about)

    def has_started(self, server: Incarnation) -> bool:
        return server.number // NUMBERS == self.leader

    def sealed_on_disk(self) -> list[Incarnation]:
        return list(self.catalogue.sealed())

    # --- the machine ---------------------------------------------------------------------------------

    def event(self, name: str, *args: Any, **about: Any) -> None:
        self.world.trace(self.process, (name, args, about))
        self.has_changed = True
        of = self.state if hasattr(self.state, name) else self.state.tables
        outputs: list[Output] = getattr(of, name)(*args, now_ms=self._agenda.now_ms, **about)
        for output in outputs:
            self._carry_out(output)

    def ask(self, request: Request) -> None:
        self._asked += 1
        self.event("add_request", self._asked, request)

    def _carry_out(self, output: Output) -> None:
        self.world.trace(self.process, output)
        if isinstance(output, Write):
            self._write(output)
        elif isinstance(output, Split | Merge):
            self.region_changes.begin(output)
        elif isinstance(output, NotifyServer):
            self._tell(output.server, output.request)
        elif isinstance(output, Fence):
            self._fence(output)
        elif isinstance(output, RemoveLog):
            self.world.laws.removes(output.server)
            self.world.disk.logs.pop(output.server, None)
            self._sealed.pop(output.server, None)
        elif isinstance(output, Wake):
            delay_us = max(MS, output.at_ms * MS - self._agenda.now_us)
            self._agenda.later(self.process, delay_us, lambda: self.event("tick"))

    def _tell(self, server: Incarnation, ask: OwnerRequest) -> None:
        self.world.laws.told(server, ask, self.durable)
        behind = () if isinstance(ask, Close) else ask.owner.unreplayed_logs
        sealed = {one.server: self._extents(one.server) for one in behind if one.server != server}
        target = self.world.servers.get(server)
        if target is not None:
            self.world.told.append((target, ask, self.leader, sealed))
            self.send(target, ask, self.leader, sealed)

    def _extents(self, server: Incarnation) -> Segments:
        """Return the sealed extents; of a live server that closed a region with an unreplayed log, the present ones."""
        sealed, log = self._sealed.get(server), self.world.disk.logs.get(server)
        return sealed if sealed is not None else log.measured() if log is not None else ()

    def send(self, target: Server, ask: OwnerRequest, leader: int, sealed: dict[Incarnation, Segments]) -> None:
        self.post(target.process, lambda: target.owning.ask(ask, leader, sealed))

    def post(self, receiver: Process, what: Callable[[], None]) -> None:
        self._agenda.send(self.process, receiver, what)

    def leads_after_write(self) -> bool:
        """Tell whether a write that has ended counts."""
        return True

    def may_end_amid_commit(self) -> bool:
        return False

    def linked(self, server: Server) -> None:
        raise AssertionError("servers of one machine follow their parent")

    def reset_link(self, server: Server) -> None:
        raise AssertionError("a server of one machine ends with its link")

    # --- the catalogue -------------------------------------------------------------------------------

    def _write(self, write: Write) -> None:
        is_early = self.world.has("told early")

        def pairs() -> list[Pair]:
            found = self.catalogue.owners_written(write)
            if is_early:
                self._stands(write)
            return found

        self.catalogue.write(
            Change(
                pairs,
                lambda: None if is_early else self._stands(write),
                undone=lambda: None if is_early else self.event("not_written", write.number),
            )
        )

    def _stands(self, write: Write) -> None:
        routes = tuple(route_to(info, row) for info, row in write.owners if info.region_id in self.catalogue.regions)
        self.publish(lambda number: ChangeRoutes(number, (), routes))
        self.event("row_written", write.number)

    def publish(self, change: Callable[[int], ChangeRoutes]) -> None:
        self._routes_number += 1
        for server in list(self.world.servers.values()):
            if not server.process.is_dead:
                self._publish(server, change(self._routes_number))

    def _publish(self, server: Server, change: ChangeRoutes | ReplaceRoutes) -> None:
        def came() -> None:
            if server.master is self:  # else this link has ended
                server.gateway.hear(change)

        self.post(server.process, came)

    def routes_wanted(self, server: Server) -> None:
        routes = []
        for region, info in self.catalogue.regions.items():
            row = self.durable.get(region)
            routes.append(route_to(info, row) if row is not None else Route(info, NOBODY, 0))
        self._publish(server, ReplaceRoutes(self._routes_number, tuple(routes)))


def named_in(row: Owner) -> list[Incarnation]:
    source = [row.source.server] if row.source is not None else []
    return [row.server, *source, *(tenure.server for tenure in row.unreplayed_logs)]
