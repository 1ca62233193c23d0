"""The topics of a store: their names, numbers of partitions and settings, which are cells of one row.

The list is read once in KNOWN_S: a topic that another server dropped is known so much later.  It is read again for a
name that is not in it, MISSES times a second.  A topic is made by its partitions first, and then by its cell.  It is
dropped in the opposite order, with its cell marked meanwhile: a drop that was cut short is finished by the next drop,
or creation, of the name.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from columnar.errors import IllegalArgument
from columnar.model.topic import (
    HEADS,
    TOPICS,
    TopicDescription,
    TopicSettings,
    checked_name,
    checked_partitions,
    checked_settings,
)
from columnar.topics import partition_bytes
from columnar.topics.partition_bytes import DROPPING, PRODUCER_IDS, THERE, TOPICS_ROW
from columnar.topics.topic_calls import TABLE, TopicCalls, TopicClient
from columnar.wire.idl import columnar

KNOWN_S: Final = 1.0
MISSES: Final = 100  # a second, for which the list is read again; a request may have thousands of unknown names
SIDE_BY_SIDE: Final = 50  # calls for the partitions of one topic


@dataclass(frozen=True, slots=True)
class _Cell:
    """A topic as its cell says."""

    topic: TopicDescription
    state: int
    value: bytes


class TopicList:
    def __init__(self, calls: TopicCalls) -> None:
        self._calls = calls
        self._known: dict[str, TopicDescription] = {}
        self._known_until_s = 0.0
        self._misses = 0
        self._misses_until_s = 0.0  # they are counted

    async def create_topic(self, client: TopicClient, name: str, partitions: int, settings: TopicSettings) -> bool:
        """Make a topic; return False if there is one of the name.  Raises IllegalArgument."""
        checked_name(name)
        topic = TopicDescription(
            name, new_topic_id(), checked_partitions(partitions), checked_settings(settings)
        )  # fmt: skip
        cells = await self._cells(client)
        if len(cells) >= TOPICS:
            raise IllegalArgument(f"there are {TOPICS} topics, as many as a store has: drop some")
        old = cells.get(name)
        if old is not None:
            if old.state == THERE:
                return False
            await self._drop(client, old)
        await self._set_partitions(client, topic, range(partitions))
        if not await self._replace_cell(client, name, None, partition_bytes.pack_topic(topic)):
            await self._drop_partitions(client, topic)  # somebody else has made one meanwhile
            return False
        return True

    async def drop_topic(self, client: TopicClient, name: str) -> bool:
        """Delete a topic with its records; return False if there is none of the name."""
        old = (await self._cells(client)).get(name)
        if old is None:
            return False
        await self._drop(client, old)
        return True

    async def _drop(self, client: TopicClient, old: _Cell) -> None:
        value = old.value
        if old.state == THERE:
            value = partition_bytes.pack_topic(old.topic, DROPPING)
            if not await self._replace_cell(client, old.topic.name, old.value, value):
                raise IllegalArgument(f"topic {old.topic.name} is being changed by somebody else: try again")
        await self._drop_partitions(client, old.topic)
        await self._replace_cell(client, old.topic.name, value, None)

    async def _drop_partitions(self, client: TopicClient, topic: TopicDescription) -> None:
        keys = [topic.key(number) for number in range(topic.partitions)]
        await _side_by_side([partial(self._calls.call_store, client, "columnarPartitionDrop", key) for key in keys])

    async def configure_topic(
        self,
        client: TopicClient,
        name: str,
        change: Callable[[TopicSettings], TopicSettings],
        partitions: int | None = None,
    ) -> bool:
        """Change the settings, and add partitions; return False if there is no topic of the name.

        The cell decides between two that change a topic at the same time, and partitions follow it.
        """
        old = (await self._cells(client)).get(name)
        if old is None or old.state != THERE:
            return False
        count = old.topic.partitions if partitions is None else checked_partitions(partitions)
        if count < old.topic.partitions:
            raise IllegalArgument(f"topic {name} has {old.topic.partitions} partitions: there can only be more")
        topic = replace(old.topic, partitions=count, settings=checked_settings(change(old.topic.settings)))
        await self._set_partitions(client, topic, range(old.topic.partitions, count))
        if await self._replace_cell(client, name, old.value, partition_bytes.pack_topic(topic)):
            await self._set_partitions(client, topic, range(count))
            return await self._follow_cell(client, topic)
        if not await self._follow_cell(client, topic):
            return False
        raise IllegalArgument(f"topic {name} is being changed by somebody else: try again")

    async def _follow_cell(self, client: TopicClient, topic: TopicDescription) -> bool:
        """Give the partitions what the topic's cell says now, if it is not ``topic``; return False if it was dropped.

        A partition that was set behind the drop of its topic would take records that nobody reads.
        """
        while (now := (await self._cells(client)).get(topic.name)) is None or now.topic != topic or now.state != THERE:
            if now is None or now.topic.id != topic.id or now.state != THERE:
                await self._drop_partitions(client, topic)
                return False
            topic = now.topic
            await self._set_partitions(client, topic, range(topic.partitions))
        return True

    async def _set_partitions(self, client: TopicClient, topic: TopicDescription, numbers: range) -> None:
        settings = topic.settings
        packed = columnar.TopicSettings(
            retentionMs=settings.retention_ms, retentionBytes=settings.retention_bytes
        )  # fmt: skip
        keys = [topic.key(number) for number in numbers]
        await _side_by_side(
            [partial(self._calls.call_prepared, client, "columnarPartitionSet", key, packed) for key in keys]
        )

    async def list_topics(self, client: TopicClient) -> list[TopicDescription]:
        """Return all topics by name, as they were within the last KNOWN_S."""
        if asyncio.get_running_loop().time() >= self._known_until_s:
            return await self.read_topics(client)
        return list(self._known.values())

    async def read_topics(self, client: TopicClient) -> list[TopicDescription]:
        """Return all topics by name, as they are now."""
        cells = await self._cells(client)
        self._known = {name: one.topic for name, one in sorted(cells.items()) if one.state == THERE}
        self._known_until_s = asyncio.get_running_loop().time() + KNOWN_S
        return list(self._known.values())

    async def find_topic(self, client: TopicClient, name: str) -> TopicDescription | None:
        """Return the topic as it is now."""
        await self.read_topics(client)
        return self._known.get(name)

    async def describe_topic(self, client: TopicClient, name: str) -> TopicDescription | None:
        """Return the topic as it was within the last KNOWN_S; one that was not there then is looked for again."""
        await self.list_topics(client)
        found = self._known.get(name)
        return await self.find_topic(client, name) if found is None and self._may_miss() else found

    def _may_miss(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._misses_until_s:
            self._misses, self._misses_until_s = 0, now_s + 1.0
        self._misses += 1
        return self._misses <= MISSES

    async def _cells(self, client: TopicClient) -> dict[str, _Cell]:
        """Return the cells of all topics by name, those that are being dropped, too."""
        found: dict[str, _Cell] = {}
        for qualifier, value in (await self._calls.read_heads(client, TOPICS_ROW)).items():
            if qualifier != PRODUCER_IDS:
                topic, state = partition_bytes.unpack_topic(qualifier, value)
                found[topic.name] = _Cell(topic, state, value)
        return found

    async def _replace_cell(self, client: TopicClient, name: str, old: bytes | None, new: bytes | None) -> bool:
        """Replace the cell of a topic if it is ``old``; return whether it was.  None: there is no cell."""
        column = HEADS + b":" + name.encode()
        op = columnar.CompareOp.ABSENT if old is None else columnar.CompareOp.EQUAL
        kind = columnar.OperationKind.DELETE if new is None else columnar.OperationKind.PUT
        conditions = [columnar.Condition(column=column, op=op, value=old)]
        operations = [columnar.RowOperation(kind=kind, column=column, value=new)]
        done = await self._calls.call_store(
            client, "columnarCheckAndMutate", TABLE, TOPICS_ROW, conditions, operations, {}
        )
        self._known_until_s = 0.0
        return bool(done.applied)

    def forget_list(self) -> None:
        """Read the list again when it is needed next."""
        self._known_until_s = 0.0


def new_topic_id() -> int:
    """Return a number that no topic has, even of two that are made in the same moment by different servers."""
    return (time.time_ns() // 1_000_000) << 20 | secrets.randbits(20)


async def _side_by_side(calls: Sequence[Callable[[], Awaitable[Any]]]) -> None:
    for at in range(0, len(calls), SIDE_BY_SIDE):
        await asyncio.gather(*(call() for call in calls[at : at + SIDE_BY_SIDE]))
