"""(pure) A request on its way through the port: what was asked, by whom, and the errors of its answer.

Knows nothing of bytes, sockets and stores.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from columnar.kafka.errors import KafkaError
from columnar.topics.topic_calls import TopicClient
from columnar.wire.local_calls import CallFailed

BROKER_ID: Final = 1  # of the only broker that a client is told of: the port that it has reached

Values: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Address:
    """The address at which clients reach the port."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Call:
    version: int
    fields: Values
    client: TopicClient
    client_id: str
    host: str  # of the client
    address: Address


Handler: TypeAlias = Callable[[Call], Awaitable[Values | None]]  # None: the client wants no answer

_ERRORS: Final = {
    "TableNotFoundException": KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
    "AccessDeniedException": KafkaError.TOPIC_AUTHORIZATION_FAILED,
    "IllegalArgumentException": KafkaError.INVALID_REQUEST,
    "DoNotRetryIOException": KafkaError.INVALID_REQUEST,
}


def error_of(failed: CallFailed) -> KafkaError:
    """Return the error of a call of the store as one that clients know; the usual one makes them send it again."""
    if not failed.kind:
        return KafkaError.UNKNOWN_SERVER_ERROR
    return _ERRORS.get(failed.kind, KafkaError.REQUEST_TIMED_OUT)
