"""A region server beside others on a machine: regions that its master assigns, its own ports, its trigger worker.

    start    stores, ports, and the link to the master are opened; then connections arrive over the connection channel,
             and regions are assigned
    leave    clients are transferred to other servers, if the master requests it before a stop
    stop     these are ended in order: trigger worker, ports (calls in flight are answered), links, regions (synced and
             closed), threads

A client may call any server: a call about a row is forwarded to the owner of its region, a change of tables to the
master.

The master is the supervisor of the servers, at the opposite end of the control link.  When that link ends, the server
has no master, and ``on_orphaned`` must end the process immediately, before it answers any request.

Owned by one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from columnar.cluster.forwarding import Forwarding
from columnar.cluster.hello import Hello, obstacle
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_address import UnixAddress
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.peer_requests import VIEW_CHECKS, FlowStatuses, OwnFigures, TriggerStatuses, ViewStatuses
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.peers import Peers
from columnar.cluster.refusals import Moved, Unknown, refuse_not_local
from columnar.cluster.request_forwarder import RequestForwarder
from columnar.cluster.routes import Routes
from columnar.cluster.scatter_gather import RoutedOwners
from columnar.config import RegionServerConfig, StandaloneConfig
from columnar.coordination.processes import Beat
from columnar.coordination.socket_folder import ListeningPath, make_private
from columnar.errors import HostError, RegionMoved
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import (
    CannotOpen,
    HandOver,
    HandoverResult,
    Listening,
    Measures,
    ReturnConnections,
    SlowRequests,
)
from columnar.model.region_info import RegionInfo
from columnar.model.region_location import Location
from columnar.model.region_messages import Message
from columnar.operations.distributed_calls import connect
from columnar.operations.operation_peer_handlers import OperationPeerHandlers
from columnar.operations.scanner_table import slot_of, slot_of_server
from columnar.regions.life.region_assigner import RegionAssigner
from columnar.regions.region_rates import RateMeter
from columnar.roles.ports import RemoteMaster, ServerPorts, read_tls
from columnar.roles.server_connection_channel import ServerConnectionChannel
from columnar.roles.server_measures import ServerMeasures, StatusExchange
from columnar.roles.server_rpc_handlers import ServerRpcHandlers
from columnar.roles.serving import Serving
from columnar.runtime.background import Background
from columnar.storage.data_folder import STAGING
from columnar.storage.process_stores import ServerStores
from columnar.storage.rocks import RocksEngine
from columnar.triggers.cluster_triggers import ClusterTriggers
from columnar.triggers.trigger_peer_handlers import TriggerPeerHandlers

_log = logging.getLogger(__name__)

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """The data folder as described by the supervisor, which has locked it."""

    path: str
    cluster_id: str


class MasterLink:
    """The master as a ``Peer``, and the sender of reports to it."""

    def __init__(self, link: PeerLink) -> None:
        self._link = link
        self._reports = Background("reports to the master")

    async def request_peer(self, message: Message[R]) -> R:
        return await self._link.send_request(message)

    def report_unopened(self, report: CannotOpen) -> None:
        _log.error("region %s of %s cannot be opened: %s", report.region.encoded, report.region.table, report.why)
        self.report_soon(report)

    def report_soon(self, message: Message[None]) -> None:
        """Send ``message`` without waiting for its answer."""
        self._reports.spawn(self._report(message))

    async def _report(self, message: Message[None]) -> None:
        try:
            await self._link.send_request(message)
        except (NotSent, LinkBroke):
            pass  # the process is ending
        except Exception as error:  # noqa: BLE001 - a master that cannot use a report has said why in its log
            _log.error("the master did not take a %s: %s", type(message).__name__, error)


def own_ports(config: StandaloneConfig) -> StandaloneConfig:
    """Return the store's settings with this server's own ports: any free ones."""
    return replace(config, port=0, thrift2_port=0 if config.thrift2_port >= 0 else -1, web_port=-1)


class ClusterServer:
    def __init__(self, config: RegionServerConfig, on_orphaned: Callable[[str], None]) -> None:
        """Pass ``on_orphaned``, called with the reason when the link to the master has ended."""
        self.local_server = Incarnation(config.name, config.number)
        self._config = config
        self._folder = SharedFolder(config.data, config.cluster_id)
        self._hello = Hello(config.cluster_id, self.local_server)
        self._on_orphaned = on_orphaned
        self._connection_channel: ServerConnectionChannel | None = None
        self.is_stopping = False

    async def start(self, control: socket.socket, channel: socket.socket) -> None:
        """Start to serve.  The server owns the non-blocking sockets from now on.  Raises HostError, DamagedData."""
        config = own_ports(self._config.config)
        self.stores = ServerStores(config.data, str(self.local_server), RocksEngine.of_several(self._config.servers))
        self.stores.open()
        async with AsyncExitStack() as undo:
            undo.callback(self.stores.close)
            self.stores.clock.observe(self._config.clock_ms)
            self.serving = Serving(config, self.stores, None, slot_of_server(self.local_server))
            self.region_assigner = RegionAssigner(self.local_server, self.serving.server, self.stores)
            self.serving.server.openings.ownership_at = self.region_assigner.ownership_at
            self.serving.server.openings.on_settled = self.region_assigner.settled
            self.serving.server.openings.on_opening = self.stores.opening_notes.begins
            self.serving.server.openings.on_ended = self.stores.opening_notes.ends
            self.routes = Routes()
            undo.push_async_callback(self.serving.close)
            self.ports = ServerPorts(config, self._folder, read_tls(config))
            self.ports.make(self.serving, RemoteMaster(os.path.join(config.data, STAGING)))
            undo.push_async_callback(self.ports.close)
            await self._join_the_others()
            undo.push_async_callback(self.peers.close)
            undo.push_async_callback(self._listening.close)
            self._listening.begin()
            private = await self.ports.listen()
            self._connection_channel = ServerConnectionChannel(
                channel, self.ports, self.serving.scanners, self._handle_channel_end
            )
            self._answer_the_master(config)
            self.serving.deliver(self.ports.port, private, self.ports.answered, self.ports.has_waiting)
            self.link = await self._linked(control)
            master = self._obey()
            self._connection_channel.begin()
            self.serving.begin_background_work()
            undo.pop_all()
        master.report_soon(Listening(config.host, self.ports.port, self.ports.thrift2_port or -1))

    # --- other servers -------------------------------------------------------------------------------

    async def _join_the_others(self) -> None:
        """Answer calls of the other servers, and send them the calls of this server's clients for their regions."""
        ports = self.ports
        self.peer_server = PeerServer(ports.wires, self._refuse_not_local, ports.connection_ids)
        self.peers = Peers(self._hello, self._address_of_server, self.peer_server)
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
        address = self._address_of_server(self.local_server)
        path = address.path
        self._listening = ListeningPath(path, lambda: self.peers.listen(address))
        try:
            make_private(self._config.run_folder)
            await self.peers.listen(address)
        except OSError as error:
            raise HostError(f"cannot listen on {path}: {error.strerror}; set TMPDIR to a shorter path") from error

    def _connect_peer_operations(self) -> None:
        """Have requests for remote rows sent to their owners, and such requests of other servers handled here."""
        self.statuses = StatusExchange(
            self.local_server, self.ports, self.serving, self.routes, self.peers, lambda: self.rpc_handlers.servers()
        )
        self.owners = RoutedOwners(self.local_server, self.routes, self.peers, self.peer_server.handlers)
        handlers, operations = OperationPeerHandlers(self.serving.server), self.serving.operations
        self.peer_server.register(handlers.answers)
        connect(operations, self.owners)
        self.serving.trigger_manager.system.access.others = operations.access.others
        self._connect_peer_triggers()
        self.peer_server.register({OwnFigures: self.statuses.own_figures})
        extension = self.ports.extension
        extension.others, extension.remarks = self.statuses.figures_of_others, self.statuses.remarks

    def _connect_peer_triggers(self) -> None:
        manager = self.serving.trigger_manager
        self.trigger_peer_handlers = TriggerPeerHandlers(
            manager, self.serving.server, self.owners.change, self.serving.wait
        )
        self.peer_server.register(self.trigger_peer_handlers.answers)
        cluster_triggers = ClusterTriggers(self.trigger_peer_handlers, self.owners, lambda: self.rpc_handlers.servers())
        self.ports.trigger_methods.others = cluster_triggers
        self.serving.owner.views.wait_saved_in_cluster = lambda tables, key, timeout_s: cluster_triggers.wait_delivered(
            tables, key, "", timeout_s, saved=True
        )
        self.peer_server.register({ViewStatuses: self.statuses.list_view_statuses})
        self.peer_server.register(dict.fromkeys(VIEW_CHECKS, self.statuses.check_views))
        self.ports.other_views, self.ports.owners = self.statuses.views_of_others, self.owners
        manager.dead_letter_store.log_again_remotely = cluster_triggers.log_again

    def _server_of_scanner(self, scanner_id: int) -> Incarnation | None:
        slot = slot_of(scanner_id)
        return self.rpc_handlers.server_of_slot(slot) if slot is not None else None

    def _routes_changed(self, tables: Iterable[str]) -> None:
        self.owners.changed()
        self.forwarding.routes_changed(tables)

    def _address_of_server(self, server: Incarnation) -> UnixAddress:
        return UnixAddress(os.path.join(self._config.run_folder, str(server)))

    def _refuse_not_local(self, table: str, row: bytes) -> Moved | Unknown:
        return refuse_not_local(self.routes.find(table, row), self.local_server)

    # --- the master ----------------------------------------------------------------------------------

    def _answer_the_master(self, config: StandaloneConfig) -> None:
        serving = self.serving
        rates = RateMeter(serving.server, asyncio.get_running_loop().time, config.region_bytes)
        self.rpc_handlers = ServerRpcHandlers(
            self.local_server,
            serving.owner,
            self.region_assigner,
            self.routes,
            serving.server.tables,
            rates,
            lambda: self._leader,
            self.stores.clock,
        )
        self.rpc_handlers.on_routes = self._routes_changed
        self.ports.locate = self._locate
        self.answering = PeerServer({}, self._refuse_not_local, self.ports.connection_ids)  # a master forwards no calls
        self.answering.register(self.rpc_handlers.answers)
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
                HandOver: self._hand_over,
                ReturnConnections: self._return_connections,
            }
        )

    async def _linked(self, control: socket.socket) -> PeerLink:
        def made() -> PeerLink:
            return PeerLink(self._hello, self._obstacle, self.answering, self._link_ended)

        factory = cast(Callable[[], asyncio.Protocol], made)
        _, link = await asyncio.get_running_loop().create_unix_connection(factory, sock=control)
        return cast(PeerLink, link)

    @property
    def _leader(self) -> int:
        """The epoch of the master that sends requests."""
        return self.link.peer.leader_epoch if self.link.peer is not None else 0

    def _obstacle(self, hello: Hello) -> str | None:
        if not hello.leader_epoch:
            return f"{hello.server} is no master"
        return obstacle(
            hello, self._config.cluster_id, max(self._config.leader_epoch, self.serving.server.hosting.state.leader)
        )

    def _link_ended(self, link: PeerLink) -> None:
        self._on_orphaned(link.why)

    def _obey(self) -> MasterLink:
        self.forwarding.master = self.link
        owner, master = self.serving.owner, MasterLink(self.link)
        owner.follow_master(master, lambda: self._leader)
        owner.changing.on_committed = self.region_assigner.made
        owner.changing.on_found_committed = self.region_assigner.found_made
        self.region_assigner.on_blocked = owner.changing.settle_for
        self.region_assigner.on_cannot_open = master.report_unopened
        return master

    def _locate(self, region: RegionInfo) -> Location:
        """Return the region's owner, or if its address is unknown, this server: clients may call any server."""
        return self.rpc_handlers.locate(region) or self.ports.own_location(region)

    def _owner_of(self, table: str, row: bytes) -> RegionMoved | None:
        found = self.rpc_handlers.new_owner(table, row)
        return RegionMoved(found.text) if found is not None else None

    # --- connections of clients ----------------------------------------------------------------------

    def beat(self, iterations: int) -> Beat:
        channel = self._connection_channel
        if channel is None:
            return Beat(iterations)
        return Beat(iterations, channel.open, channel.taken, channel.given)

    async def _hand_over(self, message: HandOver) -> HandoverResult:
        assert self._connection_channel is not None, "it is there before the master is answered"
        return await self._connection_channel.hand_over(message.within_ms / 1000)

    async def _return_connections(self, message: ReturnConnections) -> int:
        assert self._connection_channel is not None, "as above"
        return await self._connection_channel.part_with(message.connections, message.within_ms / 1000)

    def _handle_channel_end(self, why: str) -> None:
        if not self.is_stopping:
            self._on_orphaned(why)

    # --- the end -------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop in order.  The master, which requested the stop, notices it by the end of the process."""
        self.is_stopping = True
        await self.serving.stop_triggers()
        if self._connection_channel is not None:
            self._connection_channel.close()
        await self.ports.close_thrift2()
        await self.ports.close()
        await self.answering.close()
        await self.peer_server.close()
        await self._listening.close()
        await self.peers.close()
        self.region_assigner.openings.stop()
        await self.serving.close()
        self.stores.close()
        await asyncio.get_running_loop().shutdown_default_executor()  # no thread works after the stop
