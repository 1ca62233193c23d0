"""An audit takes the loop in turns of its budget, however many windows it has, and ends with its client."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.errors import ClientGone
from columnar.runtime.loop_budget import LoopBudget
from columnar.topics.topic_audit import SHORTEST_WINDOW_MS, TopicAudit
from columnar.topics.topic_calls import TopicClient

PARTITIONS, WINDOWS = 5, 40


class Topics:
    """Partitions of this server, whose look-ups never leave the loop; counts them by iteration of the loop."""

    def __init__(self) -> None:
        self.topics = self
        self.iteration = 0
        self.look_ups: Counter[int] = Counter()

    def begin_iteration(self) -> None:
        self.iteration += 1
        asyncio.get_running_loop().call_soon(self.begin_iteration)

    async def find_topic(self, *_: Any) -> Any:
        return SimpleNamespace(partitions=PARTITIONS)

    async def partition_state(self, *_: Any) -> Any:
        return SimpleNamespace(high_watermark=100)

    async def offset_at(self, *_: Any) -> Any:
        self.look_ups[self.iteration] += 1
        return SimpleNamespace(offset=7)


def audit(topics: Topics, has_gone: Any = lambda: False) -> list[int]:
    """Return in which iteration each window was counted."""

    async def main() -> list[int]:
        topics.begin_iteration()
        counting = TopicAudit(topics, LoopBudget(share_s=0.0)).count(  # type: ignore[arg-type]
            TopicClient("test", "", has_gone), "edits", "", SHORTEST_WINDOW_MS, WINDOWS, 10**6
        )
        return [topics.iteration async for _ in counting]

    return asyncio.run(main())


def test_each_look_up_and_each_window_waits_for_its_turn() -> None:
    topics = Topics()
    windows = audit(topics)
    assert topics.look_ups.total() == PARTITIONS * (WINDOWS + 1)
    assert max(topics.look_ups.values()) == 1, "the budget lets one step into an iteration"
    assert len(set(windows)) == WINDOWS


def test_nothing_is_looked_up_for_a_client_that_has_gone() -> None:
    topics = Topics()
    with pytest.raises(ClientGone):
        audit(topics, lambda: topics.look_ups.total() >= 10)
    assert topics.look_ups.total() == 10
