"""The requests that the port serves: the bytes of one to its handler, and the handler's values to the answer.

A request in a version that is not served ends the connection, as Kafka does: nobody knows the form of an answer.  An
ApiVersions request is answered with UNSUPPORTED_VERSION in version 0, which every client reads.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from columnar.kafka.call import Address, Call, Handler, Values
from columnar.kafka.codec import BadMessage, Head, answer_frame, read_fields
from columnar.kafka.errors import KafkaError
from columnar.kafka.schemas import API_VERSIONS, APIS, PRODUCE
from columnar.topics.topic_calls import TopicClient

_VERSIONS: Final = [{"number": one.number, "first": one.first, "last": one.last} for one in APIS.values()]


class KafkaRequests:
    def __init__(self, handlers: Mapping[int, Handler]) -> None:
        """Pass a handler for each API of ``schemas.APIS`` but ApiVersions."""
        self._handlers = {**handlers, API_VERSIONS.number: _list_versions}
        assert self._handlers.keys() == APIS.keys(), "each API that is announced has a handler"

    async def answer(
        self, frame: bytes, head: Head, client: TopicClient, host: str, address: Address
    ) -> bytearray | None:
        """Return the frame of the answer; None: the client wants none.  Raises BadMessage."""
        api = APIS.get(head.api)
        if api is None or not api.serves(head.version):
            if head.api == API_VERSIONS.number:
                values: Values = {"error": KafkaError.UNSUPPORTED_VERSION, "apis": _VERSIONS}
                return answer_frame(API_VERSIONS, 0, head.correlation, values)
            name = api.name if api is not None else f"API {head.api}"
            raise BadMessage(f"{name} is not served in version {head.version}")
        fields = read_fields(api, head.version, frame, head.at)
        call = Call(head.version, fields, client, head.client, host, address)
        answered = await self._handlers[head.api](call)
        return answer_frame(api, head.version, head.correlation, answered) if answered is not None else None


def may_overlap(head: Head) -> bool:
    """Return whether a request may begin before the one before it is answered, if that may do so, too."""
    return head.api == PRODUCE.number


async def _list_versions(_call: Call) -> Values:
    return {"apis": _VERSIONS}
