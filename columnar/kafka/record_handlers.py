"""Produce, Fetch, ListOffsets and InitProducerId.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

from columnar.errors import CallerError
from columnar.kafka.call import Call, Handler, Values, error_of
from columnar.kafka.errors import KafkaError
from columnar.kafka.schemas import FETCH, INIT_PRODUCER_ID, LIST_OFFSETS, PRODUCE
from columnar.model.topic import FETCH_BYTES, MOST_WAIT_MS, Fetched, FoundOffset, Produced, TopicError
from columnar.topics.topic_service import TopicService
from columnar.wire.local_calls import CallFailed

_ACKS: Final = (-1, 0, 1)  # both of those that want an answer get it after the fsync


@dataclass(frozen=True, slots=True)
class _Read:
    """The part of an answer for a partition."""

    error: int
    batches: bytes = b""
    high_watermark: int = -1
    log_start: int = -1


class RecordHandlers:
    def __init__(self, topics: TopicService) -> None:
        self._topics = topics
        # By connection and partition, of the last append that is under way.  Bounded as requests that overlap are.
        self._appending: dict[tuple[str, str, int], asyncio.Future[None]] = {}
        self.handlers: dict[int, Handler] = {
            PRODUCE.number: self.produce,
            FETCH.number: self.fetch,
            LIST_OFFSETS.number: self.list_offsets,
            INIT_PRODUCER_ID.number: self.init_producer_id,
        }

    # --- produce -----------------------------------------------------------------------------------------

    async def produce(self, call: Call) -> Values | None:
        fields = call.fields
        error = KafkaError.NONE
        if fields["acks"] not in _ACKS:
            error = KafkaError.INVALID_REQUIRED_ACKS
        elif fields["transactional_id"] is not None:
            error = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED  # there are no transactions
        asked = [(topic["name"], one) for topic in fields["topics"] for one in topic["partitions"]]
        done = await asyncio.gather(*(self._append(call, name, one, error) for name, one in asked))
        if fields["acks"] == 0:
            return None
        answers = iter(done)
        topics = [
            {"name": topic["name"], "partitions": [next(answers) for _ in topic["partitions"]]}
            for topic in fields["topics"]
        ]
        return {"topics": topics}

    async def _append(self, call: Call, topic: str, partition: Values, error: KafkaError) -> Values:
        index = partition["index"]
        if error:
            return {"index": index, "error": error, "base_offset": -1}
        try:
            found = await self._append_in_order(call, topic, index, partition["records"] or b"")
        except CallFailed as failed:
            return _failed(index, error_of(failed), failed.text)
        except CallerError as refused:
            return _failed(index, KafkaError.UNKNOWN_TOPIC_OR_PARTITION, refused.text)
        return {
            "index": index, "error": found.error, "base_offset": found.base_offset, "log_start": found.log_start,
        }  # fmt: skip

    async def _append_in_order(self, call: Call, topic: str, index: int, batches: bytes) -> Produced:
        """Append batches after those that came before them over the same connection.

        Appends that overlap reach the partition in their order, but for one that is sent to its server again, for
        instance because the partition moves.  A later one is refused then, and is done again after the earlier one: its
        producer would take the refusal of the batch that comes next for the loss of an acknowledged one.
        """
        place = (call.client.peer, topic, index)
        earlier, done = self._appending.get(place), asyncio.get_running_loop().create_future()
        self._appending[place] = done
        try:
            found = await self._topics.produce(call.client, topic, index, batches)
            if found.error == TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER and earlier is not None:
                await earlier
                found = await self._topics.produce(call.client, topic, index, batches)
            return found
        finally:
            done.set_result(None)
            if self._appending[place] is done:
                del self._appending[place]

    # --- fetch -------------------------------------------------------------------------------------------

    async def fetch(self, call: Call) -> Values:
        """Return what there is; if it is less than asked for, wait for more and look once again."""
        fields = call.fields
        wait_s = min(max(0, fields["max_wait_ms"]), MOST_WAIT_MS) / 1_000
        deadline_s = asyncio.get_running_loop().time() + wait_s
        found, size = await self._read(call)
        has_error = any(one.error for one in found.values())
        if found and size < fields["min_bytes"] and not has_error and wait_s > 0:
            positions = [
                (topic["name"], one["index"], one["offset"])
                for topic in fields["topics"]
                for one in topic["partitions"]
            ]
            with contextlib.suppress(CallFailed):  # the next look tells the error
                await self._topics.wait_for_data(call.client, positions, fields["min_bytes"], deadline_s)
            found, size = await self._read(call)
        return {"topics": [self._fetched(topic, found) for topic in fields["topics"]]}

    async def _read(self, call: Call) -> tuple[dict[tuple[str, int], _Read], int]:
        """Read the partitions one after the other, until the answer is full; return what was found, and its size.

        A full answer still has the other partitions, without batches: Java's client refuses one that lacks some.
        """
        left = min(call.fields["max_bytes"], FETCH_BYTES)
        found: dict[tuple[str, int], _Read] = {}
        size = 0
        for topic in call.fields["topics"]:
            for one in topic["partitions"]:
                most = min(one["max_bytes"], left)
                read = await self._read_one(call, topic["name"], one, most) if most > 0 or not size else None
                if read is None or (size and len(read.batches) > left):  # its first batch alone is too large
                    read = await self._ends(call, topic["name"], one["index"])
                found[topic["name"], one["index"]] = read
                size += len(read.batches)
                left -= len(read.batches)
        return found, size

    async def _read_one(self, call: Call, topic: str, partition: Values, most: int) -> _Read:
        try:
            found: Fetched = await self._topics.fetch(
                call.client, topic, partition["index"], partition["offset"], max(1, most)
            )
        except CallFailed as failed:
            return _Read(error_of(failed))
        except CallerError:
            return _Read(KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
        return _Read(found.error, found.batches, found.high_watermark, found.log_start)

    async def _ends(self, call: Call, topic: str, partition: int) -> _Read:
        try:
            found = await self._topics.partition_state(call.client, topic, partition)
        except CallFailed as failed:
            return _Read(error_of(failed))
        except CallerError:
            return _Read(KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
        return _Read(found.error, b"", found.high_watermark, found.log_start)

    def _fetched(self, topic: Values, found: dict[tuple[str, int], _Read]) -> Values:
        name, partitions = topic["name"], []
        for one in topic["partitions"]:
            read = found[name, one["index"]]
            partitions.append({
                "index": one["index"], "error": read.error, "high_watermark": read.high_watermark,
                "last_stable": read.high_watermark, "log_start": read.log_start, "records": read.batches,
            })  # fmt: skip
        return {"name": name, "partitions": partitions}

    # --- offsets and producers -----------------------------------------------------------------------------

    async def list_offsets(self, call: Call) -> Values:
        topics = []
        for topic in call.fields["topics"]:
            partitions = [await self._offset(call, topic["name"], one) for one in topic["partitions"]]
            topics.append({"name": topic["name"], "partitions": partitions})
        return {"topics": topics}

    async def _offset(self, call: Call, topic: str, partition: Values) -> Values:
        index, time_ms = partition["index"], partition["timestamp_ms"]
        try:
            found: FoundOffset = await self._topics.offset_at(call.client, topic, index, time_ms)
        except CallFailed as failed:
            return {"index": index, "error": error_of(failed)}
        except CallerError:
            return {"index": index, "error": KafkaError.UNKNOWN_TOPIC_OR_PARTITION}
        return {"index": index, "error": found.error, "timestamp_ms": found.timestamp_ms, "offset": found.offset}

    async def init_producer_id(self, call: Call) -> Values:
        if call.fields["transactional_id"] is not None:
            return {"error": KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
        try:
            return {"producer_id": await self._topics.new_producer_id(call.client)}
        except CallFailed as failed:
            return {"error": error_of(failed)}


def _failed(index: int, error: KafkaError, text: str) -> Values:
    return {"index": index, "error": error, "base_offset": -1, "error_message": text}
