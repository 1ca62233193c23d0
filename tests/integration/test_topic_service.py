"""The service of topics that ports use: records, waits, producers' numbers, committed offsets of groups."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from columnar.errors import IllegalArgument
from columnar.model.record_batch import Record, pack_batch
from columnar.model.topic import (
    LATEST,
    METADATA_BYTES,
    CommittedOffset,
    TopicDescription,
    TopicError,
    TopicSettings,
)
from columnar.topics import partition_bytes
from columnar.topics.topic_calls import TopicClient
from columnar.topics.topic_list import TopicList
from columnar.topics.topic_service import TopicService
from columnar.wire.local_calls import LocalService
from tests.support.store_thread import StoreThread

T = TypeVar("T")
CLIENT = TopicClient("test", "", lambda: False)
FOREIGN_CONNECTION = 10**9


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture
def run(store: StoreThread) -> Callable[[Callable[[TopicService], Awaitable[T]]], T]:
    service = store.do(lambda: TopicService(LocalService(store.inside.ports.wire, FOREIGN_CONNECTION)))

    async def inside(work: Callable[[TopicService], Awaitable[T]]) -> T:
        async with asyncio.timeout(30):
            return await work(service)

    return lambda work: store.run(inside(work))


def batch(value: bytes) -> bytes:
    return pack_batch([Record(0, 5, None, value)])


Run = Callable[[Callable[[TopicService], Awaitable[object]]], object]


def test_nothing_is_there_before_the_first_topic(run: Run) -> None:
    async def work(service: TopicService) -> None:
        assert await service.topics.list_topics(CLIENT) == []
        assert await service.groups.list_groups(CLIENT) == []
        assert await service.groups.committed_offsets(CLIENT, "g") == []
        assert not await service.groups.drop_group(CLIENT, "g")
        assert not await service.topics.drop_topic(CLIENT, "a")
        for found in (
            await service.produce(CLIENT, "a", 0, batch(b"x")),
            await service.fetch(CLIENT, "a", 0, 0, 1),
            await service.offset_at(CLIENT, "a", 0, LATEST),
            await service.partition_state(CLIENT, "a", 0),
        ):
            assert found.error is TopicError.UNKNOWN_TOPIC_OR_PARTITION
        await service.wait_for_data(CLIENT, [("a", 0, 0)], 1, asyncio.get_running_loop().time() + 100)

    run(work)


def test_records_are_produced_fetched_and_found(run: Run) -> None:
    async def work(service: TopicService) -> None:
        assert await service.topics.create_topic(CLIENT, "records", 2, TopicSettings())
        assert (await service.produce(CLIENT, "records", 1, batch(b"x"))).base_offset == 0
        found = await service.fetch(CLIENT, "records", 1, 0, 1)
        assert (found.error, found.high_watermark, found.log_start) == (TopicError.NONE, 1, 0)
        assert found.batches == batch(b"x")
        assert (await service.fetch(CLIENT, "records", 0, 0, 1)).batches == b""
        assert (await service.fetch(CLIENT, "records", 1, 2, 1)).error is TopicError.OFFSET_OUT_OF_RANGE
        assert (await service.fetch(CLIENT, "records", 2, 0, 1)).error is TopicError.UNKNOWN_TOPIC_OR_PARTITION
        assert (await service.offset_at(CLIENT, "records", 1, 5)).offset == 0
        assert (await service.partition_state(CLIENT, "records", 1)).high_watermark == 1

    run(work)


def test_a_wait_ends_with_records_of_any_partition(run: Run) -> None:
    async def work(service: TopicService) -> None:
        loop = asyncio.get_running_loop()
        await service.topics.create_topic(CLIENT, "waited", 3, TopicSettings())
        positions = [("waited", number, 0) for number in range(3)]
        readers = [
            asyncio.ensure_future(service.wait_for_data(CLIENT, positions, 1, loop.time() + 25)) for _ in range(4)
        ]
        done, _ = await asyncio.wait(readers, timeout=0.05)
        assert not done
        began_s = loop.time()
        await service.produce(CLIENT, "waited", 2, batch(b"x"))
        await asyncio.gather(*readers)
        assert loop.time() - began_s < 5
        size = len(batch(b"x"))
        began_s = loop.time()
        await service.wait_for_data(CLIENT, positions, 2 * size, began_s + 0.05)
        assert 0.04 < loop.time() - began_s < 5, "there is half of it"
        enough = asyncio.ensure_future(service.wait_for_data(CLIENT, positions, 2 * size, loop.time() + 25))
        await service.produce(CLIENT, "waited", 0, batch(b"y"))
        await enough
        gone = TopicClient("test", "", lambda: True)
        await service.wait_for_data(gone, [("waited", 1, 0)], 1, loop.time() + 25)

    run(work)


def test_a_wait_ends_when_the_topic_is_dropped(run: Run) -> None:
    async def work(service: TopicService) -> None:
        loop = asyncio.get_running_loop()
        await service.topics.create_topic(CLIENT, "going", 1, TopicSettings())
        wait = asyncio.ensure_future(service.wait_for_data(CLIENT, [("going", 0, 0)], 1, loop.time() + 25))
        await asyncio.wait([wait], timeout=0.05)
        assert await service.topics.drop_topic(CLIENT, "going")
        began_s = time.monotonic()
        await wait
        assert time.monotonic() - began_s < 5

    run(work)


def test_a_topic_that_is_made_again_is_found_though_the_old_one_is_known(store: StoreThread, run: Run) -> None:
    async def work(service: TopicService) -> None:
        other = TopicService(LocalService(store.inside.ports.wire, FOREIGN_CONNECTION))
        await service.topics.create_topic(CLIENT, "anew", 1, TopicSettings())
        await service.produce(CLIENT, "anew", 0, batch(b"x"))
        await other.topics.drop_topic(CLIENT, "anew")
        await other.topics.create_topic(CLIENT, "anew", 1, TopicSettings())
        found = await service.produce(CLIENT, "anew", 0, batch(b"y"))
        assert (found.error, found.base_offset) == (TopicError.NONE, 0)

    run(work)


def test_a_drop_that_was_cut_short_is_finished(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(service: TopicService) -> None:
        topics = service.topics
        await topics.create_topic(CLIENT, "cut", 1, TopicSettings())
        await service.produce(CLIENT, "cut", 0, batch(b"x"))

        async def fail(*_: object) -> None:
            raise OSError("the server ends")

        with monkeypatch.context() as patch:
            patch.setattr(topics, "_drop_partitions", fail)
            with pytest.raises(OSError, match="ends"):
                await topics.drop_topic(CLIENT, "cut")
        assert "cut" not in [one.name for one in await topics.read_topics(CLIENT)]
        assert (await service.produce(CLIENT, "cut", 0, batch(b"x"))).error
        assert await topics.create_topic(CLIENT, "cut", 2, TopicSettings())
        assert (await service.produce(CLIENT, "cut", 0, batch(b"z"))).base_offset == 0
        assert await topics.drop_topic(CLIENT, "cut")
        assert not await topics.drop_topic(CLIENT, "cut")

    run(work)


def beside(
    topics: TopicList, method: str, work: Callable[[], Awaitable[object]], patch: pytest.MonkeyPatch, call: int = 1
) -> None:
    """Have another server do ``work`` before that call of the method."""
    real, calls = getattr(topics, method), 0

    async def delayed(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            await work()
        return await real(*args)

    patch.setattr(topics, method, delayed)


async def settings_of(service: TopicService, topic: TopicDescription) -> list[TopicSettings | None]:
    found = [await service._calls.read_heads(CLIENT, topic.key(number)) for number in range(topic.partitions)]
    packed = [heads.get(partition_bytes.SETTINGS) for heads in found]
    return [None if one is None else partition_bytes.unpack_settings(one) for one in packed]


def test_of_two_that_change_a_topic_the_partitions_follow_the_cell(store: StoreThread, run: Run) -> None:
    def kept(retention_ms: int) -> Callable[[TopicSettings], TopicSettings]:
        return lambda old: replace(old, retention_ms=retention_ms)

    async def work(service: TopicService) -> None:
        topics = service.topics
        other = TopicService(LocalService(store.inside.ports.wire, FOREIGN_CONNECTION)).topics
        for call, method in enumerate(("_replace_cell", "_set_partitions"), 1):
            await topics.create_topic(CLIENT, method, 2, TopicSettings(9_000, 77))
            with pytest.MonkeyPatch.context() as patch:
                beside(
                    topics, method, lambda name=method: other.configure_topic(CLIENT, name, kept(5_000)), patch, call
                )
                if method == "_replace_cell":
                    with pytest.raises(IllegalArgument, match="somebody else"):
                        await topics.configure_topic(CLIENT, method, kept(1_000), 3)
                else:
                    assert await topics.configure_topic(CLIENT, method, kept(1_000))
            found = await topics.find_topic(CLIENT, method)
            assert found is not None
            assert found.settings == TopicSettings(5_000, 77)
            assert await settings_of(service, found) == [found.settings] * found.partitions
        assert await topics.configure_topic(CLIENT, "_set_partitions", kept(3_000))
        assert await settings_of(service, found) == [TopicSettings(3_000, 77)] * found.partitions

    run(work)


@pytest.mark.parametrize("method", ["_replace_cell", "_set_partitions", "_follow_cell"])
def test_a_change_beside_a_drop_leaves_no_partition(store: StoreThread, run: Run, method: str) -> None:
    async def work(service: TopicService) -> None:
        topics, name = service.topics, f"gone-{method}"
        other = TopicService(LocalService(store.inside.ports.wire, FOREIGN_CONNECTION)).topics
        await topics.create_topic(CLIENT, name, 1, TopicSettings())
        found = await topics.find_topic(CLIENT, name)
        assert found is not None
        with pytest.MonkeyPatch.context() as patch:
            beside(topics, method, lambda: other.drop_topic(CLIENT, name), patch)
            assert not await topics.configure_topic(CLIENT, name, lambda old: old, 2)
        assert await settings_of(service, replace(found, partitions=2)) == [None, None]

    run(work)


def test_of_two_that_make_a_topic_one_leaves_nothing(store: StoreThread, run: Run) -> None:
    async def work(service: TopicService) -> None:
        topics, made = service.topics, list[TopicDescription]()
        other = TopicService(LocalService(store.inside.ports.wire, FOREIGN_CONNECTION)).topics
        set_partitions = topics._set_partitions

        async def noted(client: TopicClient, topic: TopicDescription, numbers: range) -> None:
            made.append(topic)
            await set_partitions(client, topic, numbers)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(topics, "_set_partitions", noted)
            beside(topics, "_replace_cell", lambda: other.create_topic(CLIENT, "both", 1, TopicSettings()), patch)
            assert not await topics.create_topic(CLIENT, "both", 2, TopicSettings())
        found = await topics.find_topic(CLIENT, "both")
        assert found is not None
        assert found.id != made[0].id
        assert await settings_of(service, made[0]) == [None, None]
        assert await settings_of(service, found) == [TopicSettings()]

    run(work)


def test_offsets_of_a_group_are_committed_and_dropped(run: Run) -> None:
    async def work(service: TopicService) -> None:
        groups = service.groups
        first = [CommittedOffset("a", 0, 5), CommittedOffset("b", 1, 7, "as of noon")]
        await groups.commit_offsets(CLIENT, "mails", first)
        await groups.commit_offsets(CLIENT, "mails", [CommittedOffset("a", 0, 6), CommittedOffset("a", 10, 1)])
        await groups.commit_offsets(CLIENT, "Müller", first[:1])
        expected = [CommittedOffset("a", 0, 6), CommittedOffset("a", 10, 1), first[1]]
        assert await groups.committed_offsets(CLIENT, "mails") == expected
        assert sorted(await groups.list_groups(CLIENT)) == ["Müller", "mails"]
        assert await groups.drop_group(CLIENT, "mails")
        assert await groups.committed_offsets(CLIENT, "mails") == []
        assert await groups.list_groups(CLIENT) == ["Müller"]
        for group, metadata in (("", ""), ("g" * 250, ""), ("g", "m" * (METADATA_BYTES + 1))):
            with pytest.raises(IllegalArgument):
                await groups.commit_offsets(CLIENT, group, [CommittedOffset("a", 0, 1, metadata)])

    run(work)


def test_producers_have_different_numbers(run: Run) -> None:
    async def work(service: TopicService) -> list[int]:
        return [await service.new_producer_id(CLIENT) for _ in range(250)]

    assert len({*run(work), *run(work)}) == 500  # type: ignore[misc]
