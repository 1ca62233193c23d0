"""Our methods on topics and their partitions.  Loaded at first use."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from columnar.errors import IllegalArgument, RequestTooBig
from columnar.model.topic import (
    MOST_WAIT_MS,
    PRODUCE_BYTES,
    Fetched,
    FoundOffset,
    PartitionState,
    Produced,
    TopicSettings,
    Waited,
    checked_settings,
)
from columnar.operations.access import after
from columnar.topics.partition import Partition
from columnar.topics.partitions import Partitions
from columnar.topics.topic_calls import TopicClient
from columnar.topics.topic_service import TopicService
from columnar.wire.idl import columnar


class TopicMethods:
    def __init__(self, partitions: Partitions, service: TopicService) -> None:
        self._partitions = partitions
        self._service = service
        self._waits = partitions.waits

    # --- topics, of the whole store ----------------------------------------------------------------------

    async def columnarTopicCreate(self, ctx: Any, topic: bytes, partitions: Any, settings: Any) -> Any:
        given = _settings(settings, TopicSettings())
        return await self._service.topics.create_topic(_client(ctx), _name(topic), partitions or 0, given)

    async def columnarTopicConfigure(self, ctx: Any, topic: bytes, partitions: Any, settings: Any) -> Any:
        change = partial(_settings, settings)
        return await self._service.topics.configure_topic(_client(ctx), _name(topic), change, partitions or None)

    async def columnarTopicDrop(self, ctx: Any, topic: bytes) -> Any:
        return await self._service.topics.drop_topic(_client(ctx), _name(topic))

    async def columnarTopicList(self, ctx: Any) -> Any:
        return [
            columnar.TopicDescription(
                name=one.name.encode(),
                id=one.id,
                partitions=one.partitions,
                retentionMs=one.settings.retention_ms,
                retentionBytes=one.settings.retention_bytes,
            )
            for one in await self._service.topics.read_topics(_client(ctx))
        ]

    async def columnarTopicWait(self, ctx: Any, topic: bytes, offsets: Any, least_bytes: Any, wait_ms: Any) -> Any:
        if not 0 <= (wait_ms or 0) <= MOST_WAIT_MS:
            raise IllegalArgument(f"waitMs {wait_ms}: a reader waits between 0 and {MOST_WAIT_MS} ms; call again")
        name = _name(topic)
        positions = [(name, partition, offset) for partition, offset in (offsets or {}).items()]
        deadline_s = asyncio.get_running_loop().time() + self._waits.bounded_s((wait_ms or 0) / 1_000)
        await self._waits.run(
            self._service.wait_for_data(_client(ctx), positions, least_bytes or 0, deadline_s), in_vain=None
        )

    async def columnarTopicProducer(self, ctx: Any) -> Any:
        return await self._service.new_producer_id(_client(ctx))

    # --- partitions, at the owner of their rows ----------------------------------------------------------

    def columnarPartitionSet(self, ctx: Any, partition: bytes, settings: Any) -> Any:
        given = checked_settings(_settings(settings, TopicSettings()))
        return self._partitions.desks.run(ctx, _key(partition), lambda desk: after(desk.configure(given), None))

    def columnarPartitionDrop(self, ctx: Any, partition: bytes) -> Any:
        return self._partitions.drop_partition(ctx, _key(partition))

    def columnarPartitionProduce(self, ctx: Any, partition: bytes, batches: bytes) -> Any:
        data = batches or b""
        if len(data) > PRODUCE_BYTES:
            raise RequestTooBig(f"{len(data)} bytes of batches in one call: it takes at most {PRODUCE_BYTES}")

        def step(desk: Partition) -> Any:
            produced, waiting = desk.produce(data)
            return after(waiting, _produced(produced))

        return self._partitions.desks.run(ctx, _key(partition), step)

    def columnarPartitionFetch(self, ctx: Any, partition: bytes, offset: Any, max_bytes: Any) -> Any:
        return self._partitions.desks.run(
            ctx, _key(partition), lambda desk: _fetched(desk.fetch(offset or 0, max_bytes or 0))
        )

    def columnarPartitionWait(self, ctx: Any, partition: bytes, offset: Any, least_bytes: Any, wait_ms: Any) -> Any:
        found = self._partitions.wait_for_bytes(
            ctx, _key(partition), offset or 0, max(1, least_bytes or 0), wait_ms or 0
        )
        return _waited(found) if isinstance(found, Waited) else _later(found)

    def columnarPartitionOffset(self, ctx: Any, partition: bytes, timestamp_ms: Any) -> Any:
        return self._partitions.desks.run(
            ctx, _key(partition), lambda desk: _offset(desk.offset_at(timestamp_ms or 0))
        )  # fmt: skip

    def columnarPartitionState(self, ctx: Any, partition: bytes) -> Any:
        return self._partitions.desks.run(ctx, _key(partition), lambda desk: _state(desk.state()))


def _client(ctx: Any) -> TopicClient:
    return TopicClient(ctx.peer, ctx.user, ctx.has_gone)


def _name(topic: bytes | None) -> str:
    return (topic or b"").decode(errors="replace")


def _key(partition: bytes | None) -> bytes:
    if not partition or b"\x00" not in partition[1:-12] or partition[0] == 0:
        raise IllegalArgument("a partition is named by the topic's name, 00, the topic's id and the partition's number")
    return partition


def _settings(given: Any, old: TopicSettings) -> TopicSettings:
    if given is None:
        return old
    return TopicSettings(
        old.retention_ms if given.retentionMs is None else given.retentionMs,
        old.retention_bytes if given.retentionBytes is None else given.retentionBytes,
    )


def _produced(found: Produced) -> Any:
    return columnar.TopicProduced(
        error=found.error, baseOffset=found.base_offset, appendMs=found.append_ms, logStart=found.log_start
    )


def _fetched(found: Fetched) -> Any:
    return columnar.TopicFetched(
        error=found.error, batches=found.batches, highWatermark=found.high_watermark, logStart=found.log_start
    )


async def _later(found: Any) -> Any:
    return _waited(await found)


def _waited(found: Waited) -> Any:
    return columnar.TopicWaited(error=found.error, bytes=found.size_bytes, highWatermark=found.high_watermark)


def _offset(found: FoundOffset) -> Any:
    return columnar.TopicOffset(error=found.error, offset=found.offset, timestampMs=found.timestamp_ms)


def _state(found: PartitionState) -> Any:
    return columnar.TopicPartition(
        error=found.error,
        logStart=found.log_start,
        highWatermark=found.high_watermark,
        sizeBytes=found.size_bytes,
        producers=found.producers,
        appendMs=found.append_ms,
    )
