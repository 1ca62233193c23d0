"""Appends from within the store: records to any topic, whichever server owns a partition.

A record goes to the partition of its key's hash.  The records of a producer have sequences that rise, so an append that
is repeated, after an answer was lost or by a restart, stores nothing twice (``pushed_records``).  It does if the number
of the topic's partitions was changed between the two.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from columnar.cluster.peer_requests import AppendedRecords, AppendRecords, PushedRecord
from columnar.cluster.scatter_gather import Owners, request_owner
from columnar.errors import IllegalArgument, NotServingRegion, RegionNotLocal, TableNotFound, TopicRefused
from columnar.model.record_partition import partition_of
from columnar.model.topic import HEADS, TOPICS_TABLE, TopicDescription, TopicError
from columnar.operations.access import after
from columnar.operations.system_tables import SystemTables
from columnar.topics.partition import Partition
from columnar.topics.partition_bytes import THERE, TOPICS_ROW, unpack_topic
from columnar.topics.partitions import Partitions
from columnar.topics.pushed_records import PUSH_BYTES, SEQUENCE_BYTES, size_of
from columnar.wire.service import CallContext, Later

KNOWN_S: Final = 1.0  # that a topic's description is used
KNOWN_TOPICS: Final = 1_000  # whose descriptions are in memory
_CALLER: Final = CallContext(0, "this store")  # no connection of a client


class TopicPushes:
    def __init__(self, partitions: Partitions, tables: SystemTables, owners: Callable[[], Owners | None]) -> None:
        """``owners`` returns None if this process has all regions."""
        self.partitions = partitions
        self._tables = tables
        self._owners = owners
        self._known: dict[str, tuple[float, TopicDescription]] = {}
        self.answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {AppendRecords: self.append_local}

    async def append(self, topic: str, producer: bytes, records: Sequence[PushedRecord]) -> None:
        """Append records, in the order of their sequences; return when they are on disk.

        Order is kept within a partition.  If this raises, some of the records may be there, and the same call may be
        made again.  Raises TopicRefused if the topic does not take them, IllegalArgument if no topic would, and
        NotServingRegion if no server has a partition in time.
        """
        if not 0 < len(producer) <= SEQUENCE_BYTES:
            raise IllegalArgument(f"a producer's name has 1 to {SEQUENCE_BYTES} bytes")
        if sum(map(size_of, records)) > PUSH_BYTES:
            raise IllegalArgument(f"an append from within the store has at most {PUSH_BYTES} bytes; make several")
        if await self._append_all(await self._known_topic(topic), producer, records):
            return
        self._known.pop(topic, None)  # made again under its name, perhaps
        if not await self._append_all(await self._known_topic(topic), producer, records):
            raise _refusal(topic, TopicError.UNKNOWN_TOPIC_OR_PARTITION)

    async def _append_all(self, topic: TopicDescription, producer: bytes, records: Sequence[PushedRecord]) -> bool:
        """Return False if a partition is not there."""
        parts: dict[int, list[PushedRecord]] = {}
        for record in records:
            number = partition_of(producer if record.key is None else record.key, topic.partitions)
            parts.setdefault(number, []).append(record)
        calls = [self._append_part(topic.key(number), producer, part) for number, part in parts.items()]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        errors = {answer for answer in answers if not isinstance(answer, BaseException)} - {TopicError.NONE}
        for error in errors - {TopicError.UNKNOWN_TOPIC_OR_PARTITION}:
            raise _refusal(topic.name, error)
        return not errors

    async def _append_part(self, key: bytes, producer: bytes, records: list[PushedRecord]) -> TopicError:
        request = AppendRecords(key, producer, tuple(records))
        owners = self._owners()
        if owners is None:
            answer = await self.append_local(request)
            if answer.is_not_local:
                raise NotServingRegion("this server does not know the owners of topics yet")
            return TopicError(answer.error)
        answer = await request_owner(owners, TOPICS_TABLE, key, request, lambda found: found.is_not_local)
        return TopicError(answer.error)

    async def append_local(self, request: AppendRecords) -> AppendedRecords:
        """Append the records if this server owns the partition."""

        def step(desk: Partition) -> Any:
            error, waiting = desk.push(request.producer, request.records)
            return after(waiting, AppendedRecords(error))

        try:
            found = self.partitions.desks.run(_CALLER, request.partition, step)
            if type(found) is Later:
                await asyncio.shield(found.future)
                found = found.result
            answer: AppendedRecords = await found if hasattr(found, "__await__") else found
        except RegionNotLocal:
            return AppendedRecords(is_not_local=True)
        return answer

    async def find_topic(self, name: str) -> TopicDescription | None:
        """Return the topic as it is now."""
        cells: dict[bytes, bytes] = {}
        column = HEADS + b":" + name.encode()
        try:
            rows = self._tables.rows(TOPICS_TABLE, TOPICS_ROW, TOPICS_ROW + b"\x00", 1, [column])
            cells = {found: value async for _, row in rows for found, value in row.items()}
        except TableNotFound:  # no topic was ever made
            return None
        if column not in cells:
            return None
        topic, state = unpack_topic(name.encode(), cells[column])
        return topic if state == THERE else None

    async def _known_topic(self, name: str) -> TopicDescription:
        now_s = asyncio.get_running_loop().time()
        known = self._known.get(name)
        if known is not None and now_s < known[0]:
            return known[1]
        topic = await self.find_topic(name)
        if topic is None:
            raise _refusal(name, TopicError.UNKNOWN_TOPIC_OR_PARTITION)
        if len(self._known) >= KNOWN_TOPICS:
            self._known.clear()
        self._known[name] = now_s + KNOWN_S, topic
        return topic


def _refusal(topic: str, error: TopicError) -> TopicRefused:
    if error is TopicError.UNKNOWN_TOPIC_OR_PARTITION:
        return TopicRefused(f"there is no topic {topic}; columnar topic create {topic} --partitions N makes it")
    if error is TopicError.MESSAGE_TOO_LARGE:
        return TopicRefused(f"topic {topic} takes no record of more than a batch has, 1 MiB")
    return TopicRefused(f"topic {topic} refuses the records: {error.name}")
