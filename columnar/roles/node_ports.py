"""The client ports of a node, and the dispatch of each connection to one of its servers; none without servers.

A server takes connections from its ``TakesConnections`` until it stops or ends.  A server that leaves returns its
connections, which are dispatched anew.

Owned by the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from columnar.config import StandaloneConfig
from columnar.connections.connection_dispatcher import ConnectionDispatcher, ConnectionRebalancer
from columnar.connections.listeners import Port, ReturnedConnections
from columnar.coordination.processes import Beat, Child
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import HandoverResult
from columnar.roles.ports import THRIFT1_SERVICE, THRIFT2_SERVICE
from columnar.roles.protocol_ports import KAFKA_SERVICE, SQS_SERVICE
from columnar.roles.server_processes import ServerProcesses
from columnar.wire.sockets import ClientSocket, open_client_socket

_log = logging.getLogger(__name__)

_OPTIONS: Final = {
    THRIFT1_SERVICE: "--port",
    THRIFT2_SERVICE: "--thrift2-port",
    SQS_SERVICE: "--sqs-port",
    KAFKA_SERVICE: "--kafka-port",
}


class NodePorts:
    def __init__(self, config: StandaloneConfig, processes: ServerProcesses, *, has_servers: bool) -> None:
        self._has_servers = has_servers
        self._config = config
        self._processes = processes
        self._dispatcher = ConnectionDispatcher(self._taking)
        self._rebalancer = ConnectionRebalancer(
            self._dispatcher.open, self._taking, processes.request_server
        )  # fmt: skip
        self._ports: dict[bytes, Port] = {}  # by service
        self._client_socket: ClientSocket | None = None  # of ``--socket``, as is the next
        self._socket: Port | None = None
        self._returns: dict[Incarnation, ReturnedConnections] = {}
        self._ready: set[Incarnation] = set()  # servers that take connections while they live
        self.are_open = False

    # --- ports ---------------------------------------------------------------------------------------

    def bind(self) -> None:
        """Bind the ports.  Call before servers choose free ports of their own."""
        if not self._has_servers:
            return
        config = self._config
        wanted = {
            THRIFT1_SERVICE: config.port,
            THRIFT2_SERVICE: config.thrift2_port,
            SQS_SERVICE: config.protocols.sqs_port,
            KAFKA_SERVICE: config.protocols.kafka_port,
        }
        for service, port in wanted.items():
            if port >= 0:
                option = _OPTIONS[service]
                self._ports[service] = Port.bound(service, config.host, port, option, self._dispatcher)
        if self._config.rights.socket:
            self._client_socket = open_client_socket(self._config.rights.socket)
            self._socket = Port(THRIFT1_SERVICE, [self._client_socket.listening], self._dispatcher)

    def open_ports(self) -> None:
        for service, port in self._ports.items():
            port.listen(self._config.host, _OPTIONS[service])
        for port in self._ports.values():
            port.open()
        if self._socket is not None:
            self._socket.open()
        self.are_open = True

    def close_ports(self) -> None:
        for port in self._ports.values():
            port.close()
        if self._client_socket is not None:
            self._client_socket.remove_path()
        if self._socket is not None:
            self._socket.close()

    @property
    def port(self) -> int | None:
        """Return the port of clients, or None for a node without servers."""
        return self._port_of(THRIFT1_SERVICE)

    @property
    def thrift2_port(self) -> int | None:
        return self._port_of(THRIFT2_SERVICE)

    @property
    def sqs_port(self) -> int | None:
        return self._port_of(SQS_SERVICE)

    @property
    def kafka_port(self) -> int | None:
        return self._port_of(KAFKA_SERVICE)

    def _port_of(self, service: bytes) -> int | None:
        return self._ports[service].port if service in self._ports else None

    # --- servers -------------------------------------------------------------------------------------

    def joined(self, server: Incarnation) -> None:
        self._dispatcher.open.joined(server)
        channel = self._processes.living[server].child.connection_channel.dup()
        count_returned = partial(self._dispatcher.open.count_returned, server)
        self._returns[server] = ReturnedConnections(
            channel, self._dispatcher, count_returned, lambda: self._returned(server)
        )
        self._returns[server].open()

    def _returned(self, server: Incarnation) -> None:
        """Forget the listener of a server that returns no more connections."""
        self._returns.pop(server, None)

    def takes_connections(self, server: Incarnation) -> None:
        self._ready.add(server)

    @property
    def ready(self) -> frozenset[Incarnation]:
        return frozenset(self._taking())

    def _taking(self) -> Mapping[Incarnation, Child]:
        """Return the servers that take connections of clients, with their processes."""
        return dict(self._taking_now())

    def _taking_now(self) -> Iterator[tuple[Incarnation, Child]]:
        for one, server in self._processes.living.items():
            if one in self._ready and not server.is_stopping:
                yield one, server.child

    def heard(self, server: Incarnation, beat: Beat) -> None:
        self._dispatcher.open.said(server, beat)
        if not self._config.tls_cert:  # TLS connections cannot be transferred
            self._rebalancer.tick()

    def connections(self, server: Incarnation) -> int:
        return self._dispatcher.open.of(server)

    def handover_ended(self, server: Incarnation, result: HandoverResult) -> None:
        log = _log.warning if result.lost or result.scanners else _log.info
        text = "server %s hands over: %d connections go on at others, %d are closed; lost: %d, and %d open scanners"
        log(text, server, result.given, result.closed, result.lost, result.scanners)
        self._dispatcher.open.ended(server)

    def forget_server(self, server: Incarnation) -> None:
        lost = self._dispatcher.open.of(server)
        if lost and not self._processes.is_stopping:
            _log.warning("%d connections have ended with server %s", lost, server)
        self._dispatcher.open.ended(server)
        self._ready.discard(server)

    def close(self) -> None:
        """Close the ports; connections on their way back are closed too."""
        self.close_ports()
        for returned in list(self._returns.values()):  # each removes itself
            returned.close()
        self._rebalancer.close()
        self._dispatcher.close()
