"""The simulated supervisor: the shell around ``ClusterState``, the catalogue's store, fences and new servers."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from columnar.master import owner_rows
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import Ask, Close, Fence, Output, RemoveLog, Request, Tell, Wake, Write
from columnar.master.liveness import LOOK_MS, Liveness
from columnar.master.wishes import Wishes
from columnar.model import owner as owners
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import Segments
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route, route_to
from tests.simulation.agenda import MS, Process
from tests.simulation.deliberate import lead_astray
from tests.simulation.disk import Pair, apply
from tests.simulation.server import Server

if TYPE_CHECKING:
    from tests.simulation.world import World

EPOCH = b"e"
WISHES = b"w"
OWNER = b"o/"
HELLOS_WITHIN_US = 2_000 * MS
NUMBERS = 1_000  # of servers that one master starts
NOBODY = Incarnation("nobody", 0)


class Master:
    def __init__(self, world: World) -> None:
        """It reads what is on disk, and raises the epoch of the leader there."""
        self.world = world
        self.process = Process("master")
        self._agenda = world.agenda
        self._files = world.disk.meta
        self.data = self._files.recover()
        self.leader = int(self.data.get(EPOCH, b"0")) + 1
        self.data[EPOCH] = b"%d" % self.leader
        self._files.append([(EPOCH, self.data[EPOCH])])
        self._files.sync(len(self._files.log))
        self.durable = _owners_in(self.data)
        world.laws.on_disk(self.durable)
        wishes = self.data.get(WISHES)
        self._sealed: dict[Incarnation, Segments] = {
            owner_rows.sealed_server(key): owner_rows.sealed_from_json(value)
            for key, value in self.data.items()
            if key.startswith(owner_rows.SEALED)
        }
        rows = [(info, self.durable.get(region)) for region, info in world.infos.items()]
        self.state = ClusterState(
            rows,
            self._sealed,
            owner_rows.wishes_from_json(wishes) if wishes is not None else Wishes(),
            Random(world.rng.getrandbits(32)),
        )
        lead_astray(world, self.state)
        self._routes_number = self.leader * 1_000_000
        self._liveness = Liveness(self._agenda.now_ms)
        self._started = 0
        self._awaited: dict[Incarnation, None] = {}  # no hello yet; nothing is planned before the first of all
        self._has_begun = False
        self._writes: list[Write] = []  # the first one is under way
        self._is_writing = False
        self._asked = 0
        self.has_changed = False  # in this step: the state has taken an event in

    # --- starting ------------------------------------------------------------------------------------

    def start(self) -> None:
        named = {tenure for row in self.durable.values() for tenure in _named(row)}
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
            lambda: self._agenda.later(self.process, self._agenda.drawn(0, 10 * MS), lambda: self._reaped(server.me)),
            lambda: self.world.kill(server.process, "its parent is dead"),
        )
        self._liveness.joined(server.me, self._agenda.now_ms)
        self.event("joined", server.me)
        server.start()
        return server.me

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.event("begin")

    def hello(self, server: Server, serving: dict[int, int], given_up: dict[int, tuple[int, bool]]) -> None:
        self.event("hello", server.me, serving, given_up)
        self.routes_wanted(server)
        self._awaited.pop(server.me, None)
        if not self._awaited:
            self._begin()

    # --- liveness and fences -------------------------------------------------------------------------

    def heard(self, server: Incarnation, iterations: int) -> None:
        self._liveness.heard(server, iterations, self._agenda.now_ms)

    def _look(self) -> None:
        for server, why in self._liveness.look(self._agenda.now_ms).kill:
            self.event("silent", server, why)
        self._agenda.later(self.process, LOOK_MS * MS, self._look)

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

    def _reaped(self, server: Incarnation) -> None:
        self._liveness.left(server)
        self._is_over(server)
        delay_us = self._agenda.drawn(50 * MS, 400 * MS)
        self._agenda.later(self.process, delay_us, lambda: self._replace(server.name))

    def _replace(self, name: str) -> None:
        self._start_server(name)

    def _is_over(self, server: Incarnation) -> None:
        """Its log is measured, which seals it, and read."""
        log = self.world.disk.logs.get(server)
        extents = self._sealed.get(server)
        if extents is None:
            extents = log.measured() if log is not None else ()
            self.world.laws.fenced(server, extents, self.durable)
            self._sealed[server] = extents
        named = {(int(region[1:]), epoch) for region, epoch in log.named(extents)} if log is not None else set()
        if self.world.has("no epochs"):
            named = {(region, epoch) for region, _ in named for epoch in range(self.world.highest_epoch(region) + 1)}
        self.event("fenced", server, extents, named)

    def has_started(self, server: Incarnation) -> bool:
        return server.number // NUMBERS == self.leader

    def sealed_on_disk(self) -> list[Incarnation]:
        return [owner_rows.sealed_server(key) for key in self.data if key.startswith(owner_rows.SEALED)]

    # --- the machine ---------------------------------------------------------------------------------

    def event(self, name: str, *args: Any, **about: Any) -> None:
        self.world.trace(self.process, (name, args, about))
        self.has_changed = True
        outputs: list[Output] = getattr(self.state, name)(*args, now_ms=self._agenda.now_ms, **about)
        for output in outputs:
            self._carry_out(output)

    def ask(self, request: Request) -> None:
        self._asked += 1
        self.event("asked", self._asked, request)

    def _carry_out(self, output: Output) -> None:
        self.world.trace(self.process, output)
        if isinstance(output, Write):
            self._writes.append(output)
            self._begin_write()
        elif isinstance(output, Tell):
            self._tell(output.server, output.ask)
        elif isinstance(output, Fence):
            self._fence(output)
        elif isinstance(output, RemoveLog):
            self.world.laws.removes(output.server, self.durable)
            self.world.disk.logs.pop(output.server, None)
            self._sealed.pop(output.server, None)
        elif isinstance(output, Wake):
            delay_us = max(MS, output.at_ms * MS - self._agenda.now_us)
            self._agenda.later(self.process, delay_us, lambda: self.event("tick"))

    def _tell(self, server: Incarnation, ask: Ask) -> None:
        self.world.laws.told(server, ask, self.durable)
        behind = () if isinstance(ask, Close) else ask.owner.behind
        sealed = {one.server: self._sealed[one.server] for one in behind if one.server in self._sealed}
        target = self.world.servers.get(server)
        if target is not None:
            self.world.told.append((target, ask, self.leader, sealed))
            self.send(target, ask, self.leader, sealed)

    def send(self, target: Server, ask: Ask, leader: int, sealed: dict[Incarnation, Segments]) -> None:
        self._agenda.send(self.process, target.process, lambda: target.owning.ask(ask, leader, sealed))

    # --- the catalogue -------------------------------------------------------------------------------

    def _begin_write(self) -> None:
        if self._is_writing or not self._writes:
            return
        self._is_writing = True
        write = self._writes[0]
        pairs: list[Pair] = [(OWNER + b"%d" % info.region_id, owners.to_json(row)) for info, row in write.owners]
        pairs += [(owner_rows.sealed_row(one), owner_rows.sealed_to_json(segments)) for one, segments in write.sealed]
        pairs += [(owner_rows.sealed_row(one), None) for one in write.forgotten]
        if write.wishes is not None:
            pairs.append((WISHES, owner_rows.wishes_to_json(write.wishes)))
        self._files.append(pairs)
        if self.world.has("told early"):
            self._stands(write)
        delay_us = self._agenda.drawn(2 * MS, 25 * MS)
        self._agenda.later(self.process, delay_us, lambda: self._write_ends(write, pairs))

    def _write_ends(self, write: Write, pairs: list[Pair]) -> None:
        if self.world.happens("catalogue"):
            self._files.lose(self.world.rng)
            back = [(key, self.data.get(key)) for key, _ in pairs]
            self._agenda.later(self.process, self._agenda.drawn(5 * MS, 60 * MS), lambda: self._mend(back))
            self._writes.pop(0)
            if not self.world.has("told early"):
                self.event("not_written", write.number)
            return
        self._files.sync(len(self._files.log))
        apply(self.data, [(None, pairs)])
        self._writes.pop(0)
        self._is_writing = False
        self.durable = _owners_in(self.data)
        self.world.laws.on_disk(self.durable)
        if not self.world.has("told early"):
            self._stands(write)
        self._begin_write()

    def _mend(self, back: list[Pair]) -> None:
        """The rows of a write that failed are written back, whatever of them is on disk."""
        self._files.append(back)
        self._files.sync(len(self._files.log))
        self._is_writing = False
        self._begin_write()

    def _stands(self, write: Write) -> None:
        self._routes_number += 1
        routes = tuple(route_to(info, row) for info, row in write.owners)
        change = ChangeRoutes(self._routes_number, (), routes)
        for server in list(self.world.servers.values()):
            if not server.process.is_dead:
                self._publish(server, change)
        self.event("written", write.number)

    def _publish(self, server: Server, change: ChangeRoutes | ReplaceRoutes) -> None:
        self._agenda.send(self.process, server.process, lambda: server.gateway.hear(change))

    def routes_wanted(self, server: Server) -> None:
        routes = []
        for region, info in self.world.infos.items():
            row = self.durable.get(region)
            routes.append(route_to(info, row) if row is not None else Route(info, NOBODY, 0))
        self._publish(server, ReplaceRoutes(self._routes_number, tuple(routes)))


def _owners_in(data: dict[bytes, bytes]) -> dict[int, Owner]:
    return {int(key[len(OWNER) :]): owners.from_json(value) for key, value in data.items() if key.startswith(OWNER)}


def _named(row: Owner) -> list[Incarnation]:
    source = [row.source.server] if row.source is not None else []
    return [row.server, *source, *(tenure.server for tenure in row.behind)]
