"""(pure) Attributes of queues: their bounds, what the store's queue itself keeps of them, and what SQS alone needs.

    VisibilityTimeout, RedrivePolicy, FifoQueue, MessageRetentionPeriod    settings of the queue (``queues.keys``)
    the others of SETTABLE                                                 cell q:a of the row ``NAME 00 s``, JSON

    q:a := {"created_s": 1764328000, "modified_s": 1764328000, "attributes": {"DelaySeconds": "5"}}

A queue without the cell was not made by SQS and has the defaults.

Knows nothing of requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from columnar.queues.keys import Settings
from columnar.sqs.errors import SqsError
from columnar.sqs.move_tasks import MoveTask, pack_tasks, unpack_tasks
from columnar.sqs.queue_addresses import queue_of_arn

MOST_BYTES: Final = 1024 * 1024  # of a message
_NUMBERS: Final = {  # least, most, default
    "DelaySeconds": (0, 900, 0),
    "MaximumMessageSize": (1_024, MOST_BYTES, MOST_BYTES),
    "MessageRetentionPeriod": (60, 1_209_600, 345_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20, 0),
    "VisibilityTimeout": (0, 43_200, 30),
}
_CHOICES: Final = {  # of FIFO queues; the first one is the default
    "ContentBasedDeduplication": ("false", "true"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
_POLICIES: Final = frozenset({"RedrivePolicy", "RedriveAllowPolicy"})
SETTABLE: Final = frozenset({*_NUMBERS, *_CHOICES, *_POLICIES, "FifoQueue", "SqsManagedSseEnabled"})
_COUNTS: Final = (
    "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
)  # fmt: skip
READABLE: Final = frozenset({*SETTABLE, *_COUNTS, "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp"})
REFUSED: Final = {  # attributes of SQS that a store does not have
    "Policy": "rights are the store's own (docs/rights.md)",
    "KmsMasterKeyId": "the store does not encrypt by AWS's keys",
    "KmsDataKeyReusePeriodSeconds": "the store does not encrypt by AWS's keys",
}
MOST_RECEIVES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Redrive:
    attempts: int  # after so many a message goes to the queue ``dead_to``
    dead_to: bytes


@dataclass(frozen=True, slots=True)
class Given:
    """Attributes of a request, checked; None: not given."""

    visibility_s: int | None = None
    retention_s: int | None = None
    is_fifo: bool | None = None
    redrive: Redrive | None = None
    ends_redrive: bool = False  # an empty policy ends it
    others: Mapping[str, str] = field(default_factory=dict)  # for the cell; "" has the default again


@dataclass(frozen=True, slots=True)
class OwnAttributes:
    """The contents of the cell."""

    created_s: int = 0  # 0: the queue was not made by SQS
    modified_s: int = 0
    values: Mapping[str, str] = field(default_factory=dict)
    tasks: tuple[MoveTask, ...] = ()  # that move the messages of this dead-letter queue, the newest one first

    def with_tasks(self, tasks: tuple[MoveTask, ...]) -> OwnAttributes:
        return replace(self, tasks=tasks)

    def number(self, name: str) -> int:
        value = self.values.get(name)
        return int(value) if value else _NUMBERS[name][2]

    def choice(self, name: str) -> str:
        return self.values.get(name) or _CHOICES[name][0]

    def changed(self, others: Mapping[str, str], now_s: int) -> OwnAttributes:
        values = {name: value for name, value in {**self.values, **others}.items() if value}
        return replace(self, created_s=self.created_s or now_s, modified_s=now_s, values=values)


@dataclass(frozen=True, slots=True)
class KnownQueue:
    """A queue that is there."""

    name: bytes
    settings: Settings
    attributes: OwnAttributes
    cell: bytes | None  # of the attributes, as it was read


def pack_cell(attributes: OwnAttributes) -> bytes:
    kept: dict[str, Any] = {
        "created_s": attributes.created_s,
        "modified_s": attributes.modified_s,
        "attributes": attributes.values,
    }
    if attributes.tasks:
        kept["tasks"] = pack_tasks(attributes.tasks)
    return json.dumps(kept, sort_keys=True).encode()


def unpack_cell(data: bytes | None) -> OwnAttributes:
    """Return what a cell has; a damaged one counts as none, and the next change writes it anew."""
    if not data:
        return OwnAttributes()
    try:
        found = json.loads(data)
        others = check_given(dict(found["attributes"])).others
        tasks = unpack_tasks(found.get("tasks", ()))
        return OwnAttributes(int(found["created_s"]), int(found["modified_s"]), others, tasks)
    except (ValueError, KeyError, TypeError, SqsError):
        return OwnAttributes()


def check_given(values: Mapping[str, str]) -> Given:
    """Return the attributes of a request.  Raises SqsError."""
    others: dict[str, str] = {}
    given = Given()
    for name, value in values.items():
        if name in REFUSED:
            raise SqsError("InvalidAttributeName", f"{name} is not possible here: {REFUSED[name]}; leave it out")
        if name not in SETTABLE:
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {name}.")
        if name in _NUMBERS:
            number = _checked_number(name, value)
            if name == "VisibilityTimeout":
                given = replace(given, visibility_s=number)
            elif name == "MessageRetentionPeriod":
                given = replace(given, retention_s=number)
            else:
                others[name] = str(number)
        elif name == "FifoQueue":
            given = replace(given, is_fifo=_checked_choice(name, value, ("false", "true")) == "true")
        elif name == "RedrivePolicy":
            redrive = _checked_redrive(value)
            given = replace(given, redrive=redrive, ends_redrive=redrive is None)
        elif name == "RedriveAllowPolicy":
            others[name] = _checked_allow(value)
        elif name == "SqsManagedSseEnabled":
            if _checked_choice(name, value, ("false", "true")) == "true":
                text = "SqsManagedSseEnabled is false here: the store does not encrypt by AWS's keys"
                raise SqsError("InvalidAttributeValue", text)
        else:
            others[name] = _checked_choice(name, value, _CHOICES[name])
    return replace(given, others=others)


def check_fifo(given: Given, *, is_fifo: bool) -> None:
    """Refuse attributes that a queue of this kind does not have.  Raises SqsError."""
    if not is_fifo:
        wrong = next((name for name in _CHOICES if given.others.get(name)), None)
        if wrong is not None:
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {wrong}: only a FIFO queue has it.")
    elif int(given.others.get("DelaySeconds") or 0):
        text = "a FIFO queue of this store takes no delay: its groups keep their order; leave DelaySeconds out"
        raise SqsError("InvalidAttributeValue", text)


def _checked_number(name: str, value: str) -> int:
    least, most, _ = _NUMBERS[name]
    try:
        number = int(value) if len(value) < 20 else most + 1
    except ValueError:
        number = most + 1
    if not least <= number <= most:
        raise SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}.")
    return number


def _checked_choice(name: str, value: str, choices: Iterable[str]) -> str:
    if value not in choices:
        raise SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}.")
    return value


def _checked_redrive(value: str) -> Redrive | None:
    if not value:
        return None
    policy = _json_object("RedrivePolicy", value)
    wrong = f"Value {value[:500]} for parameter RedrivePolicy is invalid. Reason: "
    unknown = policy.keys() - {"deadLetterTargetArn", "maxReceiveCount"}
    if unknown or "deadLetterTargetArn" not in policy:
        raise SqsError("InvalidAttributeValue", wrong + "it has deadLetterTargetArn and maxReceiveCount alone.")
    count = policy.get("maxReceiveCount", 10)
    if isinstance(count, str) and count.isascii() and count.isdigit() and len(count) < 10:
        count = int(count)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_RECEIVES:
        text = (
            f"Invalid value for maxReceiveCount: {count!r}, valid values are from 1 to {MOST_RECEIVES} both inclusive."
        )
        raise SqsError("InvalidAttributeValue", wrong + text)
    try:
        return Redrive(count, queue_of_arn(policy["deadLetterTargetArn"]))
    except SqsError as error:
        raise SqsError("InvalidAttributeValue", wrong + error.text) from None


def _checked_allow(value: str) -> str:
    if not value:
        return ""
    policy = _json_object("RedriveAllowPolicy", value)
    permission, sources = policy.get("redrivePermission"), policy.get("sourceQueueArns")
    is_named = permission == "byQueue" and isinstance(sources, list) and 1 <= len(sources) <= 10
    if permission not in ("allowAll", "denyAll", "byQueue") or (permission == "byQueue") != is_named:
        raise SqsError("InvalidAttributeValue", "Invalid value for the parameter RedriveAllowPolicy.")
    if sources is not None and not is_named:
        raise SqsError("InvalidAttributeValue", "Invalid value for the parameter RedriveAllowPolicy.")
    for arn in sources or ():
        queue_of_arn(arn)
    return value


def allows_source(policy: str, source: bytes) -> bool:
    """Return whether a queue with this RedriveAllowPolicy takes dead messages of ``source``."""
    if not policy:
        return True
    found = _json_object("RedriveAllowPolicy", policy)
    if found["redrivePermission"] == "byQueue":
        return source in [queue_of_arn(arn) for arn in found["sourceQueueArns"]]
    return bool(found["redrivePermission"] == "allowAll")


def _json_object(name: str, value: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}: it is not a JSON object.")
    return found


def wanted_names(names: Iterable[str]) -> frozenset[str]:
    """Return the attributes that ``names`` ask for.  Raises SqsError."""
    wanted: set[str] = set()
    for name in names:
        if name == "All":
            wanted |= READABLE
        elif name in READABLE:
            wanted.add(name)
        elif name not in REFUSED:
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {name}.")
    return frozenset(wanted)
