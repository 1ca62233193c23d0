"""(pure) A message as it is received: its body, its attributes and theirs by SQS's names.

Knows nothing of the store's calls.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from columnar.sqs import message_attributes
from columnar.sqs.errors import SqsError
from columnar.sqs.fields import Fields
from columnar.sqs.message_attributes import OwnFields
from columnar.sqs.message_origin import origin_of, own_headers
from columnar.sqs.queue_addresses import arn_of, message_id
from columnar.sqs.queue_attributes import KnownQueue

_NAMES: Final = frozenset(
    {
        "All", "SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp",
        "SequenceNumber", "MessageDeduplicationId", "MessageGroupId", "AWSTraceHeader", "DeadLetterQueueSourceArn",
    }
)  # fmt: skip


def sequence_number(number: int) -> str:
    return str(number).zfill(20)


def wanted_system_names(fields: Fields) -> frozenset[str]:
    """Return the system attributes that a request asks for.  Raises SqsError."""
    wanted = frozenset(fields.names("AttributeNames")) | frozenset(fields.names("MessageSystemAttributeNames"))
    unknown = wanted - _NAMES
    if unknown:
        raise SqsError("InvalidAttributeName", f"Unknown Attribute {min(unknown)[:100]}.")
    return _NAMES if "All" in wanted else wanted


def received_message(
    found: Any, queue: KnownQueue, region: str, wanted: frozenset[str], names: tuple[str, ...]
) -> dict[str, Any]:
    """Return a message of the store as ``ReceiveMessage`` gives it, with the attributes that were asked for."""
    text, shown = message_attributes.text_of_body(found.body)
    origin = origin_of(found.name, found.headers)
    headers = found.headers if origin is None else own_headers(found.headers)
    stored, own = message_attributes.attributes_of(headers)
    given = [*message_attributes.chosen(stored, names), *shown]
    message: dict[str, Any] = {
        "MessageId": message_id(origin.queue, origin.number) if origin else message_id(queue.name, int(found.id)),
        "ReceiptHandle": b64encode(found.receipt).decode(),
        "MD5OfBody": message_attributes.md5_of_body(text),
        "Body": text,
    }
    if given:
        message["MessageAttributes"] = {one.name: one.as_json() for one in given}
        message["MD5OfMessageAttributes"] = message_attributes.md5_of_attributes(given)
    values = _system_attributes(queue, found, own)
    if origin is not None:
        values["SentTimestamp"] = str(origin.number // 1_000)
        values["DeadLetterQueueSourceArn"] = arn_of(origin.queue, region)
    system = {name: value for name, value in values.items() if name in wanted}
    if system:
        message["Attributes"] = system
    return message


def _system_attributes(queue: KnownQueue, found: Any, own: OwnFields) -> dict[str, str]:
    number = int(found.id)
    values = {
        "SenderId": own.sender or "anonymous",
        "SentTimestamp": str(found.pushedMs),
        "ApproximateReceiveCount": str(found.attempts),
        "ApproximateFirstReceiveTimestamp": str(found.firstMs),
    }
    if queue.settings.fifo:
        values["SequenceNumber"] = sequence_number(number)
    given = {
        "MessageGroupId": found.group.decode("utf-8", "replace"),
        "MessageDeduplicationId": own.dedup,
        "AWSTraceHeader": own.trace,
    }
    return values | {name: value for name, value in given.items() if value}
