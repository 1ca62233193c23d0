"""Queues through real stores: the page's example, waiting consumers, kills of the store."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from thriftpy2.transport import TTransportException

from columnar.client import Connection, IllegalArgument
from tests.support.readme_blocks import blocks_of
from tests.support.store_process import StoreProcess
from tests.support.store_thread import StoreThread

PAGE = Path(__file__).parents[2] / "docs" / "queues.md"
KILLS = 4


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("queues")) as made:
        yield made


def test_the_example_of_the_page(store: StoreThread) -> None:
    example = next(block for block in blocks_of(PAGE.read_text()) if "connection.queue" in block.text)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(example.text.replace("9090", str(store.port)), str(PAGE), "exec"), {})
    expected = [line.partition("  # ")[2] for line in example.text.splitlines() if line.startswith("print(")]
    assert printed.getvalue().splitlines() == expected


def test_a_waiting_consumer_gets_a_message_when_it_is_pushed(store: StoreThread) -> None:
    with store.connection() as consumer, store.connection() as producer, ThreadPoolExecutor(1) as pool:
        queue = consumer.queue("waited")
        assert queue.pop(wait_ms=1) == []
        began = threading.Event()

        def pop() -> tuple[bytes, float]:
            began.set()
            return queue.pop(wait_ms=20_000)[0].body, time.monotonic()

        waiting = pool.submit(pop)
        assert began.wait(10)
        time.sleep(0.05)  # the request is on its way; pushed before it came, the message comes all the same
        pushed_s = time.monotonic()
        producer.queue("waited").push(b"a")
        body, got_s = waiting.result(20)
        assert body == b"a"
        assert got_s - pushed_s < 5


def test_several_messages_of_a_group_are_pushed_as_one_step(store: StoreThread) -> None:
    with store.connection() as connection:
        queue = connection.queue("grouped")
        queue.push_many([b"1", b"2"], group="large")
        queue.push(b"3", group=b"small")
        assert [(one.body, one.group) for one in queue.pop(3)] == [(b"1", b"large"), (b"3", b"small"), (b"2", b"large")]


def test_several_consumers_get_each_message_once(store: StoreThread) -> None:
    with store.connection() as connection:
        connection.queue("shared").push_many([b"%d" % n for n in range(300)])

    def consume(_: int) -> list[bytes]:
        taken = []
        with store.connection() as connection:
            queue = connection.queue("shared")
            while found := queue.pop(7):
                assert all(queue.settle(found))
                taken += [one.body for one in found]
        return taken

    with ThreadPoolExecutor(4) as pool:
        counts = Counter(body for taken in pool.map(consume, range(4)) for body in taken)
    assert len(counts) == 300
    assert set(counts.values()) == {1}


def test_many_pushers_and_consumers_at_once_lose_and_double_nothing(store: StoreThread) -> None:
    """Each pusher's messages are a group; all of them come once, and each group's in the order of its pushes."""
    each = 60

    def push(pusher: int) -> None:
        with store.connection() as connection:
            queue = connection.queue("crowded")
            for n in range(each):
                assert queue.push(b"%d" % n, group=b"%d" % pusher).is_new

    def consume(_: int) -> list[tuple[str, bytes, bytes]]:
        taken = []
        with store.connection() as connection:
            queue = connection.queue("crowded")
            while queue.stats().committed < 4 * each:
                found = queue.pop(3, wait_ms=50)
                assert not found or all(queue.settle(found))
                taken += [(one.id, one.group, one.body) for one in found]
        return taken

    with ThreadPoolExecutor(8) as pool:
        consumers = [pool.submit(consume, number) for number in range(4)]
        for pushed in [pool.submit(push, number) for number in range(4)]:
            pushed.result(60)
        taken = sorted(one for consumer in consumers for one in consumer.result(60))  # ids rise
    for pusher in range(4):
        assert [body for _, group, body in taken if group == b"%d" % pusher] == [b"%d" % n for n in range(each)]
    with store.connection() as connection:
        stats = connection.queue("crowded").stats()
    assert (stats.messages, stats.pushed, stats.committed) == (0, 4 * each, 4 * each)


def test_queues_are_spread_over_regions_and_each_is_in_one(store: StoreThread) -> None:
    with store.connection() as connection:
        for name in ("spread-a", "spread-b", "spread-c"):
            connection.queue(name).push_many([b"%d" % n for n in range(20)])
        for amid in (b"spread-b", b"spread-c"):
            connection.call("columnarSplit", b"columnar:queues", amid + b"\x00m")
        starts = [one.start_key for one in connection.admin.regions("columnar:queues")]
        assert [start for start in starts if start.startswith(b"spread-")] == [b"spread-b\x00", b"spread-c\x00"]
        for name in ("spread-a", "spread-b", "spread-c"):
            queue = connection.queue(name)
            assert [one.body for one in queue.pop(20, wait_ms=5_000)] == [b"%d" % n for n in range(20)]
            assert queue.stats().in_flight == 20


def test_a_refused_message_is_an_illegal_argument(store: StoreThread) -> None:
    with store.connection() as connection:
        with pytest.raises(IllegalArgument, match="priority"):
            connection.queue("refused").push(b"", priority=300)
        with pytest.raises(IllegalArgument, match="queue's name"):
            connection.queue("a/b").push(b"")


def test_no_acknowledged_message_is_lost_or_comes_after_its_commit(tmp_path: Path) -> None:
    """Kill the store amid pushes, pops and commits; then everything that is left comes."""
    store = StoreProcess(tmp_path / "data")
    store.start()
    pushed: set[bytes] = set()
    committed: set[bytes] = set()
    unsure: set[bytes] = set()  # whose commit was not answered
    held: dict[bytes, int] = {}
    for round_number in range(KILLS + 1):
        if round_number:
            store.start()
        connection = Connection("127.0.0.1", store.port, timeout=20_000)
        queue = connection.queue("killed")
        ends = threading.Timer(0.5, store.kill)
        if round_number < KILLS:
            ends.start()
        try:
            for message in queue.pop(1_000) if round_number else ():
                assert message.body not in committed
                assert message.body not in held, "its lease lasts"
                held[message.body] = message.attempts
            number = 0
            while round_number < KILLS:
                body = b"%d/%d" % (round_number, number)
                number += 1
                queue.push(body)
                pushed.add(body)
                for message in queue.pop(lease_ms=600_000):
                    assert message.body not in committed
                    assert message.body not in held
                    held[message.body] = message.attempts
                    if number % 3 == 0:
                        unsure.add(message.body)
                        assert message.commit()
                        committed.add(message.body)
        except (OSError, EOFError, TTransportException):
            if round_number == KILLS:
                raise
        finally:
            ends.cancel()
            connection.close()
        if ends.is_alive():
            ends.join()
    connection = Connection("127.0.0.1", store.port, timeout=20_000)
    try:
        stats = connection.queue("killed").stats()
        left = stats.messages
        assert len(pushed - unsure) <= left
        seen = {one.body for one in connection.queue("killed").pop(1_000)} | set(held)
        assert len(pushed - seen - committed) <= KILLS, "each kill may leave one pop unanswered: its lease lasts"
        assert left >= len(pushed - committed - unsure)
    finally:
        connection.close()
        store.kill()
