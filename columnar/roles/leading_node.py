"""The leader of a cluster: the catalogue, the state of all servers and regions, and the links of the members.

The order of the start is catalogue, folder's conversion, state, members; then, when each living server that the
catalogue names has said hello or has ended, regions get owners (``begin_assignment``).  The order of the stop is
changes under way, decisions, links, catalogue.

A node leads while its coordination says so (``node``).  On one machine it leads from the start to the stop.

Owned by one event loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from columnar.cluster.hello import Hello
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.peers import LinkTerms
from columnar.cluster.refusals import Unknown
from columnar.cluster.row_forms import THRIFT1_OPERATOR
from columnar.config import StandaloneConfig
from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.maintenance_lock import MaintenanceLock, MemoryCalls
from columnar.master.cluster_control import ClusterControl
from columnar.master.cluster_state import ClusterState
from columnar.master.dead_servers import named_in
from columnar.master.placement_records import Place, ServerState
from columnar.model.node_messages import AwaitRegions, ProcessLevels, ServerFacts
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import Address, Addresses, CannotOpen, Listening
from columnar.model.region_messages import Backfilled, Commit, Peer
from columnar.model.system_tables import SYSTEM_TABLES
from columnar.regions.region import Region
from columnar.roles.cluster_host import ClusterHost
from columnar.roles.cluster_nodes import ClusterNodes, LeaderParts, OwnNode
from columnar.roles.cluster_owners import ClusterOwners
from columnar.roles.cluster_status_gatherer import TimedPlanner
from columnar.roles.decision_journal import DecisionRecorder
from columnar.roles.leading import Leading
from columnar.roles.master_service import MasterService
from columnar.roles.member_links import MemberLinks
from columnar.roles.meta_region import CatalogueTerms
from columnar.roles.mode_switch import FolderDeadServerLogs, to_servers
from columnar.storage import server_folders
from columnar.storage.data_folder import META, NODES_SINCE, SERVERS_SINCE
from columnar.storage.dead_logs import NO_LENGTHS
from columnar.storage.process_stores import FolderStores
from columnar.storage.watched_folder import WatchedFolder

if TYPE_CHECKING:
    from columnar.master.instructions import Request
    from columnar.roles.storage_fences import StorageFences
    from columnar.wire.server import WireServer

_log = logging.getLogger(__name__)

MASTER: Final = "master"
JOURNAL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class LeaderTerms:
    """The terms of a leadership; the defaults are for the only node of a folder, which has no lease."""

    catalogue: CatalogueTerms
    epoch: int = 0  # the leader's epoch is at least this
    links: LinkTerms = field(default_factory=LinkTerms)  # the gate is that of the leader's lease
    lift: Callable[[int], Awaitable[int]] | None = None  # has the leader's record written with at least this epoch
    fence_node: Callable[[Incarnation], None] = lambda _node: None
    synced_lengths: Callable[[str], Mapping[int, int]] = lambda _server: NO_LENGTHS  # of a server's segments
    fences: StorageFences | None = None  # of nodes that ended by time
    successors: Callable[[], tuple[str, ...]] = tuple  # nodes that can lead in the place of this one
    step_down: Callable[[], None] = lambda: None  # lets one of them lead
    maintenance: MaintenanceLock = field(default_factory=lambda: MaintenanceLock(MemoryCalls(CasMemory())))
    is_leased: bool = False  # a server that is not known to live may still run and write


class LedServers:
    """The ``Servers`` of a cluster control."""

    def __init__(
        self,
        host: ClusterHost,
        nodes: ClusterNodes,
        folder: WatchedFolder,
        terms: LeaderTerms,
        resign: Callable[[], Awaitable[None]],
    ) -> None:
        self._host = host
        self._nodes = nodes
        self._folder = folder
        self._terms = terms
        self._resign = resign

    @property
    def state(self) -> ClusterState:
        return self._host.state

    def now_ms(self) -> int:
        return self._host.events.now_ms()

    async def request(self, request: Request) -> None:
        await self._host.requests.request(request)

    async def until(self, is_so: Callable[[], bool]) -> None:
        await self._host.events.until(is_so)

    def nodes(self) -> tuple[Mapping[str, str], tuple[str, ...]]:
        return self._nodes.list_nodes() if self._terms.is_leased else ({}, ())

    def nodes_without_servers(self) -> frozenset[str]:
        return self._nodes.list_without_servers()

    def successors(self) -> tuple[str, ...]:
        return self._terms.successors()

    async def resign(self) -> None:
        await self._resign()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._host.events.spawn(work)

    def remarks(self) -> tuple[str, ...]:
        return tuple(filter(None, [self._folder.remark(), *self._host.list_delays()]))

    def facts(self, server: Incarnation) -> ServerFacts:
        return self._nodes.facts(server)

    async def change_log_levels(self, changes: tuple[str, ...]) -> tuple[ProcessLevels, ...]:
        return await self._nodes.change_log_levels(changes)

    def unfenced_nodes(self) -> tuple[Incarnation, ...]:
        return self._terms.fences.pending() if self._terms.fences is not None else ()

    def fence_node(self, node: Incarnation) -> None:
        if self._terms.fences is not None and not self._terms.fences.fence_by_hand(node):
            self._terms.fence_node(node)

    async def fence(self, server: Incarnation, why: str) -> None:
        self._host.events.event(self.state.silent(server, why, self.now_ms()))
        await self._wait_until_fenced(server)

    async def stop_server(self, server: Incarnation) -> None:
        await self._nodes.stop_server(server)
        await self._wait_until_fenced(server)

    async def _wait_until_fenced(self, server: Incarnation) -> None:
        await self._host.events.until(lambda: self.state.ledger.is_fenced(server))

    async def start_server(self, name: str) -> None:
        await self._nodes.start_server(name)


class RowGenerations:
    """The generations of regions' folders at a leader: those of the rows."""

    def __init__(self, catalogue: int) -> None:
        """Take the generation of the catalogue's own folder."""
        self._catalogue = catalogue
        self._places: Mapping[int, Place] = {}
        self._ids: dict[str, int] = {}  # region ids by encoded name, as of the last unknown name

    def follow(self, places: Mapping[int, Place]) -> None:
        self._places = places

    def generation_of(self, encoded: str) -> int:
        """Return the generation; O(1), or O(regions) for a region that is new or unknown."""
        if encoded == META:
            return self._catalogue
        if encoded not in self._ids:
            self._ids = {place.info.encoded: region for region, place in self._places.items()}
        place = self._places.get(self._ids.get(encoded, 0))
        return place.owner.generation if place is not None and place.owner is not None else 0


class LeadingNode:
    """Call ``start``, report members, then ``begin_assignment``; ``close`` last.  Owned by one event loop."""

    def __init__(
        self,
        config: StandaloneConfig,
        stores: FolderStores,
        watched_folder: WatchedFolder,
        terms: LeaderTerms,
    ) -> None:
        """Pass ``stores``, which are open; they are closed by their opener after ``close``."""
        self.config = config
        self.stores = stores
        self.terms = terms
        self._watched_folder = watched_folder
        self._decisions: DecisionRecorder | None = None
        self._undo = AsyncExitStack()
        self._is_begun = False  # regions are assigned

    # --- start ---------------------------------------------------------------------------------------

    async def start(
        self, own: OwnNode, own_name: Incarnation, find_living: Callable[[], Awaitable[Collection[Incarnation]]]
    ) -> None:
        """Read the catalogue and accept members.

        ``find_living`` returns the servers that may live, of those that had a folder before the call.  All others have
        ended.  Raises HostError or DamagedData, with nothing left open.
        """
        generations = RowGenerations(self.terms.catalogue.generation)
        if self.terms.is_leased:
            self.stores.region_folders.use_generations(generations.generation_of)
        self.leading = Leading(self.stores, has_servers=True, terms=self.terms.catalogue)
        self.epoch = await self.leading.open(self.terms.epoch)
        self._undo.push_async_callback(self.leading.close, self._quiesce)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self.close)
            if self.terms.lift is not None and self.epoch > self.terms.epoch:
                await self.terms.lift(self.epoch)
            await self.leading.prepare()
            await self._lead(own, own_name, find_living, generations)
            self._decisions = DecisionRecorder(self.stores.folder.path, self.control.reports)
            await self._decisions.start()
            undo.pop_all()

    async def _lead(
        self,
        own: OwnNode,
        own_name: Incarnation,
        find_living: Callable[[], Awaitable[Collection[Incarnation]]],
        generations: RowGenerations,
    ) -> None:
        catalogue, data = self.leading.catalogue, self.stores.folder.path
        self.stores.clock.observe(await asyncio.to_thread(server_folders.newest_clock, data))
        invented = to_servers(catalogue, self.stores, recovers=not self.terms.is_leased)
        self.stores.folder.raise_format(NODES_SINCE if self.terms.is_leased else SERVERS_SINCE)
        hello = Hello(self.stores.folder.cluster_id, Incarnation(MASTER, self.epoch), leader_epoch=self.epoch)
        answers = PeerServer({}, lambda _table, _row: Unknown("the master serves no rows"), itertools.count(1))
        self.links = MemberLinks(hello, answers, self.terms.links)
        owners = self._make_host(invented, generations)
        parts = LeaderParts(self.terms.fence_node, self.host.state, self.host.list_delays)
        self.nodes = ClusterNodes(own, own_name, self.links, parts)
        changes = self.leading.changes
        self.links.follow(self, self.nodes.kill, lambda one: changes.lock.locked() or owners.is_bound(one))
        for close in (answers.close, self.host.close, self.nodes.close, self.links.close):
            self._undo.push_async_callback(close)
        self._undo.callback(self.host.stop)
        self._make_control(answers)
        for server in {row.server for row in invented.values()}:
            self._fence_standalone(server)
        named = await asyncio.to_thread(named_in, catalogue, data)
        ended = named.difference(await find_living())
        if self.terms.is_leased:
            await self.host.measure_ended_by_time(sorted(ended))
        else:
            for server in sorted(ended):
                await self.host.measured(server)

    def _make_host(self, invented: dict[int, Owner], generations: RowGenerations) -> ClusterOwners:
        catalogue = self.leading.catalogue
        owners = catalogue.ownership.owners | invented
        regions = [(info, owners.get(info.region_id)) for entry in catalogue.tables.values() for info in entry.regions]
        self.planner = TimedPlanner()
        state = ClusterState(
            regions,
            catalogue.ownership.firm_seals(),
            catalogue.ownership.operator_settings,
            random.Random(),
            planner=self.planner,
        )
        generations.follow(state.current.places)
        for region in invented:
            state.current.set_ideal(state.current.places[region], None, "")  # no region can return to that process
        dead_logs = FolderDeadServerLogs(
            catalogue,
            self.stores,
            state.current.unread_logs,
            self._watched_folder,
            self.terms.synced_lengths,
            self.terms.fences,
        )
        self.host = ClusterHost(state, catalogue, self.leading.sound, self.links, dead_logs, self.stores.clock)
        region_owners = ClusterOwners(self.host, catalogue, self.links)
        self.leading.lead(region_owners, self.config.trigger_modules, self.config.rights)
        self.host.requests.lead(self.leading.region_changes)
        self.leading.follow_catalogue(
            lambda failure: self.host.events.event(state.unsound(failure, self.host.events.now_ms())),
            lambda: self.host.events.event(state.sound(self.host.events.now_ms())),
        )
        return region_owners

    def _make_control(self, answers: PeerServer) -> None:
        servers = LedServers(self.host, self.nodes, self._watched_folder, self.terms, self.resign)
        self.leading.cluster = self.control = ClusterControl(
            servers, self.terms.maintenance, lambda: round(time.time() * 1_000)
        )
        self.service = MasterService(self.config, self.stores.folder, self.leading, self.host)
        self.host.tables.on_table = self.service.refresh
        self.host.tables.load()
        wires = self.service.wires()
        wires[THRIFT1_OPERATOR] = self.service.private_wire()
        register_master_answers(
            answers,
            self.leading,
            wires,
            self._listening,
            self.host.transitions.cannot_open,
            self.await_regions,
        )

    def _fence_standalone(self, server: Incarnation) -> None:
        """Note that a process that served the folder alone has ended."""
        self.host.events.event(self.host.state.fenced(server, (), (), self.host.events.now_ms(), asked=True))

    async def begin_assignment(self, inherited: Collection[Incarnation] = ()) -> None:
        """Assign regions; returns when every region has a server or a reason for having none.

        ``inherited``: servers that lived before this leader.  From then on a new table is served only when each of
        them is up or has ended.
        """
        self.host.begin()
        self.nodes.poll_facts()
        await self.leading.start(SYSTEM_TABLES)
        self.host.tables.wait_inherited = lambda: self.greeted(inherited)
        self._is_begun = True
        await self.host.events.until(lambda: self.host.routes.publishing.is_complete)
        await self.leading.begin_background_work()

    async def greeted(self, servers: Iterable[Incarnation]) -> None:
        """Wait until each of the servers is up or has ended."""
        current = self.host.state.current

        def is_settled(server: Incarnation) -> bool:
            found = current.servers.get(server.name)
            return found is None or found.incarnation != server or found.state is not ServerState.STARTING

        wanted = list(servers)
        await self.host.events.until(lambda: all(map(is_settled, wanted)))

    def owner_servers(self) -> frozenset[Incarnation]:
        """Return the servers that the catalogue's rows name as owners, or as their sources."""
        rows = self.leading.catalogue.ownership.owners.values()
        sources = (row.source.server for row in rows if row.source is not None)
        return frozenset(itertools.chain((row.server for row in rows), sources))

    async def await_regions(self, _message: AwaitRegions) -> None:
        await self.host.events.until(lambda: self._is_begun and self.host.routes.publishing.is_complete)

    # --- members -------------------------------------------------------------------------------------

    def server_joined(self, server: Incarnation, node: Incarnation) -> None:
        self.nodes.add_server(server, node)
        self.links.expect(server)
        self.host.joined(server, self.nodes.zone_of.get(node, ""))

    def server_ended(self, server: Incarnation, why: str, *, asked: bool, is_by_time: bool = False) -> None:
        self.nodes.remove_server(server)
        self.host.ended(server, why, asked=asked, is_by_time=is_by_time)
        self.links.end_member(server)
        self._send_addresses()

    def node_joined(self, node: Incarnation, zone: str) -> None:
        self.nodes.zone_of[node] = zone
        self.links.expect(node, is_node=True)

    def node_ended(self, node: Incarnation) -> None:
        self.nodes.forget_node(node)
        self.links.end_member(node)

    # The methods of ``member_links.MemberEvents``.

    async def linked(self, member: Incarnation) -> None:
        if member in self.nodes.node_of:
            await self.host.linked(member)
            self.host.routes.send_message(member, self.addresses())
        else:
            self.nodes.poll_node(member)  # which servers it has, those that are stopped included

    def unlinked(self, member: Incarnation, why: str) -> None:
        if member in self.nodes.node_of:
            self.host.unlinked(member, why)

    async def _listening(self, server: Incarnation, said: Listening) -> None:
        """Note that the server's own ports are open, so that all servers may name them to clients."""
        if server in self.nodes.node_of:  # it has not ended meanwhile
            self.nodes.addresses[server] = Address(server, said.host, said.port, said.peer)
            self._send_addresses()

    def _send_addresses(self) -> None:
        self.host.routes.send_latest(self.addresses)

    def addresses(self) -> Addresses:
        return Addresses(tuple(self.nodes.addresses.values()), tuple(self.nodes.ended))

    # --- stop ----------------------------------------------------------------------------------------

    async def stop_changes(self) -> None:
        """Finish or call off changes under way, and make no more decisions."""
        if self._decisions is not None:
            await self._decisions.stop()
        self.leading.stop_copies()
        await self.leading.stop_changes()
        self.host.stop()

    async def resign(self) -> None:
        """Stop the changes, and let another node lead, which has this leadership closed."""
        await self.stop_changes()
        self.terms.step_down()

    async def close(self) -> None:
        """End links and requests, and close the catalogue.  Without ``stop_changes`` before, changes are cut off."""
        if self._decisions is not None:
            self._decisions.cancel()
        await self._undo.aclose()

    async def _quiesce(self, region: Region) -> None:
        while not region.syncs.is_quiet and (under_way := self.stores.committer.pending_sync(region.store)) is not None:
            await asyncio.wait([under_way])


def register_master_answers(
    answers: PeerServer,
    master: Peer,
    wires: Mapping[int, WireServer],
    listening: Callable[[Incarnation, Listening], Awaitable[None]],
    cannot_open: Callable[[Incarnation, CannotOpen], Awaitable[None]],
    await_regions: Callable[[AwaitRegions], Awaitable[None]],
) -> None:
    """Register the master's handlers of requests and forwarded calls, which arrive over the links of its members.

    ``wires`` are by service: THRIFT1 and, if it is served, THRIFT2.
    """
    answers.serve(wires)
    answers.register({Commit: master.request_peer, Backfilled: master.request_peer, AwaitRegions: await_regions})
    answers.register_with_sender(Listening, listening)
    answers.register_with_sender(CannotOpen, cannot_open)
