"""The actions of SQS on queues: create, find, list, purge, delete, and their attributes.

A queue that was made or used by other means is there for SQS, too, with the defaults of SQS for what the store does not
know; ``CreateQueue`` then gives it its attributes.

Owned by the loop.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from columnar.sqs.errors import SqsError, invalid_value
from columnar.sqs.message_actions import Call, lease_of
from columnar.sqs.queue_addresses import FIFO_SUFFIX, arn_of, new_name, queue_named, queue_of_url, url_of
from columnar.sqs.queue_attributes import (
    Given,
    KnownQueue,
    OwnAttributes,
    allows_source,
    check_fifo,
    check_given,
    wanted_names,
)
from columnar.sqs.store_queues import StoreQueues
from columnar.wire.idl import columnar

RETENTION_S: Final = 345_600  # of a queue that SQS makes without a period
VISIBILITY_S: Final = 30
MOST_LISTED: Final = 1_000
DROPS: Final = 10  # attempts to remove a queue to which others send meanwhile


class QueueActions:
    def __init__(self, queues: StoreQueues) -> None:
        self._queues = queues
        self.actions: Mapping[str, Callable[[Call], Awaitable[dict[str, Any]]]] = {
            "CreateQueue": self._create,
            "DeleteQueue": self._delete,
            "GetQueueUrl": self._find_url,
            "ListQueues": self._list,
            "ListDeadLetterSourceQueues": self._list_sources,
            "PurgeQueue": self._purge,
            "GetQueueAttributes": self._attributes,
            "SetQueueAttributes": self._set_attributes,
        }

    def _url(self, call: Call, queue: bytes) -> str:
        return url_of(queue, call.host, is_tls=call.is_tls)

    async def _known_now(self, call: Call) -> KnownQueue:
        """Return the queue of a request as it is now.  Raises SqsError if it is not there."""
        queue = queue_of_url(call.fields.required_text("QueueUrl"))
        self._queues.forget_queue(queue)
        return await self._queues.known(call.client, queue)

    # --- create ------------------------------------------------------------------------------------------

    async def _create(self, call: Call) -> dict[str, Any]:
        fields = call.fields
        name = fields.required_text("QueueName")
        given = check_given(fields.attributes("Attributes"))
        if fields.structures("tags"):
            raise SqsError("UnsupportedOperation", "Queues of this store have no tags; leave them out")
        if given.is_fifo is False and not name.endswith(FIFO_SUFFIX):
            raise SqsError("InvalidAttributeName", "Unknown Attribute FifoQueue: leave it out for a standard queue.")
        is_fifo = bool(given.is_fifo)
        queue = new_name(name, is_fifo=is_fifo).encode()
        check_fifo(given, is_fifo=is_fifo)
        found = await self._queues.find_queue(call.client, queue)
        if found is not None and found.attributes.created_s:
            _check_same(found, given, is_fifo=is_fifo)
        else:
            await self._make(call, queue, given, is_fifo=is_fifo)
        return {"QueueUrl": self._url(call, queue)}

    async def _make(self, call: Call, queue: bytes, given: Given, *, is_fifo: bool) -> None:
        """Give the queue its settings, then the cell that says that it is made: a kill between them repeats both."""
        await self._check_target(call, queue, given, is_fifo=is_fifo)
        await self._configure(call, queue, _settings_of(given, is_fifo=is_fifo, is_new=True))

        def change(found: KnownQueue | None) -> OwnAttributes | None:
            if found is not None and found.attributes.created_s:  # another client made it meanwhile
                _check_same(found, given, is_fifo=is_fifo)
                return None
            return OwnAttributes().changed(given.others, self._queues.now_s)

        await self._queues.change_attributes(call.client, queue, change)

    async def _check_target(self, call: Call, queue: bytes, given: Given, *, is_fifo: bool) -> None:
        """Refuse a dead-letter queue that is not there, is of another kind, or takes no messages of this queue."""
        if given.redrive is None:
            return
        target = await self._queues.find_queue(call.client, given.redrive.dead_to)
        why = ""
        if target is None:
            why = "Dead letter target does not exist."
        elif target.settings.fifo != is_fifo:
            why = "Dead-letter queue must be same type of queue as the source."
        elif target.name == queue or not allows_source(target.attributes.values.get("RedriveAllowPolicy", ""), queue):
            why = "Queue does not allow this queue as a source of dead letters."
        if why:
            raise invalid_value(f"Value for parameter RedrivePolicy is invalid. Reason: {why}")

    async def _configure(self, call: Call, queue: bytes, settings: Any) -> None:
        try:
            await self._queues.call_prepared(call.client, "columnarQueueConfigure", queue, settings)
        except SqsError as error:
            if error.name != "InvalidParameterValue":
                raise
            raise SqsError("InvalidAttributeValue", error.text) from None
        self._queues.forget_queue(queue)

    # --- find, list, purge, delete -------------------------------------------------------------------------

    async def _find_url(self, call: Call) -> dict[str, Any]:
        queue = queue_named(call.fields.required_text("QueueName"))
        await self._queues.known(call.client, queue)
        return {"QueueUrl": self._url(call, queue)}

    async def _list(self, call: Call) -> dict[str, Any]:
        prefix = call.fields.optional_text("QueueNamePrefix").encode()
        most = call.fields.number("MaxResults", 1, MOST_LISTED)
        after = _after_of(call.fields.optional_text("NextToken"))
        names = await self._queues.list_names(call.client, prefix, after, most or MOST_LISTED)
        answer: dict[str, Any] = {"QueueUrls": [self._url(call, name) for name in names]} if names else {}
        if most is not None and len(names) == most:
            answer["NextToken"] = b64encode(names[-1]).decode()
        return answer

    async def _list_sources(self, call: Call) -> dict[str, Any]:
        queue = await self._known_now(call)
        sources = await self._queues.list_sources(call.client, queue.name)
        return {"queueUrls": [self._url(call, one) for one in sources]}

    async def _purge(self, call: Call) -> dict[str, Any]:
        queue = await self._known_now(call)
        await self._queues.call_store(call.client, "columnarQueuePurge", queue.name)
        return {}

    async def _delete(self, call: Call) -> dict[str, Any]:
        queue = await self._known_now(call)
        for _ in range(DROPS):
            is_gone = await self._queues.call_store(call.client, "columnarQueueDrop", queue.name)
            self._queues.forget_queue(queue.name)
            if is_gone:
                return {}
        raise SqsError("RequestThrottled", "others send to this queue all the time; stop them, then delete it")

    # --- attributes ----------------------------------------------------------------------------------------

    async def _attributes(self, call: Call) -> dict[str, Any]:
        wanted = wanted_names(call.fields.names("AttributeNames"))
        known = await self._known_now(call)
        values = _attributes_of(known, call.region)
        if any(name.startswith("Approximate") for name in wanted):
            stats = await self._queues.call_store(call.client, "columnarQueueStats", known.name)
            values |= {
                "ApproximateNumberOfMessages": str(max(0, stats.ready)),
                "ApproximateNumberOfMessagesNotVisible": str(stats.inFlight),
                "ApproximateNumberOfMessagesDelayed": str(stats.delayed),
            }
        found = {name: value for name, value in values.items() if name in wanted}
        return {"Attributes": found} if found else {}

    async def _set_attributes(self, call: Call) -> dict[str, Any]:
        given = check_given(call.fields.attributes("Attributes"))
        known = await self._known_now(call)
        if given.is_fifo is not None and given.is_fifo != known.settings.fifo:
            raise SqsError("InvalidAttributeName", "Unknown Attribute FifoQueue: a queue has it from its creation on.")
        check_fifo(given, is_fifo=known.settings.fifo)
        await self._check_target(call, known.name, given, is_fifo=known.settings.fifo)
        settings = _settings_of(given, is_fifo=None, is_new=False)
        if settings != columnar.QueueSettings():
            await self._configure(call, known.name, settings)

        def change(found: KnownQueue | None) -> OwnAttributes:
            before = found.attributes if found is not None else OwnAttributes()
            return before.changed(given.others, self._queues.now_s)

        await self._queues.change_attributes(call.client, known.name, change)
        return {}


def _after_of(token: str) -> bytes:
    """Return the name after which a list goes on.  Raises SqsError."""
    try:
        return queue_named(b64decode(token, validate=True).decode()) if token else b""
    except (NotBase64, ValueError, SqsError):
        raise invalid_value("Invalid or expired next token.") from None


def _settings_of(given: Given, *, is_fifo: bool | None, is_new: bool) -> Any:
    """Return the settings of the store's queue that attributes mean; a new queue has SQS's defaults."""
    visibility_s = VISIBILITY_S if given.visibility_s is None and is_new else given.visibility_s
    attempts = given.redrive.attempts if given.redrive is not None else 0 if given.ends_redrive else None
    return columnar.QueueSettings(
        fifo=is_fifo,
        leaseMs=None if visibility_s is None else lease_of(visibility_s),
        attempts=attempts,
        deadTo=given.redrive.dead_to if given.redrive is not None else b"" if given.ends_redrive else None,
        retentionS=RETENTION_S if given.retention_s is None and is_new else given.retention_s,
    )


def _attributes_of(queue: KnownQueue, region: str) -> dict[str, str]:
    """Return all attributes of a queue but the numbers of its messages."""
    attributes, settings = queue.attributes, queue.settings
    values = {
        "QueueArn": arn_of(queue.name, region),
        "CreatedTimestamp": str(attributes.created_s),
        "LastModifiedTimestamp": str(attributes.modified_s),
        "VisibilityTimeout": str(settings.lease_ms // 1_000),
        "MessageRetentionPeriod": str(settings.retention_s),
        "SqsManagedSseEnabled": "false",
    }
    for name in ("DelaySeconds", "MaximumMessageSize", "ReceiveMessageWaitTimeSeconds"):
        values[name] = str(attributes.number(name))
    if settings.fifo:
        values["FifoQueue"] = "true"
        for name in ("ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"):
            values[name] = attributes.choice(name)
    if settings.dead_to:
        values["RedrivePolicy"] = _policy_text(settings.dead_to, settings.attempts, region)
    if allow := attributes.values.get("RedriveAllowPolicy"):
        values["RedriveAllowPolicy"] = allow
    return values


def _check_same(found: KnownQueue, given: Given, *, is_fifo: bool) -> None:
    """Refuse to make a queue again with other attributes.  Raises SqsError."""
    region = "any"  # of both policies
    values = _attributes_of(found, region)
    wanted = dict(given.others)
    if given.visibility_s is not None:
        wanted["VisibilityTimeout"] = str(given.visibility_s)
    if given.retention_s is not None:
        wanted["MessageRetentionPeriod"] = str(given.retention_s)
    if given.redrive is not None:
        wanted["RedrivePolicy"] = _policy_text(given.redrive.dead_to, given.redrive.attempts, region)
    if is_fifo != found.settings.fifo:
        wanted["FifoQueue"] = "true" if is_fifo else ""
    other = next((name for name, value in wanted.items() if value != values.get(name, "")), None)
    if other is not None:
        text = f"A queue already exists with the same name and a different value for attribute {other}"
        raise SqsError("QueueNameExists", text)


def _policy_text(dead_to: bytes, attempts: int, region: str) -> str:
    policy = {"deadLetterTargetArn": arn_of(dead_to, region), "maxReceiveCount": attempts}
    return json.dumps(policy, separators=(",", ":"))
