"""Topics through a server: administration, records, readers that wait, the page's example."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from itertools import chain
from pathlib import Path

import pytest

from columnar.client import IllegalArgument
from columnar.client.topics import ReadRecord, Topic, TopicFailed
from columnar.model.record_batch import ProducerMark, Record, pack_batch
from columnar.model.topic import FOREVER, LATEST, WEEK_MS, TopicError, TopicSettings
from tests.support.readme_blocks import blocks_of
from tests.support.store_thread import StoreThread

PAGE = Path(__file__).parents[2] / "docs" / "topics.md"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("topics")) as made:
        yield made


def test_the_example_of_the_page(store: StoreThread) -> None:
    example = next(block for block in blocks_of(PAGE.read_text()) if "connection.topic" in block.text)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(example.text.replace("9090", str(store.port)), str(PAGE), "exec"), {})
    expected = [line.partition("  # ")[2] for line in example.text.splitlines() if line.startswith("print(")]
    expected[3:3] = ["0 b'Main_Page' b'first edit'", "1 b'Main_Page' b'second edit'", "2 b'Main_Page' b'third edit'"]
    assert printed.getvalue().splitlines() == expected


def test_topics_are_made_listed_configured_and_dropped(store: StoreThread) -> None:
    with store.connection() as connection:
        topics = connection.topics
        assert topics.list() == []
        assert not topics.drop_topic("a")
        assert topics.create("b", 3)
        assert topics.create("a", retention_ms=1_000, retention_bytes=5)
        assert not topics.create("a", 9)
        assert [(one.name, one.partitions) for one in topics.list()] == [("a", 1), ("b", 3)]
        assert topics.describe("b").settings == TopicSettings(WEEK_MS, FOREVER)
        assert topics.configure("a", retention_ms=2_000, partitions=2)
        assert topics.describe("a").settings == TopicSettings(2_000, 5)
        assert len(connection.topic("a").partitions()) == 2
        assert not topics.configure("c", retention_ms=1)
        for wrong in (
            lambda: topics.create("a b"),
            lambda: topics.create("c", 0),
            lambda: topics.configure("a", partitions=1),
        ):
            with pytest.raises(IllegalArgument):
                wrong()
        assert topics.drop_topic("a")
        assert topics.drop_topic("b")
        assert topics.list() == []


def test_a_topic_that_is_made_again_is_empty(store: StoreThread) -> None:
    with store.connection() as connection:
        connection.topics.create("again")
        old = connection.topic("again")
        old.produce(b"a")
        connection.topics.drop_topic("again")
        with pytest.raises(TopicFailed, match="dropped") as failed:
            old.read(0, 0)
        assert failed.value.error is TopicError.UNKNOWN_TOPIC_OR_PARTITION
        connection.topics.create("again")
        new = connection.topic("again")
        assert new.offset_at(0, LATEST) == 0
        assert new.produce(b"b") == (0, 0)
        assert [record.value for record in new.read(0, 0)] == [b"b"]


def test_records_of_a_key_keep_their_order(store: StoreThread) -> None:
    with store.connection() as connection:
        connection.topics.create("keys", 4)
        topic = connection.topic("keys")
        for number in range(40):
            topic.produce(
                [b"%d" % number, b"%d" % number], key=b"page %d" % (number % 7), headers={"n": b"%d" % number}
            )
        found: dict[bytes, list[int]] = {}
        for record in topic.records(wait_ms=1):
            assert record.key is not None
            assert record.value is not None
            assert record.headers == (("n", record.value),)
            found.setdefault(record.key, []).append(int(record.value))
        assert {key: sorted(numbers) == numbers for key, numbers in found.items()} == dict.fromkeys(found, True)
        assert sorted(chain.from_iterable(found.values())) == sorted([*range(40), *range(40)])
        assert {sum(info.end for info in topic.partitions())} == {80}


def test_a_reader_follows_what_comes_in_any_partition(store: StoreThread) -> None:
    with store.connection() as consumer, store.connection() as producer, ThreadPoolExecutor(1) as pool:
        producer.topics.create("followed", 3)
        began = threading.Event()

        def follow() -> tuple[bytes | None, float]:
            began.set()
            record = next(consumer.topic("followed").records(start={0: 0, 1: 0, 2: 0}))
            return record.value, time.monotonic()

        waiting = pool.submit(follow)
        assert began.wait(10)
        time.sleep(0.05)  # the request is on its way; produced before it came, the record comes all the same
        produced_s = time.monotonic()
        producer.topic("followed").produce(b"a", partition=2)
        value, got_s = waiting.result(30)
        assert value == b"a"
        assert got_s - produced_s < 15, "a wait of one call is 20 s"


def test_a_batch_that_is_sent_again_is_in_the_log_once(store: StoreThread) -> None:
    with store.connection() as connection:
        connection.topics.create("once")
        topic = connection.topic("once")
        batch = pack_batch([Record(0, 1, None, b"a")], ProducerMark(connection.call("columnarTopicProducer"), 0, 0))
        key = topic.description.key(0)
        answers = [connection.call("columnarPartitionProduce", key, batch) for _ in range(3)]
        assert [(one.error, one.baseOffset) for one in answers] == [(0, 0)] * 3
        assert len(topic.read(0, 0)) == 1


def test_producers_ids_are_never_given_twice(store: StoreThread) -> None:
    with store.connection() as one, store.connection() as other:
        given = [link.call("columnarTopicProducer") for _ in range(150) for link in (one, other)]
        assert len(set(given)) == 300


def test_several_connections_append_each_record_once(store: StoreThread) -> None:
    with store.connection() as connection:
        connection.topics.create("many")

    def produce(number: int) -> None:
        with store.connection() as connection:
            topic = connection.topic("many")
            for n in range(50):
                topic.produce(b"%d.%d" % (number, n))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(produce, range(4)))
    with store.connection() as connection:
        records = read_all(connection.topic("many"))
    assert [record.offset for record in records] == list(range(200))
    values = [(record.value or b"").split(b".") for record in records]
    for number in range(4):
        assert [int(n) for who, n in values if int(who) == number] == list(range(50))


def read_all(topic: Topic) -> list[ReadRecord]:
    return list(topic.records(wait_ms=1))
