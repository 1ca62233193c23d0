"""The listening server of the Kafka port.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from columnar.coordination.lease_gate import LeaseGate
from columnar.kafka.call import Address
from columnar.kafka.connection import KafkaConnection
from columnar.kafka.requests import KafkaRequests
from columnar.wire.connection_server import ConnectionServer
from columnar.wire.connection_table import ConnectionTable, WireLimits

if TYPE_CHECKING:
    from columnar.wire.tls_protocol import Tls

FRAME_BYTES: Final = 16 * 1024 * 1024  # of a request: batches for several partitions
_NOWHERE: Final = ("127.0.0.1", 0)


class KafkaServer(ConnectionServer):
    """Serves ``requests`` on one port, on the running loop.

    ``advertised`` is the address that clients are told to connect to; None: the one that they have connected to.
    """

    def __init__(
        self,
        requests: KafkaRequests,
        limits: WireLimits,
        *,
        advertised: Address | None = None,
        tls: Tls | None = None,
        gate: LeaseGate | None = None,
    ) -> None:
        super().__init__(ConnectionTable(limits, gate), tls)
        self.requests = requests
        self.frame_bytes = min(FRAME_BYTES, limits.message_bytes)
        self._advertised = advertised

    def address_of(self, transport: asyncio.BaseTransport) -> Address:
        """Return the address that the client of a connection is told."""
        if self._advertised is not None:
            return self._advertised
        name = transport.get_extra_info("sockname") or _NOWHERE
        return Address(name[0], name[1])

    def _make_connection(self) -> KafkaConnection:
        return KafkaConnection(self)
