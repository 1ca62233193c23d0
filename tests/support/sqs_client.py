"""AWS's own client for the SQS door of a store in the test's process."""

from __future__ import annotations

import json
import socket
import ssl
import time
from contextlib import closing
from typing import Any

import pytest

from tests.support.serving import Serving


def port_of(store: Serving) -> int:
    port = store.store.sqs_port
    assert port is not None
    return port


def sqs_client(port: int, *, ca: str = "", region: str = "eu-west-1", retries: int = 0, **options: Any) -> Any:
    """Return boto3's client, which retries nothing unless it is told to: a refusal is seen.

    ``ca``: the authority of the store's certificate, with which the client speaks TLS.
    """
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: make dev")
    from botocore.config import Config

    config = Config(retries={"max_attempts": retries}, parameter_validation=False, read_timeout=30, **options)
    return boto3.client(
        "sqs",
        endpoint_url=f"http{'s' if ca else ''}://127.0.0.1:{port}",
        verify=ca or None,
        region_name=region,
        aws_access_key_id="AKIATEST",
        aws_secret_access_key="secret",
        config=config,
    )


def abandon_receive(port: int, url: str, tls: ssl.SSLContext | None = None) -> None:
    """Begin to wait for a message over a connection of its own, and close it."""
    body = json.dumps({"QueueUrl": url, "WaitTimeSeconds": 20}).encode()
    head = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: "
    with closing(socket.create_connection(("127.0.0.1", port))) as plain:
        connection = tls.wrap_socket(plain, server_hostname="127.0.0.1") if tls is not None else plain
        connection.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
        time.sleep(0.2)  # the receiver waits by now; a receiver that has not begun gets nothing anyhow
        connection.close()


def error_of(raised: Any) -> tuple[str, int]:
    """Return code and status of the error of a client."""
    response = raised.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]
