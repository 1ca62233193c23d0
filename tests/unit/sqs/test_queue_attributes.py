"""Attributes of queues: their bounds, and what is kept of them."""

from __future__ import annotations

import json

import pytest

from columnar.sqs.errors import SqsError
from columnar.sqs.queue_attributes import (
    OwnAttributes,
    Redrive,
    allows_source,
    check_fifo,
    check_given,
    pack_cell,
    unpack_cell,
    wanted_names,
)

TARGET = "arn:aws:sqs:us-east-1:000000000000:dead"


def test_attributes_go_to_the_queue_or_to_the_cell() -> None:
    policy = json.dumps({"deadLetterTargetArn": TARGET, "maxReceiveCount": "3"})
    given = check_given(
        {
            "VisibilityTimeout": "0", "DelaySeconds": "5", "MessageRetentionPeriod": "60", "FifoQueue": "true",
            "RedrivePolicy": policy, "ContentBasedDeduplication": "true", "SqsManagedSseEnabled": "false",
        }
    )  # fmt: skip
    assert (given.visibility_s, given.retention_s, given.is_fifo) == (0, 60, True)
    assert given.redrive == Redrive(3, b"dead")
    assert given.others == {"DelaySeconds": "5", "ContentBasedDeduplication": "true"}
    assert check_given({"RedrivePolicy": ""}).ends_redrive


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Colour", "red"),
        ("Policy", "{}"),
        ("KmsMasterKeyId", "alias/a"),
        ("SqsManagedSseEnabled", "true"),
        *[("VisibilityTimeout", value) for value in ("-1", "43201", "a", "", "1.5", "9" * 50)],
        *[("DelaySeconds", value) for value in ("901", "-1")],
        *[("MaximumMessageSize", value) for value in ("1023", "1048577")],
        *[("MessageRetentionPeriod", value) for value in ("59", "1209601")],
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("FifoQueue", "yes"),
        ("DeduplicationScope", "all"),
        *[
            ("RedrivePolicy", value)
            for value in (
                "{", "[]", "{}", json.dumps({"deadLetterTargetArn": TARGET, "maxReceiveCount": 0}),
                json.dumps({"deadLetterTargetArn": TARGET, "maxReceiveCount": 1_001}),
                json.dumps({"deadLetterTargetArn": TARGET, "maxReceiveCount": True}),
                json.dumps({"deadLetterTargetArn": TARGET, "maxReceiveCount": "\u0663"}),
                json.dumps({"deadLetterTargetArn": "dead"}), json.dumps({"deadLetterTargetArn": TARGET, "a": 1}),
                "[" * 100_000,
            )
        ],
        ("RedriveAllowPolicy", json.dumps({"redrivePermission": "some"})),
        ("RedriveAllowPolicy", json.dumps({"redrivePermission": "byQueue"})),
        ("RedriveAllowPolicy", json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": ["a"]})),
        ("RedriveAllowPolicy", json.dumps({"redrivePermission": "allowAll", "sourceQueueArns": [TARGET]})),
    ],
)  # fmt: skip
def test_other_values_are_refused(name: str, value: str) -> None:
    with pytest.raises(SqsError):
        check_given({name: value})


def test_the_cell_keeps_what_is_given_and_the_rest_has_defaults() -> None:
    made = OwnAttributes().changed({"DelaySeconds": "5"}, 100)
    later = made.changed({"DelaySeconds": "", "ReceiveMessageWaitTimeSeconds": "20"}, 200)
    assert (later.created_s, later.modified_s) == (100, 200)
    assert [later.number(name) for name in ("DelaySeconds", "ReceiveMessageWaitTimeSeconds")] == [0, 20]
    assert later.choice("DeduplicationScope") == "queue"
    assert unpack_cell(pack_cell(later)) == later
    assert pack_cell(made) == b'{"attributes": {"DelaySeconds": "5"}, "created_s": 100, "modified_s": 100}'


@pytest.mark.parametrize(
    "data",
    [
        None, b"", b"{", b"[]", b"{}", b'{"created_s": 1, "modified_s": 1, "attributes": {"DelaySeconds": "a"}}',
        b'{"created_s": "x", "modified_s": 1, "attributes": {}}', b'{"created_s": 1, "modified_s": 1, "attributes": 5}',
    ],
)  # fmt: skip
def test_a_damaged_cell_counts_as_none(data: bytes | None) -> None:
    assert unpack_cell(data) == OwnAttributes()


def test_fifo_queues_have_attributes_of_their_own() -> None:
    check_fifo(check_given({"ContentBasedDeduplication": "true"}), is_fifo=True)
    with pytest.raises(SqsError, match="only a FIFO queue"):
        check_fifo(check_given({"ContentBasedDeduplication": "false"}), is_fifo=False)
    with pytest.raises(SqsError, match="DelaySeconds"):
        check_fifo(check_given({"DelaySeconds": "1"}), is_fifo=True)
    check_fifo(check_given({"DelaySeconds": "0"}), is_fifo=True)


def test_a_dead_letter_queue_says_whose_messages_it_takes() -> None:
    named = json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [TARGET]})
    assert allows_source("", b"a")
    assert allows_source('{"redrivePermission": "allowAll"}', b"a")
    assert not allows_source('{"redrivePermission": "denyAll"}', b"a")
    assert (allows_source(named, b"dead"), allows_source(named, b"a")) == (True, False)


def test_asked_names_are_known_names() -> None:
    assert wanted_names(("QueueArn", "Policy")) == {"QueueArn"}
    assert "ApproximateNumberOfMessages" in wanted_names(("All",))
    with pytest.raises(SqsError, match="Unknown Attribute Colour"):
        wanted_names(("Colour",))
