"""An S3 service on loopback: moto's server in a process of its own, whose buckets vanish with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from columnar.backup.s3_store import client_of

_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.disable()
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "the-access-key",
    "AWS_SECRET_ACCESS_KEY": "the-secret-key",
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "NO_PROXY": "127.0.0.1",
}


@contextmanager
def s3_service() -> Iterator[str]:
    """Yield the URL of a service."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.communicate()


def bucket_client(url: str, bucket: str) -> Any:
    """Return a client of the service, after the bucket was made."""
    client = client_of(url)
    client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    return client
