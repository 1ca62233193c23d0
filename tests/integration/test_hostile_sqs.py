"""Requests of SQS that no good client sends, against a store of its own process: answered, with memory in bounds."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.limits import MIB
from tests.support.besieged import besieged, furnish
from tests.support.deep import IS_DEEP, seeds
from tests.support.hostile_sqs import hostile_request
from tests.support.ports import free_port
from tests.support.seeds import seed
from tests.support.sqs_client import sqs_client
from tests.support.standalone_store import StoreProcess

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are told by /proc")

SECONDS = seeds("seconds of hostile requests of SQS", deep=1_800, short=3)
# Bodies of a megabyte, and their messages on their way to the disk; in a long run messages that are sent well fill the
# write buffers, too, which have 64 MiB.
GROWTH_BYTES = 128 * MIB if IS_DEEP else 64 * MIB


@pytest.fixture(scope="module")
def sqs_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def store(sqs_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    folder = tmp_path_factory.mktemp("sqs") / "data"
    with StoreProcess(folder, "--sqs-port", str(sqs_port), is_forked=False) as running:
        furnish(running)
        yield running


@pytest.mark.timeout(SECONDS + 240)
@pytest.mark.lasts(SECONDS)
def test_every_hostile_request_is_answered_in_the_form_of_sqs(store: StoreProcess, sqs_port: int) -> None:
    pytest.importorskip("boto3", reason="boto3 is not installed: make dev")
    rng = random.Random(number := seed(5_301))
    client = sqs_client(sqs_port)
    url = client.create_queue(QueueName="plain")["QueueUrl"]
    statuses: Counter[int] = Counter()
    with besieged(store, GROWTH_BYTES):
        until_s = time.monotonic() + SECONDS
        connection = http.client.HTTPConnection("127.0.0.1", sqs_port, timeout=30)
        while time.monotonic() < until_s:
            path, headers, body = hostile_request(rng, url)
            connection.request("POST", path, body, {k: v.encode("latin-1") for k, v in headers.items()})
            answer = connection.getresponse()
            text = answer.read()
            statuses[answer.status] += 1
            assert answer.status in (200, 400, 403, 503), f"seed {number}: {headers} {body[:2_000]!r} {text[:500]!r}"
            found = json.loads(text)
            if answer.status != 200:
                assert answer.headers["x-amzn-query-error"], f"seed {number}"
                assert isinstance(found["__type"], str), f"seed {number}"
        connection.close()
        assert min(statuses[200], statuses[400]) > 10, f"seed {number}: {statuses}"
        print(f"seed {number}: {dict(statuses)}")
        client.send_message(QueueUrl=client.create_queue(QueueName="after")["QueueUrl"], MessageBody="a")
