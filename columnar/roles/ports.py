"""The ports of a server: its services, their addresses and transports, and the clients that they accept.

Translates nothing itself; the handlers are in ``thrift`` and ``thrift2``.  Owned by one event loop.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.config import StandaloneConfig
from columnar.errors import ForwardToMaster, HostError
from columnar.master.staging import Staging
from columnar.memory_plan import MemoryPlan
from columnar.model.region_info import RegionInfo
from columnar.model.region_location import Location
from columnar.operations.slow_log import SlowLog
from columnar.operations.table_operations import TableOperations
from columnar.roles.serving import Serving
from columnar.thrift.extension import ExtensionMethods, Facts
from columnar.thrift.reads import ReadMethods, ScanMethods
from columnar.thrift.routing_methods import RoutingMethods
from columnar.thrift.service import LazyHandlers, SiblingHint, ThriftService
from columnar.thrift.snapshot_methods import SnapshotMethods
from columnar.thrift.tables import AdminMethods, RegionMethods, TableMethods
from columnar.thrift.trigger_methods import EarlierMethods, TriggerChangeMethods, TriggerMethods
from columnar.thrift.writes import WriteMethods
from columnar.version import full
from columnar.webui.counters import RequestCounters
from columnar.webui.status import Sources
from columnar.wire.browsers import Visitors
from columnar.wire.idl import SERVICE
from columnar.wire.server import WireLimits, WireServer

if TYPE_CHECKING:
    import socket

    from columnar.cluster.scatter_gather import Owners
    from columnar.coordination.connection_channel import DispatchedConnection  # a standalone server has none
    from columnar.model.cluster_status_records import ServerStatus
    from columnar.model.node_messages import LiveSettings
    from columnar.operations.descriptions import Descriptions
    from columnar.thrift.cluster_methods import ClusterMethods, SingleServer
    from columnar.thrift.view_methods import RemoteViewStatuses
    from columnar.wire.sockets import PrivateSocket
    from columnar.wire.tls_context import PeerTls
    from columnar.wire.tls_protocol import Tls

ALONE: Final = "standalone"  # the name of the server of a standalone store
CLUSTER_METHODS: Final = frozenset(  # of ``thrift.cluster_methods``; as text, because a list would take a line for each
    """
    columnarServers columnarLocations columnarLocate columnarTransitions columnarDecisions columnarMove columnarAssign
    columnarUnassign columnarDrain columnarBalance columnarSwitch columnarRestart columnarStop columnarFence
    columnarDrainNode columnarMaintenance columnarAcquireMaintenance columnarReleaseMaintenance
    """.split()  # noqa: SIM905
)
VIEW_METHODS: Final = (  # of ``thrift.view_methods``
    "columnarViewAdd", "columnarViewDrop", "columnarViews", "columnarCheckView", "columnarViewRebuild",
    "columnarViewSwap", "columnarViewRollback",
)  # fmt: skip
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


class ServerPorts:
    def __init__(self, config: StandaloneConfig, folder: Folder, tls: Tls | None) -> None:
        """Pass None as ``tls`` if the ports speak plain TCP."""
        self.config = config
        self.folder = folder
        self.started_s = time.time()
        self.counters = RequestCounters()
        self.wires: dict[int, WireServer] = {}  # by service, THRIFT1 and, if it is served, THRIFT2
        self._private: PrivateSocket | None = None  # for trigger workers, if there may be any
        self.tls = tls
        self.visitors = Visitors.of(config.host, config.allow_origins)
        self.other_views: RemoteViewStatuses | None = None  # of other servers; None if this process has all regions
        self.owners: Owners | None = None  # as ``other_views``
        self.locate: Callable[[RegionInfo], Location] = self.own_location  # the region's server

    def own_location(self, region: RegionInfo) -> Location:
        """Return this server as the region's; the answer for a region whose owner's address is not known."""
        return Location(region.start, region.end, "", 0, self.config.host, self.port, 0)

    def make(self, serving: Serving, master: MasterParts) -> None:
        """Make the services, which no client can reach yet."""
        operations = serving.operations
        writes = WriteMethods(operations)
        self.connection_ids = itertools.count(1)  # scanners are identified by the connection that opened them
        self.trigger_methods = TriggerMethods(serving.trigger_manager, serving.owner.views)
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
            EarlierMethods(),
            AdminMethods(operations, master.alterations, serving.triggers_of),
            RegionMethods(operations.descriptions, master.region_changes),
            SnapshotMethods(operations, master.snapshots),
            LazyHandlers(CLUSTER_METHODS, partial(self._cluster_methods, operations, master)),
            LazyHandlers(VIEW_METHODS, partial(self._view_methods, serving, master)),
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

    def _cluster_methods(self, operations: TableOperations, master: MasterParts) -> ClusterMethods:
        """Return the cluster methods of the master, or of a standalone process, which refuses some requests."""
        # saves 0.2 MB until the first call, with the two imports below
        from columnar.thrift.cluster_methods import ClusterMethods, SingleServerControl

        cluster = master.cluster or SingleServerControl(self.alone(operations.descriptions))
        return ClusterMethods(operations.descriptions, cluster, may_end_servers=master.cluster is None)

    def _view_methods(self, serving: Serving, master: MasterParts) -> object:
        from columnar.thrift.view_methods import (
            ViewChecks,  # most stores have no views
            ViewMethods,
        )

        wait = self.trigger_methods.columnarViewWait
        checks = ViewChecks(
            serving.owner.views, serving.checks, serving.trigger_manager.applier, wait, lambda: self.owners
        )
        return ViewMethods(master.views, master.view_generations, serving.owner.views, lambda: self.other_views, checks)

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
            self.counters.of_service("thrift2."),
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
        return await self._open_privately()

    async def take_connection(self, dispatched: DispatchedConnection) -> None:
        """Serve a connection that a different process accepted."""
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
            *(wire.leave(partial(_give_as, give, _SERVICES[service])) for service, wire in self.wires.items())
        )

    async def part_with(
        self, most: int, give: Callable[[DispatchedConnection], None], stays: Callable[[int], bool], within_s: float
    ) -> int:
        """Do ``WireServer.part_with`` for all ports; each port transfers its share of ``most``."""
        shares = {THRIFT1: most}
        if THRIFT2 in self.wires:
            first = round(most * self.wire.connections / max(1, self.connections))
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
        return sum(wire.connections for wire in self.wires.values())

    @property
    def buffered_bytes(self) -> dict[str, int]:
        """The bytes of requests and replies under way, by name of their part of the memory plan."""
        return {
            "requests": sum(wire.input_bytes for wire in self.wires.values()),
            "replies": sum(wire.output_bytes for wire in self.wires.values()),
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
            slow_requests=lambda: self.slow_log.count,
            triggers=list,
            views=serving.owner.views.view_statuses,
            memory=lambda: serving.memory_parts(self.buffered_bytes),
        )

    async def close_thrift2(self) -> None:
        """Close the Thrift 2 port.  Calls in flight are answered, or cancelled after STOP_GRACE_S."""
        if self.tls is not None:
            self.tls.handshakes.close()
        if THRIFT2 in self.wires:
            await self.wires[THRIFT2].close(STOP_GRACE_S)

    async def close(self) -> None:
        """Close all ports; calls in flight end as in ``close_thrift2``."""
        await self.wire.close(STOP_GRACE_S)
        if self._private is not None:
            self._private.close()


def take_settings(ports: ServerPorts, live: LiveSettings) -> None:
    """Have the ports take settings that change meanwhile; new connections get the certificate, if they speak TLS."""
    ports.slow_log.limit_s = live.slow_request_ms / 1_000
    for wire in ports.wires.values():
        wire.slow_after_s = ports.slow_log.limit_s
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


# ``leading.Leading`` or ``RemoteMaster``.  Its changes, alterations, region_changes, triggers, views, snapshots and
# cluster are the master's own objects, or stand for them; cluster is None if there is no other server.
MasterParts: TypeAlias = Any


class _Part:
    def __init__(self, **attributes: Any) -> None:
        """Pass the attributes of the part that this server has itself."""
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise ForwardToMaster(name)


class RemoteMaster:
    """Stands in for the master's parts in the handlers of a region server, and sends calls for them to the master.

        methods of the master      each immediately raises ``ForwardToMaster`` (``list_master_methods``)
        reads of the catalogue     run as in a standalone process, and raise ``ForwardToMaster`` when they reach the
        catalogue

    The client's message is then forwarded unchanged; this server has done nothing for it.
    """

    def __init__(self, staging: str) -> None:
        """Pass the staging folder, which all servers share, so that owners of regions can take files of a command."""
        self.changes = self.alterations = self.region_changes = self.triggers = self.views = self.cluster = _Part()
        self.view_generations = _Part()
        self.snapshots = _Part(staged=_Part(staging=Staging(staging)))


def _wire_limits(memory: MemoryPlan, config: StandaloneConfig) -> WireLimits:
    """Return the limits of each port; the ports share the memory for requests and replies."""
    ports = 2 if config.thrift2_port >= 0 else 1
    return WireLimits(
        message_bytes=memory.message_bytes,
        server_input_bytes=memory.requests // ports,
        server_output_bytes=memory.replies // ports,
    )


def list_master_methods(master: MasterParts, service: int) -> frozenset[str]:
    """Return the methods of ``service`` (THRIFT1 or THRIFT2) that go to a remote master; none if it is local."""
    if not isinstance(master, RemoteMaster):
        return frozenset()
    from columnar.cluster.method_routing import (  # a standalone server does not need the table of all methods
        METHOD_ROUTES,
        MethodRoute,
    )

    return frozenset(name for name, route in METHOD_ROUTES[service].items() if route is MethodRoute.MASTER)
