"""How far groups of consumers are in topics: committed offsets against the ends of the partitions.

A group's lag in a topic is the number of records between its committed offsets and the ends.  A partition without a
committed offset counts as not consumed; records that retention has deleted do not count.

All is read from the rows of ``columnar:topics``, whichever server has them: no partition is brought into memory.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from columnar.errors import TableNotFound
from columnar.model.flow_status import GROUP, TOPIC, FlowStatus
from columnar.model.topic import HEADS, TOPICS_TABLE, CommittedOffset, TopicDescription
from columnar.operations.system_tables import SystemTables
from columnar.regions.read.region_reads import rows_of
from columnar.regions.region import Region
from columnar.topics.group_offsets import AFTER_GROUPS, GROUPS, unpack_committed
from columnar.topics.partition_bytes import PRODUCER_IDS, TAIL, THERE, TOPICS_ROW, Tail, unpack_tail, unpack_topic

LAG_GROUPS: Final = 1_000  # of one answer, and of one server's flows
_TAIL: Final = HEADS + b":" + TAIL
_PREFIX: Final = len(HEADS) + 1


@dataclass(frozen=True, slots=True)
class PartitionLag:
    partition: int
    committed: int  # -1: the group has committed nothing
    first: int
    end: int
    lag: int


@dataclass(frozen=True, slots=True)
class GroupLag:
    group: str
    topic: str
    partitions: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        return sum(one.lag for one in self.partitions)

    @property
    def consumed(self) -> int:
        return sum(max(0, one.committed) for one in self.partitions)

    def as_json(self) -> dict[str, Any]:
        return {
            "group": self.group, "topic": self.topic, "lag": self.lag,
            "partitions": [asdict(one) for one in self.partitions],
        }  # fmt: skip


Group = tuple[str, list[CommittedOffset]]


class GroupLags:
    def __init__(self, tables: SystemTables) -> None:
        self._tables = tables

    async def lags(self, topic: str = "") -> list[GroupLag]:
        """Return the lag of each group in each topic that it has offsets of; only of ``topic``, if it is named."""
        return await self._lags_of(await self._all_groups(), topic)

    async def local_statuses(self, regions: Iterable[Region]) -> list[FlowStatus]:
        """Return the groups whose rows are in these regions of ``columnar:topics``."""
        groups: list[Group] = []
        for region in regions:
            for row, cells in rows_of(region, GROUPS):
                if row >= AFTER_GROUPS or len(groups) >= LAG_GROUPS:
                    break
                groups.append(_group(row, {column: value for column, value, _ in cells}))
        return [_status_of(one) for one in await self._lags_of(groups, "")]

    async def _all_groups(self) -> list[Group]:
        return [_group(row, cells) async for row, cells in self._rows(GROUPS, AFTER_GROUPS, LAG_GROUPS)]

    async def _lags_of(self, groups: list[Group], topic: str) -> list[GroupLag]:
        topics = await self._topics() if groups else {}
        tails: dict[str, list[Tail]] = {}
        found: list[GroupLag] = []
        for group, offsets in groups:
            committed: dict[str, dict[int, int]] = {}
            for one in offsets:
                committed.setdefault(one.topic, {})[one.partition] = one.offset
            for name, places in sorted(committed.items()):
                if name not in topics or (topic and name != topic):
                    continue
                if name not in tails:
                    tails[name] = await self._tails(topics[name])
                found.append(GroupLag(group, name, tuple(_lags(places, tails[name]))))
        return found

    async def _topics(self) -> dict[str, TopicDescription]:
        found: dict[str, TopicDescription] = {}
        async for _, cells in self._rows(TOPICS_ROW, TOPICS_ROW + b"\x00", 1):
            for column, value in cells.items():
                if column[_PREFIX:] != PRODUCER_IDS:
                    topic, state = unpack_topic(column[_PREFIX:], value)
                    if state == THERE:
                        found[topic.name] = topic
        return found

    async def _tails(self, topic: TopicDescription) -> list[Tail]:
        """Return where each partition ends."""
        found = [Tail() for _ in range(topic.partitions)]
        start, last = topic.key(0), topic.key(topic.partitions - 1)
        async for row, cells in self._rows(start, last + b"\x00", topic.partitions, (_TAIL,)):
            found[int.from_bytes(row[-4:], "big")] = unpack_tail(cells[_TAIL])
        return found

    async def _rows(
        self, start: bytes, stop: bytes, limit: int, columns: tuple[bytes, ...] = (HEADS,)
    ) -> AsyncIterator[tuple[bytes, dict[bytes, bytes]]]:
        try:
            async for row in self._tables.rows(TOPICS_TABLE, start, stop, limit, columns):
                yield row
        except TableNotFound:  # no topic was ever made
            return


def _group(row: bytes, cells: dict[bytes, bytes]) -> Group:
    offsets = [unpack_committed(column[_PREFIX:], value) for column, value in cells.items()]
    return row[len(GROUPS) :].decode(errors="replace"), offsets


def _lags(places: dict[int, int], tails: list[Tail]) -> list[PartitionLag]:
    return [
        PartitionLag(
            number, places.get(number, -1), tail.first, tail.next,
            max(0, tail.next - max(places.get(number, 0), tail.first)),
        )
        for number, tail in enumerate(tails)
    ]  # fmt: skip


def _status_of(one: GroupLag) -> FlowStatus:
    return FlowStatus(
        GROUP, f"{one.group}@{one.topic}", (f"{TOPIC}:{one.topic}",), (), lag_changes=one.lag, delivered=one.consumed
    )  # fmt: skip
