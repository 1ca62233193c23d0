"""(pure) A message that is sent: what SQS allows in it, and the message of the store that it becomes.

Knows nothing of the store's calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from columnar.sqs import message_attributes
from columnar.sqs.errors import invalid_value, missing
from columnar.sqs.fields import Fields
from columnar.sqs.message_attributes import Attribute, OwnFields
from columnar.sqs.queue_attributes import KnownQueue
from columnar.wire.idl import columnar

DEDUP_MS: Final = 5 * 60 * 1_000
LONGEST_DELAY_S: Final = 900
LONGEST_ID: Final = 128  # of a group, and of a deduplication id


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that was checked and is to be pushed."""

    message: Any
    size_bytes: int  # as SQS counts it
    answer: dict[str, Any]  # but for what the push gives it


def check_message(fields: Fields, queue: KnownQueue, access_key: str) -> SentMessage:
    """Return a message of a request or of an entry.  Raises SqsError."""
    text = fields.required_text("MessageBody")
    body = message_attributes.checked_body(text)
    attributes = message_attributes.read_attributes(fields.structures("MessageAttributes"))
    trace = _trace_of(fields)
    size = len(body) + sum(one.size_bytes for one in attributes)
    most = queue.attributes.number("MaximumMessageSize")
    if size > most:
        raise invalid_value(f"One or more parameters are invalid. Reason: Message must be shorter than {most} bytes.")
    group = _id_of(fields, "MessageGroupId")
    dedup = _dedup_of(fields, queue, group, body)
    delay_s = fields.number("DelaySeconds", 0, LONGEST_DELAY_S)
    if queue.settings.fifo and delay_s:
        raise invalid_value(f"Value {delay_s} for parameter DelaySeconds is invalid. Reason: The request include "
                            "parameter that is not valid for this queue type.")  # fmt: skip
    if delay_s is None:
        delay_s = queue.attributes.number("DelaySeconds")
    system = [Attribute("AWSTraceHeader", "String", trace.encode())] if trace else []
    own = OwnFields(dedup, trace, access_key)
    message = columnar.QueueMessage(
        body=body,
        name=_name_of(queue, group, dedup),
        group=group.encode(),
        delayMs=delay_s * 1_000,
        headers=message_attributes.headers_of(attributes, own),
        nameMs=DEDUP_MS if dedup else 0,
    )
    answer: dict[str, Any] = {"MD5OfMessageBody": message_attributes.md5_of_body(text)}
    if attributes:
        answer["MD5OfMessageAttributes"] = message_attributes.md5_of_attributes(attributes)
    if system:
        answer["MD5OfMessageSystemAttributes"] = message_attributes.md5_of_attributes(system)
    return SentMessage(message, size, answer)


def _id_of(fields: Fields, name: str) -> str:
    found = fields.optional_text(name)
    if len(found) > LONGEST_ID or not (found.isascii() and found.isprintable()) or " " in found:
        text = f"can only include alphanumeric and punctuation characters. 1 to {LONGEST_ID} in length"
        raise invalid_value(f"Value {found[:200]} for parameter {name} is invalid. Reason: {name} {text}.")
    return found


def _dedup_of(fields: Fields, queue: KnownQueue, group: str, body: bytes) -> str:
    """Return the deduplication id, "" in a standard queue.  Raises SqsError."""
    dedup = _id_of(fields, "MessageDeduplicationId")
    if not queue.settings.fifo:
        if dedup:
            raise invalid_value(f"Value {dedup} for parameter MessageDeduplicationId is invalid. Reason: The request "
                                "include parameter that is not valid for this queue type.")  # fmt: skip
        return ""
    if not group:
        raise missing("MessageGroupId")
    if dedup:
        return dedup
    if queue.attributes.choice("ContentBasedDeduplication") == "false":
        raise invalid_value("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId "
                            "provided explicitly")  # fmt: skip
    return sha256(body).hexdigest()


def _name_of(queue: KnownQueue, group: str, dedup: str) -> bytes:
    """Return the name that keeps a second message with the deduplication id away, in the queue or in its group."""
    if not dedup:
        return b""
    scope = group if queue.attributes.choice("DeduplicationScope") == "messageGroup" else ""
    return sha256(f"{scope}\x00{dedup}".encode()).hexdigest().encode()


def _trace_of(fields: Fields) -> str:
    sent = fields.structures("MessageSystemAttributes")
    unknown = sent.keys() - {"AWSTraceHeader"}
    if unknown:
        raise invalid_value(f"Message system attribute name '{min(unknown)[:100]}' is invalid.")
    if not sent:
        return ""
    value = sent["AWSTraceHeader"]
    text = value.get("StringValue") if isinstance(value, dict) and value.get("DataType") == "String" else None
    if not isinstance(text, str) or not text or len(text) > 256 or not text.isascii():
        raise invalid_value("The message system attribute 'AWSTraceHeader' is a String of up to 256 characters.")
    return text
