"""(pure) The cells of topics in the table ``columnar:topics``; docs/formats/topics.md has an example of each.

    a partition    row NAME 00 id:u64 partition:u32
                     b:offset:u64       a batch of records, under the offset of its first one
                     h:c                settings: the partition is there
                     h:n                tail
                     h:p producer:i64   the last batches of an idempotent producer (``producer_state``)
                     h:t time:u64       a mark of time: the offset of the batch that made ``time`` the latest one so far
                     h:w PRODUCER       the last sequence of a producer within the store
    all topics     row 00 'topics'
                     h:NAME             topic
                     h:00               the last id of a producer, as a counter
    a group        row 00 'g' GROUP      (``group_offsets``)

    settings  := version:u8(1) retention_ms:i64 retention_bytes:i64
    tail      := version:u8(1) next:u64 first:u64 size_bytes:u64 append_ms:u64 latest_ms:u64 marked:u64
    mark      := offset:u64
    pushed    := version:u8(1) sequence
    topic     := version:u8(1) state:u8 id:u64 partitions:u32 retention_ms:i64 retention_bytes:i64
                                                                                                            big-endian

State 1 is a topic that is there, 2 one that is being dropped.

``latest_ms`` is the latest time of a record so far, plus 1, and ``marked`` the bytes since the last mark of time.

Knows nothing of regions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from struct import Struct, error
from typing import Final

from columnar.errors import DamagedData
from columnar.model.topic import TopicDescription, TopicSettings

SETTINGS, TAIL = b"c", b"n"  # qualifiers
PRODUCER, MARK, AFTER_MARKS = b"p", b"t", b"u"  # first bytes of qualifiers; no other one is between them
PUSHED, AFTER_PUSHED = b"w", b"x"  # as these
TOPICS_ROW: Final = b"\x00topics"
PRODUCER_IDS: Final = b"\x00"
THERE, DROPPING = 1, 2
MARK_BYTES: Final = 256 * 1024  # of batches between two marks of time, at least

VERSION: Final = 1
_SETTINGS: Final = Struct(">Bqq")
_TAIL: Final = Struct(">BQQQQQQ")
_TOPIC: Final = Struct(">BBQIqq")
_U64: Final = Struct(">Q")
_I64: Final = Struct(">q")
_SIZES = (_SETTINGS.size, _TAIL.size, _TOPIC.size)
assert _SIZES == (17, 49, 30), "on disk: a new layout needs a new version"


@dataclass(frozen=True, slots=True)
class Tail:
    """The ends of a partition, and what the next batch needs to know."""

    next: int = 0  # the offset of the next record
    first: int = 0  # the first offset that readers may ask for
    size_bytes: int = 0  # of the batches that are there
    append_ms: int = 0  # of the last batch
    latest: int = 0  # the latest time of a record, plus 1
    unmarked_bytes: int = MARK_BYTES  # since the last mark of time

    def with_batch(self, count: int, size_bytes: int, append_ms: int, timestamp_ms: int) -> tuple[Tail, int | None]:
        """Return the tail behind one more batch, and the time for which it gets a mark, if any."""
        mark = None
        unmarked = self.unmarked_bytes
        if timestamp_ms >= self.latest and unmarked >= MARK_BYTES:
            mark, unmarked = timestamp_ms, 0
        tail = replace(
            self, next=self.next + count, size_bytes=self.size_bytes + size_bytes, append_ms=append_ms,
            latest=max(self.latest, timestamp_ms + 1), unmarked_bytes=min(unmarked + size_bytes, MARK_BYTES),
        )  # fmt: skip
        return tail, mark


def batch_qualifier(offset: int) -> bytes:
    return _U64.pack(offset)


def offset_of(qualifier: bytes) -> int:
    """Return the offset in the qualifier of a batch."""
    found: int = _U64.unpack(qualifier)[0]
    return found


def producer_qualifier(number: int) -> bytes:
    return PRODUCER + _I64.pack(number)


def producer_of(qualifier: bytes) -> int:
    found: int = _I64.unpack_from(qualifier, 1)[0]
    return found


def mark_qualifier(time_ms: int) -> bytes:
    return MARK + _U64.pack(time_ms)


def pack_offset(offset: int) -> bytes:
    return _U64.pack(offset)


def pushed_qualifier(producer: bytes) -> bytes:
    return PUSHED + producer


def pack_pushed(sequence: bytes) -> bytes:
    return bytes((VERSION,)) + sequence


def unpack_pushed(data: bytes) -> bytes:
    """Return the last sequence of a producer within the store.  Raises DamagedData."""
    if data[:1] != bytes((VERSION,)):
        raise DamagedData(f"the cell of a producer within the store begins with {data[:1]!r}: install a newer version")
    return data[1:]


def pack_settings(settings: TopicSettings) -> bytes:
    return _SETTINGS.pack(VERSION, settings.retention_ms, settings.retention_bytes)


def unpack_settings(data: bytes) -> TopicSettings:
    _, retention_ms, retention_bytes = unpacked(_SETTINGS, data, "the settings of a partition")
    return TopicSettings(retention_ms, retention_bytes)


def pack_tail(tail: Tail) -> bytes:
    return _TAIL.pack(
        VERSION, tail.next, tail.first, tail.size_bytes, tail.append_ms, tail.latest, tail.unmarked_bytes
    )  # fmt: skip


def unpack_tail(data: bytes) -> Tail:
    return Tail(*unpacked(_TAIL, data, "the tail of a partition")[1:])


def pack_topic(topic: TopicDescription, state: int = THERE) -> bytes:
    settings = topic.settings
    return _TOPIC.pack(VERSION, state, topic.id, topic.partitions, settings.retention_ms, settings.retention_bytes)


def unpack_topic(name: bytes, data: bytes) -> tuple[TopicDescription, int]:
    """Return a topic and its state, THERE or DROPPING."""
    _, state, topic_id, partitions, retention_ms, retention_bytes = unpacked(_TOPIC, data, "the cell of a topic")
    settings = TopicSettings(retention_ms, retention_bytes)
    return TopicDescription(name.decode(), topic_id, partitions, settings), state


def unpacked(form: Struct, data: bytes, what: str) -> tuple[int, ...]:
    """Return the fields of a cell.  Raises DamagedData."""
    try:
        fields: tuple[int, ...] = form.unpack(data)
    except error as fault:
        raise DamagedData(f"{what}: {fault}") from None
    if fields[0] != VERSION:
        raise DamagedData(f"{what} has version {fields[0]}, and this program reads {VERSION}: install a newer one")
    return fields
