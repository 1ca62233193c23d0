"""Topics by a client: make them, append records to them, and read them.

    connection.topics.create("edits", partitions=4)
    topic = connection.topic("edits")
    topic.produce([b"first", b"second"], key=b"Main_Page")
    for record in topic.records():
        print(record.partition, record.offset, record.value)

Records of one key are in one partition, in the order in which they were produced.  The batches of this client are those
of Kafka's protocol, not compressed; it does not read compressed ones.

Not safe for threads, as the connection is not.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from columnar.client.errors import IOError, WrongArgument
from columnar.client.store_link import BROKEN
from columnar.model.record_batch import BatchFault, ProducerMark, Record, checked_heads, pack_batch, records_of
from columnar.model.topic import (
    EARLIEST,
    LATEST,
    MOST_WAIT_MS,
    TOPIC_BATCH_BYTES,
    TopicDescription,
    TopicError,
    TopicSettings,
)
from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.connection import Connection

READ_BYTES: Final = 1024 * 1024  # of one read
FOLLOW_WAIT_MS: Final = 20_000  # of one call; the client calls again after it
TRIES: Final = 5  # of a batch whose outcome is not known
PAUSE_S: Final = 0.2  # before the second try, and twice as long before each further one
_SEQUENCES: Final = 1 << 31


class TopicFailed(Exception):
    """A call that a topic refuses; ``error`` is the number of Kafka's protocol."""

    def __init__(self, text: str, error: TopicError) -> None:
        super().__init__(text)
        self.error = error


class ReadRecord(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    partition: int
    first: int  # the first offset that is there
    end: int  # the offset after the last record
    size_bytes: int
    producers: int  # that are remembered
    append_ms: int  # when the last batch was appended; 0: never


@dataclass(frozen=True, slots=True)
class PartitionLag:
    partition: int
    committed: int  # -1: the group has committed nothing
    first: int
    end: int
    lag: int  # records


@dataclass(frozen=True, slots=True)
class GroupLag:
    group: str
    topic: str
    lag: int  # records, of all partitions
    partitions: tuple[PartitionLag, ...]


@dataclass(frozen=True, slots=True)
class PartitionCount:
    partition: int
    produced: int
    consumed: int


@dataclass(frozen=True, slots=True)
class WindowCount:
    from_ms: int
    to_ms: int
    produced: int
    consumed: int
    partitions: tuple[PartitionCount, ...]


class Topics:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(
        self, name: str, partitions: int = 1, *, retention_ms: int | None = None, retention_bytes: int | None = None
    ) -> bool:
        """Make a topic; return False if there is one of the name.  Retention is 7 days if nothing else is said."""
        settings = columnar.TopicSettings(retentionMs=retention_ms, retentionBytes=retention_bytes)
        return bool(self._connection.call("columnarTopicCreate", name.encode(), partitions, settings))

    def configure(
        self,
        name: str,
        *,
        partitions: int = 0,
        retention_ms: int | None = None,
        retention_bytes: int | None = None,
    ) -> bool:
        """Change settings, and add partitions; what is not given stays.  Returns False if there is no such topic."""
        settings = columnar.TopicSettings(retentionMs=retention_ms, retentionBytes=retention_bytes)
        return bool(self._connection.call("columnarTopicConfigure", name.encode(), partitions, settings))

    def drop_topic(self, name: str) -> bool:
        """Delete a topic and its records; return False if there is none of the name."""
        return bool(self._connection.call("columnarTopicDrop", name.encode()))

    def list(self) -> Sequence[TopicDescription]:
        return [
            TopicDescription(
                one.name.decode(), one.id, one.partitions, TopicSettings(one.retentionMs, one.retentionBytes)
            )
            for one in self._connection.call("columnarTopicList")
        ]

    def groups(self, name: str = "") -> Sequence[GroupLag]:
        """Return how far groups of consumers are in the topic, or in all topics: by group and topic.

        Raises TopicFailed if there is no such topic.
        """
        found = json.loads(self._connection.call("columnarTopicGroups", name.encode()))
        if name and not found:
            self.describe(name)  # raises if there is none
        return [_group_lag(one) for one in found]

    def audit(self, name: str, group: str = "", *, window_s: float = 60, windows: int = 10) -> Sequence[WindowCount]:
        """Return the records produced in each of the last windows, and those that the group's commits have passed.

        The last window has now in it.  Without a group nothing counts as consumed.
        """
        asked = (name.encode(), group.encode(), round(window_s * 1_000), windows)
        return [_window_count(one) for one in json.loads(self._connection.call("columnarTopicAudit", *asked))]

    def describe(self, name: str) -> TopicDescription:
        """Return the topic.  Raises TopicFailed if there is none of the name."""
        for topic in self.list():
            if topic.name == name:
                return topic
        fault = f"there is no topic {name}: columnar topic create {name} makes it"
        raise TopicFailed(fault, TopicError.UNKNOWN_TOPIC_OR_PARTITION)


class Topic:
    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name
        self._description: TopicDescription | None = None
        self._producer: int | None = None
        self._sequences: dict[int, int] = {}  # of the next record, by partition
        self._next_place = 0  # partition of the next records without a key

    @property
    def description(self) -> TopicDescription:
        """The topic, as it was when this object first needed it."""
        if self._description is None:
            self._description = self._connection.topics.describe(self.name)
        return self._description

    # --- produce -----------------------------------------------------------------------------------------

    def produce(
        self,
        values: bytes | Sequence[bytes],
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes] | None = None,
        timestamp_ms: int | None = None,
    ) -> tuple[int, int]:
        """Append records as one batch; returns partition and offset of the first when all are on disk.

        The partition is that of the key, or the next one in turn.  A batch whose outcome is not known is sent again,
        and is in the log once: the store knows it by its number.
        """
        listed = [values] if isinstance(values, bytes) else list(values)
        if not listed:
            raise WrongArgument("produce needs at least one record")
        place = self._place(key) if partition is None else partition
        now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        extra = tuple((headers or {}).items())
        records = [Record(number, now_ms, key, value, extra) for number, value in enumerate(listed)]
        if self._producer is None:
            self._producer = self._connection.call("columnarTopicProducer")
        sequence = self._sequences.get(place, 0)
        batch = pack_batch(records, ProducerMark(self._producer, 0, sequence))
        if len(batch) > TOPIC_BATCH_BYTES:
            raise WrongArgument(f"these records are {len(batch)} bytes, a batch has at most {TOPIC_BATCH_BYTES}")
        found = self._produce(self.description.key(place), batch)
        self._check(found.error, f"partition {place} of topic {self.name} took no records")
        self._sequences[place] = (sequence + len(records)) % _SEQUENCES
        return place, found.baseOffset

    def _place(self, key: bytes | None) -> int:
        count = self.description.partitions
        if key is not None:
            return zlib.crc32(key) % count
        self._next_place += 1
        return (self._next_place - 1) % count

    def _produce(self, key: bytes, batch: bytes) -> Any:
        try:
            return self._produce_once(key, batch)
        except BaseException:
            # The batch may be there or not.  The next one must not take its number, or it would count as a repeat.
            self._producer = None
            self._sequences.clear()
            raise

    def _produce_once(self, key: bytes, batch: bytes) -> Any:
        """Append a batch that has a number: sent again while its outcome is unknown, it is in the log once."""
        pause_s = PAUSE_S
        for attempt in range(1, TRIES + 1):
            try:
                return self._connection.call("columnarPartitionProduce", key, batch)
            except (*BROKEN, IOError) as error:
                if attempt == TRIES or not getattr(error, "canRetry", True):
                    raise
                is_broken = isinstance(error, BROKEN)
            time.sleep(pause_s)
            pause_s *= 2
            if is_broken:
                self._reopen()
        raise AssertionError("the last try returns or raises")

    def _reopen(self) -> None:
        self._connection.close()
        with suppress(*BROKEN):  # the next try fails, and is counted
            self._connection.open()

    # --- read --------------------------------------------------------------------------------------------

    def read(self, partition: int, offset: int, *, max_bytes: int = READ_BYTES) -> list[ReadRecord]:
        """Return records from ``offset`` on; none at the end of the partition."""
        found = self._connection.call("columnarPartitionFetch", self.description.key(partition), offset, max_bytes)
        self._check(found.error, self._no_offset(partition, offset, found))
        data = found.batches
        heads = checked_heads(data) if data else []
        if isinstance(heads, BatchFault):
            text = f"the records of topic {self.name} are damaged: {heads.value}"
            raise TopicFailed(text, TopicError.CORRUPT_MESSAGE)
        if any(head.is_compressed for head in heads):
            text = "these records are compressed: read them with a client of Kafka's protocol"
            raise TopicFailed(text, TopicError.UNSUPPORTED_FOR_MESSAGE_FORMAT)
        return [
            ReadRecord(partition, *record) for head in heads for record in records_of(data, head)
            if record.offset >= offset
        ]  # fmt: skip

    def _no_offset(self, partition: int, offset: int, found: Any) -> str:
        return (
            f"partition {partition} of topic {self.name} has offsets {found.logStart} to {found.highWatermark}, "
            f"and no {offset}"
        )

    def records(
        self, *, start: str | int | Mapping[int, int] = "earliest", wait_ms: int | None = None
    ) -> Iterator[ReadRecord]:
        """Yield the records of all partitions, those of a partition in their order.

        ``start``: ``"earliest"``, ``"latest"``, a time in ms since 1970, or an offset for each partition.  ``wait_ms``:
        the iteration ends when no record has come for so long; None: never.
        """
        offsets = self._first_offsets(start)
        end_s: float | None = None  # when the iteration ends
        while True:
            for partition in list(offsets):
                for record in self.read(partition, offsets[partition]):
                    yield record
                    offsets[partition] = record.offset + 1
                    end_s = None
            if wait_ms is not None and end_s is None:
                end_s = time.monotonic() + wait_ms / 1_000
            left_ms = MOST_WAIT_MS if end_s is None else round((end_s - time.monotonic()) * 1_000)
            if left_ms <= 0:
                return
            slice_ms = min(left_ms, FOLLOW_WAIT_MS)
            self._connection.call("columnarTopicWait", self.name.encode(), offsets, 1, slice_ms)

    def _first_offsets(self, start: str | int | Mapping[int, int]) -> dict[int, int]:
        if isinstance(start, Mapping):
            return dict(start)
        if isinstance(start, str) and start not in {"earliest", "latest"}:
            raise WrongArgument(f"start {start!r}: it is earliest, latest, a time in ms, or offsets by partition")
        time_ms = start if isinstance(start, int) else EARLIEST if start == "earliest" else LATEST
        found: dict[int, int] = {}
        for partition in range(self.description.partitions):
            offset = self.offset_at(partition, time_ms)
            found[partition] = self.offset_at(partition, LATEST) or 0 if offset is None else offset
        return found

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        """Return the first offset at or after a time; None if no record is so late."""
        found = self._connection.call("columnarPartitionOffset", self.description.key(partition), timestamp_ms)
        self._check(found.error, f"there is no partition {partition} of topic {self.name}")
        return None if found.offset < 0 else int(found.offset)

    def partitions(self) -> list[PartitionInfo]:
        """Return how far each partition is."""
        infos = []
        for number in range(self.description.partitions):
            found = self._connection.call("columnarPartitionState", self.description.key(number))
            self._check(found.error, f"there is no partition {number} of topic {self.name}")
            infos.append(
                PartitionInfo(
                    number, found.logStart, found.highWatermark, found.sizeBytes, found.producers, found.appendMs
                )
            )
        return infos

    def _check(self, error: int, text: str) -> None:
        if error == TopicError.UNKNOWN_TOPIC_OR_PARTITION:
            self._description = None  # perhaps it was made again
            text = f"topic {self.name} was dropped; it has other records if it was made again"
        if error:
            raise TopicFailed(f"{text} ({TopicError(error).name})", TopicError(error))


def _group_lag(one: Mapping[str, Any]) -> GroupLag:
    return GroupLag(**{**one, "partitions": tuple([PartitionLag(**part) for part in one["partitions"]])})


def _window_count(one: Mapping[str, Any]) -> WindowCount:
    return WindowCount(**{**one, "partitions": tuple([PartitionCount(**part) for part in one["partitions"]])})
