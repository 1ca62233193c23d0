"""A partition on a region: appends, reads, what readers see, times, retention, drops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.model.mutation import Put, RowMutation
from columnar.model.record_batch import ProducerMark, Record, checked_heads, pack_batch, records_of
from columnar.model.schema import Family, make_table
from columnar.model.topic import (
    EARLIEST,
    FOREVER,
    HEADS,
    LATEST,
    ROWS_ALONE,
    TOPIC_BATCH_BYTES,
    TOPICS_TABLE,
    TopicError,
    partition_key,
)
from columnar.operations import row_desks
from columnar.runtime.faults import FAULTS
from columnar.thrift.topic_methods import TopicMethods
from columnar.topics import partition as partition_module
from columnar.topics import partition_bytes
from columnar.topics import partitions as partitions_module
from columnar.topics.partition_bytes import MARK_BYTES
from columnar.topics.partitions import Partitions
from columnar.topics.topic_status import TopicFlows
from columnar.wire.idl import columnar
from columnar.wire.service import CallContext
from tests.support.region_house import House
from tests.support.service_calls import answer_of

CTX = CallContext(1, "test")
KEY = partition_key("edits", 5, 0)
OTHER = partition_key("edits", 5, 1)


class Topics(House):
    def __init__(self) -> None:
        super().__init__(make_table(TOPICS_TABLE, [Family("b"), Family("h")], {"ROW_GROUP": ROWS_ALONE}))
        self.region()
        self.begin_again()

    def begin_again(self) -> None:
        """Forget what is in memory, as a restart does."""
        self.partitions = Partitions(self.operations.access)
        self.methods = TopicMethods(self.partitions, None)  # type: ignore[arg-type]

    def begin(self, method: str, *args: Any, key: bytes = KEY) -> Any:
        return asyncio.ensure_future(answer_of(getattr(self.methods, f"columnarPartition{method}")(CTX, key, *args)))

    async def call(self, method: str, *args: Any, key: bytes = KEY) -> Any:
        return await self.begin(method, *args, key=key)

    async def make(self, retention_ms: int = FOREVER, retention_bytes: int = FOREVER, key: bytes = KEY) -> None:
        settings = columnar.TopicSettings(retentionMs=retention_ms, retentionBytes=retention_bytes)
        await self.call("Set", settings, key=key)

    async def produce(self, *values: bytes, time_ms: int = 0, mark: ProducerMark | None = None) -> Any:
        return await self.call("Produce", batch(*values, time_ms=time_ms, mark=mark))

    async def values(self, offset: int, most: int = 1 << 20) -> list[tuple[int, bytes | None]]:
        found = await self.call("Fetch", offset, most)
        assert found.error == TopicError.NONE
        return records(found.batches)


def batch(*values: bytes, time_ms: int = 0, mark: ProducerMark | None = None) -> bytes:
    made = [Record(n, time_ms, None, value) for n, value in enumerate(values)]
    return pack_batch(made, mark) if mark is not None else pack_batch(made)


def records(data: bytes) -> list[tuple[int, bytes | None]]:
    heads = checked_heads(data) if data else []
    assert isinstance(heads, list)
    return [(record.offset, record.value) for head in heads for record in records_of(data, head)]


def topics(test: Callable[[Topics], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def inside() -> None:
            house = Topics()
            try:
                async with asyncio.timeout(20):
                    await test(house)
            finally:
                await house.close()

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


@topics
async def test_records_are_read_from_any_offset_in_whole_batches(house: Topics) -> None:
    await house.make()
    offsets = [(await house.produce(*values)).baseOffset for values in ([b"a", b"b"], [b"c"], [b"d", b"e", b"f"])]
    assert offsets == [0, 2, 3]
    everything = list(enumerate([b"a", b"b", b"c", b"d", b"e", b"f"]))
    assert await house.values(0) == everything
    assert await house.values(1) == everything, "the batch that has the offset"
    assert await house.values(2) == everything[2:]
    assert await house.values(4, 1) == everything[3:], "at least one batch"
    assert await house.values(0, 1) == everything[:2]
    assert await house.values(6) == []
    house.begin_again()
    assert await house.values(5) == everything[3:]
    assert (await house.produce(b"g")).baseOffset == 6


@topics
async def test_readers_see_what_is_on_disk(house: Topics) -> None:
    await house.make()
    await house.produce(b"a")
    house.gate.hold()
    held = house.begin("Produce", batch(b"b"))
    found = await house.call("Fetch", 0, 1 << 20)
    assert (records(found.batches), found.highWatermark) == ([(0, b"a")], 1)
    assert (await house.call("Fetch", 2, 1)).error == TopicError.OFFSET_OUT_OF_RANGE
    assert not held.done()
    house.gate.release()
    assert (await held).baseOffset == 1
    assert await house.values(1) == [(1, b"b")]


@topics
async def test_a_reader_waits_for_records_that_are_on_disk(house: Topics) -> None:
    await house.make()
    assert (await house.call("Wait", 0, 1, 0)).bytes == 0
    waiting = house.begin("Wait", 0, 1, 20_000)
    await asyncio.sleep(0)
    house.gate.hold()
    produced = house.begin("Produce", batch(b"a"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    house.gate.release()
    await produced
    assert (await waiting).highWatermark == 1
    far = house.begin("Wait", 1, 1, 20_000)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not far.done()
    await house.produce(b"b")
    assert (await far).highWatermark == 2
    assert house.partitions.waiting_count == 0
    assert (await house.call("Wait", 5, 1, 20_000)).error == TopicError.OFFSET_OUT_OF_RANGE


@topics
async def test_a_reader_waits_for_so_many_bytes(house: Topics) -> None:
    await house.make()
    size = len(batch(b"x" * 100))
    waiting = house.begin("Wait", 0, 2 * size, 20_000)
    await house.produce(b"x" * 100)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    await house.produce(b"x" * 100)
    assert (await waiting).bytes == 2 * size


@topics
async def test_a_read_and_a_wait_have_a_bound_in_batches(house: Topics) -> None:
    await house.make()
    most = partition_module.FETCH_BATCHES
    await house.call("Produce", batch(b"a") * (most + 1))
    assert len(await house.values(0, 8 << 20)) == most
    assert (await house.call("Wait", 1, 8 << 20, 0)).bytes < 8 << 20
    assert (await house.call("Wait", 0, 8 << 20, 20_000)).bytes == 8 << 20


@topics
async def test_a_repeat_of_an_idempotent_producer_is_not_appended(house: Topics) -> None:
    await house.make()
    first = await house.produce(b"a", b"b", mark=ProducerMark(7, 0, 0))
    again = await house.produce(b"a", b"b", mark=ProducerMark(7, 0, 0))
    assert (again.error, again.baseOffset, again.appendMs) == (0, first.baseOffset, first.appendMs)
    house.begin_again()
    again = await house.produce(b"a", b"b", mark=ProducerMark(7, 0, 0))
    assert (again.error, again.baseOffset) == (0, 0)
    assert (await house.produce(b"c", mark=ProducerMark(7, 0, 2))).baseOffset == 2
    gap = await house.produce(b"d", mark=ProducerMark(7, 0, 9))
    assert gap.error == TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER
    await house.produce(b"d", mark=ProducerMark(7, 1, 0))
    assert (await house.produce(b"e", mark=ProducerMark(7, 0, 3))).error == TopicError.INVALID_PRODUCER_EPOCH
    assert [value for _, value in await house.values(0)] == [b"a", b"b", b"c", b"d"]


@topics
async def test_batches_of_a_producer_in_one_call_follow_each_other(house: Topics) -> None:
    await house.make()
    first, second = batch(b"a", mark=ProducerMark(7, 0, 0)), batch(b"b", mark=ProducerMark(7, 0, 1))
    assert (await house.call("Produce", first + second)).baseOffset == 0
    for again, offset in ((first, 0), (second, 1), (first + second, 0)):
        found = await house.call("Produce", again)
        assert (found.error, found.baseOffset) == (TopicError.NONE, offset)
    gap = batch(b"c", mark=ProducerMark(7, 0, 2)) + batch(b"d", mark=ProducerMark(7, 0, 9))
    assert (await house.call("Produce", gap)).error == TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [value for _, value in await house.values(0)] == [b"a", b"b"]


@topics
async def test_a_repeat_is_answered_after_the_fsync_of_the_first(house: Topics) -> None:
    await house.make()
    house.gate.hold()
    first = house.begin("Produce", batch(b"a", mark=ProducerMark(7, 0, 0)))
    await asyncio.sleep(0)
    again = house.begin("Produce", batch(b"a", mark=ProducerMark(7, 0, 0)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first.done()
    assert not again.done()
    house.gate.release()
    assert (await first).baseOffset == (await again).baseOffset == 0


@topics
async def test_what_is_no_batch_is_refused_and_leaves_nothing(house: Topics) -> None:
    await house.make()
    broken = bytearray(batch(b"a"))
    broken[-1] ^= 1
    assert (await house.call("Produce", bytes(broken))).error == TopicError.CORRUPT_MESSAGE
    assert (await house.call("Produce", batch(b"a") + bytes(broken))).error == TopicError.CORRUPT_MESSAGE
    assert (await house.call("Produce", b"")).error == TopicError.CORRUPT_MESSAGE
    large = await house.produce(b"x" * TOPIC_BATCH_BYTES)
    assert large.error == TopicError.MESSAGE_TOO_LARGE
    state = await house.call("State")
    assert (state.error, state.highWatermark, state.sizeBytes) == (0, 0, 0)


@topics
async def test_a_partition_that_was_not_made_takes_nothing(house: Topics) -> None:
    unknown = TopicError.UNKNOWN_TOPIC_OR_PARTITION
    assert (await house.produce(b"a")).error == unknown
    assert (await house.call("Fetch", 0, 1)).error == unknown
    assert (await house.call("Offset", LATEST)).error == unknown
    assert (await house.call("State")).error == unknown
    assert (await house.call("Wait", 0, 1, 20_000)).error == unknown
    assert house.row(KEY) == []


@topics
async def test_an_offset_is_found_by_time(house: Topics) -> None:
    await house.make()
    made = [Record(n, 1_000 + 10 * n, None, b"v") for n in range(5)]
    await house.call("Produce", pack_batch(made))
    await house.produce(b"late", time_ms=5_000)
    await house.produce(b"before it", time_ms=2_000)

    async def at(time_ms: int) -> tuple[int, int]:
        found = await house.call("Offset", time_ms)
        return found.offset, found.timestampMs

    assert [await at(time_ms) for time_ms in (0, 1_000, 1_001, 1_040)] == [(0, 1000), (0, 1000), (1, 1010), (4, 1040)]
    assert await at(1_041) == (5, 5_000), "the first one in the log, not the earliest time"
    assert await at(5_001) == (-1, -1)
    assert await at(EARLIEST) == (0, -1)
    assert await at(LATEST) == (7, -1)


@topics
async def test_marks_of_time_find_what_a_scan_finds(house: Topics) -> None:
    """Times fall back and rise; the marks must not lead past the first record of a time."""
    times = [100, 900, 500, 300, 901, 2_000, 1_500, 1_900, 2_100, 50, 2_101, 9_000, 8_000, 8_500]
    for key, parts in ((KEY, (1,)), (OTHER, (3, 4, 5, 6))):  # a mark is due with each batch, or with every fourth
        await house.make(key=key)
        for number, time_ms in enumerate(times):
            value = b"x" * (MARK_BYTES // parts[number % len(parts)])
            await house.call("Produce", batch(value, time_ms=time_ms), key=key)
    house.begin_again()
    for key in (KEY, OTHER):
        for time_ms in sorted({one + near for one in times for near in (-1, 0, 1)}):
            found = (await house.call("Offset", time_ms, key=key)).offset
            assert found == next((n for n, one in enumerate(times) if one >= time_ms), -1), time_ms


@topics
async def test_retention_by_time_moves_the_first_offset(house: Topics) -> None:
    await house.make(retention_ms=10_000)
    for value in (b"a", b"b"):
        await house.produce(value, value)
    house.clock.now_ms += 6_000
    await house.produce(b"c")
    assert await house.partitions.delete_expired() == 0
    house.clock.now_ms += 5_000
    assert await house.partitions.delete_expired() == 2
    assert (await house.call("Fetch", 3, 1)).error == TopicError.OFFSET_OUT_OF_RANGE
    assert await house.values(4) == [(4, b"c")]
    house.begin_again()
    state = await house.call("State")
    assert (state.logStart, state.highWatermark, state.sizeBytes) == (4, 5, len(batch(b"c")))
    house.clock.now_ms += 6_000
    assert await house.partitions.delete_expired() == 1
    state = await house.call("State")
    assert (state.logStart, state.highWatermark, state.sizeBytes) == (5, 5, 0)
    assert (await house.produce(b"d")).baseOffset == 5
    assert await house.values(5) == [(5, b"d")]


@topics
async def test_retention_by_size_keeps_the_last_batch(house: Topics) -> None:
    size = len(batch(b"x" * 1_000))
    await house.make(retention_bytes=2 * size)
    for _ in range(5):
        await house.produce(b"x" * 1_000)
    assert await house.partitions.delete_expired() == 3
    assert (await house.call("State")).logStart == 3
    await house.make(retention_bytes=1)
    assert await house.partitions.delete_expired() == 1
    assert [offset for offset, _ in await house.values(4)] == [4]
    assert await house.partitions.delete_expired() == 0


@pytest.mark.usefixtures("expected_faults")
@topics
async def test_a_damaged_partition_does_not_end_the_retention_of_others(house: Topics) -> None:
    await house.make(retention_ms=1_000)
    await house.make(retention_ms=1_000, key=OTHER)
    for key in (KEY, OTHER):
        await house.call("Produce", batch(b"a"), key=key)
    house.region().apply(RowMutation(KEY, (Put(HEADS, partition_bytes.TAIL, b"\xff"),)))
    house.begin_again()
    house.clock.now_ms += 1_000
    assert await house.partitions.delete_expired() == 1
    assert (await house.call("State", key=OTHER)).sizeBytes == 0
    assert dict(FAULTS.counts()) == {partitions_module.RETENTION: 1}


@topics
async def test_retention_leaves_what_is_not_on_disk_and_deletes_marks(house: Topics) -> None:
    await house.make(retention_bytes=1)
    for n in range(4):
        await house.produce(b"x" * MARK_BYTES, time_ms=1_000 * n)
    assert sum(column.startswith(b"h:t") for column, _, _ in house.row(KEY)) == 4
    assert await house.partitions.delete_expired() == 3
    assert [column for column, _, _ in house.row(KEY) if column.startswith(b"h:t")] == [
        b"h:t" + (3_000).to_bytes(8, "big")
    ]
    assert (await house.call("Offset", 1_500)).offset == 3


@topics
async def test_retention_keeps_the_mark_of_a_batch_that_stays(house: Topics) -> None:
    await house.make(retention_ms=1_000)
    await house.produce(b"x" * MARK_BYTES, time_ms=1_000)
    await house.produce(b"no mark", time_ms=500)
    house.clock.now_ms += 1_000
    await house.produce(b"y", time_ms=2_000)
    assert await house.partitions.delete_expired() == 2
    assert [column for column, _, _ in house.row(KEY) if column.startswith(b"h:t")] == [
        b"h:t" + (2_000).to_bytes(8, "big")
    ]
    assert (await house.call("Offset", 1_500)).offset == 2


@topics
async def test_retention_goes_on_in_bounded_steps(house: Topics) -> None:
    await house.make(retention_ms=1_000)
    await house.make(key=OTHER)
    for _ in range(7):
        await house.produce(b"a")
    house.clock.now_ms += 2_000
    previous = partition_module.RETENTION_BATCHES
    partition_module.RETENTION_BATCHES = 3  # type: ignore[misc]
    try:
        assert await house.partitions.delete_expired() == 7
    finally:
        partition_module.RETENTION_BATCHES = previous  # type: ignore[misc]


@topics
async def test_a_dropped_partition_leaves_no_row_and_ends_waits(house: Topics) -> None:
    await house.make()
    await house.make(key=OTHER)
    await house.produce(b"a", mark=ProducerMark(7, 0, 0))
    waiting = house.begin("Wait", 1, 1, 20_000)
    await asyncio.sleep(0)
    await house.call("Drop")
    assert (await waiting).error == TopicError.UNKNOWN_TOPIC_OR_PARTITION
    assert (await house.produce(b"b")).error == TopicError.UNKNOWN_TOPIC_OR_PARTITION
    assert house.row(KEY) == []
    assert house.row(OTHER) != []
    await house.call("Drop")


@topics
async def test_a_drop_beside_a_copy_of_the_region_goes_in_steps(house: Topics) -> None:
    await house.make()
    for n in range(5):
        await house.produce(b"x" * MARK_BYTES, time_ms=n, mark=ProducerMark(n, 0, 0))
    house.region().syncs.take_touched()  # as a split does
    await house.call("Drop")
    assert house.row(KEY) == []


@topics
async def test_partitions_in_memory_have_a_bound_in_bytes(house: Topics) -> None:
    previous = row_desks.DESKS_BYTES
    row_desks.DESKS_BYTES = 2 * partition_module.PARTITION_BYTES  # type: ignore[misc]
    keys = [partition_key("edits", 5, number) for number in range(6)]
    try:
        for key in keys:
            await house.make(key=key)
            await house.call("Produce", batch(b"a"), key=key)
        assert [desk.key for desk in house.partitions.desks.usable_desks()] == keys[-2:]
        for key in keys:
            assert (await house.call("Produce", batch(b"b"), key=key)).baseOffset == 1
    finally:
        row_desks.DESKS_BYTES = previous  # type: ignore[misc]


@topics
async def test_topics_are_among_the_flows(house: Topics) -> None:
    flows = TopicFlows(house.partitions.desks.usable_desks)
    assert flows.flow_statuses() == []
    for key in (KEY, OTHER):
        await house.make(key=key)
    await house.produce(b"a", b"b")
    house.clock.now_ms += 2_000
    await house.call("Produce", batch(b"c"), key=OTHER)
    house.clock.now_ms += 3_000
    (found,) = flows.flow_statuses()
    assert (found.kind, found.name, found.reads, found.delivered, found.idle_s) == (
        "topic", "edits", ("topic:edits",), 3, 3.0
    )  # fmt: skip


@topics
async def test_a_reader_of_a_region_that_closes_is_woken(house: Topics) -> None:
    await house.make()
    previous, partitions_module.WAIT_SLICE_S = partitions_module.WAIT_SLICE_S, 1_000.0  # type: ignore[misc]
    waiting = house.begin("Wait", 0, 1, 20_000)
    for _ in range(20):
        await asyncio.sleep(0)
    assert house.partitions.waiting_count == 1
    region = house.region()
    looked, open_desk = asyncio.Event(), house.partitions.desks.open_desk

    async def look(*args: Any) -> Any:
        looked.set()
        return await open_desk(*args)

    house.partitions.desks.open_desk = look  # type: ignore[method-assign]
    await house.server.close_regions([region.info])
    await looked.wait()  # the reader looks for its region; else the test times out
    partitions_module.WAIT_SLICE_S = previous  # type: ignore[misc]
    await house.produce(b"a")
    assert (await waiting).highWatermark == 1


@topics
async def test_a_failed_fsync_answers_nobody_and_hides_the_batch(house: Topics) -> None:
    await house.make()
    await house.produce(b"a")
    house.gate.hold()
    held = house.begin("Produce", batch(b"b"))
    await asyncio.sleep(0)
    house.region().syncs.is_ours = lambda: False  # another server has the region by now
    house.gate.release()
    with pytest.raises(Exception, match="lease"):
        await held
    assert not any(desk.is_usable for desk in house.partitions.desks._desks.values())
