"""The answers of the SQS endpoint beside those of moto's SQS 5.2.5, which ``sqs_answers.json`` has recorded.

``COLUMNAR_REWRITE=1`` records them anew, from moto's server in a thread.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.serving import Serving
from tests.support.sqs_client import sqs_client
from tests.support.sqs_scenario import STEPS, answers

RECORDED = Path(__file__).parent / "sqs_answers.json"
# Steps at which moto does not answer what AWS's API reference says, with our answer.
DIFFERENT: Final[dict[str, Any]] = {
    "an attribute that is none": ["InvalidAttributeName", 400],
    "a trace header": {
        "MD5OfMessageBody": "92eb5ffee6ae2fec3ad71c777531578f",
        "MD5OfMessageSystemAttributes": "3f71502e2b401dca4ffefa0d1f324c78",
        "MessageId": "...",
    },
    "an attribute without a type": ["InvalidParameterValue", 400],
    "an attribute without a value": ["InvalidParameterValue", 400],
    "a body with other characters": ["InvalidMessageContents", 400],
    "an empty body": ["MissingParameter", 400],
}


def recorded() -> dict[str, Any]:
    if os.environ.get("COLUMNAR_REWRITE"):
        server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            found = dict(answers(sqs_client(server.get_host_and_port()[1])))
        finally:
            server.stop()
        RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return dict(json.loads(RECORDED.read_text()))


def test_the_endpoint_answers_as_moto_or_as_aws_documents(tmp_path: Path) -> None:
    pytest.importorskip("boto3", reason="boto3 is not installed: make dev")
    expected = recorded()
    assert list(expected) == [name for name, _, _ in STEPS]
    assert all(expected[name] != answer for name, answer in DIFFERENT.items()), "moto answers so by now"
    serving = Serving(tmp_path / "store", trigger_modules=(), sqs_port=0).start()
    try:
        found = dict(answers(sqs_client(serving.store.sqs_port or 0)))
    finally:
        serving.stop()
    for name, answer in (expected | DIFFERENT).items():
        assert found[name] == answer, name
