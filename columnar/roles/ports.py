"""The ports of a server: its services, their addresses and transports, and the clients that they accept.

Translates nothing itself; the handlers are in ``thrift`` and ``thrift2``.  Owned by one event loop.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.config import StandaloneConfig
from columnar.errors import HostError
from columnar.memory_plan import MemoryPlan
from columnar.model.region_info import RegionInfo
from columnar.model.region_location import Location
from columnar.operations.slow_log import SlowLog
from columnar.roles.lazy_methods import (
    AUDIT_METHODS,
    CLUSTER_METHODS,
    CONSUMER_METHODS,
    FEED_METHODS,
    GROUP_METHODS,
    LEASE_METHODS,
    QUEUE_METHODS,
    STREAM_METHODS,
    TOPIC_METHODS,
    VIEW_METHODS,
    LazyHandlers,
    make_audit_methods,
    make_cluster_methods,
    make_consumer_methods,
    make_feed_methods,
    make_group_methods,
    make_lease_methods,
    make_queue_methods,
    make_stream_methods,
    make_topic_methods,
    make_view_methods,
)
from columnar.roles.master_parts import MasterParts, list_master_methods
from columnar.roles.protocol_ports import ProtocolPorts
from columnar.roles.serving import Serving
from columnar.thrift.extension import ExtensionMethods, Facts
from columnar.thrift.reads import ReadMethods, ScanMethods
from columnar.thrift.rights_methods import RightsMethods, WhoAmIMethods
from columnar.thrift.routing_methods import RoutingMethods
from columnar.thrift.service import SiblingHint, ThriftService
from columnar.thrift.snapshot_methods import SnapshotMethods
from columnar.thrift.tables import AdminMethods, RegionMethods, TableMethods
from columnar.thrift.trigger_methods import EarlierMethods, TriggerChangeMethods, TriggerMethods
from columnar.thrift.wait_methods import WaitMethods
from columnar.thrift.writes import WriteMethods
from columnar.version import full
from columnar.webui.counters import RequestCounters
from columnar.webui.status import Sources
from columnar.wire.browsers import Visitors
from columnar.wire.connection_table import WireLimits
from columnar.wire.idl import SERVICE
from columnar.wire.server import WireServer
from columnar.wire.sockets import open_client_socket

if TYPE_CHECKING:
    import socket

    from columnar.cluster.scatter_gather import Owners
    from columnar.coordination.connection_channel import DispatchedConnection  # a standalone server has none
    from columnar.model.cluster_status_records import ServerStatus
    from columnar.model.node_messages import LiveSettings
    from columnar.operations.descriptions import Descriptions
    from columnar.thrift.cluster_methods import SingleServer
    from columnar.thrift.view_methods import RemoteViewStatuses
    from columnar.wire.sockets import PrivateSocket
    from columnar.wire.tls_context import PeerTls
    from columnar.wire.tls_protocol import Tls

ALONE: Final = "standalone"  # the name of the server of a standalone store
THRIFT2_PREFIX: Final = "thrift2."  # of its methods in the metrics
THRIFT1_SERVICE: Final = b"1"  # the Thrift 1 service with our extension
THRIFT2_SERVICE: Final = b"2"  # the Thrift 2 service
_SERVICES: Final = {THRIFT1: THRIFT1_SERVICE, THRIFT2: THRIFT2_SERVICE}
STOP_GRACE_S: Final = 5.0  # for calls in flight


class Folder(Protocol):
    """The interface of ``storage.data_folder.DataFolder``, and of its description that servers get."""

    @property
    def path(self) -> str: ...

    @property
    def cluster_id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class OtherServers:
    """The other servers of a cluster."""

    views: RemoteViewStatuses
    owners: Owners


class ServerPorts:
    def __init__(self, config: StandaloneConfig, folder: Folder, tls: Tls | None) -> None:
        """Pass None as ``tls`` if the ports speak plain TCP."""
        self.config = config
        self.folder = folder
        self.started_s = time.time()
        self.counters = RequestCounters()
        self.wires: dict[int, WireServer] = {}  # by service, THRIFT1 and, if it is served, THRIFT2
        self.protocol_ports = ProtocolPorts(config, folder.cluster_id)
        self._private: PrivateSocket | None = None  # for trigger workers, if there may be any
        self.tls = tls
        self.visitors = Visitors.of(config.host, config.allow_origins)
        self.cluster: OtherServers | None = None  # None if this process has all regions
        self.locate: Callable[[RegionInfo], Location] = self.own_location  # the region's server

    def own_location(self, region: RegionInfo) -> Location:
        """Return this server as the region's; the answer for a region whose owner's address is not known."""
        return Location(region.start, region.end, "", 0, self.config.host, self.port, 0)

    def make(self, serving: Serving, master: MasterParts) -> None:
        """Make the services, which no client can reach yet."""
        operations = serving.operations
        writes = WriteMethods(operations)
        self.connection_ids = itertools.count(1)  # scanners are identified by the connection that opened them
        waits = WaitMethods(serving.trigger_manager, serving.owner.views, operations.access.waits)
        self.trigger_methods = TriggerMethods(serving.trigger_manager, waits)
        thrift2 = SiblingHint(_thrift2_definition, "Thrift 2", lambda: self.thrift2_port)
        facts = Facts(
            self.folder.path,
            self.started_s,
            lambda: self.connections,
            self.counters.calls,
            lambda: serving.memory_parts(self.buffered_bytes),
        )
        self.extension = ExtensionMethods(operations, writes, master.changes, facts)
        self.slow_log = SlowLog(operations.descriptions, serving.scanners, self.config.slow_request_ms)
        routing: set[int] = set()
        service = ThriftService(
            serving.scanners,
            self.slow_log,
            ReadMethods(operations),
            writes,
            ScanMethods(operations),
            TableMethods(
                operations, master.changes, lambda region: self.locate(region).address, self.folder.cluster_id
            ),
            RoutingMethods(operations.descriptions, lambda region: self.locate(region), routing),
            self.extension,
            TriggerChangeMethods(master.triggers),
            self.trigger_methods,
            waits,
            EarlierMethods(),
            AdminMethods(operations, master.alterations, serving.triggers_of),
            RegionMethods(operations.descriptions, master.region_changes),
            SnapshotMethods(operations, master.snapshots),
            RightsMethods(master.rights),
            WhoAmIMethods(lambda: serving.rights.rights() if serving.rights is not None else None),
            *self._lazy_handlers(serving, master),
            other_door=thrift2,
            of_master=list_master_methods(master, THRIFT1),
            routing=routing,
        )
        self.services = {THRIFT1: service}
        self.wires[THRIFT1] = WireServer(
            service,
            self.counters,
            _wire_limits(serving.memory_plan, self.config),
            connection_ids=self.connection_ids,
            sibling_hint=thrift2.where_is,
            tls=self.tls,
            visitors=self.visitors,
            gate=serving.gate,
        )
        if self.config.thrift2_port >= 0:
            self._make_thrift2(serving, master)
        limits = _wire_limits(serving.memory_plan, self.config)
        self.protocol_ports.make(self.wire, next(self.connection_ids), limits, self.tls, self.visitors)
        _check_rights(self.wires, serving)
        _trace_requests(self.wires, self.services, self.counters)

    def _lazy_handlers(self, serving: Serving, master: MasterParts) -> list[LazyHandlers]:
        def alone() -> SingleServer:
            return self.alone(serving.operations.descriptions)

        wait = self.trigger_methods.waits.columnarViewWait

        def owners() -> Owners | None:
            return self.cluster.owners if self.cluster is not None else None

        serving.messages.queues.owners = owners
        self.protocol_ports.waits = serving.operations.access.waits

        def others() -> RemoteViewStatuses | None:
            return self.cluster.views if self.cluster is not None else None

        def topics() -> object:
            return make_topic_methods(serving, owners, self.wire, next(self.connection_ids))

        serving.owner.feeds.pushes = lambda: serving.messages.topics.pushes(owners)
        return [
            LazyHandlers(CLUSTER_METHODS, partial(make_cluster_methods, serving, master, alone)),
            LazyHandlers(GROUP_METHODS, partial(make_group_methods, serving.operations)),
            LazyHandlers(LEASE_METHODS, partial(make_lease_methods, serving.operations)),
            LazyHandlers(VIEW_METHODS, partial(make_view_methods, serving, master, wait, owners, others)),
            LazyHandlers(FEED_METHODS, partial(make_feed_methods, serving, master)),
            LazyHandlers(QUEUE_METHODS, partial(make_queue_methods, serving)),
            LazyHandlers(TOPIC_METHODS, topics),
            LazyHandlers(AUDIT_METHODS, lambda: make_audit_methods(serving, self.wire, next(self.connection_ids))),
            LazyHandlers(CONSUMER_METHODS, partial(make_consumer_methods, serving.operations)),
            LazyHandlers(STREAM_METHODS, partial(make_stream_methods, serving, owners)),
        ]

    def alone(self, descriptions: Descriptions) -> SingleServer:
        """Return this process as a cluster of one server."""
        from columnar.thrift.cluster_methods import SingleServer

        return SingleServer(descriptions, self._as_server)

    def _as_server(self) -> ServerStatus:
        from columnar.model.cluster_status_records import ServerStatus

        return ServerStatus(
            name=ALONE,
            state="up",
            state_ms=round((time.time() - self.started_s) * 1_000),
            requests_per_s=self.counters.rate(),
            version=full(),
            address=f"{self.config.host}:{self.port}",
            pid=os.getpid(),
            connections=self.connections,
        )

    def _make_thrift2(self, serving: Serving, master: MasterParts) -> None:
        from columnar.thrift2 import service as thrift2  # 2 MB that most stores do not need

        thrift1 = SiblingHint(lambda: SERVICE, "Thrift 1", lambda: self.port)
        facts = thrift2.Facts(lambda region: self.locate(region).address, self.folder.cluster_id, self.started_s)
        service = self.services[THRIFT2] = thrift2.make(
            serving.operations,
            self.slow_log,
            master.changes,
            master.alterations,
            facts,
            thrift1,
            list_master_methods(master, THRIFT2),
        )
        self.wires[THRIFT2] = WireServer(
            service,
            self.counters.of_service(THRIFT2_PREFIX),
            _wire_limits(serving.memory_plan, self.config),
            definition=thrift2.DEFINITION,
            connection_ids=self.connection_ids,
            sibling_hint=thrift1.where_is,
            tls=self.tls,
            visitors=self.visitors,
            gate=serving.gate,
        )

    @property
    def wire(self) -> WireServer:
        """The wire of the Thrift 1 service."""
        return self.wires[THRIFT1]

    async def listen(self) -> PrivateSocket | None:
        """Listen.  Returns the socket to which trigger workers connect, if there may be any.

        Raises HostError if a port is taken.
        """
        options = {THRIFT1: (self.config.port, "--port"), THRIFT2: (self.config.thrift2_port, "--thrift2-port")}
        for service, wire in self.wires.items():
            await self._open_port(wire, *options[service])
        await self.protocol_ports.listen()
        if self.config.rights.socket:
            await self.wire.serve_socket(open_client_socket(self.config.rights.socket))
        return await self._open_privately()

    async def take_connection(self, dispatched: DispatchedConnection) -> None:
        """Serve a connection that a different process accepted."""
        if await self.protocol_ports.take_connection(dispatched):
            return
        wire = self.wires.get(THRIFT2 if dispatched.service == THRIFT2_SERVICE else THRIFT1)
        if wire is None:
            dispatched.connection.close()
        else:
            await wire.take_connection(dispatched.connection, dispatched.read)

    async def leave(self, give: Callable[[DispatchedConnection], None]) -> None:
        """Do ``WireServer.leave`` for all ports."""
        if self.tls is not None:
            self.tls.handshakes.close()
        await asyncio.gather(
            *(wire.leave(partial(_give_as, give, _SERVICES[service])) for service, wire in self.wires.items()),
            self.protocol_ports.leave_clients(),
        )

    async def part_with(
        self, most: int, give: Callable[[DispatchedConnection], None], stays: Callable[[int], bool], within_s: float
    ) -> int:
        """Do ``WireServer.part_with`` for all ports; each port transfers its share of ``most``."""
        shares = {THRIFT1: most}
        if THRIFT2 in self.wires:
            both = sum(wire.connections for wire in self.wires.values())
            first = round(most * self.wire.connections / max(1, both))
            shares = {THRIFT1: first, THRIFT2: most - first}
        gone = await asyncio.gather(
            *(
                self.wires[service].part_with(share, partial(_give_as, give, _SERVICES[service]), stays, within_s)
                for service, share in shares.items()
            )
        )
        return sum(gone)

    @property
    def closed_between(self) -> int:
        """The number of connections closed between two requests since the server began to leave."""
        leaving = (wire.leaving for wire in self.wires.values())
        return sum(one.closed for one in leaving if one is not None)

    async def _open_privately(self) -> PrivateSocket | None:
        """Open a private socket for trigger workers, which have no certificate and whose calls are background work."""
        if self.tls is None and not self.config.trigger_modules:
            return None
        from columnar.wire.sockets import PrivateSocket

        try:
            self._private = PrivateSocket.opened()
        except OSError as error:
            raise HostError(f"cannot make a socket for the trigger worker: {error}; set TMPDIR") from error
        await self.wire.serve_privately(self._private.listening)
        return self._private

    async def _open_port(self, wire: WireServer, port: int, option: str) -> None:
        try:
            await wire.start(self.config.host, port)
        except OSError as error:
            raise HostError(
                f"cannot listen on {self.config.host}:{port}: {error.strerror}; choose another with {option}"
            ) from error

    def answered(self) -> int:
        """Return the number of requests answered so far on all ports, without those of trigger workers."""
        return sum(wire.answered for wire in self.wires.values())

    def has_waiting(self) -> bool:
        """Return whether requests wait for disks, not counting requests of trigger workers."""
        return any(wire.pending.has_waiting for wire in self.wires.values())

    @property
    def port(self) -> int:
        return int(self.wire.port)

    @property
    def thrift2_port(self) -> int | None:
        """The port of the Thrift 2 service; None if the service is not served."""
        return self.wires[THRIFT2].port if THRIFT2 in self.wires else None

    @property
    def connections(self) -> int:
        return sum(wire.connections for wire in self.wires.values()) + self.protocol_ports.connections

    @property
    def buffered_bytes(self) -> dict[str, int]:
        """The bytes of requests and replies under way, by name of their part of the memory plan."""
        return {
            "requests": sum(wire.input_bytes for wire in self.wires.values()) + self.protocol_ports.input_bytes,
            "replies": sum(wire.output_bytes for wire in self.wires.values()) + self.protocol_ports.output_bytes,
        }

    def sources(self, serving: Serving, commits: Callable[[], int]) -> Sources:
        """Return the sources of this process for pages and metrics.  Call after ``listen``."""
        return Sources(
            address="",
            data_folder=self.folder.path,
            started_s=self.started_s,
            descriptions=serving.operations.descriptions,
            scanners=serving.scanners,
            counters=self.counters,
            connections=lambda: self.connections,
            commits=commits,
            slow_log=self.slow_log,
            triggers=list,
            views=serving.owner.views.view_statuses,
            memory=lambda: serving.memory_parts(self.buffered_bytes),
            streams=serving.stream_counts,
        )

    async def close_others(self) -> None:
        """Close all ports but that of Thrift 1, on which others stand.

        Calls in flight are answered, or cancelled after STOP_GRACE_S.
        """
        if self.tls is not None:
            self.tls.handshakes.close()
        if THRIFT2 in self.wires:
            await self.wires[THRIFT2].close(STOP_GRACE_S)
        await self.protocol_ports.close(STOP_GRACE_S)

    async def close(self) -> None:
        """Close all ports; calls in flight end as in ``close_others``."""
        await self.wire.close(STOP_GRACE_S)
        if self._private is not None:
            self._private.close()


def _check_rights(wires: Mapping[int, WireServer], serving: Serving) -> None:
    """Have every call checked, if rights are on."""
    if serving.rights is None:
        return
    from columnar.rights.rights_check import check_of_tables  # most stores have no users

    descriptions = serving.operations.descriptions
    for number, wire in wires.items():
        wire.rights = check_of_tables(number, serving.rights, descriptions.find_meant, descriptions.region_named)


def _trace_requests(
    wires: Mapping[int, WireServer], services: Mapping[int, ThriftService], counters: RequestCounters
) -> None:
    """Make a span of each request, if the environment asks for that."""
    if os.environ.get("OTEL_TRACES_EXPORTER"):  # else not even the module is loaded
        from columnar.thrift.request_spans import tracer_of_process

        tracer = tracer_of_process()
        if tracer is not None:
            for number, wire in wires.items():
                counted = counters if number == THRIFT1 else counters.of_service(THRIFT2_PREFIX)
                services[number].trace_requests(tracer, counted.trace_done)
                wire.slow_after_s = wire.service.slow_after_s


def take_settings(ports: ServerPorts, live: LiveSettings) -> None:
    """Have the ports take settings that change meanwhile; new connections get the certificate, if they speak TLS."""
    ports.slow_log.limit_s = live.slow_request_ms / 1_000
    for wire in ports.wires.values():
        wire.slow_after_s = wire.service.slow_after_s
    ports.visitors.take_origins(live.allow_origins)
    if ports.tls is not None:
        ports.tls.certificate.renew(live.tls_cert, live.tls_key)


def read_tls(config: StandaloneConfig) -> Tls | None:
    """Return the TLS of the ports, or None for plain TCP.  Raises HostError if the certificate cannot be read."""
    if not config.tls_cert:
        return None
    from columnar.wire import tls_context, tls_protocol  # most stores do not need them

    files = tls_context.TlsFiles(config.tls_cert, config.tls_key, config.tls_client_ca)
    return tls_protocol.Tls(tls_context.ServerTls.read(files))


def read_peer_tls(config: StandaloneConfig) -> PeerTls | None:
    """Return the TLS of links over TCP, made of the ports' certificate, or None for plain links.  Raises HostError."""
    if not config.tls_cert:
        return None
    from columnar.wire import tls_context  # most stores do not need it

    return tls_context.PeerTls.of_files(tls_context.TlsFiles(config.tls_cert, config.tls_key, config.tls_client_ca))


def _give_as(
    give: Callable[[DispatchedConnection], None], service: bytes, connection: socket.socket, read: bytes
) -> None:
    from columnar.coordination.connection_channel import DispatchedConnection

    give(DispatchedConnection(service, connection, read))


def _thrift2_definition() -> Any:
    from columnar.wire.idl2 import SERVICE2

    return SERVICE2


def _wire_limits(memory: MemoryPlan, config: StandaloneConfig) -> WireLimits:
    """Return the limits of each port; the ports share the memory for requests and replies."""
    ports = 1 + (config.thrift2_port >= 0) + config.protocols.served
    return WireLimits(
        message_bytes=memory.message_bytes,
        server_input_bytes=memory.requests // ports,
        server_output_bytes=memory.replies // ports,
    )
