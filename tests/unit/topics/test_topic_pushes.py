"""Appends from within the store: each record once, whatever is repeated; refusals; the partition of a key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

import pytest

from columnar.cluster.peer_requests import PushedRecord
from columnar.errors import IllegalArgument, TopicRefused
from columnar.model.mutation import Put
from columnar.model.record_batch import Record, checked_heads, pack_batch, records_of
from columnar.model.record_partition import hash_of, partition_of
from columnar.model.schema import Family, make_table
from columnar.model.topic import HEADS, ROWS_ALONE, TOPIC_BATCH_BYTES, TOPICS_TABLE, TopicDescription, TopicSettings
from columnar.operations.system_tables import SystemTables
from columnar.topics import partition as partition_module
from columnar.topics.partition_bytes import DROPPING, TOPICS_ROW, pack_topic
from columnar.topics.partitions import Partitions
from columnar.topics.pushed_records import PUSH_BYTES, SEQUENCE_BYTES, batches_after, size_of
from columnar.topics.topic_pushes import TopicPushes
from tests.support.region_house import House

PARTITIONS = 3
EDITS = TopicDescription("edits", 5, PARTITIONS, TopicSettings())


class Pushes(House):
    def __init__(self) -> None:
        super().__init__(make_table(TOPICS_TABLE, [Family("b"), Family("h")], {"ROW_GROUP": ROWS_ALONE}))
        self.region()
        self.begin_again()

    def begin_again(self) -> None:
        """Forget what is in memory, as a restart does."""
        self.partitions = Partitions(self.operations.access)
        self.pushes = TopicPushes(self.partitions, SystemTables(self.server), lambda: None)

    async def make(self, topic: TopicDescription = EDITS) -> None:
        for number in range(topic.partitions):
            await (await self.desk(topic, number)).configure(topic.settings)
        await self.put(TOPICS_ROW, Put(HEADS, topic.name.encode(), pack_topic(topic)))

    async def desk(self, topic: TopicDescription, number: int) -> Any:
        return await self.partitions.desks.open_desk(lambda: False, topic.key(number))

    async def push(self, *records: PushedRecord, producer: bytes = b"feed", topic: str = "edits") -> None:
        await self.pushes.append(topic, producer, records)

    async def values(self, topic: TopicDescription = EDITS) -> list[list[bytes | None]]:
        found = []
        for number in range(topic.partitions):
            data = (await self.desk(topic, number)).fetch(0, 1 << 23).batches
            heads = checked_heads(data) if data else []
            assert isinstance(heads, list)
            found.append([one.value for head in heads for one in records_of(data, head)])
        return found


def pushes(test: Callable[[Pushes], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def inside() -> None:
            house = Pushes()
            try:
                async with asyncio.timeout(20):
                    await test(house)
            finally:
                await house.close()

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


def record(number: int, key: bytes | None = b"row", value: bytes | None = None) -> PushedRecord:
    return PushedRecord(number.to_bytes(8, "big"), key, b"%d" % number if value is None else value, (("h", b"x"),), 7)


@pushes
async def test_records_of_a_key_are_in_its_partition_in_order(house: Pushes) -> None:
    await house.make()
    keys = [b"row-%d" % (number % 7) for number in range(50)]
    await house.push(*(record(number, keys[number]) for number in range(50)))
    expected = [
        [b"%d" % number for number in range(50) if partition_of(keys[number], PARTITIONS) == partition]
        for partition in range(PARTITIONS)
    ]
    assert await house.values() == expected


@pushes
async def test_a_repeat_stores_nothing_and_what_is_behind_it_is_stored(house: Pushes) -> None:
    await house.make()
    await house.push(record(1), record(2))
    await house.push(record(1), record(2))
    house.begin_again()
    await house.push(record(1), record(2))
    await house.push(record(2), record(3))
    await house.push(record(1), producer=b"other")
    assert sorted(chain.from_iterable(await house.values())) == [b"1", b"1", b"2", b"3"]


@pushes
async def test_the_answer_to_a_repeat_waits_for_the_fsync_of_the_first(house: Pushes) -> None:
    await house.make()
    house.gate.hold()
    first = asyncio.ensure_future(house.push(record(1)))
    await asyncio.to_thread(house.gate.entered.wait, 20)
    repeat = asyncio.ensure_future(house.push(record(1)))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not first.done()
    assert not repeat.done()
    house.gate.release()
    await asyncio.gather(first, repeat)


@pushes
async def test_a_partition_forgets_the_least_recent_producer(house: Pushes) -> None:
    await house.make()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_module, "PUSH_PRODUCERS", 3)
        for number in range(5):
            house.clock.now_ms += 1_000
            await house.push(record(1), producer=b"p%d" % number)
        for number in range(2, 5):
            await house.push(record(1), producer=b"p%d" % number)
        assert sum(map(len, await house.values())) == 5
        await house.push(record(1), producer=b"p0")
        assert sum(map(len, await house.values())) == 6


@pushes
async def test_what_a_topic_refuses(house: Pushes) -> None:
    with pytest.raises(TopicRefused, match="no topic edits; columnar topic create edits"):
        await house.push(record(1))
    await house.make()
    with pytest.raises(TopicRefused, match="1 MiB"):
        await house.push(record(1), record(2, value=bytes(TOPIC_BATCH_BYTES)))
    assert sum(map(len, await house.values())) == 0, "nothing of a refused append"
    for wrong in ([record(2), record(1)], [record(1), record(1)], [PushedRecord(bytes(65), b"k", b"v")]):
        with pytest.raises(IllegalArgument, match="sequences rise"):
            await house.push(*wrong)
    with pytest.raises(IllegalArgument, match="make several"):
        await house.push(*(record(number, value=bytes(PUSH_BYTES // 4)) for number in range(5)))
    for producer in (b"", bytes(SEQUENCE_BYTES + 1)):
        with pytest.raises(IllegalArgument, match="name has 1 to 64"):
            await house.push(record(1), producer=producer)
    await house.put(TOPICS_ROW, Put(HEADS, b"edits", pack_topic(EDITS, DROPPING)))
    house.begin_again()
    with pytest.raises(TopicRefused, match="no topic edits"):
        await house.push(record(1))


@pushes
async def test_a_topic_that_is_made_again_takes_the_records(house: Pushes) -> None:
    await house.make()
    await house.push(record(1))
    for number in range(PARTITIONS):
        await (await house.desk(EDITS, number)).end_partition()
    again = TopicDescription("edits", 6, 2, TopicSettings())
    await house.make(again)
    await house.push(record(1), record(2))
    assert sorted(chain.from_iterable(await house.values(again))) == [b"1", b"2"]


def test_batches_have_at_most_their_bytes() -> None:
    records = [record(number, value=bytes(300_000)) for number in range(9)]
    batches = batches_after(None, records)
    assert isinstance(batches, list)
    heads = [checked_heads(one) for one in batches]
    assert [head[0].records for head in heads if isinstance(head, list)] == [3, 3, 3]
    assert all(len(one) <= TOPIC_BATCH_BYTES for one in batches)
    assert batches_after(records[8].sequence, records) == []
    for one in (
        record(1),
        record(2, None),
        PushedRecord(b"\x01", b"", None, (("ä" * 99, None), ("", b"x" * 70_000)), 1 << 60),
    ):
        packed = pack_batch([Record(0, 0, b"", b""), Record(1, one.timestamp_ms, one.key, one.value, one.headers)])
        assert len(packed) - len(pack_batch([Record(0, 0, b"", b"")])) <= size_of(one)


def test_partitions_are_those_of_kafkas_clients() -> None:
    assert [hash_of(key) for key in (b"21", b"foobar", b"a-little-bit-long-string")] == [
        3321034988, 3504634814, 3308985760,
    ]  # fmt: skip
    kafka = pytest.importorskip("kafka.partitioner.default")
    for length in range(40):
        key = bytes(range(200, 200 + length))
        assert hash_of(key) == kafka.murmur2(key) & 0xFFFFFFFF
