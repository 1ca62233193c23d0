"""(pure) Records that the store itself appends to a partition: which of them are new, and their batches.

A producer within the store, as a feed, names each of its records by a sequence.  The sequences rise, as bytes compare,
within the records of one producer and partition, and a producer waits for the answer to an append before the next one.
So the last sequence tells which records are there already, and a repeat stores nothing.

Knows nothing of rows, regions and topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from columnar.cluster.peer_requests import PushedRecord
from columnar.errors import IllegalArgument
from columnar.model.record_batch import HEAD_BYTES, Record, pack_batch
from columnar.model.topic import TOPIC_BATCH_BYTES, TopicError

PUSH_PRODUCERS: Final = 1_000  # within the store, that a partition remembers
PUSH_BYTES: Final = 4 * 1024 * 1024  # of the records of one append, all partitions together
SEQUENCE_BYTES: Final = 64  # of a sequence, and of a producer's name
_RECORD_BYTES: Final = 64  # more than the numbers of a record take
_HEADER_BYTES: Final = 12  # more than the lengths of a header take


def size_of(record: PushedRecord) -> int:
    """Return the bytes of a record in a batch, at most."""
    headers = sum(_HEADER_BYTES + len(name.encode()) + len(value or b"") for name, value in record.headers)
    return _RECORD_BYTES + len(record.key or b"") + len(record.value or b"") + headers


def batches_after(last: bytes | None, records: Sequence[PushedRecord]) -> list[bytes] | TopicError:
    """Return batches of the records whose sequence is above ``last``; None: of all records.

    A record that fits in no batch is an error, and then nothing is appended.  Raises IllegalArgument if the records are
    not in order.
    """
    batches: list[bytes] = []
    gathered: list[Record] = []
    size, before = HEAD_BYTES, b""
    for record in records:
        if not before < record.sequence or len(record.sequence) > SEQUENCE_BYTES:
            raise IllegalArgument(f"sequences rise, and have at most {SEQUENCE_BYTES} bytes: {record.sequence!r}")
        before = record.sequence
        if last is not None and record.sequence <= last:
            continue
        record_bytes = size_of(record)
        if HEAD_BYTES + record_bytes > TOPIC_BATCH_BYTES:
            return TopicError.MESSAGE_TOO_LARGE
        if size + record_bytes > TOPIC_BATCH_BYTES:
            batches.append(pack_batch(gathered))
            gathered, size = [], HEAD_BYTES
        gathered.append(Record(len(gathered), record.timestamp_ms, record.key, record.value, record.headers))
        size += record_bytes
    if gathered:
        batches.append(pack_batch(gathered))
    return batches
