"""The Kafka port of a store, by Kafka's clients for Python: records, offsets, groups, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from columnar.kafka import group_coordinators
from columnar.kafka.codec import read_answer
from columnar.kafka.errors import KafkaError
from columnar.kafka.schemas import (
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FETCH,
    HEARTBEAT,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    SYNC_GROUP,
)
from columnar.model.record_batch import Record, pack_batch
from columnar.model.topic import TopicError
from tests.support.kafka_clients import (
    WAIT_S,
    Raw,
    confluent_consumer,
    confluent_producer,
    consume,
    produce_all,
    python_consumer,
    python_producer,
)
from tests.support.readme_blocks import blocks_of
from tests.support.serving import Serving

pytest.importorskip("kafka", reason="kafka-python is not installed: make dev")
pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: make dev")

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("kafka") / "store", trigger_modules=(), kafka_port=0).start()
    yield serving
    serving.stop()


@pytest.fixture(scope="module")
def port(store: Serving) -> int:
    found = store.store.kafka_port
    assert found is not None
    return found


@pytest.fixture
def topic(store: Serving) -> str:
    name = f"t{next(_NUMBERS)}"
    assert store.connect().topics.create(name, 2)
    return name


@pytest.fixture
def raw(port: int) -> Iterator[Raw]:
    with closing(Raw(port)) as client:
        yield client


# --- records -------------------------------------------------------------------------------------------------


def test_the_example_of_the_page(store: Serving, port: int) -> None:
    example = next(block for block in blocks_of(PAGE.read_text()) if "bootstrap.servers" in block.text)
    text = example.text.replace("9092", str(port)).replace("9090", str(store.store.port))
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(text, str(PAGE), "exec"), {})
    records = ["0 b'Main_Page' b'first edit'", "1 b'Main_Page' b'second edit'"]
    assert printed.getvalue().splitlines() == ["0", *records, "[b'first edit', b'second edit']"]


@pytest.mark.parametrize("compression", ["none", "gzip", "lz4", "zstd", "snappy"])
def test_confluents_client_reads_what_it_wrote(port: int, topic: str, compression: str) -> None:
    producer = confluent_producer(port, enable_idempotence=True, compression_type=compression)
    values = [b"%d" % n for n in range(1_000)]
    places = produce_all(producer, topic, values, partition=1)
    assert places == [(1, n) for n in range(1_000)]
    with closing(confluent_consumer(port, topic, topic)) as consumer:
        assert [(one.offset(), one.value()) for one in consume(consumer, 1_000)] == list(enumerate(values))


def test_kafka_python_reads_what_the_store_wrote(store: Serving, port: int, topic: str) -> None:
    store.connect().topic(topic).produce([b"a", b"b"], partition=0, headers={"by": b"ann"})
    producer = python_producer(port)
    sent = producer.send(topic, b"c", key=b"k", partition=0).get(WAIT_S)
    assert (sent.partition, sent.offset) == (0, 2)
    producer.close()
    with closing(python_consumer(port, topic)) as consumer:
        found = [next(consumer) for _ in range(3)]
    assert [(one.offset, one.key, one.value) for one in found] == [(0, None, b"a"), (1, None, b"b"), (2, b"k", b"c")]
    assert list(found[0].headers) == [("by", b"ann")]


def test_aiokafka_reads_what_it_wrote(port: int, topic: str) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed: make dev")

    async def run() -> list[bytes]:
        servers = f"127.0.0.1:{port}"
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
            for n in range(10):
                await producer.send_and_wait(topic, b"%d" % n, partition=n % 2)
        consumer = aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=servers, group_id=f"aio-{topic}", auto_offset_reset="earliest"
        )
        async with consumer:
            return [(await asyncio.wait_for(consumer.getone(), WAIT_S)).value for _ in range(10)]

    assert sorted(asyncio.run(run())) == [b"%d" % n for n in range(10)]


def test_a_reader_waits_for_records_and_is_woken(store: Serving, port: int, topic: str) -> None:
    with closing(python_consumer(port, topic, fetch_max_wait_ms=100_000, request_timeout_ms=110_000)) as consumer:
        assert not consumer.poll(timeout_ms=500)
        written = threading.Timer(1.0, lambda: store.connect().topic(topic).produce([b"a"], partition=1))
        written.start()
        found = consumer.poll(timeout_ms=60_000)  # the wait at the server does not end by then
        assert [record.value for records in found.values() for record in records] == [b"a"]
        written.join()


def test_offsets_by_time_and_ends(port: int, topic: str) -> None:
    from kafka import TopicPartition

    producer = python_producer(port)
    for at in (1_000, 2_000, 3_000):
        producer.send(topic, b"x", partition=0, timestamp_ms=at).get(WAIT_S)
    producer.close()
    place, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with closing(python_consumer(port)) as consumer:
        found = consumer.offsets_for_times({place: 1_500, other: 1_500})
        assert (found[place].offset, found[place].timestamp, found[other]) == (1, 2_000, None)
        assert consumer.offsets_for_times({place: 9_000})[place] is None
        assert consumer.beginning_offsets([place, other]) == {place: 0, other: 0}
        assert consumer.end_offsets([place, other]) == {place: 3, other: 0}


def test_a_topic_is_made_by_its_first_record(store: Serving, port: int) -> None:
    name = f"made.{next(_NUMBERS)}"
    producer = python_producer(port)
    assert producer.send(name, b"a").get(WAIT_S).offset == 0
    producer.close()
    (found,) = (one for one in store.connect().topics.list() if one.name == name)
    assert found.partitions == 1


def test_batches_with_a_gap_are_refused(raw: Raw, topic: str) -> None:
    values = {"acks": -1, "timeout_ms": 1_000, "transactional_id": None}
    places = [{"index": 0, "records": b"no batch"}, {"index": 7, "records": b""}]
    answer = raw.ask(PRODUCE, 8, {**values, "topics": [{"name": topic, "partitions": places}]})
    errors = [one["error"] for one in answer["topics"][0]["partitions"]]
    assert errors[0] != 0
    assert errors[1] == KafkaError.UNKNOWN_TOPIC_OR_PARTITION


# --- groups --------------------------------------------------------------------------------------------------


def test_two_clients_share_a_group_and_one_takes_over(port: int, topic: str) -> None:
    first = python_consumer(port, topic, group_id=f"g-{topic}", session_timeout_ms=6_000, heartbeat_interval_ms=500)
    second = python_consumer(port, topic, group_id=f"g-{topic}", session_timeout_ms=6_000, heartbeat_interval_ms=500)

    def poll_until(wanted: list[int], *consumers: Any) -> None:
        began = time.monotonic()
        while sorted(len(one.assignment()) for one in consumers) != wanted:
            assert time.monotonic() - began < WAIT_S, [one.assignment() for one in consumers]
            for one in consumers:
                one.poll(timeout_ms=100)

    poll_until([2], first)
    poll_until([1, 1], first, second)
    second.close()
    poll_until([2], first)
    first.close()


def test_a_group_goes_on_at_its_committed_offsets(store: Serving, port: int, topic: str) -> None:
    produce_all(confluent_producer(port), topic, [b"a", b"b", b"c"], partition=0)
    with closing(confluent_consumer(port, f"g-{topic}", topic)) as consumer:
        consume(consumer, 2)
        consumer.commit(asynchronous=False)
        position = consumer.committed(consumer.assignment(), timeout=WAIT_S)
        assert sorted(one.offset for one in position) in ([-1001, 2], [-1001, 3])
        done = max(one.offset for one in position)
    with closing(confluent_consumer(port, f"g-{topic}", topic)) as consumer:
        if done == 3:
            return
        assert [one.value() for one in consume(consumer, 1)] == [b"c"]


def test_a_topic_that_is_made_again_is_read_from_its_beginning(store: Serving, raw: Raw, port: int, topic: str) -> None:
    group, topics = f"g-{topic}", store.connect().topics
    places = [{"index": 0, "offset": 3, "metadata": "m"}]
    commit = {"group": group, "generation": -1, "member": "", "topics": [{"name": topic, "partitions": places}]}
    asked = {"group": group, "topics": [{"name": topic, "partitions": [0]}]}

    def committed(asked: dict[str, Any]) -> list[int]:
        found = raw.ask(OFFSET_FETCH, 5, asked)["topics"]
        return [one["offset"] for topic in found for one in topic["partitions"]]

    assert raw.ask(OFFSET_COMMIT, 6, commit)["topics"][0]["partitions"][0]["error"] == 0
    assert committed(asked) == committed({"group": group, "topics": None}) == [3]
    topics.drop_topic(topic)
    assert (committed(asked), committed({"group": group, "topics": None})) == ([-1], [])
    topics.create(topic, 2)
    assert committed(asked) == [-1]
    produce_all(confluent_producer(port), topic, [b"%d" % number for number in range(5)], partition=0)
    with closing(confluent_consumer(port, group, topic)) as consumer:
        assert [one.value() for one in consume(consumer, 5)] == [b"0", b"1", b"2", b"3", b"4"]
    assert raw.ask(OFFSET_COMMIT, 6, commit)["topics"][0]["partitions"][0]["error"] == 0
    assert committed(asked) == [3]


def test_groups_are_listed_described_and_dropped(port: int, topic: str) -> None:
    from kafka import KafkaAdminClient

    produce_all(confluent_producer(port), topic, [b"a"], partition=0)
    group = f"g-{topic}"
    with closing(KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")) as admin:
        with closing(confluent_consumer(port, group, topic)) as consumer:
            consume(consumer, 1)
            consumer.commit(asynchronous=False)
            described = str(admin.describe_groups([group]))
            assert "Stable" in described
            assert "127.0.0.1" in described
            assert group in str(admin.list_groups())
        offsets = admin.list_group_offsets(group)
        assert "1" in str(offsets)
        admin.delete_groups([group])
        assert group not in str(admin.list_groups())


def test_commits_that_are_refused(raw: Raw, topic: str) -> None:
    group = f"g-{topic}"
    join = {"group": group, "session_ms": 10_000, "rebalance_ms": 10_000, "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}]}  # fmt: skip
    given = raw.ask(JOIN_GROUP, 4, join)
    assert given["error"] == KafkaError.MEMBER_ID_REQUIRED
    joined = raw.ask(JOIN_GROUP, 4, {**join, "member": given["member"]})
    assert (joined["error"], joined["generation"], joined["leader"]) == (0, 1, given["member"])
    offsets = [{"name": topic, "partitions": [{"index": 0, "offset": 5, "metadata": None}]}]
    for generation, member, error in [
        (1, given["member"], KafkaError.REBALANCE_IN_PROGRESS),  # it has no assignment yet
        (0, given["member"], KafkaError.ILLEGAL_GENERATION),
        (1, "stranger", KafkaError.UNKNOWN_MEMBER_ID),
    ]:
        commit = {"group": group, "generation": generation, "member": member, "topics": offsets}
        answer = raw.ask(OFFSET_COMMIT, 6, commit)
        assert answer["topics"][0]["partitions"][0]["error"] == error
    static = raw.ask(JOIN_GROUP, 5, {**join, "instance": "i"})
    assert static["error"] == KafkaError.UNSUPPORTED_VERSION
    left = raw.ask(LEAVE_GROUP, 3, {"group": group, "members": [{"member": given["member"]}, {"member": "stranger"}]})
    assert [one["error"] for one in left["members"]] == [0, KafkaError.UNKNOWN_MEMBER_ID]
    places = [
        {"index": index, "offset": 5, "metadata": "m" * size} for index, size in ((0, 9), (-1, 0), (2, 0), (1, 5_000))
    ]
    alone = {
        "group": f"alone-{topic}",
        "generation": -1,
        "member": "",
        "topics": [{"name": topic, "partitions": places}],
    }
    errors = [one["error"] for one in raw.ask(OFFSET_COMMIT, 6, alone)["topics"][0]["partitions"]]
    unknown = KafkaError.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [0, unknown, unknown, KafkaError.OFFSET_METADATA_TOO_LARGE]
    assert raw.ask(HEARTBEAT, 2, {"group": "", "generation": 1, "member": "m"})["error"] == KafkaError.INVALID_GROUP_ID


def test_a_group_with_members_is_not_dropped(raw: Raw, topic: str) -> None:
    group = f"busy-{topic}"
    join = {"group": group, "session_ms": 10_000, "rebalance_ms": 10_000, "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}]}  # fmt: skip
    joined = raw.ask(JOIN_GROUP, 3, join)
    assert joined["error"] == 0
    dropped = raw.ask(DELETE_GROUPS, 0, {"groups": [group, f"nobody-{topic}"]})["groups"]
    assert [one["error"] for one in dropped] == [KafkaError.NON_EMPTY_GROUP, KafkaError.GROUP_ID_NOT_FOUND]
    assert raw.ask(LEAVE_GROUP, 2, {"group": group, "member": joined["member"]})["error"] == 0


def test_an_answer_to_a_fetch_is_not_larger_than_asked_for_but_for_its_first_batch(
    store: Serving, raw: Raw, topic: str
) -> None:
    for place in (0, 1):
        store.connect().topic(topic).produce(b"x" * 600_000, partition=place)
    places = [{"index": place, "offset": 0, "max_bytes": 1 << 20} for place in (0, 1)]
    asked = {"max_wait_ms": 0, "min_bytes": 1, "topics": [{"name": topic, "partitions": places}]}
    for max_bytes, counts in ((700_000, [True, False]), (10, [True, False]), (1_300_000, [True, True])):
        (found,) = raw.ask(FETCH, 4, {**asked, "max_bytes": max_bytes})["topics"]
        assert [len(one["records"]) > 600_000 for one in found["partitions"]] == counts
        assert [one["high_watermark"] for one in found["partitions"]] == [1, 1]


def test_a_fetch_with_an_error_waits_for_nothing(raw: Raw, topic: str) -> None:
    places = [{"index": 0, "offset": 0, "max_bytes": 9}, {"index": 1, "offset": 99, "max_bytes": 9}]
    wait_ms = round(2_000 * WAIT_S)  # twice as long as the client waits for an answer
    asked = {"max_wait_ms": wait_ms, "min_bytes": 1, "max_bytes": 99, "topics": [{"name": topic, "partitions": places}]}
    (found,) = raw.ask(FETCH, 4, asked)["topics"]
    assert [one["error"] for one in found["partitions"]] == [0, TopicError.OFFSET_OUT_OF_RANGE]


def test_transactions_are_refused(raw: Raw, topic: str) -> None:
    refused = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert raw.ask(INIT_PRODUCER_ID, 1, {"transactional_id": "t", "timeout_ms": 1})["error"] == refused
    places = [{"index": 0, "records": pack_batch([Record(0, 1, None, b"a")])}]
    asked = {"transactional_id": "t", "acks": -1, "timeout_ms": 1, "topics": [{"name": topic, "partitions": places}]}
    (found,) = raw.ask(PRODUCE, 7, asked)["topics"]
    assert [one["error"] for one in found["partitions"]] == [refused]


def test_a_member_whose_client_goes_while_it_joins_is_in_no_generation(
    raw: Raw, port: int, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_coordinators, "CHECK_S", 0.05)
    group = f"gone-{topic}"
    join = {"group": group, "session_ms": 30_000, "rebalance_ms": 30_000, "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}]}  # fmt: skip
    stays = raw.ask(JOIN_GROUP, 3, join)
    raw.ask(SYNC_GROUP, 2, {"group": group, "generation": stays["generation"], "member": stays["member"],
                            "assignments": []})  # fmt: skip
    beat = {"group": group, "generation": stays["generation"], "member": stays["member"]}
    with closing(Raw(port)) as goes:
        goes.send(JOIN_GROUP, 3, {**join, "session_ms": 200})
        until_s = time.monotonic() + WAIT_S
        while raw.ask(HEARTBEAT, 2, beat)["error"] != KafkaError.REBALANCE_IN_PROGRESS:
            assert time.monotonic() < until_s
    while len(raw.ask(DESCRIBE_GROUPS, 0, {"groups": [group]})["groups"][0]["members"]) > 1:
        assert time.monotonic() < until_s, "the server looks for it, and its session ends"
        time.sleep(0.01)
    again = raw.ask(JOIN_GROUP, 3, {**join, "member": stays["member"]})
    assert [one["member"] for one in again["members"]] == [stays["member"]]
    assert raw.ask(LEAVE_GROUP, 2, {"group": group, "member": stays["member"]})["error"] == 0


def test_ids_without_a_member_take_no_room_from_groups(raw: Raw, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_coordinators, "GROUPS", 100)  # more than other tests have left
    join = {"session_ms": 1_800_000, "rebalance_ms": 10_000, "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}]}  # fmt: skip
    given = [raw.ask(JOIN_GROUP, 4, {**join, "group": f"{n}-{topic}"}) for n in range(250)]
    assert {one["error"] for one in given} == {KafkaError.MEMBER_ID_REQUIRED}
    again = raw.ask(JOIN_GROUP, 4, {**join, "group": f"0-{topic}", "member": given[0]["member"]})
    assert again["error"] == KafkaError.UNKNOWN_MEMBER_ID  # and it asks for an id again


# --- the port ------------------------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(raw: Raw, topic: str) -> None:
    fetch = {"max_wait_ms": 1_000, "min_bytes": 1, "max_bytes": 1_000,
             "topics": [{"name": topic, "partitions": [{"index": 0, "offset": 0, "max_bytes": 1_000}]}]}  # fmt: skip
    raw.send(FETCH, 4, fetch, 1)
    raw.send(METADATA, 1, {"topics": []}, 2)
    raw.send(API_VERSIONS, 3, {}, 3)
    assert raw.receive(FETCH, 4)[0] == 1
    assert raw.receive(METADATA, 1)[0] == 2
    assert raw.receive(API_VERSIONS, 3)[0] == 3


def test_unknown_versions_are_answered_as_kafka_does(raw: Raw, port: int) -> None:
    raw.socket.sendall(bytes.fromhex("0000000c0012006300000007ffff0000"))
    _, answer = read_answer(API_VERSIONS, 0, raw.frame())
    assert answer["error"] == KafkaError.UNSUPPORTED_VERSION
    assert {one["number"] for one in answer["apis"]} >= {0, 1, 3, 18}
    with closing(Raw(port)) as other:
        other.socket.sendall(bytes.fromhex("0000000a0003006300000007ffff"))
        with pytest.raises(ConnectionResetError):
            other.frame()


@pytest.mark.parametrize(
    "sent",
    [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x0a" + b"\xff" * 10],
)
def test_bytes_that_are_no_requests_end_the_connection(port: int, raw: Raw, sent: bytes) -> None:
    with closing(Raw(port)) as other:
        other.socket.sendall(sent)
        with pytest.raises(ConnectionResetError):
            other.frame()
    assert raw.ask(API_VERSIONS, 0, {})["error"] == 0


def test_acks_0_gets_no_answer(store: Serving, raw: Raw, topic: str) -> None:
    values = {"acks": 0, "timeout_ms": 1_000, "transactional_id": None, "topics": []}
    raw.send(PRODUCE, 7, values, 1)
    raw.send(API_VERSIONS, 0, {}, 2)
    assert raw.receive(API_VERSIONS, 0)[0] == 2
    producer = confluent_producer(store.store.kafka_port or 0, acks=0)
    producer.produce(topic, b"a", partition=0)
    assert producer.flush(WAIT_S) == 0
    end_s = time.monotonic() + WAIT_S
    while not list(store.connect().topic(topic).read(0, 0)):
        assert time.monotonic() < end_s


def test_settings_of_topics_that_do_not_exist_are_refused(raw: Raw) -> None:
    def create(**changes: Any) -> tuple[int, str]:
        one = {
            "name": f"n{next(_NUMBERS)}",
            "partitions": 1,
            "replicas": 1,
            "assignments": [],
            "configs": [],
            **changes,
        }
        answer = raw.ask(CREATE_TOPICS, 4, {"topics": [one], "timeout_ms": 1_000})["topics"][0]
        return answer["error"], answer["error_message"] or ""

    assert create() == (0, "")
    assert (
        create(configs=[{"name": "retention.ms", "value": "1000"}, {"name": "cleanup.policy", "value": "delete"}])[0]
        == 0
    )
    error, text = create(configs=[{"name": "cleanup.policy", "value": "compact"}])
    assert error == KafkaError.INVALID_CONFIG
    assert "cleanup.policy=compact" in text
    assert create(replicas=3)[0] == KafkaError.INVALID_REPLICATION_FACTOR
    assert create(partitions=0)[0] == KafkaError.INVALID_PARTITIONS
    assert create(name="a b")[0] == KafkaError.INVALID_TOPIC


def test_topics_are_made_described_grown_and_dropped_over_kafka(port: int) -> None:
    from kafka import KafkaAdminClient

    name = f"admin.{next(_NUMBERS)}"
    with closing(KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")) as admin:
        admin.create_topics({name: {"num_partitions": 3, "replication_factor": 1}})
        assert name in admin.list_topics()
        admin.create_partitions({name: 5})
        (found,) = admin.describe_topics([name])
        assert len(found["partitions"]) == 5
        admin.delete_topics([name])
        assert name not in admin.list_topics()


def test_a_client_that_goes_within_a_wait_leaves_nothing(store: Serving, port: int, topic: str) -> None:
    before = store.store.ports.protocol_ports.connections
    with closing(Raw(port)) as other:
        place = {"index": 0, "offset": 0, "max_bytes": 1_000}
        fetch = {"max_wait_ms": 30_000, "min_bytes": 1, "max_bytes": 1_000,
                 "topics": [{"name": topic, "partitions": [place]}]}  # fmt: skip
        other.send(FETCH, 4, fetch)
    end_s = time.monotonic() + WAIT_S
    while store.store.ports.protocol_ports.connections > before:
        assert time.monotonic() < end_s
        with contextlib.suppress(TimeoutError):
            time.sleep(0.01)


def test_a_client_reads_what_a_feed_wrote_and_its_commits_are_counted(store: Serving, port: int) -> None:
    connection = store.connect()
    connection.create_table("fed", {"m": {}})
    connection.feeds.add("fed", "fed.changes", partitions=3)
    for number in range(10):
        for row in (b"a", b"b", b"c"):
            connection.table("fed").put(row, {b"m:n": b"%d" % number})
    with closing(python_consumer(port, "fed.changes", group_id="fed-readers")) as consumer:
        found = list(itertools.islice(consumer, 30))
        consumer.commit()
    numbers: dict[bytes, list[str]] = {}
    for one in found:
        numbers.setdefault(one.key, []).append(json.loads(one.value)["after"]["m:n"])
    assert numbers == {row: [str(number) for number in range(10)] for row in (b"a", b"b", b"c")}
    assert len({dict(one.headers)["sequence"] for one in found}) == 30
    (lag,) = connection.topics.groups("fed.changes")
    assert (lag.group, lag.lag) == ("fed-readers", 0)
    (window,) = connection.topics.audit("fed.changes", "fed-readers", window_s=10**9, windows=1)
    assert (window.produced, window.consumed) == (30, 30)
