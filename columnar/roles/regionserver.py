"""A region server beside others: regions that the leader assigns, its own ports, its trigger worker.

    start    stores and ports are opened, and the server is linked with its node; then its node tells who leads,
             connections of clients arrive over the connection channel, and the leader assigns regions
    leave    clients are transferred to other servers, if the node requests it before a stop
    stop     these are ended in order: trigger worker, links of other servers and ports (calls in flight are answered),
             links of this server, regions (synced and closed), threads

A client may call any server: a call about a row is forwarded to the owner of its region, a change of tables to the
leader.

Two links give orders.  The node is the parent process: when its link ends, ``on_orphaned`` must end this process
immediately, before it answers any request.  The leader may change: without its link the server serves its regions, and
follows the next leader.

Owned by one event loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from columnar.cluster.forwarding import Forwarding
from columnar.cluster.hello import Hello
from columnar.cluster.peer_address import PeerAddress, TcpAddress, UnixAddress, parse_address
from columnar.cluster.peer_requests import (
    CHANGE_READS,
    VIEW_CHECKS,
    AppendRecords,
    FlowStatuses,
    LeaveLinks,
    OwnFigures,
    PushMessages,
    SettleLeases,
    TriggerStatuses,
    ViewStatuses,
)
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.peers import LinkTerms, Peers
from columnar.cluster.refusals import Moved, Unknown, refuse_not_local
from columnar.cluster.request_forwarder import RequestForwarder
from columnar.cluster.routes import Routes
from columnar.cluster.scatter_gather import RoutedOwners
from columnar.config import RegionServerConfig, StandaloneConfig
from columnar.coordination.lease_gate import LeaseGate
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.server_page import ServerPage
from columnar.coordination.socket_folder import ListeningPath, make_private
from columnar.errors import HostError, RegionMoved
from columnar.model.node_messages import JudgeVisitor, LiveSettings
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Listening, Measures, SlowRequests
from columnar.model.region_info import RegionInfo
from columnar.model.region_location import Location
from columnar.model.route import leader_of
from columnar.operations.distributed_calls import connect
from columnar.operations.operation_peer_handlers import OperationPeerHandlers
from columnar.operations.scanner_table import slot_of, slot_of_server
from columnar.regions.life.region_assigner import RegionAssigner
from columnar.regions.life.shared_folders import SharedFolders
from columnar.regions.region_rates import RateMeter
from columnar.roles.leader_link import LeaderLink
from columnar.roles.master_parts import RemoteMaster
from columnar.roles.node_link import NodeLink
from columnar.roles.ports import OtherServers, ServerPorts, read_tls, take_settings
from columnar.roles.server_measures import ServerMeasures, StatusExchange
from columnar.roles.server_rpc_handlers import ServerRpcHandlers
from columnar.roles.serving import Serving
from columnar.runtime.log_lines import reopen_log, set_levels
from columnar.runtime.stop_limit import THREADS_S, StopLimit
from columnar.storage.data_folder import STAGING
from columnar.storage.process_stores import ServerStores
from columnar.storage.rocks import RocksEngine
from columnar.triggers.cluster_triggers import ClusterTriggers
from columnar.triggers.trigger_peer_handlers import TriggerPeerHandlers

if TYPE_CHECKING:
    from columnar.wire.tls_context import PeerTls

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """The data folder as described by the node, which has locked it."""

    path: str
    cluster_id: str


def own_ports(config: StandaloneConfig) -> StandaloneConfig:
    """Return the store's settings with this server's own ports: any free ones.  The node listens on ``--socket``."""
    rights = replace(config.rights, socket="")
    thrift2, protocols = min(config.thrift2_port, 0), config.protocols.on_free_ports()
    return replace(config, port=0, thrift2_port=thrift2, protocols=protocols, web_port=-1, rights=rights)


class PeerEndpoint:
    """The address at which a region server takes links of other servers.

    RUN/NAME.NUMBER    the socket of the only node's servers; made again if a cleaner removes it (``ListeningPath``)
    HOST:PORT          any free port, if servers of other machines must reach this server
    """

    def __init__(self, address: PeerAddress, listening: ListeningPath | None) -> None:
        """Take the address; ``listening`` repairs a Unix socket."""
        self.address = address
        self._listening = listening

    @classmethod
    async def listen(cls, config: RegionServerConfig, peers: Peers) -> PeerEndpoint:
        """Listen for links.  Raises HostError."""
        return await (cls._open_tcp(config, peers) if config.peer_host else cls._open_socket(config, peers))

    @classmethod
    async def _open_socket(cls, config: RegionServerConfig, peers: Peers) -> PeerEndpoint:
        address = UnixAddress(os.path.join(config.run_folder, f"{config.name}.{config.number}"))
        listening = ListeningPath(address.path, lambda: peers.listen(address))
        try:
            make_private(config.run_folder)
            await peers.listen(address)
        except OSError as error:
            text = f"cannot listen on {address.path}: {error.strerror}; set TMPDIR to a shorter path"
            raise HostError(text) from error
        listening.begin()
        return cls(address, listening)

    @classmethod
    async def _open_tcp(cls, config: RegionServerConfig, peers: Peers) -> PeerEndpoint:
        host = config.config.host
        try:
            await peers.listen(TcpAddress(host, 0))
        except OSError as error:
            raise HostError(f"cannot listen on {host}: {error.strerror}; choose another --host") from error
        return cls(TcpAddress(config.peer_host, peers.port), None)

    async def close(self) -> None:
        """Repair the socket no more; ``Peers`` closes it."""
        if self._listening is not None:
            await self._listening.close()


class ClusterServer:
    def __init__(
        self,
        config: RegionServerConfig,
        engine: RocksEngine,
        lease: LeasePage,
        page: ServerPage,
        on_orphaned: Callable[[str], None],
        peer_tls: PeerTls | None = None,
    ) -> None:
        """Pass the pages of the node's lease and of this server, and the TLS of links to other nodes, or None.

        ``on_orphaned`` is called with the reason when the link to the node has ended.
        """
        self.local_server = Incarnation(config.name, config.number)
        self._config = config
        self.stores = ServerStores(config.config.data, str(self.local_server), engine, page)
        self._folder = SharedFolder(config.data, config.cluster_id)
        self._hello = Hello(config.cluster_id, self.local_server)
        self._link_terms = LinkTerms(LeaseGate(lease.is_valid), bytes.fromhex(config.secret) or None, peer_tls)
        # A leader forwards no calls.
        self.answering = PeerServer({}, self._refuse_not_local, itertools.count(1))
        self.leader_link = LeaderLink(self._hello, self.answering, self, self._link_terms)
        self.node_link = NodeLink(self._hello, self.leader_link, on_orphaned, self.take_settings, self._note_levels)

    async def start(self, control: socket.socket, channel: socket.socket) -> None:
        """Start to serve.  The server owns the non-blocking sockets from now on.  Raises HostError, DamagedData."""
        config = own_ports(self._config.config)
        await asyncio.to_thread(self.stores.open_files)  # it reads the clocks of all servers, also of dead ones
        self.stores.begin_commits()
        async with AsyncExitStack() as undo:
            undo.callback(self.stores.close)
            self.stores.clock.observe(self._config.clock_ms)
            slot, gate = slot_of_server(self.local_server), self._link_terms.gate
            self.serving = Serving(config, self.stores, None, slot, gate)
            self.region_assigner = RegionAssigner(self.local_server, self.serving.server, self.stores)
            self.serving.server.openings.ownership_at = self.region_assigner.ownership_at
            self.serving.server.openings.on_settled = self.region_assigner.settled
            self.serving.server.openings.on_opening = self.stores.opening_notes.begins
            self.serving.server.openings.on_ended = self.stores.opening_notes.ends
            if self._config.peer_host:
                self._share_folders()
            self.routes = Routes()
            undo.push_async_callback(self.serving.close)
            self.ports = ServerPorts(config, self._folder, read_tls(config))
            self.ports.make(self.serving, RemoteMaster(os.path.join(config.data, STAGING)))
            undo.push_async_callback(self.ports.close)
            await self._join_the_others()
            undo.push_async_callback(self.peers.close)
            undo.push_async_callback(self.endpoint.close)
            private = await self.ports.listen()
            self._answer_the_leader(config)
            self.serving.deliver(self.ports.port, private, self.ports.answered, self.ports.has_waiting)
            self.node_link.answers.register({JudgeVisitor: self.serving.judge_visitor})
            await self.node_link.open_link(control, channel, self.ports, self.serving.scanners)
            self.serving.begin_background_work()
            undo.pop_all()

    def _share_folders(self) -> None:
        """Take over and warm the folders of regions that servers of other nodes had."""
        server, assigner = self.serving.server, self.region_assigner
        server.folders.use_generations(assigner.generation_of)
        shared = SharedFolders(server.folders, assigner.generation_of, assigner.load_logs)
        shared.on_preparing, shared.on_ended = self.stores.opening_notes.begins, self.stores.opening_notes.ends
        server.openings.shared_folders = shared

    # --- other servers -------------------------------------------------------------------------------

    async def _join_the_others(self) -> None:
        """Answer calls of the other servers, and send them the calls of this server's clients for their regions."""
        ports = self.ports
        self.peer_server = PeerServer(
            ports.wires, self._refuse_not_local, ports.connection_ids, self.serving.memory_plan.peer_calls
        )
        self.peers = Peers(self._hello, self._address_of_peer, self.peer_server, self._link_terms)
        self.peer_server.register_with_sender(LeaveLinks, self.peers.retire_links)
        self.forwarding = Forwarding(self.local_server, self.routes, self.peers, self.peer_server.serve_locally)
        self.request_forwarders: dict[int, RequestForwarder] = {}
        for service, made in ports.services.items():
            request_forwarder = RequestForwarder(
                self.forwarding,
                self.serving.server,
                service,
                self._server_of_scanner,
                made.routing,
                self._owner_of,
            )
            made.request_forwarder = self.request_forwarders[service] = request_forwarder
            ports.wires[service].ahead = request_forwarder.forward_early
        self._connect_peer_operations()
        self.endpoint = await PeerEndpoint.listen(self._config, self.peers)

    def _connect_peer_operations(self) -> None:
        """Have requests for remote rows sent to their owners, and such requests of other servers handled here."""
        self.statuses = StatusExchange(
            self.local_server, self.ports, self.serving, self.routes, self.peers, lambda: self.rpc_handlers.servers()
        )
        self.owners = RoutedOwners(self.local_server, self.routes, self.peers, self.peer_server.handlers)
        handlers, operations = (
            OperationPeerHandlers(self.serving.server, reply_bytes=self.serving.memory_plan.peer_replies),
            self.serving.operations,
        )
        self.peer_server.register(handlers.answers)
        peer_server, peer_replies = self.peer_server, handlers.reply_memory
        self.serving.report_peers(
            lambda: {"peer_calls": peer_server.serving_bytes, "peer_replies": peer_replies.total_bytes}
        )
        connect(operations, self.owners)
        self.serving.trigger_manager.system.access.others = operations.access.others
        self._connect_peer_triggers()
        self.peer_server.register({OwnFigures: self.statuses.own_figures})
        extension = self.ports.extension
        extension.others, extension.remarks = self.statuses.figures_of_others, self.statuses.remarks

    def _connect_peer_triggers(self) -> None:
        manager = self.serving.trigger_manager
        self.trigger_peer_handlers = TriggerPeerHandlers(manager, self.serving.server, self.owners.change)
        self.peer_server.register(self.trigger_peer_handlers.answers)
        cluster_triggers = ClusterTriggers(self.trigger_peer_handlers, self.owners, lambda: self.rpc_handlers.servers())
        self.ports.trigger_methods.join_cluster(cluster_triggers)
        self.serving.owner.views.wait_saved_in_cluster = lambda tables, key, timeout_s: cluster_triggers.wait_delivered(
            tables, key, "", timeout_s, saved=True
        )
        self.peer_server.register({ViewStatuses: self.statuses.list_view_statuses})
        self.peer_server.register(dict.fromkeys(VIEW_CHECKS, self.statuses.check_views))
        self.peer_server.register(dict.fromkeys(CHANGE_READS, self.statuses.read_changes))
        self.peer_server.register(
            {PushMessages: self.statuses.push_messages, SettleLeases: self.statuses.settle_leases}
        )
        self.peer_server.register({AppendRecords: self.statuses.append_records})
        self.ports.cluster = OtherServers(self.statuses.views_of_others, self.owners)
        manager.dead_letter_store.log_again_remotely = cluster_triggers.log_again

    def _server_of_scanner(self, scanner_id: int) -> Incarnation | None:
        slot = slot_of(scanner_id)
        return self.rpc_handlers.server_of_slot(slot) if slot is not None else None

    def _routes_changed(self, tables: Iterable[str]) -> None:
        self.owners.changed()
        self.forwarding.routes_changed(tables)

    def _address_of_peer(self, server: Incarnation) -> PeerAddress | None:
        found = self.rpc_handlers.peer_address_of(server)
        return parse_address(found) if found else None

    def _locate(self, region: RegionInfo) -> Location:
        """Return the region's owner, or if its address is unknown, this server: clients may call any server."""
        named_host = self._config.named_host
        return self.rpc_handlers.locate(region) or replace(self.ports.own_location(region), host=named_host)

    def _owner_of(self, table: str, row: bytes) -> RegionMoved | None:
        found = self.rpc_handlers.new_owner(table, row)
        return RegionMoved(found.text) if found is not None else None

    def _refuse_not_local(self, table: str, row: bytes) -> Moved | Unknown:
        return refuse_not_local(self.routes.find(table, row), self.local_server)

    # --- the leader ----------------------------------------------------------------------------------

    def _answer_the_leader(self, config: StandaloneConfig) -> None:
        serving = self.serving
        rates = RateMeter(serving.server, asyncio.get_running_loop().time, config.region_bytes)
        self.rpc_handlers = ServerRpcHandlers(
            self.local_server,
            serving.owner,
            self.region_assigner,
            self.routes,
            serving.server.tables,
            rates,
            self.stores.clock,
        )
        self.rpc_handlers.on_routes = self._routes_changed
        self.rpc_handlers.on_ended = self.peers.fenced
        self.rpc_handlers.on_all_routes = self.node_link.report_routes
        self.node_link.leader_epoch = self._leader_epoch
        self.ports.locate = self._locate
        self.answering.register(self.rpc_handlers.answers)
        for kind, answer in self.rpc_handlers.answers_by_leader.items():
            self.answering.register_with_sender(kind, answer)
        committer = self.stores.committer
        trigger_statuses = self.trigger_peer_handlers.trigger_statuses
        measures = ServerMeasures(
            self.ports, serving, lambda: committer.syncs, self.peer_server, self.request_forwarders, trigger_statuses
        )
        self.answering.register(
            {
                Measures: measures.measures,
                SlowRequests: self.statuses.slow_requests,
                TriggerStatuses: trigger_statuses,
                FlowStatuses: self.trigger_peer_handlers.flow_statuses,
            }
        )
        self._obey()

    def _obey(self) -> None:
        self.forwarding.leader = leader = self.leader_link
        owner = self.serving.owner
        owner.follow_master(leader, lambda: leader.epoch)
        owner.changing.on_committed = self.region_assigner.made
        owner.changing.on_found_committed = self.region_assigner.found_made
        self.region_assigner.on_blocked = owner.changing.settle_for
        self.region_assigner.on_cannot_open = leader.report_unopened

    def _leader_epoch(self) -> int:
        """Return the epoch of the leader with which this server is linked, and whose routes it has; 0: of none."""
        epoch = leader_of(self.routes.number)
        return epoch if self.leader_link.is_open and epoch == self.leader_link.epoch else 0

    # The methods of ``leader_link.LeaderEvents``.

    def leader_linked(self) -> None:
        ports = self.ports
        self.leader_link.report_soon(
            Listening(self._config.named_host, ports.port, ports.thrift2_port or -1, str(self.endpoint.address))
        )
        self.serving.owner.leader_linked()

    def leader_lost(self, why: str) -> None:
        """Serve on without a leader."""
        self.serving.owner.leader_ended()

    def take_settings(self, live: LiveSettings) -> None:
        """Take the settings that change while the server serves; read the certificate of ports and links again."""
        set_levels(live.log_level, live.log_levels)
        reopen_log()
        self._note_levels()
        take_settings(self.ports, live)
        if self._link_terms.tls is not None:
            self._link_terms.tls.renew(live.tls_cert, live.tls_key)

    def _note_levels(self) -> None:
        """Have the trigger workers take the levels of this process's loggers."""
        self.serving.trigger_manager.dispatcher.sender.send_levels()

    # --- the end -------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop in order.  The node, which requested the stop, notices it by the end of the process."""
        self.node_link.begin_stop()
        await self.serving.stop_triggers()
        await self.endpoint.close()
        await self.peers.leave()
        await self.ports.close_others()
        await self.ports.close()
        self.leader_link.close()
        await self.answering.close()
        await self.node_link.close()
        await self.peer_server.close()
        await self.peers.close()
        self.region_assigner.openings.stop()
        await self.serving.close()
        with StopLimit(THREADS_S):
            self.stores.close()
            await asyncio.get_running_loop().shutdown_default_executor()  # no thread works after the stop
