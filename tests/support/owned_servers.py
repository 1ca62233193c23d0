"""Several region servers in one process that share the regions of a table, over one engine, each with a copy of routes.

The test is the master: it moves, splits and merges regions.  Requests between servers are encoded to bytes and back.  A
test may let requests fail before or after they are carried out, or let a server learn late of new routes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import msgpack

from columnar.clock import Clock
from columnar.cluster import refusals
from columnar.cluster.link_errors import NotSent
from columnar.cluster.message_codec import answer_from_plain, answer_to_plain, from_plain, to_plain
from columnar.cluster.routes import Routes
from columnar.cluster.scatter_gather import RoutedOwners
from columnar.errors import ColumnarError, RegionUnavailable
from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message, RegionChange
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route
from columnar.model.schema import Table
from columnar.operations.access import retried
from columnar.operations.distributed_calls import connect
from columnar.operations.operation_peer_handlers import OperationPeerHandlers
from columnar.operations.row_deletes import delete_rows
from columnar.operations.scanner_table import ScannerTable, slot_of_server
from columnar.operations.table_operations import TableOperations
from columnar.regions.replace.region_changes import ChangingRegions
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from columnar.thrift.reads import ReadMethods, ScanMethods
from columnar.thrift.writes import WriteMethods
from columnar.thrift2.rows import RowMethods2, ScanMethods2

R = TypeVar("R")
Fault = Callable[[Incarnation, Message[Any]], Exception | None]


def over_the_wire(plain: Any) -> Any:
    return msgpack.unpackb(msgpack.packb(plain))


class Services:
    """The methods of both services over one server's operations, by name; names of Thrift 2 begin with ``2``."""

    def __init__(self, operations: TableOperations) -> None:
        writes = WriteMethods(operations)
        self._parts1 = (ReadMethods(operations), writes, ScanMethods(operations))
        self._parts2 = (RowMethods2(operations), ScanMethods2(operations))
        self._operations = operations

    async def call(self, name: str, ctx: Any, *args: Any) -> Any:
        if name == "delete_rows":
            return await delete_rows(self._operations.access, *args)
        parts = self._parts2 if name.startswith("2") else self._parts1
        method = next(getattr(part, name.lstrip("2")) for part in parts if hasattr(part, name.lstrip("2")))
        try:
            found = method(ctx, *args)
        except RegionUnavailable as away:
            found = retried(partial(method, ctx, *args), away, ctx.has_gone)
        if hasattr(found, "future"):
            await found.future
            return found.result
        return await found if hasattr(found, "__await__") else found


class OwnedServer:
    """A server, and its links to the others (``scatter_gather.Links``)."""

    def __init__(self, cluster: OwnedServers, name: str, number: int) -> None:
        self.here = Incarnation(name, number)
        self.routes = Routes()
        self.late: list[ChangeRoutes] | None = None  # changes that it has not heard of; None: it hears at once
        self.committer = Committer(asyncio.get_running_loop())
        self.server = RegionServer(
            cluster.engine, "regions", self.committer, cluster.clock, open_regions=cluster.open_regions, epoch=None
        )
        scanners = ScannerTable(lambda: 0.0, slot=slot_of_server(self.here))
        self.operations = TableOperations(self.server, scanners, lambda: 0.0)
        self.asked = OperationPeerHandlers(self.server, lambda: 0.0)
        self.owners = RoutedOwners(self.here, self.routes, self, self.asked.answers)
        connect(self.operations, self.owners)
        self.services = Services(self.operations)
        self.changing = ChangingRegions(self.server, cluster.commit, 1 << 60)
        self._cluster = cluster

    async def request_server(self, server: Incarnation, message: Message[R], _size_bytes: int = 0) -> R:
        """Send a request to a server, as a link does."""
        peer = self._cluster.by_name.get(server)
        self._cluster.asks.append((self.here, server, message))
        await asyncio.sleep(0)
        if peer is None:
            raise NotSent
        fault = self._cluster.before(server, message)
        if fault is not None:
            raise fault
        name, fields = to_plain(message)
        arrived = from_plain(name, over_the_wire(fields))
        try:
            answer = answer_to_plain(arrived, await peer.handle(arrived))
        except ColumnarError as error:
            refused = refusals.from_plain(*over_the_wire(refusals.to_plain(error)))
            assert isinstance(refused, Exception)
            raise refused from None
        fault = self._cluster.after(server, message)
        if fault is not None:
            raise fault
        return answer_from_plain(message, over_the_wire(answer))

    async def handle(self, message: Message[R]) -> R:
        """Handle a request of another server that has arrived over a link."""
        answer: R = await self.asked.answers[type(message)](message)
        return answer

    def told(self, change: ChangeRoutes) -> None:
        if self.late is not None:
            self.late.append(change)
            return
        assert self.routes.apply(change).number == change.number
        self.owners.changed()

    def hear(self) -> None:
        late, self.late = self.late or [], None
        for change in late:
            self.told(change)


class OwnedServers:
    """The servers, made inside a running loop.  They have one table, whose regions begin at the servers in turn."""

    def __init__(
        self, table: Table, splits: tuple[bytes, ...], names: tuple[str, ...], clock: Clock, *, open_regions: int = 9
    ) -> None:
        self.engine = MemoryEngine()
        self.clock = clock
        self.open_regions = open_regions
        self.table = table
        self.asks: list[tuple[Incarnation, Incarnation, Message[Any]]] = []
        self.before: Fault = lambda _server, _message: None  # raised instead of the ask
        self.after: Fault = lambda _server, _message: None  # raised instead of the answer
        self.servers = [OwnedServer(self, name, 20 + number) for number, name in enumerate(names)]
        self.by_name = {server.here: server for server in self.servers}
        self._last_id = 100
        edges = (b"", *splits, b"")
        self.infos = [self._info(start, end) for start, end in pairwise(edges)]
        self.routes: dict[RegionInfo, Route] = {}
        self._number = 1
        self.servers[0].server.folders.make([info.encoded for info in self.infos])
        for number, info in enumerate(self.infos):
            owner = self.servers[number % len(names)]
            owner.server.hosting.state.own(info.region_id, 1)
            self.routes[info] = Route(info, owner.here, 1)
        for one in self.servers:
            one.server.tables.install(ServedTable(table, True, list(self.infos)))
            one.routes.replace(ReplaceRoutes(1, tuple(self.routes.values())))

    def _info(self, start: bytes, end: bytes) -> RegionInfo:
        self._last_id += 1
        return RegionInfo(self.table.name, self._last_id, start, end)

    def owner(self, info: RegionInfo) -> OwnedServer:
        return self.by_name[self.routes[info].server]

    def _tell(self, gone: Sequence[RegionInfo], routes: Sequence[Route]) -> None:
        self._number += 1
        for info in gone:
            del self.routes[info]
        self.routes.update((route.region, route) for route in routes)
        for one in self.servers:
            one.told(ChangeRoutes(self._number, tuple(gone), tuple(routes)))

    # --- what a master does --------------------------------------------------------------------------

    async def move(self, info: RegionInfo, to: OwnedServer) -> None:
        before = self.routes[info]
        old = self.by_name[before.server]
        if old is to:
            return
        moving = Route(info, to.here, before.epoch + 1, OwnershipPeriod(old.here, before.epoch))
        self._tell((), (moving,))
        await asyncio.sleep(0)
        await old.server.close_regions([info])
        old.server.hosting.state.give_up(info.region_id)
        await asyncio.sleep(0)
        assert to.server.hosting.state.own(info.region_id, moving.epoch)
        to.owners.changed()
        self._tell((), (Route(info, to.here, moving.epoch),))

    async def replace(self, gone: Sequence[RegionInfo], fresh: Sequence[RegionInfo]) -> None:
        """Replace regions of one owner, as a split or merge does."""
        owner, epoch = self.owner(gone[0]), self.routes[gone[0]].epoch
        for info in gone[1:]:
            owner.server.hosting.state.own(info.region_id, epoch)
        owner.server.folders.make([info.encoded for info in fresh])
        for info in fresh:
            owner.server.hosting.state.own(info.region_id, 1)
        change = RegionChange(tuple(gone), tuple(fresh), owner.server.hosting.state.epoch_of(gone[0].region_id))
        await owner.changing.begin_change(change)
        await owner.changing.finish(change)

    async def split(self, info: RegionInfo, row: bytes) -> None:
        await self.replace([info], [self._info(info.start, row), self._info(row, info.end)])

    async def merge(self, left: RegionInfo, right: RegionInfo) -> None:
        await self.replace([left, right], [self._info(left.start, right.end)])

    async def commit(self, change: RegionChange) -> None:
        owner = self.owner(change.gone[0])
        at = self.infos.index(change.gone[0])
        self.infos[at : at + len(change.gone)] = change.fresh
        for one in self.servers:
            served = one.server.tables.named(self.table.name)
            assert served is not None
            served.replace_regions(list(self.infos))
        self._tell(change.gone, [Route(info, owner.here, 1) for info in change.fresh])

    async def change_some_region(self, rng: random.Random, rows: Sequence[bytes]) -> None:
        """Move, split or merge a random region."""
        info = rng.choice(self.infos)
        kind = rng.random()
        if kind < 0.2 and len(self.infos) < 8:
            within = [row for row in rows if info.contains_row(row) and row != info.start]
            if within:
                await self.split(info, rng.choice(within))
        elif kind < 0.35 and len(self.infos) > 3 and info.end:
            right = self.infos[self.infos.index(info) + 1]
            await self.move(right, self.owner(info))
            if self.routes[right].epoch == self.routes[info].epoch:
                await self.merge(info, right)
        else:
            await self.move(info, rng.choice(self.servers))

    async def close(self) -> None:
        for one in self.servers:
            one.server.openings.check_invariants()
            one.routes.check_invariants()
            await one.server.close()
            one.committer.close()
