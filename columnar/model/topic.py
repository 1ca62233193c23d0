"""(pure) Topics: their names, bounds and errors, and the values that calls on them return.

A topic is a number of partitions, and a partition is a log of records with rising offsets.  A partition is named by its
``key``, the row of the table ``columnar:topics`` that holds it (``topics.partition_bytes``).  The key has the topic's
``id`` in it, so a topic that is made again under its name shares nothing with the dropped one.

Knows nothing of rows, regions and protocols.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final

from columnar.errors import IllegalArgument

TOPICS_TABLE: Final = "columnar:topics"
BATCHES: Final = b"b"  # family: record batches
HEADS: Final = b"h"  # family: what is known of a partition, and of topics and groups
ROWS_ALONE: Final = "length:300"  # ROW_GROUP: no row is so long, so each is a group by itself, and may be split off

TOPICS: Final = 10_000  # of a store
TOPIC_PARTITIONS: Final = 1_000  # of a topic
TOPIC_BATCH_BYTES: Final = 1024 * 1024
PRODUCE_BYTES: Final = 8 * 1024 * 1024  # of one call
FETCH_BYTES: Final = 8 * 1024 * 1024  # of one reply, and one batch
PRODUCERS: Final = 1_000  # of a partition, whose last batches are remembered; the least recent one is forgotten
METADATA_BYTES: Final = 4_096  # of a committed offset
GROUP_OFFSETS: Final = 10_000  # of one commit
GROUP_BYTES: Final = 249  # of a group's name
MOST_WAIT_MS: Final = 60_000
FOREVER: Final = -1  # retention_ms or retention_bytes without a bound
WEEK_MS: Final = 7 * 24 * 3_600 * 1_000
LATEST: Final = -1  # in place of a time: the offset after the last record
EARLIEST: Final = -2  # in place of a time: the first offset that is there

_NAME: Final = re.compile(r"[A-Za-z0-9_.\-]{1,249}")
_PLACE: Final = Struct(">QI")


class TopicError(IntEnum):
    """An error that is part of an answer, with the number that Kafka's protocol has for it."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2  # the checksum of a batch does not match
    UNKNOWN_TOPIC_OR_PARTITION = 3
    MESSAGE_TOO_LARGE = 10  # a batch is above TOPIC_BATCH_BYTES
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43  # a batch of an older format
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46  # a repeat of a batch older than those that are remembered
    INVALID_PRODUCER_EPOCH = 47
    INVALID_RECORD = 87  # a batch that no producer makes


@dataclass(frozen=True, slots=True)
class TopicSettings:
    retention_ms: int = WEEK_MS  # a batch is deleted so long after it was appended; FOREVER: never
    retention_bytes: int = FOREVER  # of each partition; the oldest batches are deleted above it


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    id: int  # no other topic of this store has it, or had it
    partitions: int
    settings: TopicSettings

    def key(self, partition: int) -> bytes:
        """Return the name of a partition in calls.  Raises IllegalArgument if there is no such partition."""
        if not 0 <= partition < self.partitions:
            raise IllegalArgument(f"topic {self.name} has partitions 0 to {self.partitions - 1}, and no {partition}")
        return partition_key(self.name, self.id, partition)


@dataclass(frozen=True, slots=True)
class Produced:
    error: TopicError
    base_offset: int = -1  # of the first batch
    append_ms: int = -1  # when it was stored
    log_start: int = -1


@dataclass(frozen=True, slots=True)
class Fetched:
    error: TopicError
    batches: bytes  # whole batches; the first one may begin before the offset that was asked for
    high_watermark: int  # the offset after the last record that readers see
    log_start: int


@dataclass(frozen=True, slots=True)
class Waited:
    error: TopicError
    size_bytes: int  # that a reader can get, counted up to the number that it waits for
    high_watermark: int


@dataclass(frozen=True, slots=True)
class FoundOffset:
    error: TopicError
    offset: int  # -1: no record is so late
    timestamp_ms: int  # of the record; -1 for EARLIEST and LATEST


@dataclass(frozen=True, slots=True)
class PartitionState:
    error: TopicError
    log_start: int
    high_watermark: int
    size_bytes: int
    producers: int
    append_ms: int  # of the last batch; 0: none was appended


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    topic: str
    partition: int
    offset: int
    metadata: str = ""
    topic_id: int = 0  # of the topic that had the name; 0: not known, in cells of version 1


def checked_name(name: str) -> str:
    """Return the name of a topic, by Kafka's rules.  Raises IllegalArgument."""
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise IllegalArgument(f"{name!r}: a topic's name has 1 to 249 letters, digits and characters of . _ -")
    return name


def checked_group(group: str) -> str:
    """Return the name of a group of consumers.  Raises IllegalArgument."""
    if not 1 <= len(group.encode()) <= GROUP_BYTES:
        raise IllegalArgument(f"the name of a group has 1 to {GROUP_BYTES} bytes")
    return group


def checked_partitions(count: int) -> int:
    if not 1 <= count <= TOPIC_PARTITIONS:
        raise IllegalArgument(f"{count} partitions: a topic has 1 to {TOPIC_PARTITIONS}")
    return count


def checked_settings(settings: TopicSettings) -> TopicSettings:
    for name, value in (("retention_ms", settings.retention_ms), ("retention_bytes", settings.retention_bytes)):
        if value != FOREVER and not 1 <= value < 1 << 62:
            raise IllegalArgument(f"{name} {value}: it is positive, or {FOREVER} for no bound")
    return settings


def partition_key(name: str, topic_id: int, partition: int) -> bytes:
    return name.encode() + b"\x00" + _PLACE.pack(topic_id, partition)
