"""Requests of SQS that no good client sends: good ones with fields that are wrong, missing, huge or deep."""

from __future__ import annotations

import json
import random
from typing import Any, Final

from tests.support.sqs_scenario import STEPS

ACTIONS: Final = [
    *sorted({action for _, action, _ in STEPS}),
    "ListQueues", "PurgeQueue", "DeleteQueue", "DeleteMessageBatch", "ChangeMessageVisibilityBatch",
    "StartMessageMoveTask", "ListMessageMoveTasks", "CancelMessageMoveTask", "TagQueue", "AddPermission",
]  # fmt: skip
_WORDS: Final = (
    "", "a", "a b", "\x00", "ü", "\ud800", "x" * 300, "y" * 70_000, "All", ".*", "-1", "1e99", "9" * 400, "true",
    "arn:aws:sqs:us-east-1:000000000000:plain", "AAAAAAAAAAAAAAAAAAAAAA==", "AAZhVRa2V28ABmFVFrZhaQ==",
    '{"deadLetterTargetArn": 5}', "[" * 5_000, "http://127.0.0.1/000000000000/plain",
)  # fmt: skip
_FIELDS: Final = (
    "QueueUrl", "QueueName", "Attributes", "Entries", "MessageBody", "MessageAttributes", "MessageSystemAttributes",
    "ReceiptHandle", "VisibilityTimeout", "WaitTimeSeconds", "DelaySeconds", "MessageGroupId", "MessageDeduplicationId",
    "AttributeNames", "MessageAttributeNames", "MaxNumberOfMessages", "Id", "DataType", "StringValue", "BinaryValue",
    "SourceArn", "DestinationArn", "MaxResults", "NextToken", "QueueNamePrefix", "TaskHandle", "RedrivePolicy", "tags",
)  # fmt: skip


def hostile_request(rng: random.Random, url: str) -> tuple[str, dict[str, str], bytes]:
    """Return path, headers and body of a request."""
    _, action, parameters = rng.choice(STEPS)
    sent: Any = json.loads(json.dumps(parameters, default=bytes.hex).replace("$plain", url).replace("$fifo", url))
    for _ in range(rng.randrange(4)):
        _spoil(rng, sent)
    action = action if rng.random() < 0.6 else rng.choice(ACTIONS)
    if sent.get("WaitTimeSeconds"):
        sent["WaitTimeSeconds"] = rng.choice([0, 21, -1, "a"])  # a wait is no test of bytes
    body = json.dumps(sent).encode()
    if rng.random() < 0.1:
        body = _spoiled_bytes(rng, body)
    headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
    if rng.random() < 0.1:
        name = rng.choice([*headers, "Authorization"])
        headers[name] = rng.choice(
            ["", "x" * 3_000, "Credential=", "AWS4-HMAC-SHA256 Credential=a/20260101/b/sqs/", "é"]
        )
    return rng.choice(["/", "/000000000000/plain", "/%00", "/a/b/c?d=e"]), headers, body


def _spoil(rng: random.Random, sent: Any) -> None:
    """Change one field, at any depth."""
    while isinstance(sent, dict | list) and sent:
        key: Any = rng.choice(list(sent)) if isinstance(sent, dict) else rng.randrange(len(sent))
        if isinstance(sent[key], dict | list) and sent[key] and rng.random() < 0.6:
            sent = sent[key]
            continue
        how = rng.random()
        if how < 0.2:
            del sent[key]
        elif how < 0.4 and isinstance(sent, dict):
            sent[rng.choice(_FIELDS)] = _value(rng, 0)
        else:
            sent[key] = _value(rng, 0)
        return


def _value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(9 if depth < 4 else 6)
    if kind < 3:
        return rng.choice(_WORDS)
    if kind < 6:
        return rng.choice([None, True, False, 0, -1, 1, 10, 1 << 70, 1.5, 1e300])
    if kind < 7:
        return [_value(rng, depth + 1) for _ in range(rng.choice([0, 1, 3, 12]))]
    return {rng.choice([*_FIELDS, *_WORDS]): _value(rng, depth + 1) for _ in range(rng.choice([0, 1, 3, 12]))}


def _spoiled_bytes(rng: random.Random, body: bytes) -> bytes:
    how = rng.randrange(5)
    if how == 0:
        return body[: rng.randrange(len(body) + 1)]
    if how == 1:
        return rng.randbytes(rng.randrange(300))
    if how == 2:
        return b"[" * rng.choice([10, 100_000])
    if how == 3:
        return b'{"QueueUrl": "' + b"x" * rng.choice([10, 1_000_000]) + b'"}'
    spoiled = bytearray(body)
    spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
    return bytes(spoiled)
