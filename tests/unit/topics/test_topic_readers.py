"""What readers cost a server: names that are not there, and waits whose calls fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from columnar.model.topic import TopicDescription, TopicError, TopicSettings, Waited
from columnar.topics import partition_bytes, topic_list, topic_watches
from columnar.topics.topic_calls import TopicClient
from columnar.topics.topic_list import TopicList
from columnar.topics.topic_watches import TopicWatches
from columnar.wire.local_calls import CallFailed

CLIENT = TopicClient("test", "", lambda: False)
MADE = TopicDescription("made", 7, 1, TopicSettings())


class Cells:
    """The row of all topics."""

    def __init__(self) -> None:
        self.reads = 0
        self.cells: dict[bytes, bytes] = {}

    async def read_heads(self, _client: TopicClient, _row: bytes) -> dict[bytes, bytes]:
        self.reads += 1
        return dict(self.cells)


def test_names_that_are_not_there_cost_few_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        row = Cells()
        topics = TopicList(row)  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        found = [await topics.describe_topic(CLIENT, f"t{number}") for number in range(5_000)]
        assert set(found) == {None}
        assert row.reads <= (2 + loop.time() - began_s) * (topic_list.MISSES + 1)
        monkeypatch.setattr(topic_list, "MISSES", 10_000)
        assert await topics.describe_topic(CLIENT, "made") is None
        row.cells[b"made"] = partition_bytes.pack_topic(MADE)  # by another server
        assert await topics.describe_topic(CLIENT, "made") == MADE

    asyncio.run(work())


def test_a_reader_that_comes_behind_the_wake_of_a_watch_looks_again() -> None:
    stale = [Waited(TopicError.NONE, 0, 5)]

    async def request(_has_gone: Callable[[], bool], _key: bytes, offset: int, _least: int, wait_ms: int) -> Waited:
        if wait_ms:  # of the watch, which has seen 6 before the second reader enters
            await asyncio.sleep(0 if offset == 5 else 60)
            return Waited(TopicError.NONE, 1, 6)
        if offset == 6:  # of the first reader
            return Waited(TopicError.NONE, 0, 5 if stale else 6)
        return stale.pop() if stale else Waited(TopicError.NONE, 1, 6)

    async def work() -> None:
        watches, loop = TopicWatches(), asyncio.get_running_loop()
        first = asyncio.ensure_future(watches.wait_for_data(request, lambda: False, [(b"k", 6)], 1, loop.time() + 60))
        for _ in range(50):
            await asyncio.sleep(0)
        assert watches._watches[b"k"].offset == 6
        began_s = loop.time()
        await watches.wait_for_data(request, lambda: False, [(b"k", 5)], 1, began_s + 20)
        assert loop.time() - began_s < 10, "a wait is 20 s"
        first.cancel()

    asyncio.run(work())


def test_readers_whose_watch_fails_do_not_ask_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_watches, "FAILED_S", 0.05)
    calls = list[int]()

    async def request(_has_gone: Callable[[], bool], _key: bytes, _offset: int, _least: int, wait_ms: int) -> Waited:
        calls.append(wait_ms)
        await asyncio.sleep(0)
        if wait_ms:
            raise CallFailed("RegionTooBusyException", "too many readers wait")
        return Waited(TopicError.NONE, 0, 5)

    async def work() -> None:
        watches, loop = TopicWatches(), asyncio.get_running_loop()
        began_s = loop.time()
        await watches.wait_for_data(request, lambda: False, [(b"k", 5)], 1, began_s + 0.2)
        assert loop.time() - began_s >= 0.2, "it waits as long as it was asked to"
        await asyncio.sleep(0.1)
        assert not watches._watches

    asyncio.run(work())
    assert 2 <= len(calls) <= 20
