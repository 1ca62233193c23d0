"""Fields, addresses and errors of the SQS door, against the model of AWS's own library."""

from __future__ import annotations

import gzip
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from columnar.sqs.errors import SqsError
from columnar.sqs.fields import Fields, read_object
from columnar.sqs.queue_addresses import arn_of, message_id, new_name, queue_of_arn, queue_of_url, signer_of, url_of
from columnar.sqs.received_message import sequence_number

MODEL = "data/sqs/2012-11-05/service-2.json.gz"


def model_shapes() -> dict[str, Any]:
    """Return the shapes of AWS's own model of SQS, without the library around it, which takes a second to load."""
    found = find_spec("botocore")
    if found is None or not found.submodule_search_locations:
        pytest.skip("boto3 is not installed: make dev")
    packed = Path(found.submodule_search_locations[0], MODEL).read_bytes()
    return dict(json.loads(gzip.decompress(packed))["shapes"])


def test_every_error_of_sqs_has_a_form() -> None:
    names = [name for name, shape in model_shapes().items() if shape.get("exception")]
    assert len(names) > 20
    for name in names:
        if not name.startswith("Kms") and name not in ("InvalidIdFormat", "InvalidSecurity"):
            assert SqsError(name, "").form.type == f"com.amazonaws.sqs#{name}"


def test_errors_name_the_code_of_the_query_protocol() -> None:
    form = SqsError("QueueDoesNotExist", "").form
    assert (form.query_error, form.status) == ("AWS.SimpleQueueService.NonExistentQueue;Sender", 400)
    assert SqsError("ServiceUnavailable", "").form.query_error == "ServiceUnavailable;Receiver"


@pytest.mark.parametrize("body", [b"{", b"[]", b"5", b"\xff", b'"a"', b"[" * 100_000, b"nul"])
def test_other_bodies_than_objects_are_refused(body: bytes) -> None:
    with pytest.raises(SqsError, match="SerializationException"):
        read_object(body)


def test_fields_have_the_types_of_the_model() -> None:
    fields = Fields({"t": "a", "n": 5, "s": "7", "f": 3.0, "l": ["a"], "m": {"a": 5, "b": True}, "none": None})
    assert (fields.required_text("t"), fields.optional_text("none")) == ("a", "")
    assert [fields.number(name, 0, 9) for name in ("n", "s", "f", "none")] == [5, 7, 3, None]
    assert (fields.names("l"), fields.names("none")) == (("a",), ())
    assert (fields.attributes("m"), fields.attributes("none")) == ({"a": "5", "b": "true"}, {})


@pytest.mark.parametrize(
    ("read", "value"),
    [
        *[("required_text", value) for value in (None, "", 5, [], {}, True, "\ud800")],
        *[("number", value) for value in ("a", "", True, 1.5, [], {}, 10, -1, "10", "9" * 40, float("nan"), 1e400)],
        *[("names", value) for value in ("a", 5, {}, [5], ["a", None], ["a"] * 1_001)],
        *[("attributes", value) for value in ("a", [], 5, {"a": []}, {"a": 1.5}, {"\ud800": "a"}, {"a": "\ud800"})],
    ],
)
def test_other_types_are_refused(read: str, value: Any) -> None:
    fields = Fields({"x": value})
    with pytest.raises(SqsError):
        fields.number("x", 0, 9) if read == "number" else getattr(fields, read)("x")


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        (None, "EmptyBatchRequest"),
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n)} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "a"}, {"Id": "a"}], "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b"}], "InvalidBatchEntryId"),
        ([{"Id": "a" * 81}], "InvalidBatchEntryId"),
        ([{}], "MissingParameter"),
        ([5], "SerializationException"),
        ({"Id": "a"}, "SerializationException"),
    ],
)
def test_batches_are_bounded(entries: Any, error: str) -> None:
    with pytest.raises(SqsError, match=error):
        Fields({"Entries": entries}).entries("Entry")


def test_addresses_go_both_ways() -> None:
    assert queue_of_url(url_of(b"a.fifo", "127.0.0.1:9324")) == b"a.fifo"
    assert queue_of_url("https://sqs.eu-west-1.amazonaws.com/123456789012/thumbs/") == b"thumbs"
    assert queue_of_arn(arn_of(b"thumbs", "eu-west-1")) == b"thumbs"
    for url in ("", "http://a/b/c d", "\x00"):
        with pytest.raises(SqsError):
            queue_of_url(url)
    for arn in ("", "arn:aws:sns:a:b:c", "arn:aws:sqs:a:b:c:d", None, 5, ["arn"]):
        with pytest.raises(SqsError):
            queue_of_arn(arn)


def test_new_queues_have_names_of_sqs() -> None:
    assert new_name("A-z_9", is_fifo=False) == "A-z_9"
    assert new_name("a.fifo", is_fifo=True) == "a.fifo"
    for name, is_fifo in (("a.fifo", False), ("a", True), (".fifo", True), ("a.b", False), ("a" * 81, False)):
        with pytest.raises(SqsError):
            new_name(name, is_fifo=is_fifo)


def test_the_signer_is_found_and_not_believed() -> None:
    signed = "AWS4-HMAC-SHA256 Credential=AKIA/20261128/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=0"
    assert signer_of(signed) == ("AKIA", "eu-west-1")
    assert signer_of("") == signer_of("Bearer x") == signer_of("Credential=" * 10_000) == ("", "us-east-1")


def test_ids_of_messages_are_their_own() -> None:
    assert message_id(b"a", 5) == message_id(b"a", 5) != message_id(b"b", 5)
    assert len(message_id(b"a", (1 << 64) - 1)) == 36
    assert sequence_number(99) < sequence_number(100)
