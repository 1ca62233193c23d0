"""(pure) Names, URLs and ARNs of queues, and ids of messages.

    QueueUrl   http://127.0.0.1:9324/000000000000/thumbs      the host as the client named it
    ARN        arn:aws:sqs:us-east-1:000000000000:thumbs      the region as the client signed for it

The account is always ACCOUNT, and any account in a URL is taken: a store has one set of queues.  A name made by SQS
has up to 80 letters, digits, ``_`` and ``-``, and that of a FIFO queue ends in ``.fifo``; a queue of the store with
another name is served, too.

Knows nothing of queues.
"""

from __future__ import annotations

import re
from hashlib import md5
from typing import Final
from uuid import UUID

from columnar.sqs.errors import SqsError, invalid_value, missing

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"
FIFO_SUFFIX: Final = ".fifo"
_NEW_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")  # ``queues.keys``
_CREDENTIAL: Final = re.compile(r"Credential=([^/, ]{1,128})/[0-9]{8}/([a-z0-9-]{1,32})/")


def new_name(name: str, *, is_fifo: bool) -> str:
    """Return the name of a queue that is to be made.  Raises SqsError."""
    stem = name.removesuffix(FIFO_SUFFIX) if is_fifo else name
    if is_fifo and stem == name:
        raise invalid_value(
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with "
            ".fifo suffix and be 1 to 80 in length."
        )
    if not _NEW_NAME.fullmatch(stem) or len(name) > 80:
        raise invalid_value("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
    return name


def queue_of_url(url: str) -> bytes:
    """Return the name of the queue with this URL.  Raises SqsError."""
    if not url:
        raise missing("QueueUrl")
    name = url.rstrip("/").rpartition("/")[2]
    if not _NAME.fullmatch(name):
        raise SqsError("InvalidAddress", f"The address {url[:200]} is not valid for this endpoint.")
    return name.encode()


def queue_named(name: str) -> bytes:
    """Return the name of a queue that may be there.  Raises SqsError."""
    if not _NAME.fullmatch(name):
        raise invalid_value("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
    return name.encode()


def queue_of_arn(arn: object) -> bytes:
    """Return the name of the queue with this ARN.  Raises SqsError."""
    parts = arn.split(":") if isinstance(arn, str) else []
    if len(parts) != 6 or parts[:3] != ["arn", "aws", "sqs"] or not _NAME.fullmatch(parts[5]):
        raise invalid_value(
            f"{str(arn)[:200]!r} is no ARN of a queue; it is written as arn:aws:sqs:REGION:ACCOUNT:NAME"
        )
    return parts[5].encode()


def arn_of(queue: bytes, region: str = REGION) -> str:
    return f"arn:aws:sqs:{region}:{ACCOUNT}:{queue.decode()}"


def url_of(queue: bytes, host: str, *, is_tls: bool = False) -> str:
    return f"http{'s' if is_tls else ''}://{host}/{ACCOUNT}/{queue.decode()}"


def message_id(queue: bytes, number: int) -> str:
    """Return an id in the form of SQS; the same message has it each time, and no other one of the store."""
    head = md5(queue, usedforsecurity=False).digest()[:8]
    return str(UUID(bytes=head + number.to_bytes(8, "big")))


def signer_of(authorization: str) -> tuple[str, str]:
    """Return access key and region of a signature, which is not checked; "" and REGION where there is none."""
    found = _CREDENTIAL.search(authorization[:1_000])
    return (found[1], found[2]) if found is not None else ("", REGION)
