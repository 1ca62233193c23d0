"""Calls of SQS in an order, and their answers without what differs each time: the same for every service of SQS.

A call is an action and its parameters; ``$url``, ``$fifo``, ``$handle`` ... stand for what earlier answers had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

COLOUR: Final = {"colour": {"DataType": "String", "StringValue": "grün"}}
MIXED: Final = {
    **COLOUR,
    "size": {"DataType": "Number.int", "StringValue": "42"},
    "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
}
BATCH: Final = [{"Id": f"m{n}", "MessageBody": f"body {n}", "MessageAttributes": COLOUR} for n in range(3)]
STEPS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("a queue is made", "CreateQueue", {"QueueName": "plain", "Attributes": {"VisibilityTimeout": "60"}}),
    ("made again as it is", "CreateQueue", {"QueueName": "plain", "Attributes": {"VisibilityTimeout": "60"}}),
    ("made again otherwise", "CreateQueue", {"QueueName": "plain", "Attributes": {"VisibilityTimeout": "61"}}),
    ("a name that is none", "CreateQueue", {"QueueName": "a b"}),
    ("an attribute out of bounds", "CreateQueue", {"QueueName": "b", "Attributes": {"MaximumMessageSize": "5"}}),
    ("an attribute that is none", "CreateQueue", {"QueueName": "c", "Attributes": {"Colour": "red"}}),
    ("a FIFO queue", "CreateQueue", {"QueueName": "first.fifo", "Attributes": {"FifoQueue": "true"}}),
    ("a FIFO queue without its suffix", "CreateQueue", {"QueueName": "d", "Attributes": {"FifoQueue": "true"}}),
    ("its URL", "GetQueueUrl", {"QueueName": "plain"}),
    ("a URL that is none", "GetQueueUrl", {"QueueName": "nowhere"}),
    ("a message", "SendMessage", {"QueueUrl": "$plain", "MessageBody": "grün"}),
    ("its receipt", "ReceiveMessage", {"QueueUrl": "$plain"}),
    ("nothing more", "ReceiveMessage", {"QueueUrl": "$plain"}),
    ("visible again", "ChangeMessageVisibility",
     {"QueueUrl": "$plain", "ReceiptHandle": "$handle", "VisibilityTimeout": 0}),
    ("received again", "ReceiveMessage", {"QueueUrl": "$plain", "AttributeNames": ["ApproximateReceiveCount"]}),
    ("a visibility out of bounds", "ChangeMessageVisibility",
     {"QueueUrl": "$plain", "ReceiptHandle": "$handle", "VisibilityTimeout": 43_201}),
    ("a receipt that is none", "DeleteMessage", {"QueueUrl": "$plain", "ReceiptHandle": "no receipt"}),
    ("deleted", "DeleteMessage", {"QueueUrl": "$plain", "ReceiptHandle": "$handle"}),
    ("attributes of a message", "SendMessage",
     {"QueueUrl": "$plain", "MessageBody": "a", "MessageAttributes": MIXED}),
    ("a trace header", "SendMessage", {
        "QueueUrl": "$plain", "MessageBody": "b",
        "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}},
    }),
    ("all of their attributes", "ReceiveMessage",
     {"QueueUrl": "$plain", "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}),
    ("a delay out of bounds", "SendMessage", {"QueueUrl": "$plain", "MessageBody": "a", "DelaySeconds": 901}),
    ("a batch", "SendMessageBatch", {"QueueUrl": "$plain", "Entries": BATCH}),
    ("a batch of nothing", "SendMessageBatch", {"QueueUrl": "$plain", "Entries": []}),
    ("a batch with an id twice", "SendMessageBatch", {"QueueUrl": "$plain", "Entries": [BATCH[0], BATCH[0]]}),
    ("a batch with an id that is none", "SendMessageBatch",
     {"QueueUrl": "$plain", "Entries": [{"Id": "a b", "MessageBody": "a"}]}),
    ("a batch of eleven", "SendMessageBatch",
     {"QueueUrl": "$plain", "Entries": [{"Id": str(n), "MessageBody": "a"} for n in range(11)]}),
    ("the batch", "ReceiveMessage",
     {"QueueUrl": "$plain", "MaxNumberOfMessages": 10, "MessageAttributeNames": ["colour"]}),
    ("too many", "ReceiveMessage", {"QueueUrl": "$plain", "MaxNumberOfMessages": 11}),
    ("too long", "ReceiveMessage", {"QueueUrl": "$plain", "WaitTimeSeconds": 21}),
    ("numbers of messages", "GetQueueAttributes",
     {"QueueUrl": "$plain",
      "AttributeNames": ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]}),
    ("an attribute of a queue that is none", "GetQueueAttributes",
     {"QueueUrl": "$plain", "AttributeNames": ["Colour"]}),
    ("attributes change", "SetQueueAttributes",
     {"QueueUrl": "$plain",
      "Attributes": {"VisibilityTimeout": "5", "DelaySeconds": "1", "MaximumMessageSize": "2048"}}),
    ("attributes", "GetQueueAttributes",
     {"QueueUrl": "$plain", "AttributeNames": ["VisibilityTimeout", "DelaySeconds", "MaximumMessageSize",
                                               "ReceiveMessageWaitTimeSeconds"]}),
    ("a message that is too large", "SendMessage", {"QueueUrl": "$plain", "MessageBody": "x" * 2_049}),
    ("without a group", "SendMessage", {"QueueUrl": "$fifo", "MessageBody": "a", "MessageDeduplicationId": "a"}),
    ("without an id", "SendMessage", {"QueueUrl": "$fifo", "MessageBody": "a", "MessageGroupId": "g"}),
    ("the first one", "SendMessage",
     {"QueueUrl": "$fifo", "MessageBody": "1", "MessageGroupId": "g", "MessageDeduplicationId": "a"}),
    ("the same id", "SendMessage",
     {"QueueUrl": "$fifo", "MessageBody": "1", "MessageGroupId": "g", "MessageDeduplicationId": "a"}),
    ("the second one", "SendMessage",
     {"QueueUrl": "$fifo", "MessageBody": "2", "MessageGroupId": "g", "MessageDeduplicationId": "b"}),
    ("the first one is received", "ReceiveMessage",
     {"QueueUrl": "$fifo", "AttributeNames": ["MessageGroupId", "MessageDeduplicationId"]}),
    ("the group waits", "ReceiveMessage", {"QueueUrl": "$fifo"}),
    ("the first one is deleted", "DeleteMessage", {"QueueUrl": "$fifo", "ReceiptHandle": "$handle"}),
    ("the second one is received", "ReceiveMessage", {"QueueUrl": "$fifo"}),
    ("an attribute without a type", "SendMessage",
     {"QueueUrl": "$plain", "MessageBody": "a", "MessageAttributes": {"a": {"StringValue": "b"}}}),
    ("an attribute without a value", "SendMessage",
     {"QueueUrl": "$plain", "MessageBody": "a", "MessageAttributes": {"a": {"DataType": "String", "StringValue": ""}}}),
    ("an attribute of a type that is none", "SendMessage",
     {"QueueUrl": "$plain", "MessageBody": "a", "MessageAttributes": {"a": {"DataType": "Text", "StringValue": "b"}}}),
    ("a body with other characters", "SendMessage", {"QueueUrl": "$plain", "MessageBody": "\x00"}),
    ("an empty body", "SendMessage", {"QueueUrl": "$plain", "MessageBody": ""}),
    ("an action of a queue that is none", "SendMessage", {"QueueUrl": "$plain-none", "MessageBody": "a"}),
)  # fmt: skip
_VOLATILE: Final = frozenset({"MessageId", "ReceiptHandle", "SequenceNumber"})
_HOST: Final = re.compile(r"http://[^/]+/[0-9]+/")


def answers(client: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and answer of each step: an error as its code and status, or what the answer says each time."""
    known: dict[str, str] = {}
    for name, action, parameters in STEPS:
        sent = {key: _filled(value, known) for key, value in parameters.items()}
        try:
            answer = getattr(client, _method_of(action))(**sent)
        except client.exceptions.ClientError as error:
            yield name, [error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]]
            continue
        if "QueueUrl" in answer and action == "CreateQueue":
            known["fifo" if answer["QueueUrl"].endswith(".fifo") else "plain"] = answer["QueueUrl"]
        for message in answer.get("Messages", ()):
            known["handle"] = message["ReceiptHandle"]
        answer.pop("ResponseMetadata")
        yield name, json.loads(json.dumps(_steady(answer), default=bytes.hex))


def _method_of(action: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", action).lower()


def _filled(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        name, dash, rest = value[1:].partition("-")
        return known[name] + dash + rest
    return value


def _steady(answer: Any) -> Any:
    """Return an answer in which ids and addresses are the same each time, and lists of messages in order."""
    if isinstance(answer, dict):
        return {key: "..." if key in _VOLATILE else _steady(value) for key, value in sorted(answer.items())}
    if isinstance(answer, list):
        return sorted(map(_steady, answer), key=lambda one: str(one.get("Body", "")) + str(one.get("Id", "")))
    return _HOST.sub("http://HOST/ACCOUNT/", answer) if isinstance(answer, str) else answer
