"""The ports of a server that speak protocols of others, beside Thrift: those of SQS and of Kafka.

Each stands on the Thrift 1 service of its process, which need not know of it.  A store without such a port loads none
of its modules.  Owned by one event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from columnar.config import StandaloneConfig
from columnar.errors import HostError
from columnar.runtime.long_waits import LongWaits

if TYPE_CHECKING:
    from columnar.coordination.connection_channel import DispatchedConnection
    from columnar.kafka.server import KafkaServer
    from columnar.sqs.endpoint import SqsEndpoint
    from columnar.wire.browsers import Visitors
    from columnar.wire.connection_table import WireLimits
    from columnar.wire.http.server import HttpServer
    from columnar.wire.server import WireServer
    from columnar.wire.tls_protocol import Tls

SQS_SERVICE: Final = b"3"  # queues by the protocol of SQS, in ``coordination.connection_channel``
KAFKA_SERVICE: Final = b"4"  # topics by the protocol of Kafka


class ProtocolPorts:
    def __init__(self, config: StandaloneConfig, cluster_id: str) -> None:
        self._config = config
        self._cluster_id = cluster_id
        self._servers: dict[bytes, HttpServer | KafkaServer] = {}  # by service
        self._endpoints: list[SqsEndpoint] = []  # behind them
        self.waits = LongWaits()  # of the clients of all ports; set before ``make``

    def make(
        self, wire: WireServer, connection_id: int, limits: WireLimits, tls: Tls | None, visitors: Visitors
    ) -> None:
        """Make the ports of the settings; ``connection_id`` is that of all their calls of ``wire``."""
        if self._config.protocols.sqs_port >= 0:
            self._make_sqs(wire, connection_id, limits, tls, visitors)
        if self._config.protocols.kafka_port >= 0:
            self._make_kafka(wire, connection_id, limits, tls)

    def _make_sqs(
        self, wire: WireServer, connection_id: int, limits: WireLimits, tls: Tls | None, visitors: Visitors
    ) -> None:
        from columnar.sqs.endpoint import BODY_BYTES, SqsEndpoint
        from columnar.wire.http.server import HttpServer
        from columnar.wire.local_calls import LocalService

        endpoint = SqsEndpoint(LocalService(wire, connection_id), self.waits, is_tls=tls is not None)
        bounded = replace(limits, message_bytes=min(limits.message_bytes, BODY_BYTES))
        self._endpoints.append(endpoint)
        self._servers[SQS_SERVICE] = HttpServer(
            endpoint, bounded, tls=tls, visitors=visitors, gate=wire.table.gate, loop_budget=wire.loop_budget
        )

    def _make_kafka(self, wire: WireServer, connection_id: int, limits: WireLimits, tls: Tls | None) -> None:
        from columnar.kafka.service import make_server
        from columnar.wire.local_calls import LocalService

        config = self._config.protocols
        self._servers[KAFKA_SERVICE] = make_server(
            LocalService(wire, connection_id), limits, self._cluster_id, config.kafka_partitions,
            advertised=config.kafka_advertise, tls=tls, gate=wire.table.gate,
        )  # fmt: skip

    async def listen(self) -> None:
        """Raises HostError if a port is taken."""
        host, config = self._config.host, self._config.protocols
        wanted = {SQS_SERVICE: (config.sqs_port, "--sqs-port"), KAFKA_SERVICE: (config.kafka_port, "--kafka-port")}
        for service, server in self._servers.items():
            port, option = wanted[service]
            try:
                await server.start(host, port)
            except OSError as error:
                text = f"cannot listen on {host}:{port}: {error.strerror}; choose another with {option}"
                raise HostError(text) from error

    async def take_connection(self, dispatched: DispatchedConnection) -> bool:
        """Serve a connection that a different process accepted; return False if it is for no port of these."""
        server = self._servers.get(dispatched.service)
        if server is not None:
            await server.take_connection(dispatched.connection, dispatched.read)
        return server is not None

    async def leave_clients(self) -> None:
        """Close each connection after its next answer.  Returns when none is left."""
        self.waits.end_waits()
        await asyncio.gather(*(server.leave() for server in self._servers.values()))

    async def close(self, grace_s: float) -> None:
        self.waits.end_waits()
        for server in self._servers.values():
            await server.close(grace_s)
        for endpoint in self._endpoints:
            await endpoint.close()

    @property
    def sqs_port(self) -> int | None:
        """The port of SQS; None if it is not served."""
        return self._port_of(SQS_SERVICE)

    @property
    def kafka_port(self) -> int | None:
        """The port of Kafka; None if it is not served."""
        return self._port_of(KAFKA_SERVICE)

    def _port_of(self, service: bytes) -> int | None:
        return self._servers[service].port if service in self._servers else None

    @property
    def connections(self) -> int:
        return sum(len(server.table) for server in self._servers.values())

    @property
    def input_bytes(self) -> int:
        return sum(server.table.input_bytes for server in self._servers.values())

    @property
    def output_bytes(self) -> int:
        return sum(server.table.output_bytes for server in self._servers.values())
