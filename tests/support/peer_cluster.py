"""Servers of a cluster in one process, with ports for clients and Unix sockets between servers; the test is the master.

All servers have the same stores in memory, so that a region may move between them; each region has one owner.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from columnar.cluster.forwarding import Forwarding
from columnar.cluster.hello import Hello
from columnar.cluster.peer_address import PeerAddress, UnixAddress
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.peers import Peers
from columnar.cluster.refusals import Moved, Unknown, refuse_not_local
from columnar.cluster.request_forwarder import RequestForwarder
from columnar.cluster.routes import Routes
from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.errors import RegionMoved
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.region_location import Location, NewOwner
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route
from columnar.model.schema import Family, Table, make_table
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.slow_log import SlowLog
from columnar.operations.table_operations import TableOperations
from columnar.regions.life.region_state import Event, State
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from columnar.thrift.extension import ExtensionMethods
from columnar.thrift.group_methods import GroupMethods
from columnar.thrift.reads import ReadMethods, ScanMethods
from columnar.thrift.routing_methods import RoutingMethods
from columnar.thrift.service import ThriftService
from columnar.thrift.writes import WriteMethods
from columnar.thrift2.rows import RowMethods2, ScanMethods2
from columnar.thrift2.service import to_wire
from columnar.wire.detect import Speech
from columnar.wire.idl import SERVICE, hbase
from columnar.wire.idl2 import SERVICE2
from columnar.wire.server import WireServer
from columnar.wire.tls_protocol import Tls
from tests.support.held_engine import FakeClock, HeldEngine
from tests.support.thrift_calls import FRAMED, Client

PATIENCE_S = 20.0


class PeerHouse:
    """A server, made inside a running loop."""

    def __init__(self, cluster: PeerCluster, me: Incarnation, tls: Tls | None = None, **forwarding: Any) -> None:
        self.me = me
        self.cluster = cluster
        self.committer = Committer(asyncio.get_running_loop())
        self.server = RegionServer(cluster.engine, "regions", self.committer, cluster.clock)
        scanners = ScannerTable(lambda: 0.0)
        operations = TableOperations(self.server, scanners, lambda: 0.0)
        slow_log, ids = SlowLog(operations.descriptions, scanners, 60_000), itertools.count(1)
        writes = WriteMethods(operations)
        routing: set[int] = set()
        self.service = ThriftService(
            scanners,
            slow_log,
            ReadMethods(operations),
            writes,
            ScanMethods(operations),
            ExtensionMethods(operations, writes, cast(Any, None), cast(Any, None)),
            GroupMethods(operations),
            RoutingMethods(operations.descriptions, self._locate, routing),
            routing=routing,
        )
        self.service2 = ThriftService(
            scanners,
            slow_log,
            RowMethods2(operations),
            ScanMethods2(operations),
            definition=SERVICE2,
            to_wire=to_wire,
        )
        self.wire = WireServer(self.service, connection_ids=ids, tls=tls)
        self.wire2 = WireServer(self.service2, definition=SERVICE2, connection_ids=ids)
        self.routes = Routes()
        self.answering = PeerServer({THRIFT1: self.wire, THRIFT2: self.wire2}, self._elsewhere, ids)
        self.peers = Peers(Hello("c", me), cluster.address_of, self.answering)
        self.forwarding = Forwarding(me, self.routes, self.peers, self.answering.serve_locally, **forwarding)
        self.service.request_forwarder = RequestForwarder(
            self.forwarding, self.server, THRIFT1, routing=self.service.routing, owner_of=self._owner_of
        )
        self.service2.request_forwarder = RequestForwarder(self.forwarding, self.server, THRIFT2)
        self.wire.ahead, self.wire2.ahead = (
            self.service.request_forwarder.forward_early,
            self.service2.request_forwarder.forward_early,
        )
        self.is_dead = False

    def _elsewhere(self, table: str, row: bytes) -> Moved | Unknown:
        return refuse_not_local(self.routes.find(table, row), self.me)

    def _locate(self, region: RegionInfo) -> Location:
        route = self.routes.of(region)
        assert route is not None
        port = next(house.wire.port for house in self.cluster.houses if house.me == route.server)
        return Location(
            region.start, region.end, route.server.name, route.server.number, "127.0.0.1", port, route.epoch
        )

    def _owner_of(self, table: str, row: bytes) -> RegionMoved | None:
        route = self.routes.find(table, row)
        if route is None or route.server == self.me:
            return None
        found = self._locate(route.region)
        return RegionMoved(NewOwner(found.host, found.port, found.incarnation, found.epoch).text)

    async def start(self) -> None:
        await self.wire.start("127.0.0.1", 0)
        await self.wire2.start("127.0.0.1", 0)
        await self.peers.listen(self.cluster.address_of(self.me))

    async def client(self, speech: Speech = FRAMED, service: Any = SERVICE) -> Client:
        """Return a client, which is closed with the cluster."""
        port = self.wire.port if service is SERVICE else self.wire2.port
        self.cluster.clients.append(await Client.connected(port, speech, service))
        return self.cluster.clients[-1]

    def disown(self, info: RegionInfo) -> None:
        """Make the server forget the region, as if no master had assigned it."""
        self.server.hosting.state.apply_event(info.region_id, Event.GIVEN_UP)

    async def give_up(self, info: RegionInfo) -> None:
        state = self.server.hosting.state
        while True:
            await self.server.close_regions([info])
            if state.state(info.region_id) is State.NONE:
                self.disown(info)
                return
            await asyncio.sleep(0)

    def own(self, info: RegionInfo, epoch: int) -> None:
        assert self.server.hosting.state.own(info.region_id, epoch)

    def heard(self, change: ChangeRoutes) -> None:
        assert self.routes.apply(change).number == change.number
        self.forwarding.routes_changed({route.region.table for route in change.routes})

    def owns(self, row: bytes) -> bool:
        route = self.routes.find(self.cluster.table.name, row)
        return route is not None and route.server == self.me

    def check(self) -> None:
        self.forwarding.check_invariants()
        self.peers.check_invariants()
        self.server.openings.check_invariants()
        self.routes.check_invariants()
        assert self.answering.serving_bytes >= 0

    async def die(self) -> None:
        """End the server: links and clients are cut off, and work stops; requests under way may be done or not."""
        self.is_dead = True
        await self.peers.close()
        await self.wire.close(0)
        await self.wire2.close(0)
        self.forwarding.close()
        await self.answering.close()
        await self.server.close()
        self.committer.close()

    async def close(self) -> None:
        if not self.is_dead:
            await self.die()


class PeerCluster:
    def __init__(self, table: Table, splits: tuple[bytes, ...], servers: int, **options: Any) -> None:
        """Give region n to server n, in turn if regions outnumber servers; ``options`` are for the first server."""
        self._folder = tempfile.TemporaryDirectory(prefix="peers")
        self.engine = HeldEngine(MemoryEngine())
        self.clock = FakeClock()
        self.table = table
        edges = (b"", *splits, b"")
        self.infos = [RegionInfo(table.name, 10 + n, a, b) for n, (a, b) in enumerate(pairwise(edges))]
        self.change = 1
        self.clients: list[Client] = []
        names = [Incarnation(f"s{n + 1}", 4 + n) for n in range(servers)]
        self.houses = [PeerHouse(self, me, **(options if n == 0 else {})) for n, me in enumerate(names)]
        self.catalogue = {info.region_id: Route(info, names[n % servers], 1) for n, info in enumerate(self.infos)}
        self.houses[0].server.folders.make([info.encoded for info in self.infos])
        for house in self.houses:
            house.server.tables.install(ServedTable(table, True, list(self.infos)))
            house.routes.replace(ReplaceRoutes(self.change, tuple(self.catalogue.values())))
            for info in self.infos:
                if self.catalogue[info.region_id].server != house.me:
                    house.disown(info)

    def address_of(self, server: Incarnation) -> PeerAddress:
        return UnixAddress(str(Path(self._folder.name) / str(server)))

    def house_of(self, server: Incarnation) -> PeerHouse:
        return next(house for house in self.houses if house.me == server)

    def publish(self, route: Route, *, heard_by: Callable[[PeerHouse], bool] = lambda _house: True) -> None:
        """Notify every server, or some, of a region's new owner; the others miss the change for ever."""
        self.catalogue[route.region.region_id] = route
        self.change += 1
        change = ChangeRoutes(self.change, routes=(route,))
        for house in self.houses:
            if not house.is_dead and heard_by(house):
                house.heard(change)

    async def move(self, info: RegionInfo, to: Incarnation, **options: Any) -> None:
        """Move a region as the master does: publish the route, close it at the old owner, open it at the new one."""
        old = self.catalogue[info.region_id]
        moved = Route(info, to, old.epoch + 1, old.ownership_period)
        self.publish(moved, **options)
        await self.house_of(old.server).give_up(info)
        self.house_of(to).own(info, moved.epoch)
        self.publish(replace(moved, source=None), **options)

    def take(self, info: RegionInfo, to: Incarnation) -> None:
        """Open the region of a dead owner at a new server."""
        old = self.catalogue[info.region_id]
        self.house_of(to).own(info, old.epoch + 1)
        self.publish(Route(info, to, old.epoch + 1))

    async def start(self) -> None:
        for house in self.houses:
            await house.start()

    async def close(self) -> None:
        self.engine.gate.release()
        for client in self.clients:
            await client.close()
        for house in self.houses:
            if not house.is_dead:
                house.check()
        for house in self.houses:
            await house.close()
        self._folder.cleanup()


GROUPED = {"ROW_GROUP": "length:2"}


def clustered(
    servers: int = 2, splits: tuple[bytes, ...] = (b"m",), **options: Any
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Return a decorator that gives a test a cluster: region n belongs to server n, rows from ``m`` on to the second.

    ``options`` make the options of the first server.
    """

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def run(**given: Any) -> None:
            made = {name: option() for name, option in options.items()}
            cluster = PeerCluster(make_table("t", [Family("a", max_versions=3)], GROUPED), splits, servers, **made)
            await cluster.start()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await test(cluster, **given)
            finally:
                await cluster.close()

        def wrapped(**given: Any) -> None:
            asyncio.run(run(**given))

        wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
        known = inspect.signature(test)
        wrapped.__signature__ = known.replace(parameters=list(known.parameters.values())[1:])  # type: ignore[attr-defined]
        return wrapped

    return decorate


def put1(value: bytes, column: bytes = b"a:q") -> list[Any]:
    return [hbase.Mutation(isDelete=False, column=column, value=value, writeToWAL=True)]
