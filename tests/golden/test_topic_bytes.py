"""The bytes of docs/formats/topics.md."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.model.record_batch import ProducerMark, Record, pack_batch
from columnar.model.topic import CommittedOffset, TopicDescription, TopicSettings
from columnar.topics import partition_bytes
from columnar.topics.group_offsets import committed_cell, unpack_committed
from columnar.topics.partition_bytes import DROPPING, THERE, Tail
from columnar.topics.producer_state import Producer, RecentBatch, pack_producer, unpack_producer
from tests.support.golden import hold_to

SETTINGS = TopicSettings(86_400_000, -1)
TOPIC = TopicDescription("edits", 1_764_000_000_000_000, 3, SETTINGS)
TAIL = Tail(42, 7, 9_000, 1_764_000_000_123, 1_764_000_000_101, 4_096)
PRODUCER = Producer(2, (RecentBatch(0, 9, 100, 1_764_000_000_000), RecentBatch(10, 10, 110, 1_764_000_000_001)))
COMMITTED = CommittedOffset("edits", 2, 41, "at noon", TOPIC.id)
RECORDS = [Record(0, 1000, b"k", b"value", (("h", b"x"), ("n", None))), Record(1, 1005, None, None)]


def test_topic_bytes() -> None:
    column, value = committed_cell(COMMITTED)
    hold_to(
        "topics.txt",
        {
            "row: a partition": TOPIC.key(2),
            "settings": partition_bytes.pack_settings(SETTINGS),
            "tail": partition_bytes.pack_tail(TAIL),
            "column: a producer": partition_bytes.producer_qualifier(7),
            "a producer": pack_producer(PRODUCER),
            "column: a mark of time": partition_bytes.mark_qualifier(1_764_000_000_100),
            "a mark of time": partition_bytes.pack_offset(41),
            "column: a producer within the store": partition_bytes.pushed_qualifier(b"feed"),
            "a producer within the store": partition_bytes.pack_pushed(b"sequence"),
            "a topic": partition_bytes.pack_topic(TOPIC),
            "a topic that is being dropped": partition_bytes.pack_topic(TOPIC, DROPPING),
            "column: a committed offset": column,
            "a committed offset": value,
            "a batch": pack_batch(RECORDS, ProducerMark(7, 0, 3)),
        },
    )


def test_what_is_packed_is_unpacked() -> None:
    assert partition_bytes.unpack_settings(partition_bytes.pack_settings(SETTINGS)) == SETTINGS
    assert partition_bytes.unpack_tail(partition_bytes.pack_tail(TAIL)) == TAIL
    assert partition_bytes.producer_of(partition_bytes.producer_qualifier(7)) == 7
    assert unpack_producer(pack_producer(PRODUCER)) == PRODUCER
    assert partition_bytes.offset_of(partition_bytes.pack_offset(41)) == 41
    assert partition_bytes.unpack_pushed(partition_bytes.pack_pushed(b"sequence")) == b"sequence"
    for state in (THERE, DROPPING):
        assert partition_bytes.unpack_topic(b"edits", partition_bytes.pack_topic(TOPIC, state)) == (TOPIC, state)
    column, value = committed_cell(COMMITTED)
    assert unpack_committed(column, value) == COMMITTED
    older = bytes.fromhex("010000000000000029") + b"at noon"
    assert unpack_committed(column, older) == CommittedOffset("edits", 2, 41, "at noon")


@pytest.mark.parametrize("data", [b"", b"\x02" + b"\x00" * 60, b"\x01\xff\xff"])
def test_damaged_cells_are_refused(data: bytes) -> None:
    for unpack in (partition_bytes.unpack_settings, partition_bytes.unpack_tail, unpack_producer):
        with pytest.raises(DamagedData):
            unpack(data)
    with pytest.raises(DamagedData):
        partition_bytes.unpack_topic(b"edits", data)
    with pytest.raises(DamagedData):
        unpack_committed(b"edits\x00\x00\x00\x00\x02", b"\x03" + data[1:] if data[:1] == b"\x02" else data)
