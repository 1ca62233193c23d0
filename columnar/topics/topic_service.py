"""Topics as the ports of this process use them, on whatever server a partition is.

``topics`` makes, drops and lists topics, ``groups`` keeps committed offsets; the records are read and written by this
module.  Each method takes the ``TopicClient`` for which it is done.  An error that Kafka's protocol knows is ``error``
of the result; a call that the store cannot do raises ``wire.local_calls.CallFailed``.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from columnar.model.topic import (
    HEADS,
    Fetched,
    FoundOffset,
    PartitionState,
    Produced,
    TopicError,
    Waited,
)
from columnar.topics.group_offsets import GroupOffsets
from columnar.topics.partition_bytes import PRODUCER_IDS, TOPICS_ROW
from columnar.topics.topic_calls import TABLE, TopicCalls, TopicClient
from columnar.topics.topic_list import TopicList
from columnar.topics.topic_watches import TopicWatches
from columnar.wire.local_calls import LocalService

PRODUCER_BLOCK: Final = 100  # ids that a server takes at once

_UNKNOWN: Final = TopicError.UNKNOWN_TOPIC_OR_PARTITION
A = TypeVar("A", Produced, Fetched, FoundOffset, PartitionState)


class TopicService:
    def __init__(self, service: LocalService) -> None:
        self._calls = TopicCalls(service)
        self.topics = TopicList(self._calls)
        self.groups = GroupOffsets(self._calls)
        self._watches = TopicWatches()
        self._producer_ids: list[int] = []  # taken, and not given out

    async def produce(self, client: TopicClient, topic: str, partition: int, batches: bytes) -> Produced:
        """Append batches as a producer made them; returns after their fsync.

        A batch that an idempotent producer sends again is not appended again, and gets its first answer.
        """

        async def call(key: bytes) -> Produced:
            found = await self._calls.call_store(client, "columnarPartitionProduce", key, batches)
            return Produced(TopicError(found.error), found.baseOffset, found.appendMs, found.logStart)

        return await self._on_partition(client, topic, partition, call, Produced(_UNKNOWN))

    async def fetch(self, client: TopicClient, topic: str, partition: int, offset: int, max_bytes: int) -> Fetched:
        """Return whole batches from the one with ``offset`` on: at most ``max_bytes`` of them, but at least one.

        At the high watermark the result has no batches and no error.
        """

        async def call(key: bytes) -> Fetched:
            found = await self._calls.call_store(client, "columnarPartitionFetch", key, offset, max_bytes)
            return Fetched(TopicError(found.error), found.batches, found.highWatermark, found.logStart)

        return await self._on_partition(client, topic, partition, call, Fetched(_UNKNOWN, b"", -1, -1))

    async def wait_for_data(
        self, client: TopicClient, positions: Sequence[tuple[str, int, int]], min_bytes: int, deadline_s: float
    ) -> None:
        """Wait until the partitions together have ``min_bytes`` from their offsets on, or until ``deadline_s``.

        ``positions`` are topic, partition and offset; ``deadline_s`` is a time of the loop.  Returns early if a
        position has an error, which ``fetch`` tells, and if the client has gone.
        """
        keys: list[tuple[bytes, int]] = []
        for name, partition, offset in positions:
            key = await self._key(client, name, partition)
            if key is None:
                return
            keys.append((key, offset))

        async def request(
            has_gone: Callable[[], bool], key: bytes, offset: int, least_bytes: int, wait_ms: int
        ) -> Waited:
            found = await self._calls.call_store(
                replace(client, has_gone=has_gone), "columnarPartitionWait", key, offset, least_bytes, wait_ms
            )
            return Waited(TopicError(found.error), found.bytes, found.highWatermark)

        if keys:
            await self._watches.wait_for_data(request, client.has_gone, keys, max(1, min_bytes), deadline_s)

    async def offset_at(self, client: TopicClient, topic: str, partition: int, timestamp_ms: int) -> FoundOffset:
        """Return the first offset at or after a time, or that of ``EARLIEST`` or ``LATEST``."""

        async def call(key: bytes) -> FoundOffset:
            found = await self._calls.call_store(client, "columnarPartitionOffset", key, timestamp_ms)
            return FoundOffset(TopicError(found.error), found.offset, found.timestampMs)

        return await self._on_partition(client, topic, partition, call, FoundOffset(_UNKNOWN, -1, -1))

    async def partition_state(self, client: TopicClient, topic: str, partition: int) -> PartitionState:
        async def call(key: bytes) -> PartitionState:
            found = await self._calls.call_store(client, "columnarPartitionState", key)
            return PartitionState(
                TopicError(found.error), found.logStart, found.highWatermark, found.sizeBytes, found.producers,
                found.appendMs,
            )  # fmt: skip

        return await self._on_partition(client, topic, partition, call, PartitionState(_UNKNOWN, -1, -1, 0, 0, 0))

    async def new_producer_id(self, client: TopicClient) -> int:
        """Return a producer's id that no producer of this store had."""
        if not self._producer_ids:
            counter = (TABLE, TOPICS_ROW, HEADS + b":" + PRODUCER_IDS, PRODUCER_BLOCK)
            last = await self._calls.call_prepared(client, "atomicIncrement", *counter)
            self._producer_ids += range(last, last - PRODUCER_BLOCK, -1)
        return self._producer_ids.pop()

    async def _on_partition(
        self, client: TopicClient, name: str, partition: int, call: Callable[[bytes], Awaitable[A]], unknown: A
    ) -> A:
        """Return what ``call`` returns for the partition; once more if the topic was made again meanwhile."""
        key = await self._key(client, name, partition)
        if key is None:
            return unknown
        found = await call(key)
        if found.error is not _UNKNOWN:
            return found
        self.topics.forget_list()
        again = await self._key(client, name, partition)
        return found if again is None or again == key else await call(again)

    async def _key(self, client: TopicClient, name: str, partition: int) -> bytes | None:
        topic = await self.topics.describe_topic(client, name)
        return topic.key(partition) if topic is not None and 0 <= partition < topic.partitions else None
