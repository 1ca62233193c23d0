"""The port of SQS: a request of the JSON protocol to its action, the action's answer to a response.

    POST / or POST /ACCOUNT/NAME      X-Amz-Target: AmazonSQS.SendMessage      Content-Type: application/x-amz-json-1.0

Signatures are not checked: whoever reaches the port may do everything, as at the other ports of a store without users.

Owned by the loop.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from random import getrandbits
from typing import Any, Final

from columnar.errors import CallerError, ColumnarError
from columnar.runtime.long_waits import LongWaits
from columnar.sqs.errors import SqsError
from columnar.sqs.fields import Fields, read_object
from columnar.sqs.message_actions import Call, MessageActions
from columnar.sqs.move_actions import MoveActions
from columnar.sqs.queue_actions import QueueActions
from columnar.sqs.queue_addresses import signer_of
from columnar.sqs.store_queues import Client, StoreQueues
from columnar.wire.http.exchange import Request, Response
from columnar.wire.local_calls import LocalService

_log = logging.getLogger(__name__)

BODY_BYTES: Final = 8 * 1024 * 1024  # a batch of 1 MiB, each character escaped in JSON
JSON_TYPE: Final = "application/x-amz-json-1.0"
_TARGET: Final = "AmazonSQS."
_NOT_BUILT: Final = {
    "AddPermission": "rights are the store's own, see docs/rights.md",
    "RemovePermission": "rights are the store's own, see docs/rights.md",
    "TagQueue": "queues of this store have no tags",
    "UntagQueue": "queues of this store have no tags",
    "ListQueueTags": "queues of this store have no tags",
}

Action = Callable[[Call], Awaitable[dict[str, Any]]]


class SqsEndpoint:
    """The handler of the port."""

    def __init__(self, service: LocalService, waits: LongWaits, *, is_tls: bool = False) -> None:
        queues = StoreQueues(service)
        self._is_tls = is_tls
        self._moves = MoveActions(queues)
        self._actions: Mapping[str, Action] = {
            **MessageActions(queues, waits).actions,
            **QueueActions(queues).actions,
            **self._moves.actions,
        }

    async def close(self) -> None:
        """End the moves of messages that run in this server."""
        await self._moves.close()

    async def __call__(self, request: Request) -> Response:
        try:
            answer = await self._action_of(request)(self._call_of(request))
        except Exception as error:  # noqa: BLE001 - the server's loop: every fault is answered in SQS's form
            return _failed(request, error)
        return _response(200, answer)

    def _action_of(self, request: Request) -> Action:
        """Return the action that a request names.  Raises SqsError."""
        target = request.headers.get("x-amz-target", "")
        if request.method != "POST" or not target:
            text = "POST a request of the JSON protocol, with X-Amz-Target; the older query protocol is not served"
            raise SqsError("UnknownOperation", text)
        name = target.removeprefix(_TARGET)
        action = self._actions.get(name) if target.startswith(_TARGET) else None
        if action is None:
            why = _NOT_BUILT.get(name, "SQS has no such action")
            kind = "UnsupportedOperation" if name in _NOT_BUILT else "UnknownOperation"
            raise SqsError(kind, f"{name[:100]} is not possible: {why}")
        return action

    def _call_of(self, request: Request) -> Call:
        access_key, region = signer_of(request.headers.get("authorization", ""))
        client = Client(request.peer, request.user, request.has_gone)
        host = request.headers.get("host", "")
        return Call(Fields(read_object(request.body)), client, host, self._is_tls, region, access_key)


def _failed(request: Request, error: Exception) -> Response:
    found = _as_sqs(error)
    if found.name == "InternalError":
        _log.error("%s: %s failed", request.peer, request.headers.get("x-amz-target", "")[:100], exc_info=error)
    form = found.form
    body = {"__type": form.type, "message": found.text}
    return _response(form.status, body, (("x-amzn-query-error", form.query_error),))


def _as_sqs(error: Exception) -> SqsError:
    if isinstance(error, SqsError):
        return error
    if isinstance(error, ColumnarError):
        name = "InvalidParameterValue" if isinstance(error, CallerError) else "ServiceUnavailable"
        return SqsError(name, error.text)
    return SqsError("InternalError", "a fault of the program, see the server's log")


def _response(status: int, answer: Mapping[str, Any], headers: tuple[tuple[str, str], ...] = ()) -> Response:
    named = (("Content-Type", JSON_TYPE), ("x-amzn-RequestId", f"{getrandbits(128):032x}"), *headers)
    return Response(status, named, json.dumps(answer).encode())
