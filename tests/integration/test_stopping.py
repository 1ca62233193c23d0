"""A store that is stopped in the middle of long work: nothing of it is at work in the folder when the lock goes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from columnar.client import Connection
from columnar.client.changes import Change
from columnar.client.errors import IOError
from columnar.master import table_copies
from columnar.model.view_definition import Source, View
from columnar.roles import ports
from columnar.storage.data_folder import DataFolder
from tests.support.cluster_process import until
from tests.support.serving import Serving


class SlowDisk:
    """Reads checksums when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.at_work = 0
        self.begun = 0
        self.when_unlocked: list[int] = []  # files that were being read
        checksum, close = table_copies.checksum, DataFolder.close

        def slow(path: str) -> str:
            self.begun += 1
            self.at_work += 1
            self.entered.set()
            self.go_on.wait(20)
            try:
                return checksum(path)
            finally:
                self.at_work -= 1

        def unlocked(folder: DataFolder) -> None:
            self.when_unlocked.append(self.at_work)
            close(folder)

        monkeypatch.setattr(table_copies, "checksum", slow)
        monkeypatch.setattr(DataFolder, "close", unlocked)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    disk = SlowDisk(monkeypatch)
    yield disk
    disk.go_on.set()


def take(store: Serving, answers: list[object]) -> threading.Thread:
    connection = store.connect()

    def asked() -> None:
        try:
            answers.append(connection.snapshots.take_snapshot("s", b"t"))
        except (OSError, EOFError, TException, TTransportException) as error:
            answers.append(error)

    thread = threading.Thread(target=asked)
    thread.start()
    return thread


def stopping(store: Serving) -> Future[None]:
    return asyncio.run_coroutine_threadsafe(store.store.stop(), store._loop)


@pytest.mark.parametrize("grace_s", [0.05, 20.0], ids=["its client is cut off", "its client is answered"])
def test_the_lock_goes_last(tmp_path: Path, disk: SlowDisk, monkeypatch: pytest.MonkeyPatch, grace_s: float) -> None:
    monkeypatch.setattr(ports, "STOP_GRACE_S", grace_s)
    store = Serving(tmp_path / "data").start()
    store.connect().create_table(b"t", {"f": {}}, splits=[b"m"])
    answers: list[object] = []
    asking = take(store, answers)
    assert disk.entered.wait(20)
    stopped = stopping(store)
    with pytest.raises(TimeoutError):
        stopped.result(0.5)
    disk.go_on.set()
    stopped.result(30)
    asking.join(30)
    assert disk.when_unlocked == [0], "a thread was reading the snapshot's files when another might have the folder"
    assert disk.begun == 1, "what is left of the snapshot is given up"
    if grace_s > 1:
        (refused,) = answers
        assert isinstance(refused, IOError), refused
        assert refused.message.startswith(b"NotServingRegionException"), refused
        assert list((tmp_path / "data" / "snapshots").iterdir()) == []
    store._loop.call_soon_threadsafe(store._loop.stop)
    store._thread.join()
    again = Serving(tmp_path / "data").start()
    assert again.connect().snapshots.list_snapshots() == []
    again.connect().snapshots.take_snapshot("s", b"t")
    again.stop()


def test_a_stop_answers_those_that_wait_for_messages_records_and_changes(tmp_path: Path) -> None:
    store = Serving(tmp_path / "store", trigger_modules=()).start()
    store.connect().topics.create("edits")
    store.connect().create_table("pages", {"f": {}}, attributes={"CHANGE_LOG": "3600"})
    began, answers, port = threading.Barrier(5), dict[str, object](), store.store.port

    def pop() -> None:
        queue = Connection("127.0.0.1", port).queue("jobs")
        queue.stats()
        began.wait(20)
        answers["pop"] = queue.pop(wait_ms=20_000)

    def follow() -> None:
        connection = Connection("127.0.0.1", port)
        began.wait(20)
        answers["wait"] = connection.call("columnarTopicWait", b"edits", {0: 0}, 1, 60_000)

    def read(group: str) -> None:
        changes = Connection("127.0.0.1", port).changes("pages", group=group)
        changes.poll(0)
        began.wait(20)
        answers[f"changes {group}"] = [one for one in changes.poll(20_000) if isinstance(one, Change)]

    readers = [partial(read, group) for group in ("", "indexers")]
    waiting = [threading.Thread(target=one) for one in (pop, follow, *readers)]
    for thread in waiting:
        thread.start()
    began.wait(20)
    until_s = time.monotonic() + 20
    while store.run(waits_of(store)) < 4 and time.monotonic() < until_s:
        time.sleep(0.01)
    began_s = time.monotonic()
    store.stop()
    for thread in waiting:
        thread.join(20)
    assert answers == {"pop": [], "wait": None, "changes ": [], "changes indexers": []}
    assert time.monotonic() - began_s < ports.STOP_GRACE_S, "they are not cut off after the time of grace"


def test_a_stop_answers_those_that_wait_for_deliveries_and_leases(tmp_path: Path) -> None:
    store = Serving(tmp_path / "store", trigger_modules=()).start()
    connection = store.connect()
    connection.create_table("pages", {"f": {}})
    connection.views.add(View("by_a", Source("pages", ("f:a",))))
    session = connection.session()
    session.table("pages").put(b"row", {b"f:a": b"1"})
    assert session.wait("by_a", timeout_ms=20_000)
    never = session.token.rpartition("-")[0] + "-1000000"  # a change that does not come
    connection.topics.create("edits")
    connection.lease("job", ttl_ms=60_000).acquire()
    calls: dict[str, tuple[Any, ...]] = {
        "columnarWait": (["by_a"], [never], 20_000, False),
        "columnarTriggerWait": ("by_a", never, 20_000),
        "columnarViewWait": ("by_a", never, 20_000),
        "columnarLease": (b"job", b"other", 60_000, 0, 20_000),
        "columnarPartitionWait": (connection.topics.describe("edits").key(0), 0, 1, 20_000),
    }
    answers, port = dict[str, Any](), store.store.port

    def wait(method: str, args: tuple[Any, ...]) -> None:
        answers[method] = Connection("127.0.0.1", port).call(method, *args)

    waiting = [threading.Thread(target=wait, args=call) for call in calls.items()]
    for thread in waiting:
        thread.start()
    until(lambda: store.do(lambda: len(store.store.ports.wire.pending._calls)) == len(calls))
    began_s = time.monotonic()
    store.stop()
    for thread in waiting:
        thread.join(20)
    assert time.monotonic() - began_s < ports.STOP_GRACE_S, "they are not cut off after the time of grace"
    assert (answers.pop("columnarLease").held, answers.pop("columnarPartitionWait").bytes) == (False, 0)
    assert answers == {"columnarWait": False, "columnarTriggerWait": False, "columnarViewWait": False}


async def waits_of(store: Serving) -> int:
    """Return how many pops and readers of topics and changes wait."""
    messages = store.store.serving.messages
    pops = messages.queues.pushes().desks._waiters
    partitions = messages.topics.pushes(lambda: None).partitions
    changes = store.store.serving.changes(None)
    return sum(map(len, pops.values())) + partitions.waiting_count + changes.ticks.waiting_count
