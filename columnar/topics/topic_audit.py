"""Produced against consumed counts of a topic: for windows of time, the records of each partition and those that a
group's commits have passed.

The counts are differences of offsets, which the partitions' index of times finds: nothing is counted beside the log.  A
record is in the window of its own time, and behind a later record in that one's.  Records that retention has deleted
are in no window.

Look-ups in partitions of this server never leave the loop, and take 0.1 ms each.  So each one, and each window, is a
turn of the loop's budget, and AUDIT_SIDE_BY_SIDE of them at most are in one iteration.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from columnar.errors import ClientGone, IllegalArgument
from columnar.model.topic import checked_group
from columnar.runtime.loop_budget import LoopBudget
from columnar.topics.topic_calls import TopicClient
from columnar.topics.topic_service import TopicService

AUDIT_LOOKUPS: Final = 10_000  # offsets by time of one audit: partitions times windows
AUDIT_SIDE_BY_SIDE: Final = 8
SHORTEST_WINDOW_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class PartitionCount:
    partition: int
    produced: int
    consumed: int


@dataclass(frozen=True, slots=True)
class WindowCount:
    from_ms: int
    to_ms: int
    partitions: tuple[PartitionCount, ...]

    @property
    def produced(self) -> int:
        return sum(one.produced for one in self.partitions)

    @property
    def consumed(self) -> int:
        return sum(one.consumed for one in self.partitions)

    def as_json(self) -> dict[str, Any]:
        return {
            "from_ms": self.from_ms, "to_ms": self.to_ms, "produced": self.produced, "consumed": self.consumed,
            "partitions": [
                {"partition": one.partition, "produced": one.produced, "consumed": one.consumed}
                for one in self.partitions
            ],
        }  # fmt: skip


class TopicAudit:
    def __init__(self, service: TopicService, budget: LoopBudget) -> None:
        self._service = service
        self._budget = budget

    async def count(
        self, client: TopicClient, topic: str, group: str, window_ms: int, windows: int, now_ms: int
    ) -> AsyncIterator[WindowCount]:
        """Yield the last ``windows`` windows, of which the last one has now in it, each in a turn of the loop's budget.

        Without a group nothing counts as consumed.  Raises IllegalArgument.
        """
        found = await self._service.topics.find_topic(client, topic)
        if found is None:
            raise IllegalArgument(f"there is no topic {topic}; columnar topic list shows those there are")
        if window_ms < SHORTEST_WINDOW_MS:
            raise IllegalArgument(f"a window of {window_ms} ms: it has at least {SHORTEST_WINDOW_MS}")
        if windows < 1 or (windows + 1) * found.partitions > AUDIT_LOOKUPS:
            most = AUDIT_LOOKUPS // found.partitions - 1
            raise IllegalArgument(f"{windows} windows of {found.partitions} partitions: there are 1 to {most}")
        end_ms = (now_ms // window_ms + 1) * window_ms
        times = [end_ms - window_ms * back for back in range(windows, -1, -1)]
        offsets = await self._offsets(client, topic, found.partitions, times)
        committed = await self._committed(client, topic, group)
        for one in counts_of(times, offsets, committed):
            yield one
            await self._budget.wait_for_budget()

    async def _committed(self, client: TopicClient, topic: str, group: str) -> dict[int, int]:
        if not group:
            return {}
        found = await self._service.groups.committed_offsets(client, checked_group(group))
        return {one.partition: one.offset for one in found if one.topic == topic}

    async def _offsets(self, client: TopicClient, topic: str, partitions: int, times: Sequence[int]) -> list[list[int]]:
        """Return for each partition the first offset at or after each of the times, AUDIT_SIDE_BY_SIDE at once."""
        gate = asyncio.Semaphore(AUDIT_SIDE_BY_SIDE)

        async def of_partition(number: int) -> list[int]:
            async with gate:
                end = (await self._service.partition_state(client, topic, number)).high_watermark
                found = []
                for time_ms in times:
                    await self._budget.wait_for_budget()
                    if client.has_gone():
                        raise ClientGone
                    found.append((await self._service.offset_at(client, topic, number, time_ms)).offset)
                return [end if one < 0 else min(one, end) for one in found]

        return list(await asyncio.gather(*map(of_partition, range(partitions))))


def counts_of(
    times: Sequence[int], offsets: Sequence[Sequence[int]], committed: Mapping[int, int]
) -> Iterator[WindowCount]:
    """Yield the counts of the windows between the times; ``offsets`` are by partition, and by time within it."""
    for at, (start_ms, stop_ms) in enumerate(pairwise(times)):
        partitions = tuple([
            PartitionCount(number, stop - start, max(0, min(stop, committed.get(number, 0)) - start))
            for number, (start, stop) in enumerate((places[at], places[at + 1]) for places in offsets)
        ])  # fmt: skip
        yield WindowCount(start_ms, stop_ms, partitions)
