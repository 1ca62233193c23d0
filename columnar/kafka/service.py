"""The Kafka port of a process, put together: its handlers on the process's Thrift service, and the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from columnar.coordination.lease_gate import LeaseGate
from columnar.kafka.call import Address
from columnar.kafka.group_handlers import GroupHandlers
from columnar.kafka.record_handlers import RecordHandlers
from columnar.kafka.requests import KafkaRequests
from columnar.kafka.server import KafkaServer
from columnar.kafka.topic_handlers import TopicHandlers
from columnar.topics.topic_service import TopicService
from columnar.wire.connection_table import WireLimits
from columnar.wire.local_calls import LocalService

if TYPE_CHECKING:
    from columnar.wire.tls_protocol import Tls


def make_server(
    service: LocalService,
    limits: WireLimits,
    cluster_id: str,
    new_partitions: int,
    *,
    advertised: str,
    tls: Tls | None,
    gate: LeaseGate | None,
) -> KafkaServer:
    """Return a server that does not listen yet; ``advertised`` is HOST:PORT, or "" for what clients connect to."""
    topics = TopicService(service)
    requests = KafkaRequests(
        {
            **RecordHandlers(topics).handlers,
            **TopicHandlers(topics, cluster_id, new_partitions).handlers,
            **GroupHandlers(topics, service).handlers,
        }
    )
    return KafkaServer(requests, limits, advertised=address_in(advertised), tls=tls, gate=gate)


def address_in(text: str) -> Address | None:
    """Return the address of HOST:PORT, where an IPv6 host may be in brackets; None for ""."""
    if not text:
        return None
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port))
