"""The SQS door of a store, by AWS's own library: what it answers, and that its queues are the store's queues."""

from __future__ import annotations

import io
import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.support.readme_blocks import blocks_of
from tests.support.serving import Serving
from tests.support.sqs_client import abandon_receive, error_of, port_of, sqs_client

pytest.importorskip("boto3", reason="boto3 is not installed: make dev")
from botocore.exceptions import ClientError

PAGE = Path(__file__).parents[2] / "docs" / "sqs.md"
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("sqs") / "store", trigger_modules=(), sqs_port=0).start()
    yield serving
    serving.stop()


@pytest.fixture(scope="module")
def sqs(store: Serving) -> Any:
    return sqs_client(port_of(store))


@pytest.fixture
def name() -> str:
    return f"q{next(_NUMBERS)}"


@pytest.fixture
def url(sqs: Any, name: str) -> str:
    return str(sqs.create_queue(QueueName=name)["QueueUrl"])


@pytest.fixture
def fifo(sqs: Any, name: str) -> str:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    return str(sqs.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"])


def test_the_example_of_the_page(store: Serving) -> None:
    example = next(block for block in blocks_of(PAGE.read_text()) if "boto3.client" in block.text)
    text = example.text.replace("9324", str(port_of(store))).replace("9090", str(store.store.port))
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(text, str(PAGE), "exec"), {})
    expected = [line.partition("  # ")[2] for line in example.text.splitlines() if line.startswith("print(")]
    assert printed.getvalue().splitlines() == expected


def test_a_message_is_received_until_it_is_deleted(sqs: Any, url: str) -> None:
    attributes = {
        "colour": {"DataType": "String", "StringValue": "grün"},
        "size": {"DataType": "Number", "StringValue": "42"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    before_ms = time.time() * 1_000 - 1
    sent = sqs.send_message(QueueUrl=url, MessageBody="grün", MessageAttributes=attributes)
    received = sqs.receive_message(QueueUrl=url, AttributeNames=["All"], MessageAttributeNames=["All"])["Messages"]
    (message,) = received  # the client has compared the MD5 of body and attributes
    assert (message["Body"], message["MessageId"]) == ("grün", sent["MessageId"])
    assert message["MessageAttributes"] == attributes
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    system = message["Attributes"]
    assert system["ApproximateReceiveCount"] == "1"
    assert system["SenderId"] == "AKIATEST"
    assert before_ms < int(system["SentTimestamp"]) <= int(system["ApproximateFirstReceiveTimestamp"])
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    (again,) = sqs.receive_message(QueueUrl=url, MessageSystemAttributeNames=["All"])["Messages"]
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    assert again["Attributes"]["ApproximateFirstReceiveTimestamp"] == system["ApproximateFirstReceiveTimestamp"]
    assert "MessageAttributes" not in again
    assert again["ReceiptHandle"] != message["ReceiptHandle"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])  # as in SQS
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_the_queue_is_that_of_the_store(store: Serving, sqs: Any, url: str, name: str) -> None:
    queue = store.connect().queue(name)
    value = {"DataType": "String", "StringValue": "b"}
    sqs.send_message(QueueUrl=url, MessageBody="grün", MessageAttributes={"a": value}, MessageGroupId="tenant")
    (popped,) = queue.pop()
    assert (popped.body, popped.headers[b"a"], popped.group) == ("grün".encode(), b"b", b"tenant")
    popped.commit()
    queue.push(b"\xff\xfe", headers={b"kind": b"binary", b"raw": b"\xff"})
    (message,) = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert message["Body"] == "//4="
    found = {key: one.get("StringValue", one.get("BinaryValue")) for key, one in message["MessageAttributes"].items()}
    assert found == {"kind": "binary", "raw": b"\xff", "encoding": "base64"}
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert queue.stats().committed == 2


def test_a_queue_of_the_store_is_there_without_creation(store: Serving, sqs: Any, name: str) -> None:
    store.connect().queue(f"{name}.made.by.push").push(b"a")
    url = sqs.get_queue_url(QueueName=f"{name}.made.by.push")["QueueUrl"]
    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "a"
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (attributes["ApproximateNumberOfMessagesNotVisible"], attributes["VisibilityTimeout"]) == ("1", "30")


def test_a_queue_that_nobody_made_is_not_there(store: Serving, sqs: Any, name: str) -> None:
    url = f"http://127.0.0.1/000000000000/{name}-none"
    for call in (
        lambda: sqs.get_queue_url(QueueName=f"{name}-none"),
        lambda: sqs.send_message(QueueUrl=url, MessageBody="a"),
        lambda: sqs.receive_message(QueueUrl=url),
        lambda: sqs.delete_message(QueueUrl=url, ReceiptHandle="AAAAAAAAAAAAAAAAAAAAAA=="),
        lambda: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]),
        lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes={}),
    ):
        with pytest.raises(sqs.exceptions.QueueDoesNotExist) as raised:
            call()
        assert error_of(raised) == ("AWS.SimpleQueueService.NonExistentQueue", 400)


def test_a_queue_is_made_again_only_as_it_is(sqs: Any, name: str) -> None:
    attributes = {"VisibilityTimeout": "7", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "1"}
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    assert sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"] == url
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    with pytest.raises(sqs.exceptions.QueueNameExists) as raised:
        sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "8"})
    assert error_of(raised) == ("QueueAlreadyExists", 400)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "8", "MaximumMessageSize": "1024"})
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (found["VisibilityTimeout"], found["MaximumMessageSize"]) == ("8", "1024")
    assert found["ReceiveMessageWaitTimeSeconds"] == "1"
    assert found["QueueArn"] == f"arn:aws:sqs:eu-west-1:000000000000:{name}"
    with pytest.raises(ClientError, match="1024 bytes"):
        sqs.send_message(QueueUrl=url, MessageBody="x" * 1_025)


def test_attributes_that_cannot_be_read_are_the_defaults_and_their_loss_is_logged(
    sqs: Any, store: Serving, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "5"})["QueueUrl"]
    table = store.connect().table("columnar:queues")
    table.put(name.encode() + b"\x00s", {b"q:a": b'{"attributes": {"OfANewerVersion": "1"}}'})
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["DelaySeconds"])["Attributes"]
    assert (found, "made anew" in caplog.text) == ({"DelaySeconds": "0"}, False)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "7"})
    assert f"the attributes of queue {name} cannot be read and are made anew: " in caplog.text
    assert "OfANewerVersion" in caplog.text
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["DelaySeconds"])["Attributes"]
    assert found == {"DelaySeconds": "7"}


def test_a_receiver_waits_for_a_message(sqs: Any, store: Serving, url: str) -> None:
    found: list[Any] = []
    waiting = threading.Thread(
        target=lambda: found.append(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"])
    )
    waiting.start()
    other = sqs_client(port_of(store))
    other.send_message(QueueUrl=url, MessageBody="a")
    waiting.join(60)
    assert [one["Body"] for one in found[0]] == ["a"]
    began = time.monotonic()
    assert "Messages" not in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1)
    assert time.monotonic() - began > 0.9


def test_what_comes_for_a_receiver_that_has_gone_comes_to_the_next_one(sqs: Any, store: Serving, url: str) -> None:
    abandon_receive(port_of(store), url)
    sqs.send_message(QueueUrl=url, MessageBody="a")
    assert sqs.receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"][0]["Body"] == "a"


def test_delays_and_visibility(sqs: Any, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="late", DelaySeconds=1)
    sqs.send_message(QueueUrl=url, MessageBody="now")
    (first,) = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)["Messages"]
    assert first["Body"] == "now"
    bodies = {
        one["Body"]
        for _ in range(2)
        for one in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5, VisibilityTimeout=60)["Messages"]
    }
    assert bodies == {"now", "late"}
    with pytest.raises(ClientError) as raised:
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=5)
    assert error_of(raised) == ("AWS.SimpleQueueService.MessageNotInflight", 400)


def test_a_message_is_deleted_after_its_visibility_timeout_unless_another_has_received_it(sqs: Any, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="slow work")
    late, _ = [
        sqs.receive_message(QueueUrl=url, VisibilityTimeout=0, WaitTimeSeconds=5)["Messages"][0] for _ in range(2)
    ]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=late["ReceiptHandle"])
    (latest,) = sqs.receive_message(QueueUrl=url, VisibilityTimeout=0, WaitTimeSeconds=5)["Messages"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=latest["ReceiptHandle"])
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_batches_say_what_failed(sqs: Any, url: str) -> None:
    entries = [{"Id": str(n), "MessageBody": f"b{n}"} for n in range(9)]
    sent = sqs.send_message_batch(QueueUrl=url, Entries=[*entries, {"Id": "bad", "MessageBody": "\x00"}])
    assert [one["Id"] for one in sent["Successful"]] == [str(n) for n in range(9)]
    assert [(one["Id"], one["Code"], one["SenderFault"]) for one in sent["Failed"]] == [
        ("bad", "InvalidMessageContents", True)
    ]
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert {one["Body"] for one in messages} == {f"b{n}" for n in range(9)}
    handles = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(messages)]
    changes = [{**one, "VisibilityTimeout": 60} for one in handles[:2]]
    changed = sqs.change_message_visibility_batch(QueueUrl=url, Entries=changes)
    assert [one["Id"] for one in changed["Successful"]] == ["0", "1"]
    deleted = sqs.delete_message_batch(QueueUrl=url, Entries=[*handles, {"Id": "bad", "ReceiptHandle": "no"}])
    assert len(deleted["Successful"]) == 9
    assert [(one["Id"], one["Code"]) for one in deleted["Failed"]] == [("bad", "ReceiptHandleIsInvalid")]
    for entries, code in (
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n), "MessageBody": "a"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "a", "MessageBody": "a"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": "a", "MessageBody": "a" * 1_048_000}, {"Id": "b", "MessageBody": "a" * 600}], "BatchRequestTooLong"),
    ):
        with pytest.raises(ClientError) as raised:
            sqs.send_message_batch(QueueUrl=url, Entries=entries)
        assert error_of(raised) == (f"AWS.SimpleQueueService.{code}", 400)


def test_a_message_of_a_mebibyte_goes_through(sqs: Any, url: str) -> None:
    body = "\u00e4" * (512 * 1024 - 8)
    value = {"DataType": "Number", "StringValue": "7"}
    sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes={"size": value})
    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == body
    with pytest.raises(ClientError, match="1048576 bytes"):
        sqs.send_message(QueueUrl=url, MessageBody=body + "x" * 17)


def test_a_fifo_queue_keeps_the_order_of_a_group_and_drops_repeats(sqs: Any, fifo: str) -> None:
    def send(body: str, group: str, **more: str) -> str:
        return str(sqs.send_message(QueueUrl=fifo, MessageBody=body, MessageGroupId=group, **more)["SequenceNumber"])

    numbers = [
        send("1", "a"),
        send("2", "a"),
        send("3", "b"),
        send("1", "a"),
        send("9", "a", MessageDeduplicationId="x"),
    ]
    assert numbers[3] == numbers[0]
    assert send("other", "a", MessageDeduplicationId="x") == numbers[4]
    order = []
    while found := sqs.receive_message(QueueUrl=fifo, MaxNumberOfMessages=10, AttributeNames=["All"]).get("Messages"):
        assert len({one["Attributes"]["MessageGroupId"] for one in found}) == len(found)
        for one in found:
            order.append((one["Body"], one["Attributes"]["SequenceNumber"]))
            sqs.delete_message(QueueUrl=fifo, ReceiptHandle=one["ReceiptHandle"])
    assert [body for body, _ in order if body != "3"] == ["1", "2", "9"]
    assert sorted(number for _, number in order) == sorted(set(numbers))
    send("1", "a")  # within five minutes of the first one, which is deleted
    assert "Messages" not in sqs.receive_message(QueueUrl=fifo)


def test_what_a_fifo_queue_needs_and_refuses(sqs: Any, fifo: str, url: str, name: str) -> None:
    for call, code in (
        (lambda: sqs.send_message(QueueUrl=fifo, MessageBody="a"), "MissingParameter"),
        (lambda: sqs.send_message(QueueUrl=fifo, MessageBody="a", MessageGroupId="a b"), "InvalidParameterValue"),
        (
            lambda: sqs.send_message(QueueUrl=fifo, MessageBody="a", MessageGroupId="a", DelaySeconds=1),
            "InvalidParameterValue",
        ),
        (lambda: sqs.send_message(QueueUrl=url, MessageBody="a", MessageDeduplicationId="a"), "InvalidParameterValue"),
        (lambda: sqs.create_queue(QueueName=f"{name}-2", Attributes={"FifoQueue": "true"}), "InvalidParameterValue"),
        (lambda: sqs.create_queue(QueueName=f"{name}-2.fifo"), "InvalidParameterValue"),
    ):
        with pytest.raises(ClientError) as raised:
            call()
        assert error_of(raised) == (code, 400)


def test_deduplication_may_be_of_a_group(sqs: Any, name: str) -> None:
    attributes = {
        "FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"
    }  # fmt: skip
    url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"]
    for group in ("a", "b", "a"):
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId=group, MessageDeduplicationId="d")
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
    assert sorted(one["Attributes"]["MessageGroupId"] for one in messages) == ["a", "b"]


def test_what_is_not_built_says_so(sqs: Any, url: str, store: Serving) -> None:
    with pytest.raises(ClientError, match="no tags") as raised:
        sqs.tag_queue(QueueUrl=url, Tags={"a": "b"})
    assert error_of(raised) == ("AWS.SimpleQueueService.UnsupportedOperation", 400)
    for attributes in ({"Policy": "{}"}, {"KmsMasterKeyId": "a"}, {"Colour": "red"}):
        with pytest.raises(ClientError) as raised:
            sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
        assert error_of(raised) == ("InvalidAttributeName", 400)
    import requests

    port = port_of(store)
    for target, code in (
        ("", "InvalidAction"),
        ("AmazonSQS.Fly", "InvalidAction"),
        ("Other.SendMessage", "InvalidAction"),
    ):
        answer = requests.post(f"http://127.0.0.1:{port}/", headers={"X-Amz-Target": target}, data="{}", timeout=10)
        assert (answer.status_code, answer.headers["x-amzn-query-error"]) == (400, f"{code};Sender")
    answer = requests.post(
        f"http://127.0.0.1:{port}/", headers={"X-Amz-Target": "AmazonSQS.SendMessage"}, data="{", timeout=10
    )
    assert json.loads(answer.text)["__type"] == "com.amazon.coral.service#SerializationException"


def test_queues_are_listed_purged_and_deleted(store: Serving, sqs: Any, name: str) -> None:
    names = [f"{name}-list-{letter}" for letter in "abc"]
    urls = [sqs.create_queue(QueueName=one)["QueueUrl"] for one in names]
    assert sqs.list_queues(QueueNamePrefix=f"{name}-list")["QueueUrls"] == urls
    pages = list(
        sqs.get_paginator("list_queues").paginate(QueueNamePrefix=f"{name}-list", PaginationConfig={"PageSize": 2})
    )
    assert [one for page in pages for one in page.get("QueueUrls", ())] == urls
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix=f"{name}-none")
    with pytest.raises(ClientError):
        sqs.list_queues(NextToken="no token", MaxResults=1)
    for body in ("a", "b"):
        sqs.send_message(QueueUrl=urls[0], MessageBody=body)
    sqs.receive_message(QueueUrl=urls[0])
    sqs.purge_queue(QueueUrl=urls[0])
    counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    assert set(sqs.get_queue_attributes(QueueUrl=urls[0], AttributeNames=counts)["Attributes"].values()) == {"0"}
    sqs.send_message(QueueUrl=urls[0], MessageBody="c")
    sqs.set_queue_attributes(QueueUrl=urls[0], Attributes={"DelaySeconds": "7"})
    sqs.delete_queue(QueueUrl=urls[0])
    for call in (sqs.delete_queue, sqs.purge_queue, sqs.receive_message):
        with pytest.raises(sqs.exceptions.QueueDoesNotExist):
            call(QueueUrl=urls[0])
    assert sqs.list_queues(QueueNamePrefix=f"{name}-list")["QueueUrls"] == urls[1:]
    sqs.create_queue(QueueName=names[0])
    found = sqs.get_queue_attributes(QueueUrl=urls[0], AttributeNames=["All"])["Attributes"]
    assert (found["DelaySeconds"], found["ApproximateNumberOfMessages"]) == ("0", "0"), (
        "nothing is left of the first one"
    )


@pytest.fixture
def dead_url(sqs: Any, name: str) -> str:
    return str(sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"])


def policy_to(url: str, count: int) -> dict[str, str]:
    target = f"arn:aws:sqs:eu-west-1:000000000000:{url.rpartition('/')[2]}"
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": count})}


def test_a_message_that_is_received_too_often_goes_to_its_dead_letter_queue(sqs: Any, name: str, dead_url: str) -> None:
    attributes = {**policy_to(dead_url, 2), "VisibilityTimeout": "0"}
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    assert sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"] == url
    value = {"size": {"DataType": "Number", "StringValue": "5"}}
    sent = sqs.send_message(QueueUrl=url, MessageBody="a", MessageAttributes=value)
    times = [
        sqs.receive_message(QueueUrl=url, AttributeNames=["All"], WaitTimeSeconds=20)["Messages"][0] for _ in range(2)
    ]
    time.sleep(0.02)  # a visibility of 0 is a lease of 1 ms, and the message dies when the queue is used after its end
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    (dead,) = sqs.receive_message(
        QueueUrl=dead_url,
        AttributeNames=["All"],
        MessageAttributeNames=["All"],
        VisibilityTimeout=60,
        WaitTimeSeconds=20,
    )["Messages"]
    assert (dead["Body"], dead["MessageAttributes"], dead["MessageId"]) == ("a", value, sent["MessageId"])
    system = dead["Attributes"]
    assert system["SentTimestamp"] == times[0]["Attributes"]["SentTimestamp"]
    assert system["DeadLetterQueueSourceArn"] == f"arn:aws:sqs:eu-west-1:000000000000:{name}"
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead_url)["queueUrls"] == [url]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert json.loads(found["RedrivePolicy"]) == json.loads(attributes["RedrivePolicy"])
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": ""})
    assert "RedrivePolicy" not in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]


def test_a_dead_letter_queue_must_suit(sqs: Any, url: str, fifo: str, dead_url: str, name: str) -> None:
    for policy in (policy_to(f"{url}-none", 2), policy_to(fifo, 2), policy_to(url, 2)):
        with pytest.raises(ClientError, match="RedrivePolicy") as raised:
            sqs.set_queue_attributes(QueueUrl=url, Attributes=policy)
        assert error_of(raised)[0] == "InvalidParameterValue"
    allow = json.dumps({"redrivePermission": "denyAll"})
    sqs.set_queue_attributes(QueueUrl=dead_url, Attributes={"RedriveAllowPolicy": allow})
    with pytest.raises(ClientError, match="does not allow"):
        sqs.set_queue_attributes(QueueUrl=url, Attributes=policy_to(dead_url, 2))


def until(sqs: Any, dead_url: str, state: str) -> dict[str, Any]:
    """Return the newest task of the queue once it is in the state."""
    arn = policy_to(dead_url, 2)["RedrivePolicy"].partition('"arn:')[2].partition('"')[0]
    until_s = time.monotonic() + 20
    while True:
        task: dict[str, Any] = sqs.list_message_move_tasks(SourceArn=f"arn:{arn}")["Results"][0]
        if task["Status"] == state:
            return task
        assert time.monotonic() < until_s, task
        time.sleep(0.02)  # a task of the server, which notes its progress


def test_dead_messages_are_moved_back(sqs: Any, name: str, dead_url: str) -> None:
    attributes = {**policy_to(dead_url, 1), "VisibilityTimeout": "0"}
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    for body in ("a", "b", "c"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    while sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        pass
    until_s = time.monotonic() + 20
    count = ["ApproximateNumberOfMessages"]
    while sqs.get_queue_attributes(QueueUrl=dead_url, AttributeNames=count)["Attributes"][count[0]] != "3":
        assert time.monotonic() < until_s
        time.sleep(0.02)  # the store moves dead messages in the background
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "60"})
    source = f"arn:aws:sqs:eu-west-1:000000000000:{name}-dead"
    handle = sqs.start_message_move_task(SourceArn=source)["TaskHandle"]
    task = until(sqs, dead_url, "COMPLETED")
    assert (task["ApproximateNumberOfMessagesMoved"], task["ApproximateNumberOfMessagesToMove"]) == (3, 3)
    with pytest.raises(ClientError) as raised:
        sqs.cancel_message_move_task(TaskHandle=handle)
    assert error_of(raised)[0] == "ResourceNotFoundException"
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
    assert sorted(one["Body"] for one in messages) == ["a", "b", "c"]
    assert "DeadLetterQueueSourceArn" not in messages[0]["Attributes"]
    assert "Messages" not in sqs.receive_message(QueueUrl=dead_url)


def test_a_slow_move_is_alone_and_can_be_cancelled(sqs: Any, name: str, url: str, dead_url: str) -> None:
    sqs.set_queue_attributes(QueueUrl=url, Attributes=policy_to(dead_url, 1))
    for number in range(20):
        sqs.send_message(QueueUrl=dead_url, MessageBody=str(number))
    source, to = (f"arn:aws:sqs:eu-west-1:000000000000:{one}" for one in (f"{name}-dead", name))
    moving = {"SourceArn": source, "DestinationArn": to, "MaxNumberOfMessagesPerSecond": 1}
    handle = sqs.start_message_move_task(**moving)["TaskHandle"]
    with pytest.raises(ClientError, match="already a task"):
        sqs.start_message_move_task(**moving)
    assert sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"] < 20
    task = until(sqs, dead_url, "CANCELLED")
    assert task["ApproximateNumberOfMessagesMoved"] < 20
    sqs.start_message_move_task(SourceArn=source)
    assert until(sqs, dead_url, "FAILED")["FailureReason"] == "CouldNotDetermineMessageSource"
    for wrong in ({"SourceArn": to}, {"SourceArn": f"{to}-none"}, {"SourceArn": source, "DestinationArn": source}):
        with pytest.raises(ClientError):
            sqs.start_message_move_task(**wrong)
